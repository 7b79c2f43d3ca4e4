"""Corrected losses: unbiased to the last digit, the published formula, the right gradient."""

from typing import Any

import numpy as np
import pytest
from crowds import crowd_with_features
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import approx_fprime

from labelonce import MBEM, Annotations, SoftmaxRegression
from labelonce._sklearn import ConvergenceWarning
from labelonce._types import Codes, Floats
from labelonce.baselines import ForwardCorrection, UnbiasedLoss
from labelonce.baselines._corrected import _forward_loss, _inverse, _sum_by_task
from labelonce.learning import DoubtWarning
from labelonce.learning._softmax import loss_and_gradient

NOISE = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
TIGHT: dict[str, Any] = {"tol": 1e-8, "max_iter": 5000}


def noisy(noise: Floats, *, n_tasks: int = 300, redundancy: int = 1) -> tuple[Floats, Annotations, Codes]:
    """Return tasks labelled by four workers with the same matrix."""
    matrices = np.tile(noise, (4, 1, 1))
    return crowd_with_features(n_tasks, n_classes=len(noise), redundancy=redundancy, confusion=matrices)[:3]


def test_weights_sum_to_one_and_are_natarajans_for_two_classes() -> None:
    assert_allclose(_inverse(NOISE[None]).sum(axis=2), 1)
    rate = np.array([0.1, 0.3])  # of each class to be given as the other
    (weights,) = _inverse(np.array([[[0.9, 0.1], [0.3, 0.7]]]))
    for given, other in ((0, 1), (1, 0)):
        assert weights[given, given] == pytest.approx((1 - rate[other]) / (1 - rate.sum()))
        assert weights[given, other] == pytest.approx(-rate[given] / (1 - rate.sum()))


def test_the_mean_over_the_noise_is_the_loss_on_the_true_label() -> None:
    rng = np.random.default_rng(0)
    flat, x, one = rng.normal(size=4 * 3), rng.normal(size=(1, 3)), np.ones((1, 1))
    (weights,) = _inverse(NOISE[None])
    corrected = [loss_and_gradient(flat, x, weights[given][None], one, 0.0)[0] for given in range(3)]
    clean = [loss_and_gradient(flat, x, np.eye(3)[true][None], one, 0.0)[0] for true in range(3)]
    assert_allclose(NOISE @ corrected, clean)


def test_the_largest_weight_is_shown_and_large_ones_or_spammers_are_told() -> None:
    X, ann, _ = noisy(NOISE)
    assert UnbiasedLoss(NOISE, C=0.01).fit(X, ann).max_weight_ == pytest.approx(np.abs(np.linalg.inv(NOISE)).max())
    matrices = np.tile(NOISE, (4, 1, 1))
    matrices[2] = 1 / 3
    with pytest.raises(ValueError, match="worker 2's matrix is not"):
        UnbiasedLoss(matrices).fit(X, ann)
    nearly_random = np.array([[0.52, 0.48], [0.48, 0.52]])
    X, ann, _ = noisy(nearly_random)
    with pytest.warns(DoubtWarning, match=r"weight of up to 13 \(more than 10\)"):
        UnbiasedLoss(nearly_random, C=1e-3).fit(X, ann)


@pytest.mark.parametrize("Model", [UnbiasedLoss, ForwardCorrection])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_noise_it_is_softmax_regression(Model: Any, n_classes: int) -> None:
    X, ann, y_true = noisy(np.eye(n_classes))
    plain = SoftmaxRegression(C=0.5, **TIGHT).fit(X, y_true)
    corrected = Model(np.eye(n_classes), C=0.5, **TIGHT).fit(X, ann)
    assert_allclose(corrected.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    assert_array_equal(corrected.classes_, plain.classes_)


@pytest.mark.parametrize("Model", [UnbiasedLoss, ForwardCorrection])
def test_known_noise_is_undone(Model: Any) -> None:
    noise = np.array([[1.0, 0.0], [0.6, 0.4]])
    X, ann, y_true = noisy(noise, n_tasks=1000, redundancy=2)
    plain = SoftmaxRegression().fit(X[ann.task], ann.label)
    assert Model(noise).fit(X, ann).score(X, y_true) > plain.score(X, y_true) + 0.1


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array])
def test_the_forward_gradient_is_that_of_the_loss(as_given: Any) -> None:
    X, ann, _ = noisy(NOISE, n_tasks=20, redundancy=2)
    likelihood = NOISE[:, ann.label].T
    flat = np.random.default_rng(0).normal(size=4 * 3)
    arguments = (as_given(X), ann, likelihood, 0.3)
    numeric = approx_fprime(flat, lambda at: _forward_loss(at, *arguments)[0], 1e-7)
    assert_allclose(_forward_loss(flat, *arguments)[1], numeric, atol=1e-6)


