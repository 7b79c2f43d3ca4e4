"""Which recipes are kept and how their heads are averaged."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from questions import crowd
from scipy.special import logit

from labelonce.multilabel import MultiLabelMBEM, PerQuestion, SigmoidRegression
from labelonce.multilabel._average import AveragedHeads, average_heads, mean_probability
from labelonce.multilabel._rounds import Recipe
from labelonce.multilabel._selection import ENOUGH, MOST_KEPT, Trials, _parts


def trials(*scores: Any) -> Trials:
    """Return trials that were done, with the score of every task for each of them."""
    made = crowd(n_tasks=len(scores[0]), n_questions=1, redundancy=1).annotations
    everything = np.ones(len(scores[0]), dtype=bool)
    recipes = [Recipe(SigmoidRegression(C=number + 1.0)) for number in range(len(scores))]
    none: Any = None
    return Trials(none, made, none, 0, [everything], len(scores), none, recipes, [np.asarray(one) for one in scores])


def test_recipes_within_a_standard_error_of_the_best_are_kept_best_first() -> None:
    rng = np.random.default_rng(0)
    best = rng.normal(size=400)
    level = best - rng.normal(0.001, 1.0, size=400)
    worse = best - rng.normal(0.5, 1.0, size=400)
    found = trials(worse, level, best)
    assert found.kept()[0] is found.recipes[int(np.argmax([worse.sum(), level.sum(), best.sum()]))]
    assert [recipe in found.kept() for recipe in found.recipes] == [False, True, True]
    assert [row["kept"] for row in found.table()] == [False, True, True]


def test_at_most_so_many_are_kept() -> None:
    same = np.zeros(50)
    assert len(trials(*[same] * 9).kept()) == MOST_KEPT


@pytest.mark.parametrize(("n_tasks", "n_parts"), [(100, 5), (ENOUGH, 2), (6 * ENOUGH, 1)])
def test_tasks_are_held_out_in_turn_until_there_are_answers_enough(n_tasks: int, n_parts: int) -> None:
    made = crowd(n_tasks=n_tasks, n_questions=3, redundancy=1).annotations
    parts = _parts(made, 0.2, 0, several=True)
    assert len(parts) == n_parts
    assert np.sum(parts, axis=0).max() == 1
    assert len(_parts(made, 0.2, 0, several=False)) == 1


def test_regressions_are_averaged_to_one() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.random((50, 2))
    heads = [SigmoidRegression(C=C).fit(X, y) for C in (0.01, 1.0)]
    mean = average_heads(heads)
    assert type(mean) is SigmoidRegression
    wanted = np.mean([logit(one.predict_proba(X)) for one in heads], axis=0)
    assert_allclose(logit(mean.predict_proba(X)), wanted, rtol=1e-9, atol=1e-12)
    assert average_heads(heads[:1]) is heads[0]


def test_other_heads_are_averaged_as_regressions_are() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.random((50, 2))
    heads = [SigmoidRegression(C=C).fit(X, y) for C in (0.01, 1.0)]
    mixed = AveragedHeads(heads).fit(X, y)
    assert_allclose(mixed.predict_proba(X), average_heads(heads).predict_proba(X), atol=1e-5)
    together = average_heads([PerQuestion(heads[0]), heads[1]])
    assert isinstance(together, AveragedHeads)


def test_what_all_are_sure_of_stays_sure() -> None:
    found = mean_probability([np.array([0.0, 1.0, 0.2]), np.array([0.0, 1.0, 0.8])])
    assert found.tolist()[:2] == [0.0, 1.0]
    assert found[2] == pytest.approx(0.5)


def test_a_fit_averages_what_it_kept() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    made = crowd(y_true=X > 0, redundancy=1, n_workers=6)
    near = [SigmoidRegression(C=0.1), SigmoidRegression(C=0.1001)]
    clf = MultiLabelMBEM(near, rounds=1, predictions="in_sample").fit(X, made.annotations)
    assert clf.recipe_["averaged"] == sum(choice["kept"] for choice in clf.choices_) > 1
    alone = MultiLabelMBEM(SigmoidRegression(C=0.1), rounds=1, predictions="in_sample")
    assert {choice["learner"].C for choice in alone.fit(X, made.annotations).choices_} == {0.1}
