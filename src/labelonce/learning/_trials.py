"""Trials: what every contender of a choice says of tasks that were held out from its fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from labelonce._kernels import ScipyEngine, floored_log, label_probabilities
from labelonce._types import Codes, Floats, Mask
from labelonce.data import Annotations
from labelonce.learning._contenders import Contender
from labelonce.learning._rounds import Round, run_rounds

Part = tuple[Annotations, Annotations]  # to fit to, held out


def log_likelihoods(annotations: Annotations, predictions: Floats, confusion: Floats) -> Floats:
    """Return the log-likelihood of every annotation."""
    return np.asarray(np.log(np.maximum(label_probabilities(annotations, predictions, confusion), 1e-300)))


class Trials:
    """Fits of every contender to the rest of the tasks, judged after each round by the tasks that were held out.

    How often a contender's picks are right is estimated by the labels of the held-out tasks, and the workers who gave
    them are the same for all contenders: those of the trial under which the held-out labels are most likely. Were
    every contender judged by its own workers, one that has settled with its workers on something else than the truth
    would look good to itself; and the likelihood alone asks how sure a model is rather than how often it is right.

    Attributes
    ----------
    scores : (n_contenders, n_rounds)
        Mean log-likelihood of the held-out annotations; NaN where a trial has not come so far.
    rounds : list of list of Round
        The rounds of each contender on the first split, if they are to be kept: they hold arrays of all tasks.

    Notes
    -----
    Where every round is out of fold, what is fitted to may be judged itself: no model has seen the task it judges.
    """

    def __init__(
        self,
        contenders: list[Contender],
        parts: list[Part],
        gold: Codes | None,
        *,
        max_rounds: int,
        seed: int,
        keep_rounds: bool = False,
    ) -> None:
        self._gold = gold
        self._held = [held for _, held in parts]
        self._tasks = [np.unique(held.task) for held in self._held]
        hidden = [_without(gold, np.setdiff1d(held.task, seen.task)) for seen, held in parts]
        self._runs = [
            [judged_rounds(contender, part, known, seed, max_rounds) for part, known in zip(parts, hidden, strict=True)]
            for contender in contenders
        ]
        shape = (len(contenders), max_rounds)
        self.scores = np.full(shape, np.nan)
        self._picks = np.zeros((*shape, sum(map(len, self._tasks))), dtype=np.int32)
        self._n_done = np.zeros(len(contenders), dtype=int)
        self._best = -np.inf
        self._workers: list[Floats] = []
        self._keep_rounds = keep_rounds
        self.rounds: list[list[Round]] = [[] for _ in contenders]

    def run_round(self, number: int) -> None:
        """Run the next round of a contender on every split."""
        place = int(self._n_done[number])
        said = [next(run) for run in self._runs[number]]
        likelihood = [
            log_likelihoods(held, this.predictions, this.confusion) for held, this in zip(self._held, said, strict=True)
        ]
        picks = [this.predictions.argmax(axis=1)[tasks] for tasks, this in zip(self._tasks, said, strict=True)]
        score = float(np.concatenate(likelihood).mean())
        self.scores[number, place], self._picks[number, place] = score, np.concatenate(picks)
        self._n_done[number] += 1
        if self._keep_rounds:
            self.rounds[number].append(said[0])
        if score > self._best:
            self._best, self._workers = score, [this.confusion for this in said]

    def done(self) -> Mask:
        """Return which rounds of which contenders were run."""
        return np.asarray(np.isfinite(self.scores))

    def right(self) -> Floats:
        """Return P(the pick is right), shape (n_contenders, n_rounds, n_held_out_tasks); NaN if not run."""
        posterior = np.concatenate(
            [
                ScipyEngine(held, "float64").e_step(floored_log(workers), np.zeros(held.n_classes), self._gold)[0][
                    tasks
                ]
                for held, workers, tasks in zip(self._held, self._workers, self._tasks, strict=True)
            ]
        )
        right = posterior[np.arange(len(posterior)), self._picks]
        return np.where(self.done()[:, :, None], right, np.nan)

    def accuracy(self) -> Floats:
        """Return the estimated share of right picks, shape (n_contenders, n_rounds)."""
        return np.asarray(self.right().mean(axis=2))


def judged_rounds(contender: Contender, part: Part, gold: Codes | None, seed: int, last: int) -> Iterator[Round]:
    """Yield rounds on one part of the annotations without end; all their predictions for the other are honest."""
    if contender.first is not None:
        yield contender.first
    how: dict[str, Any] = {"gold": gold, "seed": seed, "last": last, "after": contender.first, "trial": True}
    yield from run_rounds(contender.X, part[0], contender.recipe, **how)


def _without(gold: Codes | None, tasks: Codes) -> Codes | None:
    """Return gold that does not know some tasks."""
    if gold is None:
        return None
    hidden = gold.copy()
    hidden[tasks] = -1
    return hidden
