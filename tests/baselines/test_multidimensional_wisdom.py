import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from labelonce import Annotations, DawidSkene, metrics
from labelonce._types import Codes, Floats
from labelonce.baselines import MultidimensionalWisdom


def own_model(dimensions: int, *, n_tasks: int = 1500) -> tuple[Annotations, Codes, Floats, Floats]:
    """Return annotations, true labels, and the workers' directions and thresholds."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, n_tasks).astype(np.int32)
    point = rng.normal(0, 0.4, (n_tasks, dimensions))
    point[:, 0] += 2 * y_true - 1
    direction = rng.normal(0, 0.3, (15, dimensions))
    direction[:, 0] += rng.uniform(0.3, 2.0, 15)
    if dimensions == 2:
        direction[:7, 1] += 3.0
    threshold = rng.normal(0, 0.6, 15)
    label = rng.random((n_tasks, 15)) < norm.cdf(point @ direction.T - threshold)
    matrix = np.where(rng.random((n_tasks, 15)) < 0.6, label, -1)
    return Annotations.from_matrix(matrix), y_true, direction, threshold


def test_recovers_the_workers_of_its_own_model_in_one_dimension_and_two() -> None:
    ann, _, direction, threshold = own_model(1)
    model = MultidimensionalWisdom(worker_spread=3.0).fit(ann)
    assert_allclose(model.direction_, direction, atol=0.3)
    assert_allclose(model.threshold_, threshold, atol=0.25)
    ann, _, direction, _ = own_model(2)
    model = MultidimensionalWisdom(dimensions=2, worker_spread=2.0, tol=1e-6).fit(ann)
    assert metrics.rank_correlation(direction[:, 1], np.abs(model.direction_[:, 1])) > 0.6
    assert model.position_.shape == (1500, 2)


def test_is_as_good_as_dawid_skene_on_its_own_model_and_swaps_with_the_classes() -> None:
    ann, y_true, _, _ = own_model(1)
    ours, theirs = (metrics.accuracy(y_true, m.fit(ann).posterior_) for m in (MultidimensionalWisdom(), DawidSkene()))
    assert ours > theirs - 0.003
    ann, _, _, _ = own_model(1, n_tasks=200)
    plain, swapped = (MultidimensionalWisdom().fit(one).posterior_ for one in (ann, ann.relabel([1, 0])))
    assert_allclose(swapped[:, ::-1], plain, atol=1e-6)


def test_the_posterior_is_the_integral_over_the_points() -> None:
    matrix = np.array([[0, 0, 1], [1, 1, -1], [0, 1, 1], [-1, 0, 0], [1, 1, 1]])
    model = MultidimensionalWisdom(prior="uniform").fit(Annotations.from_matrix(matrix))
    x = np.linspace(-4, 4, 4001)
    for row, posterior in zip(matrix, model.posterior_, strict=True):
        says_one = norm.cdf(x[:, None] * model.direction_[:, 0] - model.threshold_)
        likelihood = np.prod(np.where(row == 1, says_one, np.where(row == 0, 1 - says_one, 1)), axis=1)
        joint = np.array([(norm.pdf(x, mean, 0.4) * likelihood).sum() for mean in (-1, 1)])
        assert_allclose(posterior, joint / joint.sum(), atol=1e-3)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # the gold is wrong
def test_gold_holds_in_two_classes() -> None:
    ann, y_true, _, _ = own_model(1, n_tasks=200)
    wrong = 1 - y_true[:20]
    model = MultidimensionalWisdom().fit(ann, gold=dict(enumerate(wrong)))
    assert_array_equal(model.posterior_[:20], np.eye(2)[wrong])
