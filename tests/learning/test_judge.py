"""What a round makes of predictions that are right as often as they say: labels must not make them look surer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.learning import _judge
from labelonce.learning._judge import Judgement, View, judge
from labelonce.learning._problem import Problem
from labelonce.workers import Grouped

GROUPS = np.arange(50) // 10


def predicted(n: int, rng: np.random.Generator) -> tuple[Codes, Floats]:
    """Return true classes, and P(class) of normal features whose distributions are known."""
    centres, true = rng.normal(size=(50, 32)), rng.integers(50, size=n, dtype=np.int32)
    features = 0.4 * centres[true] + rng.normal(size=(n, 32))
    score = 0.4 * features @ centres.T - 0.08 * (centres**2).sum(axis=1)
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return true, score / score.sum(axis=1, keepdims=True)


def judged(per_worker: int, rows: str = "position", seed: int = 0) -> tuple[Judgement, Codes]:
    """Return what a round says of 10,000 tasks with one label each by hammers and spammers within groups."""
    rng = np.random.default_rng(seed)
    true, prediction = predicted(10_000, rng)
    draw = lo.simulate.grouped_hammer_spammer if rows == "worker" else lo.simulate.grouped_class_wise_hammer_spammer
    simulated = draw(10_000 // per_worker, GROUPS, 0.2, rng)
    ann = lo.simulate.annotate(true, simulated, lo.simulate.assign(10_000, 10_000 // per_worker, 1, rng), rng)
    workers = Grouped(GROUPS, rows=rows)
    problem = Problem(np.zeros((10_000, 1)), ann)
    view = View.of(problem, workers, lambda slots, _: Beliefs.of(prediction).on(slots))
    return judge(view, workers, 6), true


def right(found: Judgement, true: Codes) -> float:
    return float((found.beliefs.argmax() == true).mean())


def test_few_labels_per_chance_do_not_make_predictions_look_surer(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, true = judged(50)
    monkeypatch.setattr(_judge, "_few_labels", lambda _: False)
    fixed, _ = judged(50)
    assert drawn.calibration is not None
    assert fixed.calibration is not None
    assert drawn.calibration.exponent[0] < 1.3 < fixed.calibration.exponent[0]
    too_sure = [one.beliefs.max().mean() - right(one, true) for one in (drawn, fixed)]
    assert too_sure[0] < 0.05 < too_sure[1]
    assert right(drawn, true) > right(fixed, true)


def test_draws_and_the_fixed_point_agree_where_every_chance_has_many_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed, _ = judged(1_000, rows="worker")
    monkeypatch.setattr(_judge, "_few_labels", lambda _: True)
    drawn, true = judged(1_000, rows="worker")
    assert drawn.workers.crowd.change(fixed.workers.crowd) < 0.02
    assert right(drawn, true) == pytest.approx(right(fixed, true), abs=0.005)
    assert drawn.beliefs.max().mean() == pytest.approx(fixed.beliefs.max().mean(), abs=0.02)


def test_labels_are_few_by_their_number_for_each_chance() -> None:
    def few(per_worker: int, rows: str) -> bool:
        true, prediction = predicted(2_000, np.random.default_rng(0))
        ann = lo.Annotations.from_arrays(np.arange(2_000), np.arange(2_000) // per_worker, true, classes=range(50))
        workers = Grouped(GROUPS, rows=rows)
        problem = Problem(np.zeros((2_000, 1)), ann)
        return _judge._few_labels(View.of(problem, workers, lambda slots, _: Beliefs.of(prediction).on(slots)))

    limit = int(RULES.few_labels)
    assert [few(limit - 20, "worker"), few(limit, "worker"), few(limit, "position")] == [True, False, True]


def test_the_same_draws_are_made_again() -> None:
    (one, _), (other, _) = judged(50), judged(50)
    assert_allclose(one.beliefs.wide(), other.beliefs.wide(), atol=1e-9)
