"""MBEM: a classifier and its workers from annotations, even with one label per task."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from labelonce._kernels import Beliefs, join_slots
from labelonce._messages import show
from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import Codes, Estimate, Floats, Ids
from labelonce._validate import RandomState, check_choice, check_distribution, check_int
from labelonce.aggregation._base import labels_frame, set_fitted, workers_table
from labelonce.data import Annotations, Gold, check_gold, check_whole, only_classes
from labelonce.learning._average import average_models
from labelonce.learning._case import Case, RoundGain
from labelonce.learning._choice import RECIPES, Plan, folds_of, planned_rounds, settle
from labelonce.learning._copies import without_copies
from labelonce.learning._default import default_learner, default_workers
from labelonce.learning._doubt import (
    NOTHING_HELD_OUT,
    doubts_about_assignment,
    doubts_about_drift,
    doubts_about_fit,
    doubts_about_people,
    warn,
)
from labelonce.learning._echo import echoes, first_round
from labelonce.learning._features import GivenLearner, given_learners
from labelonce.learning._fits import FitLog, announce, counting
from labelonce.learning._inputs import check_arrays, check_features, match_rows
from labelonce.learning._judge import View
from labelonce.learning._learner import Learner
from labelonce.learning._problem import Problem, learner_of_round
from labelonce.learning._review import review_table
from labelonce.learning._rounds import Round, drifted, first_targets, history_entry, swaps, unseen_predictions
from labelonce.learning._scoring import AnnotationsScorer
from labelonce.learning._threads import sharing_threads
from labelonce.learning._verdict import Verdict, in_sample_verdict, reach
from labelonce.workers import Counted, WorkerModel

Callback = Callable[[dict[str, Any]], None]


@dataclass(eq=False, repr=False)
class MBEM(AnnotationsScorer):
    """Model bootstrapped EM: train, judge the workers by their disagreement with the model, train again.

    Every round fits the learner to the tasks' label posteriors, estimates each worker's confusion from its
    disagreement with the model's predictions, and recomputes the posteriors. `MBEM.paper` is the published
    algorithm. What is left open is chosen without gold, by how well rounds that did not see a task predict its labels:
    the learner, and the average of its models after all rounds that are within one standard error of the best.

    What is shown in the end, labels, confidence and skills, is averaged over how right the best workers may be, which
    one label per task does not tell. A given label stays unless nearly all that is plausible is against it.

    Parameters
    ----------
    learner : classifier, Pipeline or a list of them
        A learner that takes probability targets (`SoftmaxRegression`, `BoostedTrees`) or any scikit-learn
        classifier with `sample_weight`, at the end of a `Pipeline` or alone. From a list one is chosen.
        Default: features after `learning.Standardiser` and `SoftmaxRegression` with C from 0.001 to 10.
    rounds : int or "auto"
        Number of fits of the model. "auto": chosen by held-out tasks, at most 6; a learner that is too expensive to
        try, such as a network, has a number of its own (its attribute `auto`). Given ones stop early where next to
        nothing changes.
    folds : int or "auto"
        Parts of the tasks that are left out in turn, to choose, to find out whether a learner overfits, and for the
        last step. 1: nothing is held out, so that nothing can be chosen, and confidence is too high. "auto": 4, fewer
        where `max_fits` asks for it, 2 for networks.
    worker_model : WorkerModel, optional
        Default `workers.Full()`; `workers.Grouped("auto")` where there are too few labels, or too little memory, for a
        matrix per worker, and labels enough to find out which classes are confused.
    prior : (n_classes,) array, optional
        The true class balance, if you know it: for workers who share mistakes give some classes too often. Default: it
        is learned, and pulled towards the shares of the labels, less strongly in every round. Shares counted in a
        hundred tasks are too rough.
    algorithm : {"joint", "paper", "paper_equation_7"}
        The last two are Algorithm 1 of the paper: see `MBEM.paper`.
    max_fits : int or "auto"
        Most fits that choosing and running take together, where there is something to choose; fewer of them mean fewer
        folds and rounds. "auto": 15, and 5 for every further learner; no limit for `SoftmaxRegression` on few enough
        data.
    classes : column, optional
        All classes, in the order wanted; needed where y is a matrix or labels in which one may be missing, as in a
        fold of cross-validation. Default: those in y.
    device : {"cpu", "cuda"}, optional
        Where torch, if it is loaded, does the sums over annotations. Default: CUDA where there is any.
    callbacks : sequence of callables
        Each is called after every round with that round's entry of `history_`, and while the plan is chosen after
        every fit with a dict: round (0), fits, planned_fits, seconds_left.
    verbose : bool
        Print how many fits there may be and how long they take, and then every round.
    random_state : int, numpy.random.Generator or None
        Draws the folds.

    Attributes
    ----------
    model_ : fitted learner
        Where rounds were averaged (`recipe_["averaged"]`): one `SoftmaxRegression` with the mean coefficients, or
        `AveragedModels`.
    posterior_ : (n_tasks, n_classes)
        P(true label) of the training tasks to act on, by out-of-fold models. An array; with slots of
        their own for each task, where workers are factors, `Beliefs`.
    labels_ : (n_tasks,)
        No class is more probable; where another one is, it is shown as just as probable.
    confidence_ : (n_tasks,)
        The probability of `labels_`.
    estimated_accuracy_ : (value, low, high)
        Estimated share of `labels_` that are right, with its 90 % range.
    predictions_ : (n_tasks, n_classes)
        Predictions for the training tasks by models that were not fitted to them. Where all rounds are out-of-fold
        (`recipe_["predictions"]`), the targets of these models may hold a little of what labels of the task said in
        earlier rounds. If it is too much, these are the first round's predictions, which hold nothing of it; that is
        checked for cheap learners, where `max_fits` is left open.
    confusion_, prior_, skill_, answers_ : arrays
        As in the aggregators.
    worker_model_ : WorkerModel
        The workers fitted to `posterior_`.
    doubts_ : list of str
        Why the fit should not be believed, as in its `DoubtWarning`.
    verdict_ : Verdict
        What the figures above follow from.
    history_ : list of dict
        One entry per round: change of posteriors, agreement, mean confidence, held-out score.
    n_rounds_, n_fits_ : int
        Number of rounds, and of all fits of learners, those that only check others included.
    recipe_ : dict
        What was done, chosen or given.
    choices_ : list of dict
        Every learner with its mean log-likelihood of held-out annotations after each round (`held_out_scores`), and
        where that is within one standard error of the best (`near_best`).
    classes_ : (n_classes,)

    References
    ----------
    A. Khetan, Z. C. Lipton and A. Anandkumar, "Learning From Noisy Singly-labeled Data", ICLR 2018.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)); y_true = (X[:, 0] > 0).astype(int)
    >>> confusion = lo.simulate.hammer_spammer(10, 2, 0.4, rng, exact=True)
    >>> ann = lo.simulate.annotate(y_true, confusion, lo.simulate.assign(400, 10, 1, rng), rng)
    >>> clf = lo.MBEM(lo.SoftmaxRegression()).fit(X, ann)
    >>> bool((clf.predict(X) == y_true).mean() > 0.95)
    True
    >>> hammer = confusion[:, 0, 0] == 1
    >>> bool(clf.skill_[hammer].min() > clf.skill_[~hammer].max())
    True
    """

    learner: Any = None
    _: KW_ONLY
    rounds: Any = "auto"
    folds: Any = "auto"
    worker_model: WorkerModel | None = None
    prior: Any = None
    algorithm: str = "joint"
    max_fits: Any = "auto"
    classes: Any = None
    device: str | None = None
    callbacks: Sequence[Callback] = ()
    verbose: bool = False
    random_state: RandomState = 0

    tasks_: Ids = field(init=False)
    posterior_: Any = field(init=False)
    labels_: Ids = field(init=False)
    prior_: Floats = field(init=False)
    skill_: Floats = field(init=False)
    predictions_: Any = field(init=False)
    confidence_: Floats = field(init=False)
    worker_model_: WorkerModel = field(init=False)
    estimated_accuracy_: Estimate = field(init=False)
    verdict_: Verdict = field(init=False)
    doubts_: list[str] = field(init=False)
    n_rounds_: int = field(init=False)
    recipe_: dict[str, Any] = field(init=False)
    choices_: list[dict[str, Any]] = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    _plan: Plan | None = field(init=False)
    _done: list[Round] = field(init=False)  # rounds that the choice has done
    _last: Round | None = field(init=False)
    _averaged: list[Learner] = field(init=False)
    _copiers: Sequence[Codes] = field(init=False)
    _given: tuple[Codes, ...] = field(init=False)  # task, worker and label of every annotation

    @classmethod
    def paper(cls, learner: Any = None, *, rounds: int = 2, prior: Any = "uniform", **options: Any) -> Self:
        """Return Algorithm 1 of Khetan, Lipton and Anandkumar (ICLR 2018).

        It starts from the vote fractions, judges the workers by the argmax of predictions in sample, counts them
        without smoothing, and weights no task; nothing is held out. A "uniform" `prior` is what the paper's experiments
        assume; "picks", the share of the predicted classes, is its equation 7; or give an array.
        """
        algorithm = "paper_equation_7" if isinstance(prior, str) and prior == "picks" else "paper"
        balance = None if isinstance(prior, str) else prior
        if isinstance(prior, str):
            check_choice(prior, "prior", ("uniform", "picks"))
        fixed: dict[str, Any] = {"worker_model": Counted(), "algorithm": algorithm, "prior": balance}
        return cls(learner, rounds=rounds, **(fixed | options))

    def fit(self, X: Any, y: Any, *, gold: Gold | None = None, tasks: Any = None, confusion: Any = None) -> Self:
        """Fit the classifier and its workers.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list of texts
            One row per task. Rows are matched with tasks by `tasks`, by a data frame's column `task`, or by the index
            of a pandas object; without ids they are in the order of `ann.tasks`: that in which tasks first appear in
            the data, or of their numbers where these are 0 to n - 1.
        y : Annotations, (n_tasks, n_workers) matrix or (n_tasks,) labels
            In a matrix -1, NaN or a sparse matrix's absence mean "not labelled"; plain labels are taken as one
            worker's. Tasks without labels serve as unlabelled data. Answers that are not classes are learned, too.
        gold : mapping or array, optional
            Known true labels, as in the aggregators; an array has one entry per row of X.
        tasks : column, optional
            The task id of every row of X, where y is Annotations.
        confusion : (n_workers, n_classes, n_answers) array, optional
            What is known of the workers beforehand, such as `confusion_` of an earlier fit. The first model is then
            trained half on vote fractions, half on what labels of such workers say, so that fewer rounds are needed
            where many workers guess. The workers are judged again in every round.
        """
        for _ in self.stages(X, y, gold=gold, tasks=tasks, confusion=confusion):
            pass
        return self

    def stages(
        self,
        X: Any,
        y: Any,
        *,
        gold: Gold | None = None,
        tasks: Any = None,
        confusion: Any = None,
        resume: bool = False,
    ) -> Iterator[Self]:
        """Fit in stages: yield after the plan is settled and after every round, each time with what is known by then.

        What is shown follows after the last. A fit that was stopped may be saved at a stage with `labelonce.save`:
        after loading, `stages(..., resume=True)` on the same data ends with the same numbers as a fit that was never
        stopped.

        Examples
        --------
        >>> import numpy as np, labelonce as lo
        >>> X, y = np.arange(40.0)[:, None], np.arange(40) // 20
        >>> clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2)
        >>> stages = clf.stages(X, y)
        >>> next(stages), next(stages), clf.n_rounds_
        (MBEM(...), MBEM(...), 1)
        >>> [clf.n_rounds_ for _ in clf.stages(X, y, resume=True)]
        [2]
        """
        problem = self._problem(X, y, gold, tasks, resume=resume)
        if resume:
            if self._plan is None:
                return
            problem = replace(problem, X=self._features.transform(problem.X), shared=self._plan.how.learner.shared)
        else:
            problem = self._settle(problem, confusion)
            yield self
        yield from self._run(problem)
        judged = self._judged(problem)
        self._undo_drift(problem, judged[0])
        self._show(problem, *judged)

    def _problem(self, X: Any, y: Any, gold: Any, tasks: Any, *, resume: bool) -> Problem:
        """Return the features and the annotations in one order; options that cannot be are an error."""
        if resume:
            X, annotations = self._same_rows(X, y, tasks)
        else:
            self._check_options()
            X, annotations = match_rows(X, y, tasks, classes=self.classes)
            check_whole(annotations.without("weight"), "MBEM")
            if annotations.is_scale and self.worker_model is not None and not self.worker_model._takes_scales:
                only_classes(annotations, f"MBEM with {type(self.worker_model).__name__}")  # it says that it needs them
            check_features(self, X, reset=True)
            if self.prior is not None:
                check_distribution(self.prior, "prior", (annotations.n_classes,))
            self._given = annotations.task, annotations.worker, annotations.label
            self._answers = annotations.answers
            self.tasks_, self.workers_, self.classes_ = annotations.tasks, annotations.workers, annotations.classes
        codes = None if gold is None else check_gold(gold, annotations)
        if codes is None and not annotations.is_scale:
            annotations.only_classes()  # which says so where there are none
        balance = None if self.prior is None else np.asarray(self.prior, dtype=np.float64)
        if self.algorithm == "joint":
            annotations, self._copiers = without_copies(annotations)
        return Problem(X, annotations, codes, balance, device=self.device)

    def _check_options(self) -> None:
        check_choice(self.algorithm, "algorithm", tuple(RECIPES))
        if not (self.worker_model is None or isinstance(self.worker_model, WorkerModel)):
            raise TypeError(f"worker_model must be a model of labelonce.workers; got {show(self.worker_model)}.")
        for name in ("rounds", "folds", "max_fits"):
            if getattr(self, name) != "auto":
                check_int(getattr(self, name), name, 1, or_else="auto")
        if self.rounds == "auto" and self.algorithm != "joint":
            raise ValueError(f"rounds must be given with algorithm={self.algorithm!r}; got 'auto'.")
        for name in ("_last", "verdict_", "_confusion", "posterior_"):
            self.__dict__.pop(name, None)

    def _settle(self, problem: Problem, confusion: Any) -> Problem:
        """Set the plan, and return the problem with the features that its rounds are fitted to."""
        labels = problem.labels
        workers: WorkerModel = self._default_workers(labels) if self.worker_model is None else clone(self.worker_model)
        if not workers.uses_slots(labels):
            check_arrays(self, labels, matrices=10)
        if confusion is not None:
            if workers.uses_slots(labels):
                raise ValueError(f"confusion must be None with {type(workers).__name__} workers; got it.")
            shape = labels.n_workers, labels.n_classes, labels.n_answers
            confusion = check_distribution(confusion, "confusion", shape)
        givens = self._givens(problem, clone(workers))
        settled = settle(self, givens, replace(problem, confusion=confusion), workers, self._tell)
        self._plan, self._features, self._done, self._last = settled.plan, settled.features, settled.done, None
        self.n_fits_, self.choices_, self.history_, self._averaged = settled.n_fits, settled.table, [], []
        self.n_rounds_ = 0
        return settled.problem

    def _default_workers(self, labels: Any) -> WorkerModel:
        return default_workers(labels)

    def _givens(self, problem: Problem, workers: WorkerModel) -> list[GivenLearner]:
        """Return the learners to choose from."""
        learner = default_learner(problem.X, problem.labels, workers) if self.learner is None else self.learner
        return given_learners(learner)

    def _same_rows(self, X: Any, y: Any, tasks: Any) -> tuple[Any, Annotations]:
        """Return the features and annotations of a fit that is resumed; others than before are an error."""
        check_is_fitted(self, "history_")
        X, annotations = match_rows(X, y, tasks, classes=self.classes_)
        check_features(self, X, reset=False)
        if annotations != self.annotations_:
            raise ValueError(f"resume needs the annotations of the fit, {self.annotations_!r}; got {annotations!r}.")
        return X, annotations

    @property
    def planned_rounds_(self) -> int:
        """Number of rounds that there will be, unless they stop early."""
        check_is_fitted(self, "history_")
        return self.n_rounds_ if self._plan is None else self._plan.rounds

    def _tell(self, event: dict[str, Any]) -> None:
        """Hand an event to the callbacks, and print it if asked to."""
        if self.verbose:
            announce(event)
        for callback in self.callbacks:
            callback(event)

    def _run(self, problem: Problem) -> Iterator[Self]:
        """Do the rounds that are left on all annotations, and keep what each found."""
        assert self._plan is not None
        coming = planned_rounds(problem, self._plan, self._done, self._last)
        while True:
            log = FitLog()
            with counting(log), sharing_threads([self._plan.how.learner], problem.X, problem.labels.n_classes):
                found = next(coming, None)
            if found is None:
                return
            this, self._plan = found
            self.n_fits_ += log.number
            entry = history_entry(problem, this)
            if this.number <= len(self._plan.scores):
                entry["held_out_score"] = self._plan.scores[this.number - 1]
            self._keep(this, entry)
            self._tell(entry)
            yield self

    def _keep(self, this: Round, entry: dict[str, Any]) -> None:
        """Keep a round and its model."""
        assert self._plan is not None
        if this.number in self._plan.averaged:
            self._averaged = [*self._averaged, this.model]
        self.model_ = average_models(self._averaged) if this.number in self._plan.averaged else this.model
        self.n_rounds_, self._last, self.history_ = this.number, this, [*self.history_, entry]
        how = self._plan.how
        self.recipe_ = {
            "learner": clone(self._plan.learner),
            "worker_model": clone(how.workers),
            "predictions": "in_sample" if how.fold is None else "out_of_fold",
            "algorithm": self.algorithm,
            "rounds": this.number,
            "averaged": self._plan.averaged,
        }

    def _judged(self, problem: Problem) -> tuple[Verdict, Beliefs, WorkerModel]:
        """Return what is shown, the predictions that it follows from, and the workers prepared for both."""
        plan, last = self._plan, self._last
        assert plan is not None
        assert last is not None
        if plan.parts == 1:
            return in_sample_verdict(problem.labels, last.beliefs, last.workers), last.predictions, last.workers
        found = [] if plan.unseen is None else [plan.unseen]
        if not found or plan.more:
            log, fold = FitLog(), folds_of(problem, plan.parts, plan.how.seed)
            with counting(log), sharing_threads([plan.how.learner], problem.X, problem.labels.n_classes):
                first = first_round(problem, plan.how, self._done).predictions if plan.may_echo else None
                if first is not None and echoes(problem, plan.how, last, first):
                    found.append(first)
                else:
                    found.append(unseen_predictions(problem, plan.how, last, fold))
            self.n_fits_ += log.number
        workers: WorkerModel = clone(plan.how.workers)
        view = View.of(problem, workers, _told(found[0]), last.predictions.argmax())
        trained = RoundGain(last.beliefs.argmax().astype(np.int32), plan.sure_gain * len(problem.labels))
        case = Case.of(view, None if swaps(problem, trained.labels) else trained)
        verdict = reach(case, workers, found[1:], score=plan.best_score)
        return verdict, view.predictions, workers.refitted(view.evidence.tallies(verdict.posterior))

    def _undo_drift(self, problem: Problem, verdict: Verdict) -> None:
        """Return to the model of the votes where the rounds have left labels that are shown as right."""
        assert self._plan is not None
        assert self._last is not None
        how, last = self._plan.how, self._last
        chosen = how.learner.own_rounds is None and not how.learner.shared and self.rounds == "auto"
        useless = len(self.history_) > 1 and self._plan.gain <= 0 and verdict.held_out
        if chosen and useless and drifted(problem, last, verdict.labels):
            learner = learner_of_round(how.learner, 1, 1, np.random.default_rng([how.seed, 1]))
            self.model_ = problem.fit(learner, *first_targets(problem, how.workers))
            self.n_fits_ += 1
            self.recipe_ |= {"averaged": (1,)}

    def _show(self, problem: Problem, verdict: Verdict, predictions: Beliefs, workers: WorkerModel) -> None:
        """Set what people are shown, and warn of doubts."""
        self.verdict_, self.worker_model_, self.estimated_accuracy_ = verdict, workers, verdict.accuracy()
        self._show_rows(problem, verdict, predictions)
        self.skill_, self.doubts_ = verdict.skill, self._doubts(problem.labels, verdict, predictions)
        self._plan, self._done, self._last, self._averaged = None, [], None, []
        warn(self.doubts_, type(self).__name__)

    def _show_rows(self, problem: Problem, verdict: Verdict, predictions: Beliefs) -> None:
        """Set what is shown of every task, and of every worker."""
        set_fitted(
            self,
            confusion=verdict.crowd,
            prior=verdict.prior,
            workers=self.workers_,
            classes=self.classes_,
            answers=problem.labels.answers,
            annotation_counts=np.bincount(self._given[1], minlength=len(self.workers_)),
            tasks=self.tasks_,
            posterior=verdict.posterior.shown(),
            picks=verdict.labels,
            confidence_=verdict.confidence,
            predictions_=predictions.shown(),
        )

    def _doubts(self, labels: Any, verdict: Verdict, predictions: Beliefs) -> list[str]:
        asked = self.algorithm == "joint" and self.folds != 1
        found = [NOTHING_HELD_OUT] if asked and not verdict.held_out else []
        if verdict.held_out and labels.n_classes > 1 and not verdict.gold_decided:
            scores = [entry["held_out_score"] for entry in self.history_]
            found += doubts_about_fit(verdict, labels, [one for one in scores if not np.isnan(one)])
            found += doubts_about_people(verdict, getattr(self, "_copiers", ()), self.workers_)
        found += doubts_about_assignment(verdict.shift)
        return [*found, *doubts_about_drift(labels, predictions.argmax())]

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per task: task, label, confidence, and `posterior_<class>`."""
        check_is_fitted(self, "verdict_")
        return labels_frame(self.tasks_, self.classes_, self.posterior_, self.verdict_.labels)

    @property
    def annotations_(self) -> Annotations:
        """The annotations of the fit."""
        check_is_fitted(self, "_given")
        task, worker, label = self._given
        return Annotations(task, worker, label, self.tasks_, self.workers_, self.classes_, self.answers_)

    def review(self, *, least: float | None = None) -> pa.Table:
        """Return an Arrow table of the given labels that are worth checking, the most likely wrong first.

        Its columns are task, given (the label), worker, label (ours), `chance_wrong` (of the given label) and action:
        "replace" where ours has a probability of at least 0.9, "check" where a person should look, "keep" where the
        given label is ours and has at least 0.8.

        Parameters
        ----------
        least : float
            The least chance of being wrong of the labels listed; 0 lists all. Default: 0.2.

        Examples
        --------
        >>> import numpy as np, labelonce as lo
        >>> X = np.arange(40.0)[:, None]
        >>> y = (X[:, 0] > 19).astype(int); y[5] = 1
        >>> lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, y).review()["task"][0].as_py()
        5
        """
        check_is_fitted(self, "verdict_")
        if not self.verdict_.held_out:
            warn([NOTHING_HELD_OUT], type(self).__name__)
        return review_table(self.annotations_, self.posterior_, self.verdict_.labels, least=least)

    def workers_to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per worker, best first: worker, annotations, skill, its 90 % interval."""
        check_is_fitted(self, "verdict_")
        low, high = self.verdict_.skill_interval()
        return workers_table(self, skill_low=low, skill_high=high)


def _told(predictions: Beliefs) -> Any:
    """Return what tells predictions that are known, on their slots and those asked for."""

    def ask(slots: Codes | None, top: int) -> Beliefs:  # noqa: ARG001  # they have the most probable classes
        return predictions if slots is None else predictions.on(join_slots(slots, predictions.codes))

    return ask
