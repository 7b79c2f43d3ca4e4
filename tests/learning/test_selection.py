"""Choosing without gold: the held-out log-likelihood, its splits, and what it picks."""

import numpy as np
import pytest
from checks import one_hot
from crowds import crowd
from numpy.testing import assert_array_equal

from labelonce import Annotations, annotation_log_likelihood
from labelonce._types import Codes, Floats
from labelonce.data._split import hold_out
from labelonce.learning import SoftmaxRegression, _selection
from labelonce.learning._candidates import Candidate
from labelonce.learning._features import given_learners
from labelonce.learning._rounds import Recipe
from labelonce.learning._selection import Choice, choose_recipe, near_best
from labelonce.workers import OneCoin


def features(y_true: Codes) -> Floats:
    return one_hot(y_true, 3) + 0.5 * np.random.default_rng(0).normal(size=(len(y_true), 3))


def candidate(X: Floats, C: float) -> Candidate:
    return Candidate(given_learners(SoftmaxRegression(C=C))[0], X, Recipe(SoftmaxRegression(C=C), OneCoin()))


def test_log_likelihood_is_a_sum_over_classes_for_every_annotation() -> None:
    ann, _ = crowd(n_tasks=30)
    rng = np.random.default_rng(0)
    predictions, confusion = rng.dirichlet(np.ones(3), 30), rng.dirichlet(np.ones(3), (ann.n_workers, 3))
    terms = [
        np.log(sum(predictions[i, k] * confusion[j, k, z] for k in range(3)))
        for i, j, z in zip(ann.task, ann.worker, ann.label, strict=True)
    ]
    assert annotation_log_likelihood(ann, predictions, confusion) == pytest.approx(np.mean(terms))


def test_impossible_labels_are_finite() -> None:
    ann = Annotations.from_arrays([0], [0], [1], classes=[0, 1])
    assert np.isfinite(annotation_log_likelihood(ann, [[1.0, 0.0]], [np.eye(2)]))


