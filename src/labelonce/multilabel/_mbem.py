"""MBEM for several labels at once: heads that share features, and workers similar on all questions."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa

from labelonce._kernels import Beliefs
from labelonce._messages import show
from labelonce._rules import RULES
from labelonce._sklearn import check_is_fitted, count_rows
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_choice, check_number
from labelonce.data import check_positions
from labelonce.learning import (
    LEVEL,
    MBEM,
    GivenLearner,
    Problem,
    SoftmaxRegression,
    Verdict,
    check_features,
    default_workers,
    given_learners,
    split_task_column,
    what_to_do,
)
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._base import (
    check_annotations,
    labels_table,
    pair_gold,
    strictest_first,
    worker_columns,
    yes_and_no,
)
from labelonce.multilabel._pairs import PairLabels, by_question
from labelonce.multilabel._question_problem import QuestionProblem, default_heads, with_heads
from labelonce.multilabel._shared_workers import SharedWorkers
from labelonce.multilabel._threshold import THRESHOLDS, as_often, no_more_than, thresholds
from labelonce.workers import WorkerModel


@dataclass(kw_only=True, eq=False, repr=False)
class MultiLabelMBEM(MBEM):
    """Model bootstrapped EM for yes-or-no questions about every task, even with one answer to each.

    It is `MBEM` on rows that are a task and a question: one model has a head for each question, predictions are
    calibrated for each, and a worker's matrix for a question is shrunk towards the worker's own over all questions, as
    far as the counts ask. With one question it is `MBEM` of two classes.

    The other options are those of `MBEM`.

    Parameters
    ----------
    learner : learner, classifier, Pipeline or a list of them
        `SigmoidRegression`, a `neural.TorchLearner`, which gets a head for each question, or any classifier that
        `MBEM` takes, of which one is fitted per question; at the end of a `Pipeline` or alone. From a list one is
        chosen. Default: features after `learning.Standardiser` and `SigmoidRegression` with C from 0.001 to 1.
    worker_model : WorkerModel, optional
        Of the cells, each a worker and a question. Default: they share what a worker is like; with one question as in
        `MBEM`. `workers.Full()` shares nothing between questions.
    prior : (n_questions,) array, optional
        The true share of yes of every question, if you know it.
    threshold : {"expected_f1", "half"}
        Above which posterior a label is yes: for each question where F1 is expected to be highest, or one half, which
        says no to nearly everything where yes is rare. `predict` then says yes as often as `labels_` do.

    Attributes
    ----------
    model_ : fitted learner
        Its `predict_proba` is (n_tasks, n_questions).
    posterior_ : (n_tasks, n_questions)
        P(yes | answers, features) of the training tasks; the prediction where nobody was asked.
    labels_ : (n_tasks, n_questions)
        1 yes, 0 no.
    confidence_ : (n_tasks, n_questions)
        The probability of `labels_`.
    estimated_accuracy_ : (value, low, high)
        Estimated share of `labels_` that are right, where somebody was asked, with its 90 % range.
    confusion_ : (n_workers, n_questions, 2, n_answers)
    skill_ : (n_workers,)
        Every worker's chance of answering right.
    prior_ : (n_questions,)
        The share of yes of every question.
    thresholds_ : (n_questions,)
    worker_model_ : WorkerModel
        The workers as the answers show them; of `SharedWorkers`, `question_strength_` says how far they share.
    tasks_, questions_, workers_, answers_ : arrays
    doubts_, verdict_, history_, choices_, recipe_, n_rounds_, n_fits_
        As in `MBEM`.

    References
    ----------
    A. Khetan, Z. C. Lipton and A. Anandkumar, "Learning From Noisy Singly-labeled Data", ICLR 2018.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3)); y_true = (X > 0.4).astype(int)
    >>> worker = rng.integers(10, size=600)
    >>> good = worker < 4  # the other six answer at random
    >>> said = np.where(good[:, None], y_true, rng.integers(2, size=y_true.shape))
    >>> frame = {"task": np.arange(600), "worker": worker} | {f"q{k}": said[:, k] for k in range(3)}
    >>> import pyarrow as pa
    >>> clf = lo.MultiLabelMBEM().fit(X, lo.MultiLabelAnnotations.from_wide(pa.table(frame)))
    >>> bool((clf.predict(X) == y_true).mean() > 0.9)
    True
    """

    classes: None = field(default=None, init=False)  # rows have two
    threshold: str = "expected_f1"

    questions_: Ids = field(init=False)
    thresholds_: Floats = field(init=False)
    confusion_: Any = field(init=False)
    _worker_table: dict[str, Any] = field(init=False)
    _values: Floats = field(init=False)

    @classmethod
    def paper(cls, learner: Any = None, *, rounds: int = 2, prior: Any = "uniform", **options: Any) -> Self:
        """Return the protocol of the paper's MS-COCO experiment: Algorithm 1 for every label on its own.

        Khetan, Lipton and Anandkumar (ICLR 2018) train an independent binary classifier for each of the 80 object
        classes; see `MBEM.paper`.
        """
        learner = SoftmaxRegression() if learner is None else learner
        return super().paper(learner, rounds=rounds, prior=prior, **{"threshold": "half"} | options)

    def fit(self, X: Any, y: Any, *, gold: Any = None, tasks: Any = None) -> Self:  # type: ignore[override]
        """Fit the heads and the workers.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list of texts
            One row per task, matched as in `MBEM.fit`.
        y : MultiLabelAnnotations or (n_tasks, n_questions) matrix
            A matrix holds one worker's answers; -1 and NaN mean "not asked".
        gold : mapping or (n_tasks, n_questions) array, optional
            Known answers, as in `MultiLabelDawidSkene.fit`.
        tasks : column, optional
            The task id of every row of X.
        """
        return super().fit(X, y, gold=gold, tasks=tasks)

    def _problem(self, X: Any, y: Any, gold: Any, tasks: Any, *, resume: bool) -> Problem:
        X, annotations = _match(X, y, tasks)
        check_features(self, X, reset=not resume)
        if resume:
            check_is_fitted(self, "history_")
            if annotations != self.annotations_:
                raise ValueError(
                    f"resume needs the annotations of the fit, {self.annotations_!r}; got {annotations!r}."
                )
        else:
            self._check_options()
            check_choice(self.threshold, "threshold", THRESHOLDS)
            self._keep_ids(annotations)
        known = pair_gold(gold, annotations).astype(np.int32)
        balance = None
        if self.prior is not None:
            share = self._share_of_yes(annotations.n_questions)
            balance = np.stack([1 - share, share], axis=1)
        codes = known if (known >= 0).any() else None
        return QuestionProblem(X, PairLabels.of(annotations), codes, balance, device=self.device)

    def _share_of_yes(self, n_questions: int) -> Floats:
        share = np.asarray(self.prior, dtype=np.float64)
        if share.shape != (n_questions,) or not ((share >= 0) & (share <= 1)).all():
            raise ValueError(
                f"prior must be a share of yes in [0, 1] for {n_questions} questions; got {show(self.prior)}."
            )
        return share

    def _keep_ids(self, annotations: MultiLabelAnnotations) -> None:
        self.tasks_, self.questions_ = annotations.tasks, annotations.questions
        self.workers_, self._answers = annotations.workers, annotations.answers
        self._given = (annotations.task, annotations.question, annotations.worker, annotations.answer)
        self._values, self._yes_no = annotations.values, yes_and_no(annotations)
        self.classes_ = np.arange(annotations.n_questions)

    @property
    def annotations_(self) -> Any:
        """The annotations of the fit."""
        check_is_fitted(self, "_given")
        tables = (self.tasks_, self.questions_, self.workers_, self._answers, self._values)
        task, question, worker, answer = self._given
        return MultiLabelAnnotations(task, question, worker, answer, *tables)

    def _default_workers(self, labels: Any) -> WorkerModel:
        return SharedWorkers() if labels.n_questions > 1 else default_workers(labels)

    def _givens(self, problem: Problem, workers: WorkerModel) -> list[GivenLearner]:
        learner = default_heads(problem.X) if self.learner is None else self.learner
        return given_learners(learner, partial(with_heads, n_questions=problem.labels.n_questions))

    def _show(self, problem: Problem, verdict: Verdict, predictions: Beliefs, workers: WorkerModel) -> None:
        labels = problem.labels
        if self.threshold != "half" and not verdict.gain < RULES.least_gain:  # else the given labels are kept
            yes = verdict.posterior.to_dense()[:, 1]
            line = thresholds(self.threshold, yes, labels.row_question, labels.n_questions)
            said = np.bincount(labels.row_question, problem.votes(few=False)[0].to_dense()[:, 1], labels.n_questions)
            line = no_more_than(RULES.most_yes * said + 1, line, yes, labels.row_question)
            verdict = verdict.with_labels((yes > line[labels.row_question]).astype(np.int32))
        super()._show(problem, verdict.of_groups(labels.cell_worker, labels.n_people), predictions, workers)

    def _show_rows(self, problem: Problem, verdict: Verdict, predictions: Beliefs) -> None:
        labels, place, cells = problem.labels, (problem.task, problem.kind), verdict.crowd.dense()
        wide: Floats = self.model_.predict_proba(problem.X)
        self.confusion_ = by_question(labels, cells, mean_of_cells(labels, cells))
        unseen = predictions.to_dense()[:, 1]
        self.thresholds_ = np.full(labels.n_questions, 0.5)
        if self.threshold != "half":
            self.thresholds_ = as_often(unseen, verdict.labels, labels.row_question, labels.n_questions)
        self.predictions_, self.posterior_ = wide.copy(), wide.copy()
        self.labels_ = (wide > self.thresholds_).astype(np.int32)
        self.predictions_[place] = unseen
        self.posterior_[place], self.labels_[place] = verdict.posterior.to_dense()[:, 1], verdict.labels
        self.confidence_ = np.where(self.labels_ == 1, self.posterior_, 1 - self.posterior_)
        self.prior_ = np.atleast_2d(verdict.prior)[:, 1]
        self._annotation_counts = verdict.n_labels
        self._worker_table = worker_columns(self.annotations_, verdict.posterior.to_dense()[:, 1])

    def predict(self, X: Any) -> Codes:
        """Return 1 where a question is answered yes, else 0, shape (n_tasks, n_questions)."""
        return (self.predict_proba(X) > self.thresholds_).astype(np.int32)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how often `predict(X)` is the answer in y, (n_tasks, n_questions); -1 and NaN do not count."""
        given = np.asarray(y, dtype=np.float64)
        known = given >= 0
        return float((self.predict(X) == given)[known].mean())

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per training task and question: the label and P(yes)."""
        check_is_fitted(self, "verdict_")
        task, question = (place.ravel().astype(np.int32) for place in np.indices(self.posterior_.shape))
        label = self._yes_no[self.labels_.ravel()]
        return labels_table((self.tasks_, task), (self.questions_, question), self.posterior_.ravel(), label)

    def review(self, *, least: float | None = None) -> pa.Table:
        """Return an Arrow table of the given answers that are worth checking, the most likely wrong first.

        Its columns are task, question, given (the answer), worker, answer (ours), `chance_wrong` and action, as in
        `MBEM.review`. Answers that mean neither yes nor no are left out.
        """
        check_is_fitted(self, "verdict_")
        least = RULES.review_least if least is None else check_number(least, "least", 0.0, 1.0)
        task, question, worker, answer = self._given
        value = self._values[answer]
        yes = self.posterior_[task, question]
        wrong = np.where(value > 0.5, 1 - yes, yes)
        rows = np.flatnonzero(((value > 0.5) | (value < 0.5)) & (wrong >= least))
        rows = rows[np.argsort(-wrong[rows], kind="stable")]
        task, question, ours = task[rows], question[rows], self.labels_[task[rows], question[rows]]
        both = np.stack([1 - yes[rows], yes[rows]], axis=1)
        action = what_to_do(both, ours, np.arange(len(rows), dtype=np.int32), (value[rows] > 0.5).astype(np.int32))
        columns = {"task": self.tasks_[task], "question": self.questions_[question]}
        columns |= {"given": self._answers[answer[rows]], "worker": self.workers_[worker[rows]]}
        columns |= {"answer": self._yes_no[ours], "chance_wrong": wrong[rows], "action": action}
        return pa.table({name: pa.array(values) for name, values in columns.items()})

    def workers_to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per worker, the strictest first, as `MultiLabelVote.workers_to_frame`.

        After it come the worker's skill and its 90 % interval.
        """
        check_is_fitted(self, "verdict_")
        low, high = self.verdict_.skill_interval(LEVEL)
        skill = {"skill": self.skill_, "skill_low": low, "skill_high": high}
        return strictest_first({"worker": self.workers_, **self._worker_table, **skill})


