import warnings

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations, MajorityVote, datasets, metrics, simulate
from labelonce._types import Floats
from labelonce.baselines import KOS, AssignmentWarning, EigenRatio
from labelonce.baselines._eigen_ratio import agreements
from labelonce.data._check import worker_groups


def dense_agreements(ann: Annotations) -> tuple[Floats, Floats]:
    """Common tasks and excess agreement of every two workers, by a loop over pairs."""
    matrix, n = ann.to_matrix(dense=True), ann.n_workers
    common, excess = np.zeros((n, n)), np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            both = (matrix[:, a] >= 0) & (matrix[:, b] >= 0)
            if a != b:
                agreed = (matrix[both, a] == matrix[both, b]).sum()
                common[a, b] = both.sum()
                excess[a, b] = (ann.n_classes * agreed - both.sum()) / (ann.n_classes - 1)
    return common, excess


def one_coin_crowd(n_workers: int = 100, n_classes: int = 4) -> tuple[Annotations, Floats]:
    rng = np.random.default_rng(0)
    skill, y_true = np.linspace(0.3, 0.95, n_workers), rng.choice(n_classes, 20_000, p=[0.7, 0.1, 0.1, 0.1])
    assignment = simulate.assign(20_000, n_workers, 10, rng, replace=False)
    return simulate.annotate(y_true, simulate.one_coin(skill, n_classes), assignment, rng), skill


def test_agreements_equal_a_loop_over_pairs() -> None:
    ann, _ = crowd(n_tasks=40)
    for sparse, dense in zip(agreements(ann, None), dense_agreements(ann), strict=True):
        assert_allclose(sparse.toarray(), dense)


@pytest.mark.parametrize("ratio", ["eigenvectors", "entries"])
def test_recovers_simulated_skills_whatever_the_class_frequencies(ratio: str) -> None:
    ann, skill = one_coin_crowd()
    assert_allclose(EigenRatio(ratio=ratio).fit(ann).skill_, skill, atol=0.05)


@pytest.mark.parametrize("ratio", ["eigenvectors", "entries"])
def test_equals_dense_eigenvectors(ratio: str) -> None:
    ann, _ = crowd(n_tasks=400)
    common, excess = dense_agreements(ann)
    entries = np.divide(excess, common, out=np.zeros_like(excess), where=common > 0)
    direction = np.linalg.eigh(entries)[1][:, -1]
    if ratio == "eigenvectors":
        direction = np.linalg.eigh(excess)[1][:, -1] / np.linalg.eigh(common)[1][:, -1]
    products = np.outer(direction, direction)
    scale = np.sqrt((products * excess).sum() / (products**2 * common).sum())
    skill = EigenRatio(ratio=ratio).fit(ann).skill_
    assert_allclose((3 * skill - 1) / 2, scale * np.abs(direction), atol=1e-9)


@pytest.mark.data
def test_bluebird_equals_a_dense_computation() -> None:
    data = datasets.load("bluebird")
    ann = data.annotations
    assert ann is not None
    common, excess = dense_agreements(ann)
    beats_chance = np.linalg.eigh(excess / np.maximum(common, 1))[1][:, -1]
    beats_chance *= np.sign(beats_chance.sum())
    model = EigenRatio(ratio="entries").fit(ann)
    assert np.corrcoef(model.skill_, beats_chance)[0, 1] > 1 - 1e-9
    assert metrics.accuracy(data.gold_of(ann), model.posterior_) == pytest.approx(0.7222, abs=1e-4)


def test_adversaries_count_against_their_labels_and_all_may_say_the_same() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 1000)
    matrix = np.where(rng.random((1000, 5)) < [0.9, 0.9, 0.9, 0.9, 0.05], y_true[:, None], 1 - y_true[:, None])
    model = EigenRatio().fit(Annotations.from_matrix(matrix))
    assert model.skill_[4] < 0.1
    ann = Annotations.from_arrays(np.repeat([0, 1], 70), np.tile(np.arange(70), 2), ["ok"] * 140)
    assert EigenRatio().fit(ann).labels_.tolist() == ["ok", "ok"]


def test_gold_is_counted_apart_and_a_worker_who_meets_nobody_gets_the_mean_skill() -> None:
    ann, y_true = crowd()
    gold = np.where(np.arange(200) < 100, y_true, -1)
    common, _ = agreements(ann, gold.astype(np.int32))
    assert common.sum() == 100 * 5 * 4
    assert EigenRatio().fit(ann, gold=gold).labels_[:100].tolist() == y_true[:100].tolist()
    matrix = np.full((60, 4), -1)
    matrix[:40, :3], matrix[40:, 3] = (np.arange(40) % 2)[:, None], 0
    with pytest.warns(AssignmentWarning, match="4 workers fall into 2 groups"):
        skill = EigenRatio().fit(Annotations.from_matrix(matrix)).skill_
    assert skill[3] == pytest.approx(1 - 1 / 22)


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
    skill = np.where(np.arange(100) < 30, 0.95, 0.5)
    ann, y_true = crowd(n_tasks=2000, confusion=simulate.one_coin(skill, 2), redundancy=10)
    kos, vote = (model.fit(ann) for model in (KOS(), MajorityVote()))
    assert metrics.accuracy(y_true, kos.posterior_) > metrics.accuracy(y_true, vote.posterior_) + 0.05
    assert_allclose(kos.skill_, skill, atol=0.14)


def test_many_sweeps_stay_finite_and_a_normal_start_ends_in_the_same_labels() -> None:
    model = KOS(max_iter=2000, tol=0.0).fit(crowd()[0])
    assert np.isfinite(model.posterior_).all()
    ann, _ = crowd()
    assert_array_equal(KOS(start="normal").fit(ann).labels_, KOS().fit(ann).labels_)


def test_gold_moves_other_tasks_and_groups_are_those_that_tasks_connect() -> None:
    ann, y_true = crowd(n_classes=2)
    gold = {i: 1 - int(y_true[i]) for i in range(150)}
    liars = KOS().fit(ann, gold=gold)
    assert (liars.labels_[150:] == y_true[150:]).mean() < 0.3
    groups = worker_groups(Annotations.from_matrix(TWO_GROUPS))
    assert groups[0] == groups[1]
    assert groups[2] == groups[3]
    assert groups[0] != groups[2]


TWO_GROUPS = [[0, 0, -1, -1], [1, 1, -1, -1], [-1, -1, 0, 0], [-1, -1, 1, 1]]


@pytest.mark.parametrize("model", [KOS(), EigenRatio()])
def test_groups_without_a_common_task_are_warned_about_and_still_solved(model: KOS | EigenRatio) -> None:
    ann = Annotations.from_matrix(TWO_GROUPS)
    with pytest.warns(AssignmentWarning, match="these 4 workers fall into 2 groups .* largest of 2"):
        model.fit(ann)
    assert model.labels_.tolist() == [0, 1, 0, 1]
    assert (model.posterior_.max(axis=1) > 0.7).all()


@pytest.mark.parametrize("side", ["worker", "task"])
def test_kos_warns_of_uneven_numbers_of_labels(side: str) -> None:
    matrix = np.full((40, 10), -1)
    matrix[:, 0], matrix[:4, 1:] = 0, 1
    ann = Annotations.from_matrix(matrix if side == "worker" else matrix.T)
    with warnings.catch_warnings(record=True, action="always") as caught:
        KOS().fit(ann)
    messages = [str(warning.message) for warning in caught if warning.category is AssignmentWarning]
    assert any(f"every {side} has about as many labels; here they vary from 4 to 40" in text for text in messages)
    assert {warning.filename for warning in caught} == {__file__}
