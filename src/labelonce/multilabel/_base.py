"""The base of all multi-label aggregators: what `fit` takes and which attributes it sets."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa

from labelonce._messages import show
from labelonce._sklearn import BaseEstimator, check_is_fitted
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_choice
from labelonce.aggregation import RedundancyWarning
from labelonce.data import MIN_OVERLAP, _ids
from labelonce.multilabel._annotations import MultiLabelAnnotations, said_by
from labelonce.multilabel._threshold import THRESHOLDS, thresholds

NOT_ASKED = -1


class MultiLabelAggregator(BaseEstimator, ABC):
    """Base of the multi-label aggregators: `fit(annotations)` sets the attributes below.

    Attributes
    ----------
    pair_posterior_ : (n_pairs,)
        P(yes | answers) of every pair of a task and a question that anybody was asked about.
    pair_task_, pair_question_ : (n_pairs,)
        The codes of the pairs.
    posterior_ : (n_tasks, n_questions)
        The same as an array, NaN where nobody was asked.
    labels_ : (n_tasks, n_questions)
        1 yes, 0 no, -1 where nobody was asked.
    thresholds_ : (n_questions,)
        The probability above which a label is a yes.
    tasks_, questions_, workers_, answers_ : arrays
        The ids.
    """

    threshold: str
    pair_posterior_: Floats
    pair_task_: Codes
    pair_question_: Codes
    thresholds_: Floats
    tasks_: Ids
    questions_: Ids
    workers_: Ids
    answers_: Ids
    _worker_table: dict[str, Any]

    def fit(self, annotations: MultiLabelAnnotations, *, gold: Any = None) -> Self:
        """Estimate which questions are true of which tasks, and the workers.

        Parameters
        ----------
        annotations : MultiLabelAnnotations
        gold : mapping or (n_tasks, n_questions) array, optional
            Known answers: a mapping of (task, question) to 0 or 1, or an array with -1 or NaN where unknown.
        """
        check_annotations(annotations)
        check_choice(self.threshold, "threshold", THRESHOLDS)
        start = annotations.pair_start
        self.pair_task_, self.pair_question_ = annotations.task[start], annotations.question[start]
        known = pair_gold(gold, annotations)
        found = self._fit(annotations, known)
        self.tasks_, self.questions_ = annotations.tasks, annotations.questions
        self.workers_, self.answers_ = annotations.workers, annotations.answers
        self.pair_posterior_ = np.where(known >= 0, known, found)
        self.thresholds_ = thresholds(self.threshold, self.pair_posterior_, self.pair_question_, len(self.questions_))
        self._yes_no = yes_and_no(annotations)
        self._worker_table = worker_columns(annotations, self.pair_posterior_)
        return self

    @abstractmethod
    def _fit(self, annotations: MultiLabelAnnotations, gold: Floats) -> Floats:
        """Return P(yes) of every pair, and set what only this model has; `gold` is 0, 1 or -1 for every pair."""

    @property
    def posterior_(self) -> Floats:
        """P(yes | answers), shape (n_tasks, n_questions), NaN where nobody was asked."""
        check_is_fitted(self, "pair_posterior_")
        found = np.full((len(self.tasks_), len(self.questions_)), np.nan)
        found[self.pair_task_, self.pair_question_] = self.pair_posterior_
        return found

    @property
    def labels_(self) -> Codes:
        """1 yes, 0 no, -1 where nobody was asked, shape (n_tasks, n_questions)."""
        check_is_fitted(self, "pair_posterior_")
        found = np.full((len(self.tasks_), len(self.questions_)), NOT_ASKED, dtype=np.int32)
        found[self.pair_task_, self.pair_question_] = self._pair_labels()
        return found

    def _pair_labels(self) -> Any:
        return self.pair_posterior_ > self.thresholds_[self.pair_question_]

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per task and question that was asked: the label and P(yes)."""
        check_is_fitted(self, "pair_posterior_")
        return labels_table(
            (self.tasks_, self.pair_task_),
            (self.questions_, self.pair_question_),
            self.pair_posterior_,
            self._yes_no[self._pair_labels().astype(np.int64)],
        )

    def workers_to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per worker, the strictest first.

        `strictness` is how much less often a worker says yes than is true, on the questions answered: 0.1 means that
        of ten questions one more was a yes than the worker said; below 0 the worker ticks too much.
        """
        check_is_fitted(self, "pair_posterior_")
        return strictest_first({"worker": self.workers_, **self._worker_table})


def labels_table(tasks: tuple[Ids, Codes], questions: tuple[Ids, Codes], probability: Floats, label: Ids) -> pa.Table:
    """Return an Arrow table with one row per task and question: task, question, label, probability."""
    columns = [_ids.decode(codes, ids) for ids, codes in (tasks, questions)]
    names = ["task", "question", "label", "probability"]
    return pa.table([*columns, pa.array(label), pa.array(probability)], names=names)


def strictest_first(columns: dict[str, Any]) -> pa.Table:
    """Return an Arrow table of columns about workers, the strictest first."""
    order = np.argsort(-columns["strictness"], kind="stable")
    return pa.table({name: pa.array(values[order]) for name, values in columns.items()})


def yes_and_no(annotations: MultiLabelAnnotations) -> Ids:
    """Return the answer that means no most, and the one that means yes most."""
    says = np.flatnonzero(~np.isnan(annotations.values))
    order = says[np.argsort(annotations.values[says], kind="stable")]
    return np.asarray(annotations.answers[[order[0], order[-1]]])


def check_annotations(annotations: Any) -> None:
    """Raise unless something is MultiLabelAnnotations."""
    if not isinstance(annotations, MultiLabelAnnotations):
        raise TypeError(
            f"annotations must be MultiLabelAnnotations; got {type(annotations).__name__}. Make them with "
            "MultiLabelAnnotations.from_arrays, from_ticked, from_wide or from_frame."
        )


def pair_gold(gold: Any, annotations: MultiLabelAnnotations) -> Floats:
    """Return the known answer of every pair, -1 where unknown."""
    start = annotations.pair_start
    if gold is None or (isinstance(gold, Mapping) and not gold):
        return np.full(len(start), -1.0)
    wide = np.full((annotations.n_tasks, annotations.n_questions), -1.0)
    if isinstance(gold, Mapping):
        tasks, questions = (_ids.column_of([pair[side] for pair in gold], "gold") for side in (0, 1))
        place = _ids.lookup(tasks, annotations.tasks), _ids.lookup(questions, annotations.questions)
        lost = np.flatnonzero((place[0] < 0) | (place[1] < 0))
        if len(lost):
            first = show((tasks.tolist()[lost[0]], questions.tolist()[lost[0]]))
            raise ValueError(f"gold must name tasks and questions of the annotations; got {first}.")
        wide[place] = np.array(list(gold.values()), dtype=np.float64)
    else:
        given = np.asarray(gold, dtype=np.float64)
        if given.shape != wide.shape:
            raise ValueError(f"gold must have shape (n_tasks, n_questions), {wide.shape}; got {given.shape}.")
        wide = np.where(np.isnan(given), -1.0, given)
    odd = wide[~np.isin(wide, (-1.0, 0.0, 1.0))]
    if len(odd):
        raise ValueError(f"gold must be 0 or 1, or -1 where unknown; got {odd[0]} ({len(odd)} in total).")
    return np.asarray(wide[annotations.task[start], annotations.question[start]])


def votes_of(annotations: MultiLabelAnnotations) -> Floats:
    """Return the mean value of the answers of every pair, that of its question if no answer means yes or no."""
    total, count = said_by(annotations, "question")
    share = (total + 0.5) / (count + 1)
    total, count = said_by(annotations, "pair")
    mean = share[annotations.question[annotations.pair_start]]
    return np.asarray(np.divide(total, count, out=mean, where=count > 0))


def worker_columns(annotations: MultiLabelAnnotations, posterior: Floats) -> dict[str, Any]:
    """Return the number of answers, the share of yes among them and the strictness of every worker."""
    said, count = said_by(annotations, "worker")
    true, _ = said_by(annotations, "worker", posterior[annotations.pair])
    said, true = said / np.maximum(count, 1), true / np.maximum(count, 1)
    given = np.bincount(annotations.worker, minlength=annotations.n_workers)
    return {"annotations": given, "yes_share": said, "strictness": true - said}


def warn_if_asked_once(annotations: MultiLabelAnnotations, name: str) -> None:
    """Warn that workers cannot be compared where nearly every question was answered once."""
    sizes = np.diff(np.append(annotations.pair_start, len(annotations)))
    overlap = int((sizes > 1).sum())
    if overlap < MIN_OVERLAP * len(sizes):
        warnings.warn(
            f"{name} learns workers from questions that several of them answered; only {overlap:,} of {len(sizes):,} "
            f"questions about tasks have two or more answers (redundancy {annotations.redundancy:.3g}), so that it may "
            "take every yes for a mistake and answer no to everything. Ask some again, or train with features by "
            "MultiLabelMBEM, which works at redundancy 1.",
            RedundancyWarning,
            stacklevel=4,
        )