def test_forward_loss_is_the_mean_over_annotations_summed_by_task() -> None:
    X, ann, _ = noisy(NOISE, n_tasks=20, redundancy=2)
    flat = np.random.default_rng(0).normal(size=4 * 3)
    scores = X @ flat.reshape(4, 3)[:3] + flat.reshape(4, 3)[3]
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    terms = [-np.log(probabilities[i] @ NOISE[:, z]) for i, z in zip(ann.task, ann.label, strict=True)]
    assert _forward_loss(flat, X, ann, NOISE[:, ann.label].T, 0.0)[0] == pytest.approx(np.mean(terms))
    _, ann, _ = noisy(NOISE, n_tasks=10, redundancy=3)
    values = np.random.default_rng(0).normal(size=(len(ann), 3))
    expected = np.zeros((10, 3))
    for row, task in zip(values, ann.task, strict=True):
        expected[task] += row
    assert_allclose(_sum_by_task(ann, values), expected)


def test_spammers_drop_out_of_the_forward_loss() -> None:
    X, ann, _ = noisy(NOISE, redundancy=2)
    matrices = np.tile(NOISE, (4, 1, 1))
    matrices[3] = 1 / 3
    kept = ann.worker != 3
    rest = Annotations(ann.task[kept], ann.worker[kept], ann.label[kept], ann.tasks, ann.workers, ann.classes)
    whole, without = (ForwardCorrection(matrices, **TIGHT).fit(X, part) for part in (ann, rest))
    assert_allclose(whole.predict_proba(X), without.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("Model", [UnbiasedLoss, ForwardCorrection])
def test_every_label_of_a_task_counts_as_a_row_of_its_own(Model: Any) -> None:
    X, ann, _ = noisy(NOISE, redundancy=2)
    once = Model(NOISE, C=0.01, **TIGHT).fit(X, ann)
    apart = Model(NOISE, C=0.01, **TIGHT).fit(X[ann.task], ann.label)
    assert_allclose(once.coef_, apart.coef_, atol=1e-5)


def test_one_matrix_is_everybodys_and_tasks_without_labels_are_left_out() -> None:
    X, ann, _ = noisy(NOISE)
    shared, each = (ForwardCorrection(given).fit(X, ann) for given in (NOISE, np.tile(NOISE, (4, 1, 1))))
    assert_array_equal(shared.coef_, each.coef_)
    X, ann, _ = noisy(NOISE, n_tasks=100)
    matrix = ann.to_matrix(dense=True)
    matrix[50:] = -1
    for Model in (UnbiasedLoss, ForwardCorrection):
        whole, part = Model(NOISE, C=0.1).fit(X, matrix), Model(NOISE, C=0.1).fit(X[:50], matrix[:50])
        assert_allclose(whole.coef_, part.coef_, atol=1e-5)


def test_a_warm_start_begins_where_the_last_fit_ended_and_a_loss_is_no_learner() -> None:
    X, ann, _ = noisy(NOISE)
    model = ForwardCorrection(NOISE, warm_start=True).fit(X, ann)
    first = model.n_iter_
    assert model.fit(X, ann).n_iter_ < first / 2
    with pytest.raises(TypeError, match="a learner must take sample_weight in fit; ForwardCorrection does not"):
        MBEM(ForwardCorrection(NOISE)).fit(X, ann)


@pytest.mark.parametrize("Model", [UnbiasedLoss, ForwardCorrection])
def test_a_confusion_of_another_shape_is_named(Model: Any) -> None:
    X, ann, _ = noisy(NOISE)
    with pytest.raises(ValueError, match=r"confusion must have shape \(3, 3\); got \(2, 2\)"):
        Model(np.eye(2)).fit(X, ann)
    with pytest.raises(ValueError, match=r"confusion must have shape \(4, 3, 3\); got \(5, 3, 3\)"):
        Model(np.tile(np.eye(3), (5, 1, 1))).fit(X, ann)


@pytest.mark.parametrize("loss", [UnbiasedLoss, ForwardCorrection])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": -3}, "max_iter must be an integer of at least 1; got -3"),
        ({"tol": "x"}, "tol must be a number; got 'x'"),
        ({"C": 0}, "C must be above 0; got 0"),
    ],
)
def test_options_that_cannot_be_are_refused(loss: Any, options: dict[str, Any], message: str) -> None:
    X, ann, _ = noisy(NOISE)
    with pytest.raises(ValueError, match=message):
        loss(NOISE, **options).fit(X, ann)


@pytest.mark.parametrize("loss", [UnbiasedLoss, ForwardCorrection])
def test_a_search_that_stops_early_says_whose_it_was(loss: Any) -> None:
    X, ann, _ = noisy(NOISE)
    with pytest.warns(ConvergenceWarning, match=f"^{loss.__name__} stopped after 1 iterations"):
        loss(NOISE, max_iter=1, tol=1e-9).fit(X, ann)
