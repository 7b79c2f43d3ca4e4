"""Laws that every worker model obeys, and the checks of its arguments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from labelonce import Annotations, simulate
from labelonce._kernels import Beliefs
from labelonce._types import Codes, Floats
from labelonce.workers import ClassWise, Counted, Full, Known, OneCoin, WorkerModel

ESTIMATED = [OneCoin, ClassWise, Full, Counted]
SHRUNK = [OneCoin, ClassWise, Full]
every_model = pytest.mark.parametrize("model", ESTIMATED)
every_shrunk_model = pytest.mark.parametrize("model", SHRUNK)
Model = type[WorkerModel]


def crowd(n_classes: int = 3, n_labels: int = 30, n_workers: int = 20, seed: int = 0) -> Floats:
    """Return counts of a simulated crowd."""
    rng = np.random.default_rng(seed)
    confusion = simulate.dirichlet(n_workers, n_classes, rng, diagonal=6.0, off_diagonal=1.0)
    per_class = rng.multinomial(n_labels, np.full(n_classes, 1 / n_classes), n_workers)
    return np.asarray(rng.multinomial(per_class, confusion), dtype=np.float64)


def annotated(seed: int = 0) -> tuple[Annotations, Codes]:
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 3, 60).astype(np.int32)
    confusion = simulate.dirichlet(8, 3, rng)
    return simulate.annotate(y_true, confusion, simulate.assign(60, 8, 2, rng, replace=False), rng), y_true


any_counts = st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(
    lambda shape: arrays(
        np.float64, (shape[0], shape[1], shape[1]), elements=st.floats(0, 50).map(lambda x: round(x, 2))
    )
)


@every_model
@settings(max_examples=20)
@given(counts=any_counts)
def test_whatever_the_counts_rows_are_distributions_and_intervals_are_ordered(model: Model, counts: Floats) -> None:
    fitted = model().fit_counts(counts)
    assert (fitted.confusion_ >= 0).all()
    assert_allclose(fitted.confusion_.sum(axis=2), 1)
    for low, high in (fitted.confusion_interval(), fitted.skill_interval()):
        assert ((low >= 0) & (low <= high) & (high <= 1)).all()


@every_model
@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_labels_give_plain_counting(model: Model, n_classes: int) -> None:
    right = np.array([0.5, 0.7, 0.9])
    confusion = simulate.one_coin(right, n_classes)
    assert_allclose(model().fit_counts(1e6 * confusion).confusion_, confusion, atol=1e-4)


@pytest.mark.parametrize("model", [Full, Counted])
def test_many_labels_give_any_matrix_back(model: Model) -> None:
    confusion = simulate.dirichlet(10, 4, rng=0)
    assert_allclose(model().fit_counts(1e6 * confusion).confusion_, confusion, atol=1e-4)


@every_shrunk_model
def test_a_worker_without_labels_is_an_average_worker(model: Model) -> None:
    counts = np.concatenate([crowd(), np.zeros((1, 3, 3))])
    fitted = model().fit_counts(counts)
    a, b = fitted.population_
    expected = np.where(np.eye(3, dtype=bool), a / (a + b), b / (a + b) / 2)
    assert_allclose(fitted.confusion_[-1], expected, atol=1e-3)


@every_shrunk_model
def test_an_empty_row_leans_on_the_workers_other_rows(model: Model) -> None:
    counts = np.stack([np.diag([40.0, 40.0, 0.0]), np.diag([10.0, 10.0, 0.0])] * 5)
    counts[1::2, [0, 1], [1, 0]] = 30
    right = np.einsum("wkk->wk", model().fit_counts(counts).confusion_)
    assert (right[::2, 2] > 0.7).all()
    assert (right[1::2, 2] < 0.5).all()


def test_a_counted_row_without_labels_is_uniform_and_nothing_is_there_before_a_fit() -> None:
    assert_allclose(Counted().fit_counts(np.zeros((2, 4, 4))).confusion_, 0.25)
    with pytest.raises(AttributeError, match="'OneCoin' object has no attribute 'confusion_'"):
        OneCoin().confusion_  # noqa: B018


@every_model
def test_the_order_of_workers_and_the_names_of_classes_do_not_matter(model: Model) -> None:
    counts, order = crowd(), np.random.default_rng(1).permutation(20)
    fitted, permuted = model().fit_counts(counts), model().fit_counts(counts[order])
    assert_allclose(permuted.confusion_, fitted.confusion_[order], rtol=1e-4)
    assert_allclose(permuted.skill_interval(), np.array(fitted.skill_interval())[:, order], rtol=1e-3)
    counts, order = crowd(), np.array([2, 0, 1])
    fitted, permuted = model().fit_counts(counts), model().fit_counts(counts[:, order][:, :, order])
    assert_allclose(permuted.confusion_, fitted.confusion_[:, order][:, :, order], rtol=1e-4)
    expected = np.array(fitted.confusion_interval())[:, :, order][:, :, :, order]
    assert_allclose(permuted.confusion_interval(), expected, rtol=1e-3, atol=1e-6)


@every_model
def test_codes_are_probabilities_and_a_weight_counts_its_task_twice(model: Model) -> None:
    ann, y_true = annotated()
    assert_array_equal(model().fit(ann, y_true).confusion_, model().fit(ann, np.eye(3)[y_true]).confusion_)
    twice = Annotations.from_arrays(
        np.concatenate([ann.task, ann.task + 60]), np.tile(ann.worker, 2), np.tile(ann.label, 2), classes=range(3)
    )
    weighted = model().fit(ann, y_true, weight=np.full(60, 2.0)).confusion_
    assert_allclose(weighted, model().fit(twice, np.tile(y_true, 2)).confusion_)


@every_model
def test_a_weight_of_zero_leaves_a_task_out(model: Model) -> None:
    ann, y_true = annotated()
    keep = np.arange(60) % 2 == 0
    changed = np.where(keep, y_true, (y_true + 1) % 3)
    one, other = (model().fit(ann, codes, weight=keep.astype(float)).confusion_ for codes in (y_true, changed))
    assert_array_equal(one, other)


@every_model
def test_soft_predictions_share_a_label_between_rows(model: Model) -> None:
    ann = Annotations.from_arrays([0, 1], ["a", "a"], [0, 1], classes=[0, 1])
    expected = model().fit_counts(np.array([[[0.7, 0.4], [0.3, 0.6]]])).confusion_
    assert_allclose(model().fit(ann, [[0.7, 0.3], [0.4, 0.6]]).confusion_, expected)


@every_model
def test_with_one_class_nobody_can_be_wrong(model: Model) -> None:
    fitted = model().fit_counts(np.array([[[5.0]], [[0.0]]]))
    assert_array_equal(fitted.confusion_, np.ones((2, 1, 1)))
    assert_array_equal(fitted.skill_interval(), np.ones((2, 2)))
    assert_array_equal(fitted.confusion_interval(), np.ones((2, 2, 1, 1)))


@every_shrunk_model
def test_one_worker_who_was_always_right_need_not_be_perfect(model: Model) -> None:
    low, high = model().fit_counts(3 * np.eye(2)[None]).skill_interval()
    assert 0.6 < low[0] < 0.95
    assert high[0] == 1


def test_with_two_classes_full_is_class_wise() -> None:
    counts = crowd(n_classes=2)
    assert_array_equal(Full().fit_counts(counts).confusion_, ClassWise().fit_counts(counts).confusion_)
    assert_array_equal(
        Full().fit_counts(counts).confusion_interval(), ClassWise().fit_counts(counts).confusion_interval()
    )


@every_model
def test_intervals_contain_the_estimate(model: Model) -> None:
    fitted = model().fit_counts(crowd())
    low, high = fitted.confusion_interval()
    assert ((low <= fitted.confusion_) & (fitted.confusion_ <= high)).all()


@every_model
def test_intervals_shrink_with_labels(model: Model) -> None:
    widths = [np.subtract(*model().fit_counts(scale * crowd()).skill_interval()[::-1]) for scale in (1, 10, 100)]
    assert (widths[0] > widths[1]).all()
    assert (widths[1] > widths[2]).all()


@every_model
def test_intervals_widen_with_the_level(model: Model) -> None:
    fitted = model().fit_counts(crowd())
    narrow, wide = (np.subtract(*fitted.confusion_interval(level)[::-1]) for level in (0.5, 0.95))
    assert (narrow < wide).all()


@every_model
def test_the_skill_of_a_class_is_its_diagonal_entry(model: Model) -> None:
    fitted = model().fit_counts(crowd())
    assert_allclose(fitted.skill_interval([0, 1, 0]), np.array(fitted.confusion_interval())[:, :, 1, 1], rtol=1e-9)


def test_known_returns_what_it_was_given_and_rejects_another_crowd() -> None:
    ann, y_true = annotated()
    confusion = simulate.dirichlet(8, 3, rng=3)
    fitted = Known(confusion).fit(ann, y_true)
    assert_array_equal(fitted.confusion_, confusion)
    assert_array_equal(fitted.confusion_interval(), [confusion, confusion])
    assert_allclose(fitted.skill_interval([0.2, 0.3, 0.5]), [np.einsum("wkk,k->w", confusion, [0.2, 0.3, 0.5])] * 2)
    with pytest.raises(ValueError, match=r"confusion must have shape \(8, 3, 3\); got \(7, 3, 3\)"):
        Known(np.full((7, 3, 3), 1 / 3)).fit(ann, y_true)


@every_model
def test_arguments_are_unchanged(model: Model) -> None:
    counts, prior = crowd(), np.array([0.2, 0.3, 0.5])
    before = counts.copy()
    fitted = model().fit_counts(counts)
    fitted.skill_interval(prior)
    fitted.confusion_interval()
    assert_array_equal(counts, before)
    assert_array_equal(prior, [0.2, 0.3, 0.5])
    ann, y_true = annotated()
    soft, weight = np.eye(3)[y_true], np.ones(60)
    model().fit(ann, soft, weight)
    assert_array_equal(soft, np.eye(3)[y_true])
    assert_array_equal(weight, np.ones(60))


@every_model
def test_fitting_again_and_cloning_give_the_same(model: Model) -> None:
    fitted = model().fit_counts(crowd())
    expected = fitted.confusion_
    again = fitted.fit_counts(crowd(seed=1)).fit_counts(crowd()).confusion_
    assert_array_equal(again, expected)
    assert_array_equal(clone(fitted).fit_counts(crowd()).confusion_, expected)


@every_model
def test_intervals_need_a_fit(model: Model) -> None:
    with pytest.raises(NotFittedError, match=model.__name__):
        model().skill_interval()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(59), r"weight must have one entry per task, shape \(60,\); got shape \(59,\)"),
        (np.ones((60, 1)), r"got shape \(60, 1\)"),
        (
            np.where(np.arange(60) == 7, -1.0, 1.0),
            r"weight must be finite and at least 0; got -1.0 at \(7,\) \(1 in total\)",
        ),
        (np.full(60, np.nan), r"got nan at \(0,\) \(60 in total\)"),
    ],
)
def test_weights_are_checked(weight: Floats, message: str) -> None:
    ann, y_true = annotated()
    with pytest.raises(ValueError, match=message):
        Full().fit(ann, y_true, weight)


@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [
        (np.zeros(59, dtype=int), ValueError, "predictions must have one entry per task, 60; got 59"),
        (np.full(60, 3), ValueError, r"predictions must be in \[0, 3\); got 3 at position 0 \(60 in total\)"),
        (np.full(60, -1), ValueError, "got -1 at position 0"),
        (np.zeros(60), TypeError, r"one-dimensional integer array; got float64 of shape \(60,\)"),
        (np.zeros((60, 3)), ValueError, r"predictions must sum to 1; got 0 at \(0,\) \(60 in total\)"),
        (np.full((60, 2), 0.5), ValueError, r"predictions must have shape \(60, 3\); got \(60, 2\)"),
        (np.tile([1.5, -0.5, 0.0], (60, 1)), ValueError, r"predictions must be probabilities; got -0.5 at \(0, 1\)"),
    ],
)
def test_predictions_are_checked(predictions: Floats, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Full().fit(annotated()[0], predictions)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.zeros((3, 3)), r"counts must have shape \(n_workers, n_classes, n_answers\), .*; got \(3, 3\)"),
        (np.zeros((2, 4, 3)), r"got \(2, 4, 3\)"),
        (np.zeros((0, 3, 3)), r"got \(0, 3, 3\)"),
        (-np.ones((1, 2, 2)), r"counts must be finite and at least 0; got -1.0 at \(0, 0, 0\) \(4 in total\)"),
    ],
)
@every_model
def test_counts_are_checked(model: Model, counts: Floats, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model().fit_counts(counts)


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.5, -0.1, float("nan")])
def test_levels_are_checked(level: float) -> None:
    fitted = OneCoin().fit_counts(crowd())
    for interval in (fitted.confusion_interval, fitted.skill_interval):
        with pytest.raises(ValueError, match=f"level must be .*; got {level!r}"):
            interval(level=level)


@pytest.mark.parametrize(
    ("prior", "message"),
    [([0.5, 0.5], r"prior must have shape \(3,\); got \(2,\)"), ([0.5, 0.6, 0.1], "prior must sum to 1; got 1.2")],
)
def test_priors_are_checked(prior: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Full().fit_counts(crowd()).skill_interval(prior)


def dense_counts(ann: Annotations, predictions: Floats, weight: Floats) -> Floats:
    """Return counts [worker, true, given] one annotation at a time."""
    counts = np.zeros((ann.n_workers, ann.n_classes, ann.n_classes))
    for task, worker, label in zip(ann.task, ann.worker, ann.label, strict=True):
        counts[worker, :, label] += weight[task] * predictions[task]
    return counts


@pytest.mark.parametrize("model", [OneCoin, ClassWise])
@pytest.mark.parametrize("hard", [True, False])
def test_models_without_a_matrix_learn_the_same_as_from_the_counts_of_all_labels(model: Model, hard: bool) -> None:
    ann, y_true = annotated()
    rng = np.random.default_rng(0)
    soft = np.eye(3)[y_true] if hard else rng.dirichlet(np.ones(3), ann.n_tasks)
    weight = rng.uniform(0.5, 2, ann.n_tasks)
    fitted = model().fit(ann, y_true if hard else soft, weight)
    counted = model().fit_counts(dense_counts(ann, soft, weight))
    assert_allclose(fitted.confusion_, counted.confusion_, atol=1e-9)
    prior = np.array([0.2, 0.3, 0.5])
    assert_allclose(fitted.skill_interval(prior), counted.skill_interval(prior), atol=1e-9)
    assert_allclose(fitted.confusion_interval(), counted.confusion_interval(), atol=1e-9)


@pytest.mark.parametrize("model", [OneCoin, ClassWise])
def test_factors_are_the_matrix_on_request(model: Model) -> None:
    fitted = model().fit_counts(crowd())
    assert "confusion_" not in vars(fitted)
    assert_allclose(fitted.factors_.dense(), fitted.confusion_, atol=0)
    assert_allclose(fitted.confusion_.sum(axis=2), 1, atol=1e-12)


def test_two_thousand_workers_of_a_thousand_classes_need_no_matrix() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 1000, 20_000).astype(np.int32)
    label = np.where(rng.random(20_000) < 0.7, y_true, rng.integers(0, 1000, 20_000)).astype(np.int32)
    workers = rng.integers(0, 2000, 20_000).astype(np.int32)
    ann = Annotations(np.arange(20_000, dtype=np.int32), workers, label, *(np.arange(n) for n in (20_000, 2000, 1000)))
    for model in (OneCoin(), ClassWise()):
        fitted = model.fit(ann, y_true)
        low, high = fitted.skill_interval()
        assert ((low < 0.75) & (high > 0.65)).mean() > 0.8
        with pytest.raises(ValueError, match=r"at most 134,217,728 entries .* got 2,000 workers with 1,000 x 1,000"):
            fitted.confusion_  # noqa: B018
    with pytest.raises(ValueError, match=r"2,000 workers x 1,000 x 1,000 classes must fit .* got 59\.\d GiB"):
        Full().fit(ann, y_true)


@pytest.mark.parametrize("model", [OneCoin, ClassWise, Full])
def test_beliefs_are_predictions_like_the_probabilities_that_they_stand_for(model: Model) -> None:
    ann, _ = annotated()
    soft = np.random.default_rng(0).dirichlet(np.ones(3), ann.n_tasks)
    sparse = Beliefs.from_dense(soft, 2)
    assert_allclose(model().fit(ann, sparse).confusion_, model().fit(ann, sparse.to_dense()).confusion_, atol=1e-9)
    with pytest.raises(ValueError, match=r"shape \(60, 3\); got \(30, 3\)"):
        model().fit(ann, sparse[:30])
