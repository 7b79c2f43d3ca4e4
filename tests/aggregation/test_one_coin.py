import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import DawidSkene, OneCoin, simulate
from labelonce.aggregation import Aggregator
from labelonce.baselines import BeliefPropagation, MeanField


@pytest.mark.parametrize(
    ("model", "n_tasks", "atol"),
    [(OneCoin(), 20_000, 0.03), (MeanField(), 20_000, 0.03), (BeliefPropagation(), 4000, 0.06)],
)
def test_recovers_simulated_accuracies(model: Aggregator, n_tasks: int, atol: float) -> None:
    rng = np.random.default_rng(0)
    accuracy, y_true = np.linspace(0.3, 0.95, 20), rng.integers(0, 5, n_tasks)
    assignment = simulate.assign(n_tasks, 20, 5, rng, replace=False)
    ann = simulate.annotate(y_true, simulate.one_coin(accuracy, 5), assignment, rng)
    assert_allclose(model.fit(ann).skill_, accuracy, atol=atol)  # four standard errors of n_tasks / 4 labels


def test_every_matrix_has_one_number_on_and_one_off_the_diagonal() -> None:
    confusion = OneCoin().fit(crowd()[0]).confusion_
    off_diagonal = confusion[:, ~np.eye(3, dtype=bool)]
    assert_allclose(off_diagonal, off_diagonal[:, :1] * np.ones(6))
    assert_allclose(np.einsum("wkk->wk", confusion), confusion[:, 0, 0][:, None] * np.ones(3))


def test_one_class_only_is_certain() -> None:
    ann = crowd(n_classes=3)[0]
    single = ann.relabel({1: 0, 2: 0})
    assert (OneCoin().fit(single).posterior_ == 1).all()


def test_is_less_flexible_than_dawid_skene() -> None:
    ann, _ = crowd(n_tasks=2000)
    full = DawidSkene(smoothing=0.0, prior="uniform", max_iter=20_000).fit(ann).log_likelihood_[-1]
    assert full > OneCoin(smoothing=(0.0, 0.0)).fit(ann).log_likelihood_[-1]
