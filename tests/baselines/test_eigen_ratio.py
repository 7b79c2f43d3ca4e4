import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import Annotations, datasets, metrics, simulate
from labelonce._types import Floats
from labelonce.baselines import AssignmentWarning, EigenRatio
from labelonce.baselines._eigen_ratio import agreements


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


def test_adversaries_count_against_their_labels() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 1000)
    matrix = np.where(rng.random((1000, 5)) < [0.9, 0.9, 0.9, 0.9, 0.05], y_true[:, None], 1 - y_true[:, None])
    model = EigenRatio().fit(Annotations.from_matrix(matrix))
    assert model.skill_[4] < 0.1


def test_gold_is_counted_and_left_out_of_the_agreements() -> None:
    ann, y_true = crowd()
    gold = np.where(np.arange(200) < 100, y_true, -1)
    common, _ = agreements(ann, gold.astype(np.int32))
    assert common.sum() == 100 * 5 * 4
    assert EigenRatio().fit(ann, gold=gold).labels_[:100].tolist() == y_true[:100].tolist()


def test_a_worker_who_meets_nobody_gets_the_mean_skill() -> None:
    matrix = np.full((60, 4), -1)
    matrix[:40, :3], matrix[40:, 3] = (np.arange(40) % 2)[:, None], 0
    with pytest.warns(AssignmentWarning, match="4 workers fall into 2 groups"):
        skill = EigenRatio().fit(Annotations.from_matrix(matrix)).skill_
    assert skill[3] == pytest.approx(1 - 1 / 22)


def test_many_workers_who_all_say_the_same() -> None:
    ann = Annotations.from_arrays(np.repeat([0, 1], 70), np.tile(np.arange(70), 2), ["ok"] * 140)
    assert EigenRatio().fit(ann).labels_.tolist() == ["ok", "ok"]
