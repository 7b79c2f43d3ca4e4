import numpy as np
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations, MajorityVote, metrics, simulate
from labelonce._types import Floats
from labelonce.baselines import KOS


def by_hand(ann: Annotations, sweeps: int) -> Floats:
    """The paper's sums over dense messages, never scaled: the score of class 1."""
    matrix = ann.to_matrix(dense=True)
    there = matrix >= 0
    z = np.where(there, np.where(matrix == 1, 1.0, -1.0), 0.0)
    y = there.astype(float)
    for _ in range(sweeps):
        x = ((z * y).sum(axis=1, keepdims=True) - z * y) * there
        y = ((z * x).sum(axis=0, keepdims=True) - z * x) * there
    return np.asarray((z * y).sum(axis=1))


def test_equals_the_sums_of_the_paper() -> None:
    ann, _ = crowd(n_tasks=100, n_classes=2)
    score = by_hand(ann, 10)
    model = KOS(max_iter=10, tol=0.0).fit(ann)
    found = np.log(model.posterior_[:, 1] / model.posterior_[:, 0])
    assert_allclose(found / np.abs(found).max(), score / np.abs(score).max(), atol=1e-9)
    assert (model.n_iter_, model.converged_) == (10, False)


def test_recovers_labels_on_a_regular_random_graph_where_the_vote_fails() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 2000)
    skill = np.where(np.arange(100) < 30, 0.95, 0.5)
    ann = simulate.annotate(
        y_true, simulate.one_coin(skill, 2), simulate.assign(2000, 100, 10, rng, replace=False), rng
    )
    kos, vote = (model.fit(ann) for model in (KOS(), MajorityVote()))
    assert metrics.accuracy(y_true, kos.posterior_) > metrics.accuracy(y_true, vote.posterior_) + 0.05
    assert_allclose(kos.skill_, skill, atol=0.14)


def test_many_sweeps_stay_finite() -> None:
    model = KOS(max_iter=2000, tol=0.0).fit(crowd()[0])
    assert np.isfinite(model.posterior_).all()


def test_a_normal_start_ends_in_the_same_labels() -> None:
    ann, _ = crowd()
    assert_array_equal(KOS(start="normal").fit(ann).labels_, KOS().fit(ann).labels_)


def test_gold_moves_other_tasks() -> None:
    ann, y_true = crowd(n_classes=2)
    gold = {i: 1 - int(y_true[i]) for i in range(150)}
    liars = KOS().fit(ann, gold=gold)
    assert (liars.labels_[150:] == y_true[150:]).mean() < 0.3
