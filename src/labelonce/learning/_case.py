"""What the last step of a fit looks at: labels as evidence, out-of-fold predictions, and what is known."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from labelonce._kernels import Beliefs, Evidence
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask
from labelonce.data import MOST_NUMBERS
from labelonce.learning._calibration import LEAST, log_sizes, log_wide
from labelonce.learning._ceiling import Curve
from labelonce.learning._judge import View


class RoundGain(NamedTuple):
    """The `labels` after the rounds, and by how many nats models trained on them surely predict others better: >= 0."""

    labels: Codes
    gain: float


class Assignment:
    """Which classes a worker's tasks have, where workers choose their tasks, or are given those of one place or field.

    Parameters
    ----------
    labels : SlotLabels
        The labels, whose workers and rows count.
    predictions : Beliefs
        Out-of-fold predictions of the rows; what is told has their slots.
    """

    def __init__(self, labels: Any, predictions: Beliefs) -> None:
        self._worker, self._row = labels.worker, labels.task
        self._n_workers, self._n_classes = labels.n_workers, labels.n_classes
        self._predictions = predictions
        self._n_labels = np.bincount(self._worker, minlength=self._n_workers)
        per_row = np.bincount(self._row, minlength=len(predictions))[self._row]
        place = self._row, np.arange(len(self._row))
        self._mean_of_row = sparse.csr_array((1 / per_row, place), shape=(len(predictions), len(self._row)))

    def difference(self) -> float:
        """Return how far workers are from taking the same tasks: z of the chi-square of their mean predictions."""
        _, chi_square = self._apart()
        n_classes, free = self._n_classes, np.count_nonzero(self._n_labels) - 1
        return float((chi_square.sum() - n_classes * free) / np.sqrt(2 * n_classes * free)) if free > 0 else 0.0

    def shift(self) -> Floats:
        """Return how far the predicted classes of every worker's tasks are from those of all: total variation.

        0 for workers whose tasks may be a draw of all.
        """
        apart, chi_square = self._apart()
        z = (chi_square - self._n_classes) / np.sqrt(2 * self._n_classes)
        return np.where(z > RULES.other_tasks, np.abs(apart).sum(axis=1) / 2, 0.0)

    def _apart(self) -> tuple[Floats, Floats]:
        """Return how far the mean prediction of each worker's tasks is from that of all, and its chi-square."""
        n, said = np.maximum(self._n_labels, 1)[:, None], self._predictions.probability[self._row]
        total, squares = self._by_worker(said), self._by_worker(said**2)
        mean = total.sum(axis=0) / len(said)
        spread = squares.sum(axis=0) / len(said) - mean**2 + 1e-12
        apart = total / n - mean
        return apart, (n * apart**2 / spread).sum(axis=1)

    def log_ratio(self, beliefs: Beliefs, prior: Floats) -> Floats:
        """Return the log of how much more often the tasks of a row's workers have each class than all tasks do.

        It is a mean over the row's labels, which themselves do not count.
        """
        said, codes = beliefs.probability[self._row], self._codes
        pull = RULES.assignment_labels
        others = self._by_worker(said)[self._worker[:, None], codes] - said
        n_others = (self._n_labels[self._worker] - 1.0)[:, None]
        share = prior[codes]
        found = self._mean_of_row @ np.log((others + pull * share) / ((n_others + pull) * share))
        slots = self._predictions.classes
        return found if slots is None else np.pad(np.where(slots >= 0, found, 0.0), ((0, 0), (0, 1)))

    @property
    def _codes(self) -> Codes:
        """The class of every slot by label; the first class where a slot is empty, which has no probability."""
        return np.asarray(np.maximum(self._predictions.codes[self._row], 0))

    def _by_worker(self, values: Floats) -> Floats:
        """Return sums by worker and class."""
        place = self._worker[:, None].astype(np.intp) * self._n_classes + self._codes
        found = np.bincount(place.ravel(), values.ravel(), self._n_workers * self._n_classes)
        return np.asarray(found.reshape(self._n_workers, self._n_classes), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Case:
    """The labels as evidence, out-of-fold predictions of the rows, and what is known of them.

    `fold` is the part of every row, by which workers are counted without the labels that they are asked about; `votes`
    are the vote fractions on the slots of the predictions, in which gold has no part.
    """

    evidence: Evidence
    predictions: Beliefs
    gold: Codes | None
    balance: Floats | None
    fold: Codes
    votes: Beliefs
    kind: Codes | None = None
    worker_kind: Codes | None = None
    trained: RoundGain | None = None

    @classmethod
    def of(cls, view: View, trained: RoundGain | None = None) -> Self:
        """Return the case of a view of out-of-fold predictions, and of what training told."""
        problem, predictions = view.problem, view.predictions
        fold = np.random.default_rng(0).permutation(problem.n_tasks) % RULES.verdict_folds
        given = replace(problem, gold=None).votes(few=predictions.classes is not None)[0]
        votes = given.on(predictions.classes)
        known = (problem.gold, problem.balance, fold[problem.task].astype(np.int32), votes)
        return cls(view.evidence, predictions, *known, problem.kind, problem.worker_kind, trained)

    @cached_property
    def log_predictions(self) -> Floats:
        """Log P(class) by row and slot, minus infinity where a slot is empty."""
        return log_wide(self.predictions)

    @cached_property
    def log_sizes(self) -> Floats | None:
        """Log of the number of classes that each of their columns stands for."""
        return log_sizes(self.predictions)

    @cached_property
    def log_base(self) -> Floats | None:
        """Log of the share of every class among the predictions of a row's question; None where there is but one."""
        if self.kind is None or not self.of_questions:
            return None
        kind, predicted = self.kind, self.predictions.to_dense()
        total = np.stack([np.bincount(kind, one) for one in predicted.T], axis=1)
        return np.asarray(np.log(total / np.maximum(total.sum(axis=1, keepdims=True), 1e-300) + 1e-12)[kind])

    @cached_property
    def labelled(self) -> Mask:
        """Which rows have labels."""
        return np.bincount(self.evidence.labels.task, minlength=len(self.predictions)) > 0

    @cached_property
    def load(self) -> Floats:
        """The share of the labels that each worker gave."""
        labels = self.evidence.labels
        return np.bincount(labels.worker, minlength=labels.n_workers) / len(labels)

    @cached_property
    def by_shares(self) -> float:
        """The log-likelihood of all labels by how often each answer is given."""
        labels = self.evidence.labels
        n_kinds = 1 if self.kind is None else int(self.kind.max()) + 1
        place = labels.label if self.kind is None else self.kind[labels.task] * labels.n_answers + labels.label
        said = np.bincount(place, minlength=n_kinds * labels.n_answers).reshape(n_kinds, -1)
        share = (said + 1) / (said + 1).sum(axis=1, keepdims=True)
        return float((said * np.log(share)).sum())

    @cached_property
    def parts(self) -> list[tuple[Mask, Evidence]]:
        """The rows of each fold, and their evidence."""
        held = [self.fold == number for number in np.unique(self.fold)]
        return [(rows, self.evidence.select(rows)) for rows in held]

    @cached_property
    def predicted(self) -> Codes:
        """The predicted class of every row."""
        return self.predictions.argmax()

    @cached_property
    def agrees(self) -> Floats:
        """How far every label is for the predicted class of its row: 1 or 0, or by how the answer leans."""
        labels, leaning = self.evidence.labels, self.evidence.leaning
        predicted = self.predicted[labels.task]
        agrees = predicted == labels.label if leaning is None else leaning[labels.label, predicted]
        return np.asarray(agrees, dtype=float)

    @cached_property
    def curve(self) -> Curve | None:
        """How often labels agree with surer and surer predictions; None for questions, whose answers are often rare."""
        if self.of_questions:
            return None
        labels, logs = self.evidence.labels, self.log_predictions
        best = np.partition(logs, -2, axis=1)[:, -2:] if logs.shape[1] > 1 else np.repeat(logs, 2, axis=1)
        margin = np.minimum(best[:, 1] - best[:, 0], -np.log(LEAST))
        weight = 1 / np.bincount(labels.task, minlength=len(margin))[labels.task]
        return Curve.of(self.predicted[labels.task], margin[labels.task], self.agrees, weight)

    @cached_property
    def n_pairs(self) -> int:
        """How many pairs of labels of one row there are that have no label in common."""
        return int((np.bincount(self.evidence.labels.task) // 2).sum())

    @cached_property
    def several(self) -> Evidence | None:
        """The evidence of rows with two or more labels; None where there are none."""
        labels = self.evidence.labels
        rows = np.bincount(labels.task, minlength=len(self.predictions)) > 1
        return self.evidence.select(rows) if rows.any() else None

    @cached_property
    def assignment(self) -> Assignment | None:
        """What tells of the tasks of a worker by its other tasks; None where all take the same ones."""
        labels = self.evidence.labels
        if self.kind is not None or labels.n_workers * labels.n_classes > MOST_NUMBERS:
            return None
        found = Assignment(labels, self.predictions)
        return found if found.difference() > RULES.other_tasks else None

    @property
    def of_questions(self) -> bool:
        """Whether rows are answers to several questions."""
        return self.kind is not None and bool(self.kind.any())

    @property
    def may_mix(self) -> bool:
        """Whether there may be classes that predictions do not tell apart, of which there must be few."""
        least, most = RULES.mixing_classes
        return self.kind is None and self.predictions.classes is None and least <= self.predictions.n_classes <= most

    def prior_of(self, beliefs: Beliefs) -> Floats:
        """Return the class balance, (n_classes,) or (n_kinds, n_classes): the given one, or that of the beliefs."""
        if self.balance is not None:
            return self.balance
        if self.kind is None:
            mass = beliefs.class_counts() + 1.0
        else:
            mass = np.stack([np.bincount(self.kind, one) for one in beliefs.to_dense().T], axis=1) + 1.0
        return np.asarray(mass / mass.sum(axis=-1, keepdims=True))

    def of_workers(self, prior: Floats) -> Floats:
        """Return a class balance as the workers meet it: of their kind of rows."""
        return prior if self.worker_kind is None else prior[self.worker_kind]

    def select(self, rows: Mask) -> Self:
        """Return the case of some rows."""
        some = np.flatnonzero(rows)
        gold, kind = (None if one is None else one[rows] for one in (self.gold, self.kind))
        trained = None if self.trained is None else RoundGain(self.trained.labels[rows], self.trained.gain)
        known = (gold, self.balance, self.fold[rows], self.votes[some], kind, self.worker_kind, trained)
        return type(self)(self.evidence.select(rows), self.predictions[some], *known)

    @cached_property
    def changed(self) -> Codes:
        """The rows whose label is another after the rounds than the one given."""
        given, unique = self.unique_vote()
        after = given if self.trained is None else self.trained.labels
        return np.flatnonzero(unique & (given != after)).astype(np.int32)

    def unique_vote(self) -> tuple[Codes, Mask]:
        """Return the class that most labels of a row are for, and whether it is the only one."""
        top = self.votes.argmax().astype(np.int32)
        return top, self.labelled & (self.votes.max() > 0) & (self.votes.tied_with(top) == 1)
