"""How right the labels of an aggregator are, where workers share mistakes."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce.aggregation._confidence import _tempered


def copies(shared: float) -> tuple[lo.Annotations, Any]:
    """Return five workers, right four times in five, who share verdicts."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 1000)
    common, own = (np.where(rng.random((1000, k)) < 0.8, truth[:, None], 1 - truth[:, None]) for k in (1, 5))
    return lo.Annotations.from_matrix(np.where(rng.random((1000, 5)) < shared, common, own)), truth


@pytest.mark.parametrize("kind", [lo.DawidSkene, lo.OneCoin, lo.IBCC, lo.EBCC])
def test_gold_corrects_what_copies_make_too_sure(kind: Any) -> None:
    annotations, truth = copies(0.8)
    gold = dict(enumerate(truth[:150]))
    with pytest.warns(lo.DoubtWarning, match="surer than gold that was left out allows"):
        fitted = kind().fit(annotations, gold=gold)
    right = (fitted.labels_[150:] == truth[150:]).mean()
    assert fitted.posterior_[150:].max(axis=1).mean() > right + 0.1
    assert abs(fitted.confidence_[150:].mean() - right) < 0.05
    accuracy = fitted.estimated_accuracy_
    assert accuracy.low <= (fitted.labels_ == truth).mean() <= accuracy.high
    assert_allclose(fitted.confidence_[:150], 1.0)


def test_gold_leaves_workers_alone_who_err_on_their_own() -> None:
    annotations, truth = copies(0.0)
    with warnings.catch_warnings(action="error"):
        fitted = lo.DawidSkene().fit(annotations, gold=dict(enumerate(truth[:150])))
    right = (fitted.labels_[150:] == truth[150:]).mean()
    assert abs(fitted.confidence_[150:].mean() - right) < 0.03


def test_one_label_per_task_and_uncorrelated_errors_change_no_probability() -> None:
    chance, one, five = np.array([0.3, 0.5, 0.9]), np.ones(3, dtype=np.int32), np.full(3, 5, dtype=np.int32)
    assert_allclose(_tempered(chance, one, 0.5), chance)
    assert_allclose(_tempered(chance, five, 0.0), chance)
    odds = np.log(chance[2] / (1 - chance[2]))
    shown = _tempered(chance, five, 0.5)[2]
    assert_allclose(np.log(shown / (1 - shown)), odds / 3)  # five labels count as 5 / (1 + 4 / 2)


def test_the_confidence_that_is_shown_is_the_one_to_act_on_and_of_the_last_fit() -> None:
    annotations = lo.Annotations.from_matrix(np.random.default_rng(0).integers(0, 2, (40, 5)))
    model = lo.DawidSkene().fit(annotations)
    assert_allclose(model.to_frame()["confidence"].to_numpy(), model.confidence_)
    assert model.confidence_.mean() < model.posterior_.max(axis=1).mean() - 0.02
    model.partial_fit(lo.Annotations.from_arrays([50, 50], [0, 1], [1, 1], classes=[0, 1]))
    assert_allclose(model.to_frame()["confidence"].to_numpy(), model.posterior_.max(axis=1))


@pytest.mark.parametrize("model", [lo.DawidSkene(), lo.IBCC(), lo.OneCoin()])
def test_stated_probabilities_say_more_than_whole_labels(model: Any) -> None:
    rng = np.random.default_rng(0)
    y, chance = rng.integers(0, 2, 600), rng.uniform(0.5, 0.98, (600, 5))
    label = np.where(rng.random((600, 5)) < chance, y[:, None], 1 - y[:, None]).ravel()
    task, worker = np.repeat(np.arange(600), 5), np.tile(np.arange(5), 600)
    stated = lo.Annotations.from_arrays(task, worker, label, probability=chance.ravel())
    right = [(model.fit(one).labels_ == y).mean() for one in (stated, stated.without("probability"))]
    assert right[0] > right[1] + 0.02
