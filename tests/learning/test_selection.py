"""Choosing without gold: the held-out log-likelihood, its splits, and what it picks."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from checks import one_hot
from crowds import crowd
from numpy.testing import assert_array_equal

from labelonce import Annotations, simulate
from labelonce._types import Codes, Floats
from labelonce.data._split import hold_out, hold_out_tasks
from labelonce.learning import SoftmaxRegression, _trials, annotation_log_likelihood
from labelonce.learning._contenders import Contender
from labelonce.learning._features import given_learners
from labelonce.learning._rounds import Recipe, run_rounds
from labelonce.learning._selection import Choice, choose_recipe, held_out_parts, near_best
from labelonce.learning._trials import Trials
from labelonce.workers import OneCoin


def features(y_true: Codes) -> Floats:
    return one_hot(y_true, 3) + 0.5 * np.random.default_rng(0).normal(size=(len(y_true), 3))


def contender(X: Floats, C: float) -> Contender:
    return Contender(given_learners(SoftmaxRegression(C=C))[0], X, Recipe(SoftmaxRegression(C=C), OneCoin()))


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


@pytest.mark.parametrize(("share", "n_splits"), [(0.1, 3), (0.3, 3), (0.4, 2), (0.9, 1)])
def test_whole_tasks_are_held_out_and_none_twice(share: float, n_splits: int) -> None:
    ann, _ = crowd(n_tasks=90)
    pairs = hold_out_tasks(ann, share, 3, np.random.default_rng(0))
    assert len(pairs) == n_splits
    held_out = [set(held.task.tolist()) for _, held in pairs]
    for (seen, held), tasks in zip(pairs, held_out, strict=True):
        assert len(tasks) == round(share * 90)
        assert not tasks & set(seen.task.tolist())
        assert len(seen) + len(held) == len(ann)
    assert len(set.union(*held_out)) == sum(map(len, held_out))


@pytest.mark.parametrize(("n_tasks", "n_splits"), [(100, 3), (3000, 2), (6000, 1), (20_000, 1)])
def test_small_sets_are_split_more_often(n_tasks: int, n_splits: int) -> None:
    ann = Annotations.from_arrays(range(n_tasks), np.arange(n_tasks) % 7, np.arange(n_tasks) % 2)
    assert len(held_out_parts(ann, 0.2, seed=0)) == n_splits
    assert len(held_out_parts(ann, 0.2, seed=0, most=1)) == 1


def test_neither_part_is_empty() -> None:
    seen, held = hold_out(Annotations.from_arrays([0, 1], [0, 0], [0, 1]), 0.9, np.random.default_rng(0))
    assert (len(seen), len(held)) == (1, 1)


def test_the_candidate_that_is_right_most_often_wins() -> None:
    ann, y_true = crowd()
    X = features(y_true)
    contenders = [contender(X, C) for C in (1e-6, 1e-4, 1.0)]
    best = choose_recipe(contenders, ann, None, max_rounds=2, free=False, share=0.2, seed=0)
    assert (best.number, best.rounds, best.averaged) == (2, 2, (2,))
    accuracy = np.array([row["held_out_accuracy"] for row in best.table])
    assert accuracy[2, 1] == accuracy[:, 1].max()
    assert best.scores == best.table[2]["held_out_scores"]


def scripted(monkeypatch: pytest.MonkeyPatch, wrong: dict[float, list[int]]) -> Choice:
    """The choice among contenders that pick so many of 500 labels otherwise than their perfect worker, each round."""
    labels = np.arange(500) % 2
    ann = Annotations.from_arrays(range(500), [0] * 500, labels)

    def rounds(one: Contender, *_: object) -> Iterator[Any]:
        for number, n_wrong in enumerate(wrong[one.recipe.learner.C]):
            order = np.random.default_rng([number, len(wrong), n_wrong]).permutation(500)
            predictions = one_hot(np.where(order < n_wrong, 1 - labels, labels), 2)
            yield SimpleNamespace(predictions=predictions, confusion=np.eye(2)[None])

    monkeypatch.setattr(_trials, "judged_rounds", rounds)
    contenders = [contender(np.zeros((1, 1)), C) for C in wrong]
    n_rounds = len(next(iter(wrong.values())))
    return choose_recipe(contenders, ann, None, max_rounds=n_rounds, free=True, share=0.2, seed=0)


def test_the_rounds_that_are_as_right_as_the_best_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    best = scripted(monkeypatch, {0.1: [200, 10, 10, 100], 1.0: [200, 100, 100, 100]})
    assert (best.number, best.rounds, best.averaged) == (0, 3, (2, 3))


def test_the_first_of_those_that_are_right_as_often_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scripted(monkeypatch, {0.1: [10, 10], 1.0: [10, 10]}).number == 0
    assert scripted(monkeypatch, {0.1: [40, 40], 1.0: [10, 10]}).number == 1


def test_only_the_best_two_run_on_after_three_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    best = scripted(monkeypatch, {0.1: [90] * 4, 1.0: [10] * 4, 2.0: [50] * 4})
    finite = np.isfinite([row["held_out_scores"] for row in best.table])
    assert finite.tolist() == [[True] * 3 + [False], [True] * 4, [True] * 4]


def test_memorising_the_other_labels_of_a_task_does_not_win() -> None:
    rng = np.random.default_rng(0)
    spread = np.append(5.0, np.ones(149))  # only the first feature tells, and not all
    X, X_new = spread * rng.normal(size=(200, 150)), spread * rng.normal(size=(2000, 150))
    confusion = np.tile([[0.7, 0.3], [0.3, 0.7]], (30, 1, 1))
    y_true = (X[:, 0] + 4 * rng.normal(size=200) > 0).astype(int)
    ann = simulate.annotate(y_true, confusion, simulate.assign(200, 30, 10, rng), rng)
    penalties = (0.001, 1000.0)
    models = [SoftmaxRegression(C=C).fit(X, vote_fractions(ann)) for C in penalties]
    strong, weak = (float((model.predict(X_new) == (X_new[:, 0] > 0)).mean()) for model in models)
    assert strong > weak + 0.05
    contenders = [contender(X, C) for C in penalties]
    assert choose_recipe(contenders, ann, None, max_rounds=3, free=True, share=0.2, seed=0).number == 0


def vote_fractions(ann: Annotations) -> Floats:
    votes = np.zeros((ann.n_tasks, ann.n_classes))
    np.add.at(votes, (ann.task, ann.label), 1.0)
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


def test_gold_of_held_out_tasks_judges_and_is_not_shown() -> None:
    ann, y_true = crowd(n_tasks=200)
    contenders = [contender(features(y_true), 1.0)]
    parts = hold_out_tasks(ann, 0.2, 1, np.random.default_rng(0))
    trials = Trials(contenders, parts, y_true.astype(np.int32), max_rounds=1, seed=0)
    trials.run_round(0)
    held = np.unique(parts[0][1].task)
    hidden = y_true.astype(np.int32)
    hidden[held] = -1
    (this,) = islice(run_rounds(contenders[0].X, parts[0][0], contenders[0].recipe, gold=hidden, seed=0, last=1), 1)
    right = this.model.predict_proba(contenders[0].X).argmax(axis=1)[held] == y_true[held]
    assert_array_equal(trials.right()[0, 0], right)


def test_gold_of_tasks_that_are_fitted_to_is_not_hidden() -> None:
    ann, y_true = crowd(n_tasks=60)
    one = contender(features(y_true), 1.0)
    one = replace(one, recipe=replace(one.recipe, predictions="out_of_fold", of_folds=True))
    gold = y_true.astype(np.int32)
    trials = Trials([one], [(ann, ann)], gold, max_rounds=1, seed=0, keep_rounds=True)
    trials.run_round(0)
    assert_array_equal(trials.rounds[0][0].posterior.argmax(axis=1), y_true)
    right = trials.rounds[0][0].predictions.argmax(axis=1) == y_true
    assert_array_equal(trials.right()[0, 0], right[np.unique(ann.task)])


def test_the_best_is_near_and_the_others_by_a_paired_error() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(rng.normal(0, 0.1, size=(4, 3, 1)), 1, size=(4, 3, 50))
    contenders = rng.random((4, 3)) < 0.7
    near = near_best(scores, contenders)
    best = max(map(tuple, np.argwhere(contenders).tolist()), key=lambda place: scores[place].mean())
    for place in np.ndindex(4, 3):
        gaps = scores[best] - scores[place]
        assert near[place] == (contenders[place] and gaps.mean() <= gaps.std() / 50**0.5)
    assert near[best]
    assert 1 < near.sum() < contenders.sum()


def test_what_all_find_hard_does_not_widen_the_error() -> None:
    hard = np.random.default_rng(0).normal(0, 10, size=100)
    scores = np.stack([[hard], [hard - 0.1]])
    assert near_best(scores, np.ones((2, 1), dtype=bool)).ravel().tolist() == [True, False]


def test_the_same_seed_chooses_alike() -> None:
    ann, y_true = crowd(n_tasks=100)
    contenders = [contender(features(y_true), C) for C in (0.1, 1.0)]
    first, second, other = (
        choose_recipe(contenders, ann, None, max_rounds=2, free=True, share=0.2, seed=seed) for seed in (0, 0, 1)
    )
    assert first.scores == second.scores != other.scores
