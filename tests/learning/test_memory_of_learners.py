"""A learner whose arrays would not fit says so before it makes them."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import labelonce as lo
from labelonce import Annotations, simulate, workers
from labelonce.baselines import Raykar, UnbiasedLoss

N_TASKS, N_CLASSES = 2000, 60_000
X = np.zeros((N_TASKS, 2))


def many_classes() -> Annotations:
    task = np.arange(N_TASKS, dtype=np.int32)
    return Annotations(task, task % 100, task, np.arange(N_TASKS), np.arange(100), np.arange(N_CLASSES))


LEARNERS: dict[str, Any] = {
    "Raykar": Raykar(),
    "UnbiasedLoss": UnbiasedLoss(np.eye(2)),
    "MBEM": lo.MBEM(lo.SoftmaxRegression(), worker_model=workers.Full()),
    "ForwardCorrection": lo.baselines.ForwardCorrection(np.eye(2)),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_sixty_thousand_classes_are_refused_in_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 2.0**30)
    ann, sentence = many_classes(), f"{name} with 2,000 tasks, 100 workers and 60,000 classes"
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"^{sentence} must .* Use MBEM\(worker_model=workers.Grouped\("):
        LEARNERS[name].fit(X, ann)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


def test_plain_labels_of_too_many_classes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 2.0**25)
    with pytest.raises(ValueError, match="SoftmaxRegression with 2,000 tasks and 900 classes must fit"):
        lo.SoftmaxRegression().fit(X, np.arange(N_TASKS) % 900)


@pytest.mark.filterwarnings("ignore::labelonce.aggregation.RedundancyWarning")
@pytest.mark.parametrize("targets", ["hard", "soft"])
@pytest.mark.parametrize("aggregator", [lo.MajorityVote(), lo.OneCoin()])
def test_training_on_an_aggregate_of_many_classes_is_that_of_few(
    targets: str, aggregator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 5, 300)
    ann = simulate.annotate(y_true, simulate.one_coin([0.7] * 10, 5), simulate.assign(300, 10, 1, rng), rng)  # no ties
    features = rng.normal(size=(5, 4))[y_true] + 0.3 * rng.normal(size=(300, 4))
    learner = lo.TrainOnAggregate(aggregator, lo.SoftmaxRegression(tol=1e-8, max_iter=2000), targets=targets)
    few = learner.fit(features, ann).predict_proba(features)
    monkeypatch.setattr("labelonce.data._memory.MOST_NUMBERS", 0)
    np.testing.assert_allclose(learner.fit(features, ann).predict_proba(features), few, atol=1e-3)