def mean_of_cells(labels: PairLabels, cells: Floats) -> Floats:
    """Return the mean matrix of every worker's cells, that of all cells where it has none."""
    number = np.bincount(labels.cell_worker, minlength=labels.n_people)
    total = np.zeros((labels.n_people, *cells.shape[1:]))
    np.add.at(total, labels.cell_worker, cells)
    mean = total / np.maximum(number, 1)[:, None, None]
    mean[number == 0] = cells.mean(axis=0)
    return np.asarray(mean)


def _match(X: Any, y: Any, tasks: Any) -> tuple[Any, MultiLabelAnnotations]:
    """Return X without a column of task ids, and the annotations in the order of its rows."""
    X, column = split_task_column(X)
    annotations = y
    if not isinstance(y, MultiLabelAnnotations) and y is not None and np.ndim(y) == 2:
        annotations = MultiLabelAnnotations.from_indicator(y)
    check_annotations(annotations)
    ids = column if tasks is None else tasks
    if ids is not None:
        if len(ids) != count_rows(X):
            raise ValueError(f"tasks must name each of the {count_rows(X)} rows of X; got {len(ids)} ids.")
        return X, annotations.align(ids)
    check_positions(annotations, "X", count_rows(X), "Give tasks=..., the task id of every row of X.")
    return X, annotations
