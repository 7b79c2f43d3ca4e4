import numpy as np
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import Annotations, DawidSkene, metrics, simulate
from labelonce._kernels import ScipyEngine
from labelonce._types import Codes, Floats
from labelonce.baselines import SpectralDawidSkene
from labelonce.baselines._spectral_dawid_skene import group_rows, orthogonal_components, spectral_estimate


def test_components_of_an_orthogonal_tensor_are_found() -> None:
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    sizes = np.array([3.0, 2.5, 2.0, 1.5])
    tensor = np.einsum("c,ci,cj,ck->ijk", sizes, directions, directions, directions)
    found, vectors = orthogonal_components(tensor, rng)
    assert_allclose(np.sort(found)[::-1], sizes, atol=1e-6)
    assert_allclose(np.abs(directions @ vectors.T).max(axis=1), 1, atol=1e-6)


def test_exact_moments_give_the_exact_rows() -> None:
    """Every combination of labels as often as its probability says: no sampling error is left."""
    rng = np.random.default_rng(0)
    prior = np.array([0.5, 0.3, 0.2])
    rows = [simulate.dirichlet(1, 3, rng, diagonal=6.0, off_diagonal=1.0)[0] for _ in range(3)]
    labels = np.array(np.meshgrid(*[np.arange(3)] * 3)).reshape(3, -1)
    chance = sum(prior[k] * np.prod([rows[g][k, labels[g]] for g in range(3)], axis=0) for k in range(3))
    times = np.round(chance * 200_000).astype(int)
    shown = [np.repeat(np.eye(3)[labels[g]], times, axis=0) for g in range(3)]
    found, share = group_rows(shown[0], shown[1], shown[2], rng)
    assert_allclose(found, rows[2], atol=1e-3)
    assert_allclose(share, prior, atol=1e-3)


def big_crowd() -> tuple[Annotations, Codes, Floats]:
    rng = np.random.default_rng(0)
    y_true = rng.choice(3, 6000, p=[0.5, 0.3, 0.2]).astype(np.int32)
    confusion = simulate.dirichlet(12, 3, rng, diagonal=6.0, off_diagonal=1.0)
    ann = simulate.annotate(y_true, confusion, simulate.assign(6000, 12, 6, rng, replace=False), rng)
    return ann, y_true, confusion


def test_moments_alone_recover_workers_and_prior() -> None:
    ann, _, confusion = big_crowd()
    estimate = spectral_estimate(ann, ScipyEngine(ann, "float64"), np.random.default_rng(0))
    assert estimate is not None
    assert metrics.confusion_error(confusion, estimate[0]) < 0.1
    assert_allclose(estimate[1], [0.5, 0.3, 0.2], atol=0.06)


def test_never_ends_below_the_start_from_votes_on_which_singular_moments_fall_back() -> None:
    for seed in range(3):
        ann, _ = crowd(seed, n_tasks=60)
        spectral, votes = (model.fit(ann).log_likelihood_[-1] for model in (SpectralDawidSkene(), DawidSkene()))
        assert spectral >= votes - 1e-9
    ann = Annotations.from_matrix([[0, -1], [1, -1], [-1, 0], [-1, 1], [0, 0], [1, 1]])
    assert spectral_estimate(ann, ScipyEngine(ann, "float64"), np.random.default_rng(0)) is None
    assert_allclose(SpectralDawidSkene().fit(ann).posterior_, DawidSkene().fit(ann).posterior_)


def outvoted() -> tuple[Annotations, Codes]:
    """Fifteen good workers, outvoted on class 0 by twenty-five who nearly always say 1."""
    confusion = np.array([[[0.95, 0.05], [0.05, 0.95]]] * 15 + [[[0.25, 0.75], [0.1, 0.9]]] * 25)
    return crowd(n_tasks=2000, confusion=confusion, redundancy=10)


def test_moments_find_good_workers_who_are_outvoted() -> None:
    ann, y_true = outvoted()
    estimate = spectral_estimate(ann, ScipyEngine(ann, "float64"), np.random.default_rng(0))
    assert estimate is not None
    diagonal = np.einsum("wkk->w", estimate[0]) / 2
    assert diagonal[:15].min() > diagonal[15:].max()
    assert metrics.accuracy(y_true, SpectralDawidSkene().fit(ann).posterior_) > 0.97
