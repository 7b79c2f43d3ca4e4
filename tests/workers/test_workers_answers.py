"""Worker models of answers that are not classes."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations, simulate
from labelonce._types import Codes, Floats
from labelonce.data._answers import class_leanings
from labelonce.workers import ClassWise, Counted, Full, Known, OneCoin, WorkerModel
from labelonce.workers._answers import other_shares

Model = type[WorkerModel]
MODELS = [OneCoin, ClassWise, Full, Counted]
every_model = pytest.mark.parametrize("model", MODELS)
SCALE = class_leanings(np.arange(5), np.array(["no", "yes"], dtype=object))
on_scales = pytest.mark.parametrize("model", [Full, Counted])

any_counts = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 3)).flatmap(
    lambda shape: arrays(
        np.float64, (shape[0], shape[1], shape[1] + shape[2]), elements=st.floats(0, 50).map(lambda x: round(x, 2))
    )
)


def skipping(n_tasks: int = 3000) -> tuple[Annotations, Codes, Floats]:
    """Return labels of workers who skip, each at a rate of its own and class 1 more often, and their confusion."""
    rng = np.random.default_rng(0)
    square = simulate.one_coin(np.linspace(0.6, 0.95, 10), 3)
    skip = np.linspace(0.05, 0.3, 10)[:, None] * [1, 3, 1]
    confusion = np.concatenate([(1 - skip[:, :, None]) * square, skip[:, :, None]], axis=2)
    y_true = rng.integers(0, 3, n_tasks).astype(np.int32)
    ann = simulate.annotate(y_true, confusion, simulate.assign(n_tasks, 10, 2, rng, replace=False), rng)
    return ann, y_true, confusion


@every_model
@settings(max_examples=20)
@given(counts=any_counts)
def test_whatever_the_counts_rows_are_distributions_and_intervals_are_ordered(model: Model, counts: Floats) -> None:
    fitted = model().fit_counts(counts)
    assert fitted.confusion_.shape == counts.shape
    assert (fitted.confusion_ >= 0).all()
    assert_allclose(fitted.confusion_.sum(axis=2), 1)
    for low, high in (fitted.confusion_interval(), fitted.skill_interval()):
        assert ((low >= 0) & (low <= high) & (high <= 1)).all()


@every_model
def test_a_skipping_crowd_is_recovered(model: Model) -> None:
    ann, y_true, confusion = skipping()
    fitted = model().fit(ann, y_true)
    assert_allclose(fitted.confusion_, confusion, atol=0.12)
    assert np.abs(fitted.confusion_ - confusion).mean() < 0.025


@every_model
def test_intervals_hold_the_truth_about_as_often_as_they_say(model: Model) -> None:
    ann, y_true, confusion = skipping()
    fitted = model().fit(ann, y_true)
    low, high = fitted.confusion_interval(0.9)
    assert ((low <= confusion) & (confusion <= high)).mean() > 0.8
    low, high = fitted.skill_interval(level=0.9)
    right = np.linspace(0.6, 0.95, 10)
    assert ((low <= right) & (right <= high)).mean() >= 0.7


@every_model
def test_an_answer_that_nobody_gave_changes_nothing(model: Model) -> None:
    ann, y_true, _ = skipping(500)
    square = ann.only_classes()
    counts = np.zeros((10, 3, 3))
    np.add.at(counts, (square.worker, y_true[square.task], square.label), 1)
    plain, more = model().fit_counts(counts), model().fit_counts(np.pad(counts, ((0, 0), (0, 0), (0, 1))))
    assert_allclose(more.confusion_[:, :, :3], plain.confusion_, atol=1e-12)
    assert_allclose(more.confusion_[:, :, 3], 0, atol=1e-12)
    if model is not Counted:
        assert_array_equal(more.skill_interval(), plain.skill_interval())


def test_an_answer_given_alike_for_every_class_tells_nothing() -> None:
    square = simulate.one_coin(np.linspace(0.6, 0.9, 8), 2) * 100
    counts = np.concatenate([square, np.full((8, 2, 1), 40.0)], axis=2)
    for model, atol in ((Counted, 1e-12), (Full, 1e-3)):
        found = model().fit_counts(counts).confusion_
        assert_allclose(found[:, 0, 2], found[:, 1, 2], atol=atol)
    assert_allclose(Full().fit_counts(counts).confusion_[:, :, 2], 40 / 140, atol=1e-3)


def test_skipping_and_few_answers_are_shrunk_towards_ones_own_or_all() -> None:
    rates = np.array([0.1] * 10 + [0.6] * 10)
    counts = np.stack([1 - rates, rates], axis=1)[:, None, :] * np.array([30.0, 30.0, 0.0])[None, :, None]
    found = other_shares(counts).mean[:, :, 1]
    assert_allclose(found[:, 2], rates, atol=0.03)  # nobody has labelled a task of the third class
    counts = np.tile([[20.0, 10, 5, 3, 2], [2, 3, 5, 10, 20]], (10, 1, 1))
    counts[9] = 0
    counts[9, 0, 2] = 1
    found = Full().fit_counts(counts, SCALE).confusion_
    assert_allclose(found[9], found[0], atol=0.05)


def test_a_worker_who_only_says_unsure_has_the_skill_of_the_population() -> None:
    counts = np.zeros((3, 2, 3))
    counts[:2, :, :2] = [[9, 1], [1, 9]]
    counts[2, :, 2] = 10
    fitted = OneCoin().fit_counts(counts)
    low, high = fitted.skill_interval()
    assert (low[2] < low[0], high[2] >= 0.95) == (True, True)
    assert fitted.confusion_[2, :, 2].min() > 0.8


@on_scales
def test_a_scale_is_counted_against_the_predictions(model: Model) -> None:
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet([4, 3, 2, 1, 1], (60, 2))
    confusion[:, 1] = confusion[:, 1, ::-1]
    y_true = rng.integers(0, 2, 10_000).astype(np.int32)
    assignment = simulate.assign(10_000, 60, 4, rng, replace=False)
    ann = simulate.annotate(y_true, confusion, assignment, rng, answers=list("abcde"))
    fitted = model().fit(ann, y_true)
    assert_allclose(fitted.confusion_, confusion, atol=0.12)
    leans = np.einsum("wks,sk->w", confusion, SCALE) / 2
    low, high = fitted.skill_interval()
    assert ((low <= leans) & (leans <= high)).mean() >= 0.8
    low, high = fitted.confusion_interval()
    assert ((low <= confusion) & (confusion <= high)).mean() > 0.75


@pytest.mark.parametrize("model", [OneCoin, ClassWise])
def test_models_of_right_and_wrong_refuse_a_scale(model: Model) -> None:
    with pytest.raises(ValueError, match=f"{model.__name__} must have answers that are classes.*scale of 5 answers"):
        model().fit_counts(np.ones((2, 2, 5)), SCALE)


def test_known_workers_may_give_other_answers() -> None:
    confusion = np.array([[[0.4, 0.1, 0.5], [0.3, 0.6, 0.1]]])
    ann = Annotations.from_matrix([[0], [2]], classes=[0, 1], answers=[0, 1, 2])
    fitted = Known(confusion).fit(ann, [0, 1])
    assert_array_equal(fitted.confusion_, confusion)
    assert_allclose(fitted.skill_interval()[0], (0.8 + 6 / 9) / 2)
    assert_array_equal(fitted.confusion_interval()[1], confusion)


@every_model
def test_a_later_fit_to_classes_forgets_other_answers_and_a_copy_keeps_them(model: Model) -> None:
    ann, y_true, _ = skipping(300)
    again = model().fit(ann, y_true).fit(ann.only_classes(), y_true)
    fresh = model().fit(ann.only_classes(), y_true)
    assert_array_equal(again.confusion_, fresh.confusion_)
    assert vars(again).keys() == vars(fresh).keys()
    fitted = model().fit(ann, y_true)
    copy = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(copy.confusion_interval(), fitted.confusion_interval())
