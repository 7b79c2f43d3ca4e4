"""MBEM for several labels at once: heads that share features, and workers who share what they are like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa

from labelonce._sklearn import BaseEstimator, check_is_fitted, count_rows
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import RandomState, check_choice, check_int, check_number, check_rng
from labelonce.data._annotations import check_positions
from labelonce.learning import MBEM
from labelonce.learning._inputs import split_task_column
from labelonce.learning._mbem import Callback
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._answer_sums import AnswerSums
from labelonce.multilabel._average import average_heads, mean_probability
from labelonce.multilabel._base import check_annotations, labels_table, pair_gold, worker_columns, yes_and_no
from labelonce.multilabel._learners import fit_one, learners_of
from labelonce.multilabel._rounds import Recipe, Round, fit_last, run_rounds
from labelonce.multilabel._selection import choose_recipes
from labelonce.multilabel._sigmoid import SigmoidRegression
from labelonce.multilabel._threshold import THRESHOLDS, thresholds


class MultiLabelMBEM(BaseEstimator):
    """Model bootstrapped EM for yes-or-no questions about every task, even with one answer to each.

    Every round fits a head per question to the posteriors, judges the workers by what the heads predict for tasks that
    they did not see, and recomputes the posteriors, as `MBEM` does for one label. The workers are those of
    `MultiLabelDawidSkene`: a worker's matrix for a question is shrunk towards the worker's own over all questions, as
    far as the raw counts ask. The penalty of the heads, whether workers differ between questions in their skill or in
    how strict they are, and what judges them are chosen by answers about tasks held out, without gold; recipes that
    these cannot tell from the best, within a standard error, are averaged.

    Parameters
    ----------
    learner : learner, classifier, Pipeline or a list of them
        `SigmoidRegression`, a `neural.TorchLearner`, which gets a head for each question, or any classifier that
        `MBEM` takes, of which one is fitted per question; at the end of a `Pipeline` or alone. From a list one is
        chosen. Default: `SigmoidRegression` with C from 0.001 to 1.
    rounds : int
        Number of fits of the model.
    sharing : {"auto", "learned", "none"}
        "learned": as above. "none": one `MBEM` per question, with `options`. "auto": "learned", and "none" where there
        is a single question, so that it is `MBEM` exactly.
    weighting : {"information", "none"}
        How much an answer counts in the next fit.
    predictions : {"auto", "out_of_fold", "in_sample"}
        Whether the workers are judged by models that did not see the task, or by the model. "auto": chosen for
        `SigmoidRegression`, in sample for networks, out of fold for others.
    threshold : {"half", "expected_f1"}
        Above which probability `predict` says yes: one half, or for each question where F1 is expected to be highest.
    holdout : float
        Share of the tasks held out to choose with; where these have few answers, others are held out in turn.
    options : mapping, optional
        Options of `MBEM` where nothing is shared.
    callbacks : sequence of callables
        Each is called after every round with that round's entry of `history_`, and while the recipe is chosen after
        every trial with a dict: round (0), fits, planned_fits.
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
        Every candidate with its score on held-out answers, and whether it was kept.
    recipe_ : dict
        What was used; of several recipes that were averaged the best, and their number.
    history_ : list of dict
        One for every round: its number, how often the heads agree with the answers, the mean confidence, and by how
        much the posterior changed; none where nothing is shared.
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
    history_: list[dict[str, Any]]
    _sharing: str
    _recipes: list[Recipe]
    _last: list[Round | None]  # of every recipe
    _seed: int
    _features: Any  # what is done to X before the learner; None: nothing
    _given: tuple[Codes, Codes, Codes, Codes]  # task, question, worker and answer of every annotation
    _values: Floats
    _worker_table: dict[str, Any]

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
        callbacks: Sequence[Callback] = (),
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
        self.callbacks = callbacks
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
        for _ in self.stages(X, y, gold=gold, tasks=tasks):
            pass
        return self

    def stages(self, X: Any, y: Any, *, gold: Any = None, tasks: Any = None, resume: bool = False) -> Iterator[Self]:
        """Fit in stages: yield after the choice of the recipe and after every round, as `MBEM.stages` does.

        Where nothing is shared, every question is a stage. After loading what was saved at a stage,
        `stages(..., resume=True)` ends with the same numbers as a fit that was never stopped.

        Examples
        --------
        >>> import numpy as np, labelonce as lo
        >>> from labelonce.multilabel import SigmoidRegression
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> clf = lo.MultiLabelMBEM(SigmoidRegression(C=0.1), rounds=2)
        >>> stages = clf.stages(X, (X > 0).astype(int))
        >>> next(stages).n_rounds_, next(stages).n_rounds_
        (0, 1)
        >>> for _ in clf.stages(X, (X > 0).astype(int), resume=True):
        ...     pass
        >>> clf.n_rounds_
        2
        """
        X, annotations = _match(X, y, tasks)
        sharing = self._sharing = self._check_options(annotations.n_questions)
        known = pair_gold(gold, annotations)
        self._yes_no = yes_and_no(annotations)
        if resume:
            self._check_same(annotations)
        else:
            self._keep_ids(annotations)
        yield from (self._apart if sharing == "none" else self._shared)(X, annotations, known, resume)
        start = annotations.pair_start
        place = annotations.task[start], annotations.question[start]
        self.thresholds_ = self._thresholds(self.predict_proba(X))
        self._worker_table = worker_columns(annotations, self.posterior_[place])

    def _keep_ids(self, annotations: MultiLabelAnnotations) -> None:
        self.tasks_, self.questions_ = annotations.tasks, annotations.questions
        self.workers_, self.answers_ = annotations.workers, annotations.answers
        self._given = (annotations.task, annotations.question, annotations.worker, annotations.answer)
        self._values = annotations.values
        self.history_ = []

    def _check_same(self, annotations: MultiLabelAnnotations) -> None:
        check_is_fitted(self, "history_")
        if annotations != self.annotations_:
            raise ValueError(f"resume needs the annotations of the fit, {self.annotations_!r}; got {annotations!r}.")

    @property
    def annotations_(self) -> MultiLabelAnnotations:
        """The annotations of the fit."""
        check_is_fitted(self, "history_")
        tables = (self.tasks_, self.questions_, self.workers_, self.answers_, self._values)
        return MultiLabelAnnotations(*self._given, *tables)

    @property
    def n_rounds_(self) -> int:
        """Number of rounds done so far."""
        check_is_fitted(self, "history_")
        return len(self.history_)

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

    def _shared(self, X: Any, annotations: MultiLabelAnnotations, gold: Floats, resume: bool) -> Iterator[Self]:
        """Choose recipes and do the rounds with each of them, or those that are left."""
        if not resume:
            learners, self._features = learners_of(self.learner, X)
            X = self._transformed(X)
            self._seed = int(check_rng(self.random_state).integers(2**31))
            self._recipes, self.choices_ = self._choose(X, annotations, gold, learners)
            self._last = [None] * len(self._recipes)
            yield self
        else:
            X = self._transformed(X)
        for number, recipe in enumerate(self._recipes):
            for found in run_rounds(X, annotations, recipe, gold, self._seed, after=self._last[number]):
                if number == 0:
                    self.history_.append(_entry(annotations, found, self._last[0]))
                    self._tell(self.history_[-1])
                self._last = [*self._last[:number], found, *self._last[number + 1 :]]
                yield self
        self._settle(X, annotations, [one for one in self._last if one is not None])

    def _settle(self, X: Any, annotations: MultiLabelAnnotations, last: list[Round]) -> None:
        """Set the fitted attributes: averages over the recipes, and the strengths of the best of them."""
        heads = [fit_last(X, annotations, *pair) for pair in zip(self._recipes, last, strict=True)]
        self.model_ = average_heads(heads)
        start, n_questions = annotations.pair_start, annotations.n_questions
        self.posterior_ = self.model_.predict_proba(X)
        self.posterior_[annotations.task[start], annotations.question[start]] = mean_probability(
            [one.posterior for one in last]
        )
        sums = AnswerSums.of(annotations)
        tables = [sums.table(one.evidence, one.workers.worker, n_questions) for one in last]
        self.confusion_ = np.asarray(sum(tables) / len(tables))
        workers = last[0].workers
        self.question_strength_, self.worker_strength_ = workers.question_strength, workers.worker_strength
        self.skill_spread_ = workers.skill_spread
        self.recipe_ = vars(self._recipes[0]) | {"averaged": len(last)}

    def _choose(
        self, X: Any, annotations: MultiLabelAnnotations, gold: Floats, learners: Sequence[Any]
    ) -> tuple[list[Recipe], list[dict[str, Any]]]:
        own = getattr(learners[0], "auto", {}).get("predictions", "out_of_fold")
        default = own if self.predictions == "auto" else self.predictions
        cheap = all(isinstance(learner, SigmoidRegression) for learner in learners)
        judges = ("out_of_fold", "in_sample") if self.predictions == "auto" and cheap else (default,)
        base = Recipe(learners[0], by_skill=False, predictions=default, rounds=self.rounds, weighting=self.weighting)
        options: dict[str, Any] = {"judges": judges, "holdout": self.holdout, "seed": self._seed}
        return choose_recipes(X, annotations, gold, learners, base, **options, listener=self._tell)

    def _tell(self, event: dict[str, Any]) -> None:
        for callback in self.callbacks:
            callback(event)

    def _apart(self, X: Any, annotations: MultiLabelAnnotations, gold: Floats, resume: bool) -> Iterator[Self]:
        """Fit an `MBEM` to every question, or to those that are left."""
        if annotations.n_answers != 2:
            raise ValueError(
                f"sharing='none' must have two answers, no and yes; got {annotations.n_answers}. Use "
                "sharing='learned', or ann.relabel."
            )
        options = {"random_state": self.random_state} | dict(self.options or {})
        start = annotations.pair_start
        wide = np.full((annotations.n_tasks, annotations.n_questions), -1.0)
        wide[annotations.task[start], annotations.question[start]] = gold
        yes = self._yes_code = int(np.flatnonzero(annotations.answers == self._yes_no[1])[0])
        self.models_ = self.models_ if resume else []
        for number in range(len(self.models_), annotations.n_questions):
            model = fit_one(self.learner, options, X, annotations, number, wide[:, number], yes)
            self.models_ = [*self.models_, model]
            yield self
        posterior, confusion = [], []
        for model in self.models_:
            none = isinstance(model, float)
            posterior.append(np.full(annotations.n_tasks, model) if none else model.posterior_[:, yes])
            even = np.full((annotations.n_workers, 2, 2), 0.5)
            confusion.append(even if none else model.confusion_ if yes else model.confusion_[:, ::-1])
        self.posterior_, self.confusion_ = np.stack(posterior, axis=1), np.stack(confusion, axis=1)
        self.question_strength_ = self.worker_strength_ = self.skill_spread_ = None
        self.choices_, self.recipe_ = [], {"sharing": "none"} | options

    def _transformed(self, X: Any) -> Any:
        return X if self._features is None else self._features.transform(X)

    def _thresholds(self, predicted: Floats) -> Floats:
        question = np.tile(np.arange(predicted.shape[1], dtype=np.int32), len(predicted))
        return thresholds(self.threshold, predicted.ravel(), question, predicted.shape[1])

    def predict_proba(self, X: Any) -> Floats:
        """Return P(yes | features), shape (n_tasks, n_questions)."""
        check_is_fitted(self, "posterior_")
        X = split_task_column(X)[0]
        if self._sharing != "none":
            return np.asarray(self.model_.predict_proba(self._transformed(X)))
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


def _entry(annotations: MultiLabelAnnotations, this: Round, before: Round | None) -> dict[str, Any]:
    """Return one row of the history."""
    said = annotations.values[annotations.answer]
    picks = this.log_odds[annotations.pair] > 0
    clear = ~np.isnan(said) & (said != 0.5)
    changed = None if before is None else float(np.abs(this.posterior - before.posterior).mean())
    return {
        "round": this.number,
        "agreement": float(((said > 0.5) == picks)[clear].mean()) if clear.any() else 0.0,
        "mean_confidence": float(np.maximum(this.posterior, 1 - this.posterior).mean()),
        "posterior_change": changed,
    }
