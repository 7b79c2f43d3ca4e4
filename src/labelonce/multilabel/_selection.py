"""Which recipes the rounds are done with: those that predict answers about tasks held out best.

With few answers, most of them noise, the best score of a few dozen tasks is often that of a poor recipe. So tasks are
held out in turn until there are answers enough, and all recipes are kept that are not worse than the best by more than
a standard error of the difference; their heads are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from labelonce._types import Floats
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._rounds import Recipe, held_out_scores
from labelonce.multilabel._sigmoid import SigmoidRegression

ENOUGH = 4000
"""Held-out answers with which one part of the tasks is enough."""

MOST_KEPT = 4
Listener = Callable[[dict[str, Any]], None]


@dataclass
class Trials:
    """Trials of recipes on the same parts of the tasks, with what each scored."""

    X: Any
    annotations: MultiLabelAnnotations
    gold: Floats
    seed: int
    parts: list[Any]
    planned: int
    listener: Listener
    recipes: list[Recipe] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)

    def score(self, recipe: Recipe) -> float:
        """Try a recipe, unless that was done, and return the mean log-probability of an answer held out."""
        if recipe not in self.recipes:
            found = []
            for number, part in enumerate(self.parts):
                found.append(held_out_scores(self.X, self.annotations, recipe, self.gold, self.seed, part))
                done = len(self.recipes) * len(self.parts) + number + 1
                self.listener({"round": 0, "fits": done, "planned_fits": self.planned * len(self.parts)})
            self.recipes.append(recipe)
            self.scores.append(np.concatenate(found))
        return float(self.scores[self.recipes.index(recipe)].sum() / self.n_answers)

    @property
    def n_answers(self) -> int:
        """Number of answers held out in all parts."""
        return sum(int(part[self.annotations.task].sum()) for part in self.parts)

    def kept(self) -> list[Recipe]:
        """Return the recipes not worse than the best by more than a standard error, the best first."""
        order = sorted(self.recipes, key=self.score, reverse=True)
        return [one for one in order if self._is_level(one, order[0])][:MOST_KEPT]

    def _is_level(self, recipe: Recipe, best: Recipe) -> bool:
        behind = self.scores[self.recipes.index(best)] - self.scores[self.recipes.index(recipe)]
        return bool(behind.mean() <= behind.std() / np.sqrt(len(behind)) + 1e-12)

    def table(self) -> list[dict[str, Any]]:
        """Return every recipe with its score, and whether it was kept."""
        kept = self.kept() if self.recipes else []
        return [vars(one) | {"score": self.score(one), "kept": one in kept} for one in self.recipes]


def choose_recipes(
    X: Any,
    annotations: MultiLabelAnnotations,
    gold: Floats,
    learners: Sequence[Any],
    base: Recipe,
    *,
    judges: Sequence[str],
    holdout: float,
    seed: int,
    listener: Listener,
) -> tuple[list[Recipe], list[dict[str, Any]]]:
    """Return the recipes to average, and the table of all that were tried: first learners, then the rest.

    What differs between workers, and what judges them, is chosen for regressions alone; of `judges` there may be one.
    """
    cheap = all(isinstance(learner, SigmoidRegression) for learner in learners)
    skills = (False, True) if annotations.n_answers == 2 and cheap else (False,)
    rest = list(product(skills, judges))
    parts = _parts(annotations, holdout, seed, several=cheap)
    if len(learners) * len(rest) == 1 or not parts:
        return [base], []
    trials = Trials(X, annotations, gold, seed, parts, len(learners) + len(rest) - 1, listener)
    best = max((replace(base, learner=learner) for learner in learners), key=trials.score)
    for by_skill, judge in rest:
        trials.score(replace(best, by_skill=by_skill, predictions=judge))
    kept = trials.kept() if cheap else [max(trials.recipes, key=trials.score)]
    return kept, trials.table()


def _parts(annotations: MultiLabelAnnotations, holdout: float, seed: int, *, several: bool) -> list[Any]:
    """Return the parts of the tasks that are held out in turn, until there are answers enough."""
    n_parts = max(2, round(1 / holdout))
    fold = np.random.default_rng([seed, 1]).permutation(annotations.n_tasks) % n_parts
    found: list[Any] = []
    held = 0
    for number in range(n_parts if several else 1):
        part = fold == number
        n = int(part[annotations.task].sum())
        if not 0 < n < len(annotations):
            continue
        found.append(part)
        held += n
        if held >= ENOUGH:
            break
    return found