def test_log_likelihood_wants_probabilities_of_its_tasks_and_workers() -> None:
    ann, _ = crowd(n_tasks=30)
    flat = np.full((30, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"predictions must have shape \(30, 3\); got \(29, 3\)"):
        annotation_log_likelihood(ann, flat[1:], np.full((12, 3, 3), 1 / 3))
    with pytest.raises(ValueError, match=r"confusion must have shape \(12, 3, 3\); got \(11, 3, 3\)"):
        annotation_log_likelihood(ann, flat, np.full((11, 3, 3), 1 / 3))


@pytest.mark.parametrize("share", [0.1, 0.2, 0.9])
def test_the_two_parts_make_up_the_annotations(share: float) -> None:
    ann, _ = crowd()
    parts = hold_out(ann, share, np.random.default_rng(0))
    rows = sorted(row for part in parts for row in zip(part.task, part.worker, part.label, strict=True))
    assert rows == sorted(zip(ann.task, ann.worker, ann.label, strict=True))
    assert len(parts[1]) == round(share * len(ann))
    for part in parts:
        assert_array_equal(part.tasks, ann.tasks)
        assert_array_equal(part.workers, ann.workers)


def test_neither_part_is_empty() -> None:
    seen, held = hold_out(Annotations.from_arrays([0, 1], [0, 0], [0, 1]), 0.9, np.random.default_rng(0))
    assert (len(seen), len(held)) == (1, 1)


def test_the_candidate_that_predicts_best_wins() -> None:
    ann, y_true = crowd()
    X = features(y_true)
    candidates = [candidate(X, C) for C in (1e-6, 1e-4, 1.0)]
    best = choose_recipe(candidates, ann, None, max_rounds=2, free=False, share=0.2, seed=0)
    assert (best.number, best.rounds) == (2, 2)
    scores = np.array([row["held_out_scores"] for row in best.table])
    assert scores[2, 1] == scores[:, 1].max()
    assert best.scores == scores[2].tolist()


def scripted(monkeypatch: pytest.MonkeyPatch, paths: dict[float, list[Floats]]) -> list[Candidate]:
    """Candidates named by C whose held-out log-likelihoods after each round are given."""
    monkeypatch.setattr(_selection, "_held_out", lambda one, *_: iter(paths[one.recipe.learner.C]))
    return [candidate(np.zeros((1, 1)), C) for C in paths]


def chosen(monkeypatch: pytest.MonkeyPatch, paths: dict[float, list[Floats]], *, free: bool = True) -> Choice:
    ann = Annotations.from_arrays(range(500), [0] * 500, [0, 1] * 250)
    rounds = len(next(iter(paths.values())))
    return choose_recipe(scripted(monkeypatch, paths), ann, None, max_rounds=rounds, free=free, share=0.2, seed=0)


@pytest.mark.parametrize(("free", "expected"), [(True, (0, 2)), (False, (1, 4))])
def test_free_rounds_are_chosen_too(monkeypatch: pytest.MonkeyPatch, free: bool, expected: tuple[int, int]) -> None:
    scores = {0.1: [-3.0, -1.0, -2.0, -4.0], 1.0: [-3.0, -2.0, -2.0, -2.0]}
    best = chosen(monkeypatch, {C: [np.full(100, score) for score in path] for C, path in scores.items()}, free=free)
    assert (best.number, best.rounds) == expected


@pytest.mark.parametrize(("spread", "expected"), [(0.1, (1, 1)), (1.0, (0, 2))])
def test_the_simplest_of_those_within_the_error_wins(
    monkeypatch: pytest.MonkeyPatch, spread: float, expected: tuple[int, int]
) -> None:
    coin = np.where(np.arange(100) % 2, spread, -spread)  # standard error over 300 annotations: spread / 17.3
    best = chosen(monkeypatch, {0.1: [coin - 1.05, coin - 1.04], 1.0: [np.full(100, -1.0), np.full(100, -2.0)]})
    assert (best.number, best.rounds) == expected
    assert [row["near_best"] for row in best.table] == [[expected[0] == 0] * 2, [True, False]]


def test_the_best_is_near_and_the_others_by_a_paired_error() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(rng.normal(0, 0.1, size=(4, 3, 1)), 1, size=(4, 3, 50))
    candidates = rng.random((4, 3)) < 0.7
    near = near_best(scores, candidates)
    best = max(map(tuple, np.argwhere(candidates).tolist()), key=lambda place: scores[place].mean())
    for place in np.ndindex(4, 3):
        gaps = scores[best] - scores[place]
        assert near[place] == (candidates[place] and gaps.mean() <= gaps.std() / 50**0.5)
    assert near[best]
    assert 1 < near.sum() < candidates.sum()


def test_what_all_find_hard_does_not_widen_the_error() -> None:
    hard = np.random.default_rng(0).normal(0, 10, size=100)
    scores = np.stack([[hard], [hard - 0.1]])
    assert near_best(scores, np.ones((2, 1), dtype=bool)).ravel().tolist() == [True, False]


def test_only_the_best_four_run_on_after_three_rounds() -> None:
    ann, y_true = crowd(n_tasks=100)
    candidates = [candidate(features(y_true), C) for C in (1e-6, 1e-3, 1e-2, 0.1, 1.0)]
    best = choose_recipe(candidates, ann, None, max_rounds=4, free=True, share=0.2, seed=0)
    scores = np.array([row["held_out_scores"] for row in best.table])
    assert np.isfinite(scores[:, :3]).all()
    assert_array_equal(np.isnan(scores[:, 3]), scores[:, 2] == scores[:, 2].min())


def test_the_same_seed_chooses_alike() -> None:
    ann, y_true = crowd(n_tasks=100)
    candidates = [candidate(features(y_true), C) for C in (0.1, 1.0)]
    first, second, other = (
        choose_recipe(candidates, ann, None, max_rounds=2, free=True, share=0.2, seed=seed) for seed in (0, 0, 1)
    )
    assert first.scores == second.scores != other.scores
