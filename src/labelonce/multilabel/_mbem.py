"""MBEM for several labels at once: heads that share features, and workers who share what they are like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa

from labelonce._sklearn import BaseEstimator, check_is_fitted, count_rows
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import RandomState, check_choice, check_int, check_number, check_rng
from labelonce.data._annotations import check_positions
from labelonce.learning import MBEM
from labelonce.learning._inputs import split_task_column
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._base import check_annotations, labels_table, pair_gold, worker_columns, yes_and_no
from labelonce.multilabel._cells import Cells
from labelonce.multilabel._per_question import PerQuestion
from labelonce.multilabel._rounds import Recipe, Round, fit_last, held_out_score, run_rounds
from labelonce.multilabel._sigmoid import SigmoidRegression
from labelonce.multilabel._threshold import THRESHOLDS, thresholds

PENALTIES = (0.001, 0.01, 0.1, 1.0)
"""What `C` of the default learner is chosen from."""


class MultiLabelMBEM(BaseEstimator):
    """Model bootstrapped EM for yes-or-no questions about every task, even with one answer to each.

    Every round fits a head per question to the posteriors, judges the workers by what the heads predict for tasks that
    they did not see, and recomputes the posteriors, as `MBEM` does for one label. The workers are those of
    `MultiLabelDawidSkene`: a worker's matrix for a question is shrunk towards the worker's own over all questions, as
    far as the raw counts ask. The penalty of the heads, whether workers differ between questions in their skill or in
    how strict they are, and what judges them are chosen by answers about tasks held out, without gold.

    Parameters
    ----------
    learner : learner, classifier, Pipeline or a list of them
        `SigmoidRegression`, or any classifier that `MBEM` takes, of which one is fitted per question; at the end of a
        `Pipeline` or alone. From a list one is chosen. Default: `SigmoidRegression` with C from 0.001 to 1.
    rounds : int
        Number of fits of the model.
    sharing : {"auto", "learned", "none"}
        "learned": as above. "none": one `MBEM` per question, with `options`. "auto": "learned", and "none" where there
        is a single question, so that it is `MBEM` exactly.
    weighting : {"information", "none"}
        How much an answer counts in the next fit.
    predictions : {"auto", "out_of_fold", "in_sample"}
        Whether the workers are judged by models that did not see the task, or by the model. "auto": chosen for
        `SigmoidRegression`, out of fold for others.
    threshold : {"half", "expected_f1"}
        Above which probability `predict` says yes: one half, or for each question where F1 is expected to be highest.
    holdout : float
        Share of the tasks held out to choose with.
    options : mapping, optional
        Options of `MBEM` where nothing is shared.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    model_ : fitted learner
        Its `predict_proba` is (n_tasks, n_questions). With "none", `models_` are the fitted `MBEM`.
    posterior_ : (n_tasks, n_questions)
        P(yes | answers, features) of the training tasks; the prediction where nobody was asked.
    labels_ : (n_tasks, n_questions)
        1 yes, 0 no.
    confusion_ : (n_workers, n_questions, 2, n_answers)
    question_strength_, worker_strength_, skill_spread_ : (2,), (2,), float
        How far workers share between questions; None with "none".
    thresholds_ : (n_questions,)
    choices_ : list of dict
        Every candidate with its score on held-out answers.
    recipe_ : dict
        What was used.
    tasks_, questions_, workers_, answers_ : arrays

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

    tasks_: Ids
    questions_: Ids
    workers_: Ids
    answers_: Ids
    posterior_: Floats
    thresholds_: Floats
    confusion_: Floats
    question_strength_: Floats | None
    worker_strength_: Floats | None
    skill_spread_: float | None
    choices_: list[dict[str, Any]]
    recipe_: dict[str, Any]
    model_: Any
    models_: list[Any]
    _worker_table: dict[str, Any]
    _transform: Callable[[Any], Any]

    def __init__(
        self,
        learner: Any = None,
        *,
        rounds: int = 5,
        sharing: str = "auto",
        weighting: str = "information",
        predictions: str = "auto",
        threshold: str = "half",
        holdout: float = 0.2,
        options: Mapping[str, Any] | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.learner = learner
        self.rounds = rounds
        self.sharing = sharing
        self.weighting = weighting
        self.predictions = predictions
        self.threshold = threshold
        self.holdout = holdout
        self.options = options
        self.random_state = random_state

    @classmethod
    def paper(cls, learner: Any = None, *, rounds: int = 2, **options: Any) -> MultiLabelMBEM:
        """Return the protocol of the paper's MS-COCO experiment: Algorithm 1 for every label on its own.

        Khetan, Lipton and Anandkumar (ICLR 2018) train an independent binary classifier for each of the 80 object
        classes; see `MBEM.paper`.
        """
        whole = MBEM.paper(rounds=rounds, **options).get_params(deep=False)
        del whole["learner"]
        return cls(learner, rounds=rounds, sharing="none", options=whole)

    def fit(self, X: Any, y: Any, *, gold: Any = None, tasks: Any = None) -> Self:
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
        X, annotations = _match(X, y, tasks)
        sharing = self._check_options(annotations.n_questions)
        known = pair_gold(gold, annotations)
        self.tasks_, self.questions_ = annotations.tasks, annotations.questions
        self.workers_, self.answers_ = annotations.workers, annotations.answers
        self._yes_no = yes_and_no(annotations)
        if sharing == "none":
            self._fit_apart(X, annotations, gold)
        else:
            self._fit_shared(X, annotations, known)
        start = annotations.pair_start
        place = annotations.task[start], annotations.question[start]
        self.thresholds_ = self._thresholds(self.predict_proba(X))
        self._worker_table = worker_columns(annotations, self.posterior_[place])
        return self

    def _check_options(self, n_questions: int) -> str:
        check_int(self.rounds, "rounds", 1)
        check_choice(self.sharing, "sharing", ("auto", "learned", "none"))
        check_choice(self.weighting, "weighting", ("information", "none"))
        check_choice(self.predictions, "predictions", ("auto", "out_of_fold", "in_sample"))
        check_choice(self.threshold, "threshold", THRESHOLDS)
        check_number(self.holdout, "holdout", 0.05, 0.5)
        if self.sharing != "auto":
            return self.sharing
        return "learned" if n_questions > 1 else "none"

    def _fit_shared(self, X: Any, annotations: MultiLabelAnnotations, gold: Floats) -> None:
        learners, self._transform = _learners(self.learner, X)
        X = self._transform(X)
        seed = int(check_rng(self.random_state).integers(2**31))
        recipe = self._choose(X, annotations, gold, learners, seed)
        last: Round | None = None
        for last in run_rounds(X, annotations, recipe, gold, seed):  # noqa: B007
            pass
        assert last is not None
        self.model_ = fit_last(X, annotations, recipe, last)
        start = annotations.pair_start
        place = annotations.task[start], annotations.question[start]
        self.posterior_ = self.model_.predict_proba(X)
        self.posterior_[place] = last.posterior
        self.confusion_ = Cells.of(annotations).table(last.evidence, last.workers.worker, annotations.n_questions)
        self.question_strength_, self.worker_strength_ = last.workers.question_strength, last.workers.worker_strength
        self.skill_spread_ = last.workers.skill_spread
        self.recipe_ = vars(recipe).copy()

    def _choose(
        self, X: Any, annotations: MultiLabelAnnotations, gold: Floats, learners: Sequence[Any], seed: int
    ) -> Recipe:
        """Return the recipe that predicts answers about tasks held out best: first the learner, then the rest."""
        default = "out_of_fold" if self.predictions == "auto" else self.predictions
        cheap = isinstance(learners[0], SigmoidRegression)
        skills = (False, True) if annotations.n_answers == 2 else (False,)
        judges = ("out_of_fold", "in_sample") if self.predictions == "auto" and cheap else (default,)
        base = Recipe(learners[0], skills[0], default, self.rounds, self.weighting)
        held_out = np.random.default_rng([seed, 1]).random(annotations.n_tasks) < self.holdout
        self.choices_ = []

        def score(recipe: Recipe) -> float:
            found = held_out_score(X, annotations, recipe, gold, seed, held_out)
            self.choices_.append(vars(recipe) | {"score": found})
            return found

        enough = held_out[annotations.task].any() and (~held_out[annotations.task]).any()
        candidates = [replace(base, learner=learner) for learner in learners]
        if len(candidates) > 1 and enough:
            base = max(candidates, key=score)
        rest = [replace(base, by_skill=skill, predictions=judge) for skill, judge in product(skills, judges)]
        return max(rest, key=score) if len(rest) > 1 and cheap and enough else base

    def _fit_apart(self, X: Any, annotations: MultiLabelAnnotations, gold: Any) -> None:
        if annotations.n_answers != 2:
            raise ValueError(
                f"sharing='none' must have two answers, no and yes; got {annotations.n_answers}. Use "
                "sharing='learned', or ann.relabel."
            )
        options = {"random_state": self.random_state} | dict(self.options or {})
        shape = annotations.n_tasks, annotations.n_questions
        wide = np.full(shape, -1.0)
        start = annotations.pair_start
        wide[annotations.task[start], annotations.question[start]] = pair_gold(gold, annotations)
        yes = int(np.flatnonzero(annotations.answers == self._yes_no[1])[0])
        self.models_, columns, confusion = [], [], []
        for number in range(annotations.n_questions):
            model = _one(self.learner, options, X, annotations, number, wide[:, number], yes)
            self.models_.append(model)
            if isinstance(model, float):
                columns.append(np.full(shape[0], model))
                confusion.append(np.full((annotations.n_workers, 2, 2), 0.5))
            else:
                columns.append(model.posterior_[:, yes])
                confusion.append(model.confusion_ if yes else model.confusion_[:, ::-1])
        self.posterior_, self.confusion_ = np.stack(columns, axis=1), np.stack(confusion, axis=1)
        self._yes_code = yes
        self.question_strength_ = self.worker_strength_ = self.skill_spread_ = None
        self.choices_, self.recipe_ = [], {"sharing": "none"} | options

    def _thresholds(self, predicted: Floats) -> Floats:
        question = np.tile(np.arange(predicted.shape[1], dtype=np.int32), len(predicted))
        return thresholds(self.threshold, predicted.ravel(), question, predicted.shape[1])

    def predict_proba(self, X: Any) -> Floats:
        """Return P(yes | features), shape (n_tasks, n_questions)."""
        check_is_fitted(self, "posterior_")
        X = split_task_column(X)[0]
        if self.recipe_.get("sharing") != "none":
            return np.asarray(self.model_.predict_proba(self._transform(X)))
        n, yes = count_rows(X), self._yes_code
        columns = [np.full(n, one) if isinstance(one, float) else one.predict_proba(X)[:, yes] for one in self.models_]
        return np.stack(columns, axis=1)

    def predict(self, X: Any) -> Codes:
        """Return 1 where a question is answered yes, else 0, shape (n_tasks, n_questions)."""
        return (self.predict_proba(X) > self.thresholds_).astype(np.int32)

    @property
    def labels_(self) -> Codes:
        """1 where the posterior of a training task says yes, else 0, shape (n_tasks, n_questions)."""
        check_is_fitted(self, "posterior_")
        return (self.posterior_ > 0.5).astype(np.int32)

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per training task and question: the label and P(yes)."""
        check_is_fitted(self, "posterior_")
        task, question = (place.ravel().astype(np.int32) for place in np.indices(self.posterior_.shape))
        label = self._yes_no[self.labels_.ravel()]
        return labels_table((self.tasks_, task), (self.questions_, question), self.posterior_.ravel(), label)

    def workers_to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per worker, the strictest first, as `MultiLabelVote.workers_to_frame`."""
        check_is_fitted(self, "posterior_")
        order = np.argsort(-self._worker_table["strictness"], kind="stable")
        columns = {"worker": self.workers_, **self._worker_table}
        return pa.table({name: pa.array(values[order]) for name, values in columns.items()})


def _match(X: Any, y: Any, tasks: Any) -> tuple[Any, MultiLabelAnnotations]:
    """Return X without a column of task ids, and the annotations in the order of its rows."""
    X, column = split_task_column(X)
    annotations = y if isinstance(y, MultiLabelAnnotations) else _indicator(y)
    check_annotations(annotations)
    ids = column if tasks is None else tasks
    if ids is not None:
        if len(ids) != count_rows(X):
            raise ValueError(f"tasks must name each of the {count_rows(X)} rows of X; got {len(ids)} ids.")
        return X, annotations.align(ids)
    check_positions(cast(Any, annotations), "X", count_rows(X), "Give tasks=..., the task id of every row of X.")
    return X, annotations


def _indicator(y: Any) -> Any:
    if y is None or np.ndim(y) != 2:
        return y
    return MultiLabelAnnotations.from_indicator(y)


def _learners(learner: Any, X: Any) -> tuple[list[Any], Callable[[Any], Any]]:
    """Return the learners to choose from, and what is done to X before them."""
    if learner is None:
        return [SigmoidRegression(C=C) for C in PENALTIES], _unchanged
    given = list(learner) if isinstance(learner, list | tuple) else [learner]
    transform: Callable[[Any], Any] = _unchanged
    if hasattr(given[0], "steps"):
        before, given = given[0][:-1], [one[-1] for one in given]
        transform = before.fit(X).transform
    return [one if isinstance(one, SigmoidRegression | PerQuestion) else PerQuestion(one) for one in given], transform


def _unchanged(X: Any) -> Any:
    return X


def _one(
    learner: Any,
    options: Mapping[str, Any],
    X: Any,
    annotations: MultiLabelAnnotations,
    number: int,
    gold: Any,
    yes: int,
) -> Any:
    """Return the `MBEM` of one question, or its share of yes where all answers to it are the same."""
    one = annotations.of_question(annotations.questions[number]) if (annotations.question == number).any() else None
    if one is None or len(np.unique(one.label)) < 2:
        n = 0 if one is None else len(one)
        n_yes = 0 if one is None else int((one.label == yes).sum())
        return float((n_yes + 0.5) / (n + 1.0))
    known = gold >= 0
    codes = np.where(gold > 0, yes, 1 - yes)
    given = {task: annotations.answers[code] for task, code in zip(one.tasks[known], codes[known], strict=True)}
    return MBEM(learner, **options).fit(X, one, gold=given or None)
