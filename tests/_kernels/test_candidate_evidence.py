"""What labels say of workers: where the graph of tasks and rows is a tree, belief propagation is the exact sum."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from grouped_crowd import GROUP, ROWS, crowd, factors
from numpy.testing import assert_allclose

from labelonce import Annotations
from labelonce._kernels import CandidateEvidence, CandidateSums, Chances, Factors, Mistakes
from labelonce._types import Codes, Floats

GRID = np.array([0.1, 0.35, 0.6, 0.9])
PRIOR = np.array([0.3, 0.2, 0.1, 0.4])  # of the chances


def one_worker(n_tasks: int = 5) -> Annotations:
    rng = np.random.default_rng(3)
    label = rng.integers(0, 6, n_tasks).astype(np.int32)
    zeros = np.zeros(n_tasks, np.int32)
    return Annotations(np.arange(n_tasks, dtype=np.int32), zeros, label, np.arange(n_tasks), np.arange(1), np.arange(6))


def propagated(ann: Annotations, workers: Factors, log_prior: Floats, steps: int = 6) -> tuple[Any, Floats]:
    """Return what is heard in the end, and the beliefs of the rows, with all classes as candidates."""
    classes = np.tile(np.arange(6, dtype=np.int32), (ann.n_tasks, 1))
    evidence = CandidateEvidence(CandidateSums(ann, classes, workers.mistakes, workers.row))
    wide = np.concatenate([log_prior, np.full((len(log_prior), 1), -np.inf)], axis=1)
    belief = np.tile(PRIOR, (ann.n_workers, workers.right.shape[1], 1))
    for _ in range(steps):
        heard = evidence.step(Chances(GRID, belief), workers, wide)
        belief = np.exp(heard.log_likelihood) * PRIOR
        belief /= belief.sum(axis=2, keepdims=True)
    return heard, belief


def summed(ann: Annotations, workers: Factors, log_prior: Floats) -> tuple[Floats, Floats]:
    """Return posteriors and the belief of one worker with one chance, by a sum over all chances and classes."""
    posterior, belief = np.zeros((ann.n_tasks, 6)), np.zeros(len(GRID))
    for number, chance in enumerate(GRID):
        known = Factors(np.full((1, 1), chance), workers.row, workers.mistakes, workers.share, workers.other_share)
        joint = np.exp(log_prior) * known.probability(0, np.arange(6), ann.label[:, None])
        likelihood = PRIOR[number] * joint.sum(axis=1).prod()
        belief[number] = likelihood
        posterior += likelihood * joint / joint.sum(axis=1, keepdims=True)
    return posterior / belief.sum(), belief / belief.sum()


@pytest.mark.parametrize(("weak", "atol"), [(0.0, 1e-9), (0.15, 2e-3)])
def test_the_tasks_and_the_chance_of_one_worker_are_those_of_the_whole_sum(
    monkeypatch: pytest.MonkeyPatch, weak: float, atol: float
) -> None:
    monkeypatch.setattr("labelonce._kernels._candidate_evidence.WEAK", weak)
    ann, workers = one_worker(), factors(ROWS["worker"]).select([0])
    log_prior = np.log(np.random.default_rng(4).dirichlet(np.ones(6), ann.n_tasks))
    heard, belief = propagated(ann, workers, log_prior)
    expected, expected_belief = summed(ann, workers, log_prior)
    joint = np.exp(heard.messages[:, :-1] + log_prior)
    assert_allclose(joint / joint.sum(axis=1, keepdims=True), expected, atol=atol)
    assert_allclose(belief[0, 0], expected_belief, atol=atol)


def test_one_label_speaks_for_every_row_that_might_have_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce._kernels._candidate_evidence.WEAK", 0.0)
    ann, workers = one_worker(1), factors(ROWS["class"]).select([0])
    log_prior = np.log(np.random.default_rng(5).dirichlet(np.ones(6), 1))
    _, belief = propagated(ann, workers, log_prior)
    expected = np.zeros((6, len(GRID)))
    for numbers in product(range(len(GRID)), repeat=6):
        known = Factors(GRID[list(numbers)][None], workers.row, workers.mistakes, workers.share, workers.other_share)
        likelihood = PRIOR[list(numbers)].prod() * float(
            np.exp(log_prior[0]) @ known.probability(0, np.arange(6), ann.label[0])
        )
        expected[np.arange(6), list(numbers)] += likelihood
    assert_allclose(belief[0], expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_where_the_true_classes_are_known_a_row_has_its_right_and_wrong_labels(row: Codes) -> None:
    ann, workers = crowd(2), factors(row)
    true = np.random.default_rng(6).integers(0, 6, 60)
    known = np.where(np.arange(6) == true[:, None], 0.0, -np.inf)
    heard, _ = propagated(ann, workers, known, steps=2)
    right = heard.tallies.right[:, :, None] * np.log(GRID) + heard.tallies.wrong[:, :, None] * np.log1p(-GRID)
    assert_allclose(
        heard.log_likelihood - heard.log_likelihood[:, :, :1], right - right[:, :, :1], atol=1e-4
    )  # the chances of all but the true class are cut off at 1e-6


def test_a_label_does_not_vouch_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's only label is judged as that of an average worker, whatever the label says."""
    monkeypatch.setattr("labelonce._kernels._candidate_evidence.WEAK", 0.0)
    ann, workers = one_worker(1), factors(ROWS["worker"]).select([0])
    log_prior = np.log(np.full((1, 6), 1 / 6))
    heard, _ = propagated(ann, workers, log_prior)
    mean = Factors(
        np.full((1, 1), PRIOR @ GRID), workers.row, Mistakes.inside(GROUP), workers.share, workers.other_share
    )
    assert_allclose(np.exp(heard.messages[0, :-1]), mean.probability(0, np.arange(6), ann.label[0]), atol=1e-9)
