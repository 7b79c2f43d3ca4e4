"""Sums over answers: by pair of task and question, and by cell of worker and question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from labelonce._types import Codes, Floats
from labelonce.multilabel._annotations import MultiLabelAnnotations

_TINY = 1e-12


@dataclass(frozen=True)
class AnswerSums:
    """Which pair, and which cell of a worker and a question, every answer belongs to.

    Only cells and pairs with answers are there. `pair_*` have one entry per pair, `cell_*` one per cell, the others
    one per answer; `key` is the answer's place in a table [cell, answer].
    """

    pair: Codes
    cell: Codes
    key: Codes
    pair_start: Codes
    pair_task: Codes
    pair_question: Codes
    cell_worker: Codes
    cell_question: Codes
    n_answers: int
    n_workers: int
    n_questions: int

    @classmethod
    def of(cls, annotations: MultiLabelAnnotations, *, by_question: bool = True) -> AnswerSums:
        """Return the cells of annotations; without `by_question` each worker is one cell."""
        question = annotations.question if by_question else np.zeros_like(annotations.question)
        n_questions = annotations.n_questions if by_question else 1
        found, cell = np.unique(annotations.worker.astype(np.int64) * n_questions + question, return_inverse=True)
        start = annotations.pair_start
        return cls(
            pair=annotations.pair,
            cell=cell.astype(np.int32),
            key=(cell * annotations.n_answers + annotations.answer).astype(np.int32),
            pair_start=start,
            pair_task=annotations.task[start],
            pair_question=annotations.question[start],
            cell_worker=(found // n_questions).astype(np.int32),
            cell_question=(found % n_questions).astype(np.int32),
            n_answers=annotations.n_answers,
            n_workers=annotations.n_workers,
            n_questions=n_questions,
        )

    @property
    def n_cells(self) -> int:
        """Number of workers times questions with answers."""
        return len(self.cell_worker)

    def counts(self, posterior: Floats) -> Floats:
        """Return how often each answer was given to a true no and a true yes, [cell, true, answer]."""
        size = self.n_cells * self.n_answers
        true = posterior[self.pair]
        of_yes = np.bincount(self.key, true, minlength=size)
        of_no = np.bincount(self.key, 1 - true, minlength=size)
        both: Floats = np.stack([of_no, of_yes]).astype(np.float64, copy=False)
        return both.reshape(2, self.n_cells, self.n_answers).transpose(1, 0, 2)

    def table(self, evidence: Floats, worker: Floats, n_questions: int) -> Floats:
        """Return P(answer | true) as [worker, question, true, answer]; cells without answers are the worker's own."""
        found = np.repeat(worker[:, None], n_questions, axis=1)
        own = evidence / evidence.sum(axis=2, keepdims=True)
        if self.n_questions == 1:
            found[self.cell_worker] = own[:, None]
        else:
            found[self.cell_worker, self.cell_question] = own
        return found

    def by_pair(self, rows: Floats) -> Floats:
        """Return the sums of a number per answer over the answers of every pair."""
        return np.asarray(np.add.reduceat(rows, self.pair_start))

    def log_ratios(self, evidence: Floats, posterior: Floats | None = None) -> Floats:
        """Return log P(answer | yes) - log P(answer | no) of every answer.

        `evidence` holds counts and pseudo-counts [cell, true, answer]. With a `posterior` every answer's own share
        of the counts is left out: a worker is judged by the other answers.
        """
        (no, no_total), (yes, yes_total) = self.own(evidence, posterior)
        return np.asarray(np.log(yes * no_total / (no * yes_total)))

    def own(self, evidence: Floats, posterior: Floats | None) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return the evidence for every answer and for all answers in its place, given a true no and a true yes."""
        true = None if posterior is None else posterior[self.pair]
        found = []
        for k in (0, 1):
            given = np.take(evidence[:, k].ravel(), self.key)
            total = np.take(evidence[:, k].sum(axis=1), self.cell)
            if true is not None:
                share = true if k else 1 - true
                given, total = given - share, total - share
            found.append((np.maximum(given, _TINY), np.maximum(total, _TINY)))
        return found[0], found[1]


def left_out_score(
    sums: AnswerSums, evidence: Floats, posterior: Floats, log_odds: Floats, ratios: Floats, power: float
) -> float:
    """Return the mean log-probability of an answer given the other answers to its question, for one power.

    `log_odds` are those of the pairs before any answer, `ratios` what every answer says. Neither the pair nor the
    worker has seen the answer that is predicted.
    """
    others = sums.by_pair(ratios)[sums.pair] - ratios
    yes = expit(log_odds[sums.pair] + power * others)
    (given_no, total_no), (given_yes, total_yes) = sums.own(evidence, posterior)
    return float(np.log(yes * given_yes / total_yes + (1 - yes) * given_no / total_no).mean())
