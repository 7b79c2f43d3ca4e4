"""Cross-fitting: whole rounds on the labels of some tasks, and what they say of the others.

No label of a task reaches its prediction, so that the labels held out can choose a learner and the number of rounds,
say whether a learner overfits, and judge the workers when the rounds are over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, label_chances, label_slots, make_slot_evidence
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask
from labelonce.data._answers import disagreement
from labelonce.learning._calibration import best_exponent, log_sizes, log_wide, tempered
from labelonce.learning._problem import Problem
from labelonce.learning._rounds import Fitting, Round, gathered, rounds


class CrossFit:
    """The rounds of one learner, fitted to parts of the tasks; each round predicts the tasks left out.

    After its first round it is known whether the learner overfits: then workers who are judged by its own predictions
    all look alike, and its rounds go on out-of-fold, on all labels together.

    Parameters
    ----------
    problem : Problem
    how : Fitting
        With `fold`, the part of every task.
    overfits : bool, optional
        Whether the learner overfits, where that is known.

    Attributes
    ----------
    predictions : list of Beliefs
        After every round, of all rows, by out-of-fold models.
    scores : list of (n_rows,) arrays
        The log-likelihood of the labels of every row after every round, held out.
    rounds : list of Round
        The rounds of a learner that overfits, which are those of the fit.
    overfits : bool
    """

    def __init__(self, problem: Problem, how: Fitting, overfits: bool | None = None) -> None:
        assert how.fold is not None
        self.problem, self.how, self.fold = problem, how, how.fold
        self.predictions: list[Beliefs] = []
        self.scores: list[Floats] = []
        self._first_scores: list[Floats] = []
        self.rounds: list[Round] = []
        self.overfits = bool(overfits)
        self._is_open = overfits is None
        self._held = [self.fold == number for number in range(int(self.fold.max()) + 1)]
        inside = replace(how, fold=None, whole=())
        self._runs = [rounds(problem.part(~held), inside) for held in self._held]
        self._joint: Iterator[Round] | None = None

    def step(self) -> None:
        """Do the next round."""
        if self._joint is not None:
            self._keep_joint(next(self._joint))
            return
        found = [next(run) for run in self._runs]
        said = [told(self.problem, held, this) for held, this in zip(self._held, found, strict=True)]
        self.predictions.append(gathered(self.problem, self.fold, said))
        crowds = [this.workers.crowd for this in found]
        self.scores.append(self._scored(said, crowds))
        first = [self.predictions[0][rows] for rows in self._rows]
        self._first_scores.append(self._scored(first, crowds) if len(self.scores) > 1 else self.scores[0])
        if self._is_open and len(self.predictions) == 1:
            self.overfits = self._reproduces(found)
        if self.overfits:
            self._runs.clear()
            self._joint = rounds(self.problem, self.how, first_parts=[this.model for this in found])
            self.rounds.append(next(self._joint))

    def _keep_joint(self, this: Round) -> None:
        """Keep a round out of fold; its labels are scored by workers counted without those of their part."""
        self.rounds.append(this)
        self.predictions.append(this.predictions)
        parts = [this.predictions[rows] for rows in self._rows]
        self.scores.append(self._scored(parts, [self._others(this, rows) for rows in self._rows]))

    def _others(self, this: Round, rows: Codes) -> Any:
        """Return the workers as the labels of the other rows show them."""
        labels, evidence = self.problem.labels, self.problem.evidence
        if this.pattern is not None:
            evidence = make_slot_evidence(labels, this.beliefs.codes, this.pattern, engine="scipy")
        own = evidence.select(np.isin(np.arange(labels.n_tasks), rows)).tallies(this.beliefs[rows])
        return this.workers.refitted(evidence.tallies(this.beliefs).without(own)).crowd

    @cached_property
    def _rows(self) -> list[Any]:
        """The rows of each part."""
        return [np.flatnonzero(self.problem.rows_of(held)) for held in self._held]

    def _scored(self, parts: list[Beliefs], crowds: list[Any]) -> Floats:
        """Return the log-likelihood of the labels of every row, held out, by predictions and workers of each part.

        Predictions count to the power with which they explain labels best: a round would calibrate them, too, and a
        model that is unsure may be right as often as one that is sure.
        """
        every = [self.problem.rows_of(held) for held in self._held]
        said, logs, sizes = [], [], []
        for rows, predictions, crowd in zip(every, parts, crowds, strict=True):
            labels = self.problem.labels.select(rows)
            said.append(np.log(np.maximum(label_chances(labels, predictions, crowd), 1e-12)))
            logs.append(log_wide(predictions)[labels.task])
            size = log_sizes(predictions)
            sizes.append(np.zeros_like(logs[-1]) if size is None else size[labels.task])
        exponent = _best_exponent(logs, said, sizes)
        scores = np.empty(self.problem.labels.n_tasks)
        for rows, one, other, size in zip(every, logs, said, sizes, strict=True):
            likelihood = np.exp(tempered(one, exponent, size) + other).sum(axis=1)
            task = self.problem.labels.select(rows).task
            scores[rows] = np.bincount(task, np.log(np.maximum(likelihood, 1e-12)), int(rows.sum()))
        return scores

    def _reproduces(self, found: list[Round]) -> bool:
        """Return whether the models agree with labels that out-of-fold models disagree with.

        Only disagreement tells workers apart. With several labels per task nobody agrees with all of them, and whoever
        reproduces them agrees as often as the vote.
        """
        labels = self.problem.labels
        parts = [labels.select(self.problem.rows_of(~held)) for held in self._held]
        left = [disagreement(own, this.predictions.argmax()) for own, this in zip(parts, found, strict=True)]
        seen = float(np.average(left, weights=[len(own) for own in parts]))
        fresh = disagreement(labels, self.predictions[0].argmax())
        least = disagreement(labels, self.problem.votes(few=self.predictions[0].classes is not None)[0].argmax())
        return fresh - seen > RULES.overfits * (fresh - least)

    def values(self) -> Floats:
        """Return the log-likelihood of the labels of every labelled task after every round, (n_rounds, n_tasks)."""
        return self._by_task(self.scores)

    def _by_task(self, scores: list[Floats]) -> Floats:
        task, some = self.problem.task, self.problem.labelled
        return np.stack([np.bincount(task, one, self.problem.n_tasks)[some] for one in scores])

    def sure_gain(self, number: int) -> float:
        """Return how much better a round predicts a label left out than the first, less its standard errors.

        The first has counted the workers against raw predictions. What is gained by counting them better says nothing
        of the labels that models are trained on, so its predictions may have the workers of the later round.
        """
        if self.overfits or len(self.scores) < number:
            return 0.0
        last, *firsts = self._by_task([self.scores[number - 1], self.scores[0], self._first_scores[number - 1]])
        return surely_more(last - max(firsts, key=np.mean), len(self.problem.labels))


def surely_more(more: Floats, n_labels: int) -> float:
    """Return what tasks gain, less its standard errors, per label; 0 where that may be chance."""
    sure = more.mean() - RULES.sure_gain * more.std() / np.sqrt(len(more))
    return max(float(sure) * len(more) / max(n_labels, 1), 0.0)


def told(problem: Problem, held: Mask, this: Round) -> Beliefs:
    """Return what a round on the other tasks says of the rows held out from it."""
    slots = None
    if this.pattern is not None:
        rows = problem.rows_of(held)
        gold = None if problem.gold is None else problem.gold[rows][:, None]
        some = label_slots(problem.labels.select(rows), this.pattern, gold)
        slots = np.full((len(rows), some.shape[1]), -1, dtype=np.int32)
        slots[rows] = some
    return problem.predict(this.model, slots, RULES.top_classes, held)


def _best_exponent(logs: list[Floats], said: list[Floats], sizes: list[Floats]) -> float:
    """Return the power of predictions for the labels of all parts, by a draw of many; parts may differ in slots."""
    step = max(1, sum(map(len, logs)) // RULES.choice_labels)
    width = max(one.shape[1] for one in logs)
    both = [
        np.concatenate([_padded(one[::step], width, empty) for one in rows])
        for rows, empty in ((logs, -np.inf), (said, 0.0), (sizes, 0.0))
    ]
    return best_exponent(both[0], both[1], RULES.verdict_exponents, both[2])


def _padded(values: Floats, width: int, empty: float) -> Floats:
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=empty)
