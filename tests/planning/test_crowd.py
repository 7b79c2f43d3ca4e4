"""The workers of a plan: stated in several ways, or those of a fit with the doubt about them."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import labelonce as lo
from labelonce import planning, simulate
from labelonce.planning._crowd import crowd_of


def labels(confusion: Any, n_tasks: int, redundancy: int, seed: int = 0) -> tuple[Any, lo.Annotations]:
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, confusion.shape[1], n_tasks)
    assignment = simulate.assign(n_tasks, len(confusion), redundancy, rng, replace=False)
    return y_true, simulate.annotate(y_true, confusion, assignment, rng)


def test_skill_quality_and_matrices_are_the_workers_that_they_say() -> None:
    assert_allclose(planning.assume(skill=0.8, n_classes=3).confusion, simulate.one_coin([0.8], 3))
    crowd = planning.assume(quality=0.3, n_classes=4)
    assert_allclose(crowd.mean_skill, 0.3 + 0.7 / 4)
    assert planning.assume(confusion=np.eye(5)).n_classes == 5


@pytest.mark.parametrize(
    ("stated", "value"),
    [
        ({}, "none of them"),
        ({"skill": 0.8, "quality": 0.3}, "got skill, quality"),
        ({"skill": 1.2}, "got 1.2"),
        ({"quality": -0.1}, "got -0.1"),
        ({"confusion": np.ones((2, 3))}, r"got \(2, 3\)"),
        ({"skill": 0.8, "n_classes": 1}, "got 1"),
        ({"skill": 0.8, "n_workers": 0}, "got 0"),
    ],
)
def test_assumptions_that_cannot_be_are_errors(stated: dict[str, Any], value: str) -> None:
    with pytest.raises(ValueError, match=value):
        planning.assume(**stated)


def test_what_is_no_crowd_or_has_other_answers_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"got 0\.8"):
        planning.plan(0.8, budget=10)
    ann = lo.Annotations.from_matrix([[0, 2], [1, 1], [0, 0]], classes=[0, 1], answers=[0, 1, 2])
    with pytest.raises(ValueError, match=r"got 3 answers for 2 classes\. Fit to annotations\.only_classes\(\)"):
        crowd_of(lo.DawidSkene().fit(ann))


def test_stated_workers_are_drawn_as_they_are_in_any_order_and_those_without_labels_not_counted() -> None:
    first, second = (planning.assume(skills=skills) for skills in ([0.6, 0.9, 0.7], [0.9, 0.7, 0.6]))
    assert_array_equal(first.confusion, second.confusion)
    crowd = planning.assume(skills=[0.6, 0.9])
    assert_array_equal(crowd.draw(np.random.default_rng(0)), crowd.confusion)
    ann = lo.Annotations.from_matrix([[0, 1, -1], [1, 1, -1], [0, 0, -1]])
    assert crowd_of(lo.DawidSkene().fit(ann)).n_workers == 2


def test_an_aggregator_gives_its_workers_their_load_and_the_doubt_about_them() -> None:
    y_true, ann = labels(simulate.one_coin(np.linspace(0.6, 0.95, 8), 3), 600, 3)
    crowd = crowd_of(lo.DawidSkene().fit(ann))
    assert crowd.n_workers == 8
    assert crowd.pilot_labels == len(ann)
    assert_allclose(crowd.load.sum(), 1)
    assert (crowd.skill_error > 0).all()
    assert abs(crowd.mean_skill - (y_true[ann.task] == ann.label).mean()) < 0.03


def test_a_worker_model_gives_its_intervals_and_draws_scatter_as_far() -> None:
    y_true, ann = labels(simulate.one_coin([0.9, 0.6, 0.7], 2), 300, 1)
    crowd = crowd_of(lo.workers.OneCoin().fit(ann, y_true))
    assert_allclose(np.sort(crowd.skill), [0.6, 0.7, 0.9], atol=0.1)
    assert ((crowd.skill_error > 0.01) & (crowd.skill_error < 0.06)).all()
    rng = np.random.default_rng(0)
    drawn = np.array([np.diagonal(crowd.draw(rng), axis1=1, axis2=2).mean(axis=1) for _ in range(600)])
    assert_allclose(drawn.mean(axis=0), crowd.skill, atol=0.01)
    assert_allclose(drawn.std(axis=0), crowd.skill_error, rtol=0.2)
