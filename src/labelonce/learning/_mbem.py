"""MBEM: a classifier and its workers from annotations, even with one label per task."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa

from labelonce._messages import shorten, show
from labelonce._processes import n_processes
from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import ENGINES, Codes, Floats, Ids
from labelonce._validate import RandomState, check_choice, check_distribution, check_int, check_number
from labelonce.aggregation._base import labels_frame, set_fitted, workers_table
from labelonce.data import Annotations
from labelonce.data._answers import only_classes
from labelonce.data._gold import Gold, check_gold
from labelonce.learning._average import average_models
from labelonce.learning._candidate_confidence import calibrated_candidates, unseen_candidates
from labelonce.learning._candidate_rounds import candidate_rounds
from labelonce.learning._confidence import LEVEL, Confidence, Estimate, calibrated, reconciled, share_right, skills
from labelonce.learning._doubt import NOTHING_HELD_OUT, DoubtWarning, warn_if_flattened, warn_of_doubt, warn_of_gap
from labelonce.learning._fits import FitLog, announce, counting
from labelonce.learning._history import history_entry
from labelonce.learning._inputs import check_arrays, check_features, match_rows
from labelonce.learning._learner import Learner
from labelonce.learning._many_classes import settle_candidates, uses_candidates
from labelonce.learning._review import LEAST, review_table
from labelonce.learning._rounds import Round, run_rounds, unseen_predictions
from labelonce.learning._schedule import Schedule, settle
from labelonce.learning._scoring import AnnotationsScorer
from labelonce.learning._threads import sharing_threads
from labelonce.workers import Counted, Full, WorkerModel

Callback = Callable[[dict[str, Any]], None]


class MBEM(AnnotationsScorer):
    """Model bootstrapped EM: train, judge the workers by their disagreement with the model, train again.

    Every round fits the learner to the tasks' label posteriors, estimates each worker's confusion from its
    disagreement with the model's predictions, and recomputes the posteriors. `MBEM.paper` is the published
    algorithm. Options that are left open are chosen without gold, by how often a fit is right on tasks held out from
    it, as far as their labels tell: the best learner, and the average of its models after all rounds that are within
    one standard error of the best.

    Parameters
    ----------
    learner : classifier, Pipeline or a list of them
        A learner that takes probability targets (`SoftmaxRegression`, `BoostedTrees`) or any scikit-learn
        classifier with `sample_weight`, at the end of a `Pipeline` or alone. From a list one is chosen, the first
        of those that do equally well.
        Default: `SoftmaxRegression` with C from 0.001 to 10.
    rounds : int or "auto"
        Number of fits of the model. "auto": chosen by held-out tasks, at most `max_rounds`; a learner that is too
        expensive to try, such as a network, has a number of its own (its attribute `auto`).
    predictions : {"auto", "in_sample", "out_of_fold"}
        Whether the workers are judged by the model or by models that did not see the task. "auto": by the model,
        unless it has memorised, in the first round, more than a quarter of the labels that models which did not
        see the task disagree with. Networks whose early rounds are short are not measured: by the model.
    posterior : {"joint", "prior", "auto"}
        Whether the model's calibrated prediction for a task replaces the class prior from the second round on.
        "auto" tries both, in twice the time.
    counts : {"refined", "hard", "soft"}
        How the workers are counted: against the model's picks ("hard"), its probabilities ("soft"), or, from
        the second round on, against the posterior that prediction and labels give together, to a fixed point
        ("refined"). The first round always counts picks.
    weighting : {"information", "none"}
        How much a task counts in the next fit: 1 - H(posterior) / log K, or 1.
    confidence : {"held_out", "posterior"}
        What `confidence_`, `calibrated_` and the workers' skills are based on: after the last round, on models that did
        not see the task (five more fits on parts of the tasks, two for networks), or on the posterior of the rounds,
        which costs nothing and is too sure of itself.
    worker_model : WorkerModel, optional
        Default `workers.Full()`; with more than 50 classes, fewer than ten labels per worker and class, and 200
        or more per class or several per task that tell which classes are confused, `workers.Grouped("auto")`.
    prior : {"uniform", "learned", "picks"} or (n_classes,) array
        P(true label) where no prediction replaces it. "learned": what explains the annotations best, given the
        workers; "picks": the share of the model's picks, as in the paper's equation 7, which may collapse. The class
        balance of the predictions is pulled towards the shares of the labels, less strongly in every round; or towards
        the array, strongly in every round. Give the true balance if you know it, for workers who share mistakes give
        some classes too often; shares counted in a hundred tasks are too rough.
    max_rounds : int
        Largest number of rounds that "auto" tries.
    holdout : float
        Share of the tasks that is held out, with all their labels, to choose the recipe.
    max_fits : int or "auto"
        Most fits that choosing and running take together, where there is something to choose; fewer of them mean fewer
        folds and rounds. "auto": 15, and 5 for every further learner; no limit for `SoftmaxRegression` on few enough
        data. A learner that memorises is then the average of the models of all folds and rounds.
    callbacks : sequence of callables
        Each is called after every round with that round's entry of `history_`, and while the recipe is chosen after
        every fit with a dict: round (0), fits, planned_fits, seconds_left.
    verbose : bool
        Print how many fits there may be and how long they take, and then every round.
    tol : float
        The rounds stop early when the mean total variation between the posteriors of two rounds is below it, unless
        their number was chosen by held-out tasks. A learner that trains longer in the last round then still does its
        last round. 0: never stop early.
    classes : column, optional
        All classes, in the order wanted; needed where y is a matrix or labels in which one may be missing, as in a
        fold of cross-validation. Default: those in y.
    engine, device
        What computes the sums over annotations, as in `DawidSkene`.
    random_state : int, numpy.random.Generator or None
        Draws the folds and the tasks held out.

    Attributes
    ----------
    model_ : fitted learner
        Where rounds were averaged (`recipe_["averaged"]`): one `SoftmaxRegression` with the mean coefficients, or
        `AveragedModels`.
    posterior_ : (n_tasks, n_classes)
        P(true label | annotations, features) of the training tasks.
    calibrated_ : (n_tasks, n_classes)
        P(true label) to act on: calibrated without gold, by models that did not see the task.
    confidence_ : (n_tasks,)
        Calibrated probability of `labels_`. No class is more probable; where models that did not see the task prefer
        another one, both are equally probable.
    estimated_accuracy_ : (value, low, high)
        Estimated share of `labels_` that are right, with its 90 % range.
    trust_ : float or None
        The weight of the labels in `calibrated_`: 1 takes every label as independent evidence, 0 ignores them. None
        where nothing was held out, so that `calibrated_` is `posterior_` and nothing has checked it.
    labels_ : (n_tasks,)
    predictions_ : (n_tasks, n_classes)
        The predictions of the last round for the training tasks, by which the workers were judged.
    confusion_, prior_, skill_, answers_ : arrays
        As in the aggregators.
    worker_model_ : WorkerModel
        The fitted workers, with `skill_interval` and `confusion_interval`.
    history_ : list of dict
        One entry per round: change of posteriors and workers, agreement, mean confidence, held-out score.
    n_rounds_ : int
        Number of rounds done.
    recipe_ : dict
        The options that were used, chosen or given.
    choices_ : list of dict
        Every contender after each round: its mean log-likelihood of held-out annotations (`held_out_scores`), the
        estimated share of right picks on held-out tasks (`held_out_accuracy`), and where that is within one standard
        error of the best (`near_best`).
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

    tasks_: Ids
    posterior_: Floats
    labels_: Ids
    prior_: Floats
    skill_: Floats
    predictions_: Floats
    worker_model_: WorkerModel
    n_rounds_: int
    recipe_: dict[str, Any]
    choices_: list[dict[str, Any]]
    history_: list[dict[str, Any]]
    _schedule: Schedule
    _done: list[Round]  # rounds that the choice of the recipe has done
    _last: Any  # a Round; None before the first
    trust_: float | None
    _unseen_picks: Codes | None  # of models that did not see the task
    _given: tuple[Codes, Codes, Codes]  # task, worker and label of every annotation

    def __init__(
        self,
        learner: Any = None,
        *,
        rounds: Any = "auto",
        predictions: str = "auto",
        posterior: str = "joint",
        counts: str = "refined",
        weighting: str = "information",
        confidence: str = "held_out",
        worker_model: WorkerModel | None = None,
        prior: Any = "uniform",
        max_rounds: int = 6,
        holdout: float = 0.2,
        max_fits: Any = "auto",
        callbacks: Sequence[Callback] = (),
        verbose: bool = False,
        tol: float = 1e-3,
        classes: Any = None,
        engine: str = "auto",
        device: str | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.learner = learner
        self.rounds = rounds
        self.predictions = predictions
        self.posterior = posterior
        self.counts = counts
        self.weighting = weighting
        self.confidence = confidence
        self.worker_model = worker_model
        self.prior = prior
        self.max_rounds = max_rounds
        self.holdout = holdout
        self.max_fits = max_fits
        self.callbacks = callbacks
        self.verbose = verbose
        self.tol = tol
        self.classes = classes
        self.engine = engine
        self.device = device
        self.random_state = random_state

    @classmethod
    def paper(cls, learner: Any = None, *, rounds: int = 2, prior: Any = "uniform", **options: Any) -> MBEM:
        """Return Algorithm 1 of Khetan, Lipton and Anandkumar (ICLR 2018).

        It starts from the vote fractions, judges the workers by in-sample picks, and weights no task. A "uniform"
        `prior` is what the paper's experiments assume; "picks" is its equation 7.
        """
        fixed: dict[str, Any] = {"predictions": "in_sample", "posterior": "prior", "counts": "hard"}
        fixed |= {"weighting": "none", "confidence": "posterior", "worker_model": Counted(), "tol": 0.0}
        return cls(learner, rounds=rounds, prior=prior, **(fixed | options))

    def fit(self, X: Any, y: Any, *, gold: Gold | None = None, tasks: Any = None, confusion: Any = None) -> Self:
        """Fit the classifier and its workers.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list of texts
            One row per task. Rows are matched with tasks by `tasks`, by a data frame's column `task`, or by the index
            of a pandas object; without ids they are in the order of `ann.tasks`, where tasks first appear in the data.
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
            where many workers guess. The workers are judged anew in every round.
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
        """Fit in stages: yield after the choice of the recipe and after every round.

        The object can be saved at each stage; after loading, `stages(..., resume=True)` ends with the same numbers as
        a fit that was never stopped. X, y, gold and tasks must be the same.

        Examples
        --------
        >>> import numpy as np, labelonce as lo
        >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 19
        >>> clf = lo.MBEM(lo.SoftmaxRegression(), rounds=3, posterior="joint")
        >>> stages = clf.stages(X, y)
        >>> next(stages), next(stages), clf.n_rounds_
        (MBEM(...), MBEM(...), 1)
        >>> [clf.n_rounds_ for _ in clf.stages(X, y, resume=True)]
        [2, 3]
        """
        X, annotations = self._same_rows(X, y, tasks) if resume else self._prepare(X, y, tasks)
        codes = None if gold is None else check_gold(gold, annotations)
        if codes is None and not annotations.is_scale:
            annotations.only_classes()  # which says so where there are none
        if resume:
            transformed = self._features.transform(X)
        else:
            transformed = self._choose(X, annotations, codes, confusion)
            yield self
        yield from self._run(transformed, annotations, codes)
        unseen = self._judge(transformed, annotations, codes)
        if unseen is None and self.confidence == "held_out":
            warnings.warn(NOTHING_HELD_OUT, DoubtWarning, stacklevel=3)
        warn_of_doubt(annotations, self._last, self.history_[-1]["held_out_score"], unseen)

    def _choose(self, X: Any, annotations: Annotations, gold: Codes | None, confusion: Any) -> Any:
        """Set the schedule, and return the features that its rounds are fitted to."""
        if uses_candidates(self.worker_model, annotations):
            if confusion is not None:
                raise ValueError(f"confusion must be None with so many classes; got it with {annotations.n_classes}.")
            settled = settle_candidates(self, X, annotations)
        else:
            check_arrays(self, annotations, matrices=10)
            if confusion is not None:
                shape = (annotations.n_workers, annotations.n_classes, annotations.n_answers)
                confusion = check_distribution(confusion, "confusion", shape)
            settled = settle(self, X, annotations, gold, listener=self._tell, confusion=confusion)
        self._schedule, self._features, self._done, self._last = settled.schedule, settled.features, settled.done, None
        self.n_fits_ = settled.n_fits
        self._averaged: list[Learner] = []
        self.tasks_, self.workers_, self.classes_ = annotations.tasks, annotations.workers, annotations.classes
        self.choices_, self.history_ = settled.table, []
        return settled.X

    def resume(self, X: Any, y: Any, *, rounds: int = 1, gold: Gold | None = None, tasks: Any = None) -> Self:
        """Do more rounds, starting from the last one of the fit.

        The result is the same as that of asking for all rounds at once, except for learners that train longer in the
        last round, and for networks that memorise, whose model is then that of the last round alone. X, y, gold and
        tasks must be those of the fit. If the rounds had stopped by `tol`, no round follows, or one for such a learner.
        """
        check_is_fitted(self, "model_")
        self._same_rows(X, y, tasks)
        self._schedule = replace(self._schedule, rounds=self.n_rounds_ + check_int(rounds, "rounds", 1), averaged=())
        for _ in self.stages(X, y, gold=gold, tasks=tasks, resume=True):
            pass
        return self

    def _same_rows(self, X: Any, y: Any, tasks: Any) -> tuple[Any, Annotations]:
        """Return the features and annotations of a fit that is resumed; others than before are an error."""
        check_is_fitted(self, "history_")
        X, annotations = match_rows(X, y, tasks, classes=self.classes_)
        check_features(self, X, reset=False)
        if (annotations.n_tasks, annotations.n_workers) != (len(self.tasks_), len(self.workers_)):
            raise ValueError(
                f"resume needs the {len(self.tasks_)} tasks and {len(self.workers_)} workers of the fit; "
                f"got {annotations.n_tasks} and {annotations.n_workers}."
            )
        if self.history_ and not np.array_equal(annotations.answers, self.answers_):
            raise ValueError(
                f"resume needs the answers of the fit, {shorten(self.answers_)}; got {shorten(annotations.answers)}."
            )
        return X, annotations

    def _prepare(self, X: Any, y: Any, tasks: Any) -> tuple[Any, Annotations]:
        """Return the features and the annotations in one order; options that cannot be are an error."""
        check_choice(self.predictions, "predictions", ("auto", "in_sample", "out_of_fold"))
        check_choice(self.posterior, "posterior", ("joint", "prior", "auto"))
        check_choice(self.counts, "counts", ("refined", "hard", "soft"))
        check_choice(self.weighting, "weighting", ("information", "none"))
        check_choice(self.confidence, "confidence", ("held_out", "posterior"))
        check_choice(self.engine, "engine", ENGINES)
        if isinstance(self.prior, str):
            check_choice(self.prior, "prior", ("uniform", "learned", "picks"))
        if not (self.worker_model is None or isinstance(self.worker_model, WorkerModel)):
            raise TypeError(f"worker_model must be a model of labelonce.workers; got {show(self.worker_model)}.")
        check_int(self.max_rounds, "max_rounds", 1)
        if self.rounds != "auto":
            check_int(self.rounds, "rounds", 1)
        if self.max_fits != "auto":
            check_int(self.max_fits, "max_fits", 1)
        check_number(self.holdout, "holdout", 0.01, 0.9)
        check_number(self.tol, "tol", 0.0)
        X, annotations = match_rows(X, y, tasks, classes=self.classes)
        if annotations.is_scale and not (self.worker_model or Full())._takes_scales:
            only_classes(annotations, f"MBEM with {type(self.worker_model).__name__}")  # which says that it needs them
        check_features(self, X, reset=True)
        if not isinstance(self.prior, str):
            check_distribution(self.prior, "prior", (annotations.n_classes,))
        return X, annotations

    def _tell(self, event: dict[str, Any]) -> None:
        """Hand an event to the callbacks, and print it if asked to."""
        if self.verbose:
            announce(event)
        for callback in self.callbacks:
            callback(event)

    def _run(self, X: Any, annotations: Annotations, gold: Codes | None) -> Iterator[Self]:
        """Do the rounds that are left on all annotations, and keep what each found."""
        recipe, tol = self._schedule.recipe, 0.0 if self._schedule.rounds_chosen else self.tol
        rounds: Any = candidate_rounds if recipe.candidates else run_rounds
        doing = partial(rounds, X, annotations, recipe, gold=gold, seed=self._schedule.seed)
        coming = doing(last=self._schedule.rounds, after=self._done[-1] if self._done else self._last)
        while (done := 0 if self._last is None else self._last.number) < self._schedule.rounds:
            if self.history_ and self.history_[-1]["posterior_change"] < tol:
                if not recipe.last_round_differs:
                    break
                averaged = tuple(min(number, done + 1) for number in self._schedule.averaged)
                self._schedule, self._done = replace(self._schedule, rounds=done + 1, averaged=averaged), []
                coming = doing(last=done + 1, after=self._last)
            log = FitLog()
            with counting(log), sharing_threads([recipe.learner], X, annotations.n_classes):
                this = self._done[done] if done < len(self._done) else next(coming)
            self.n_fits_ += log.number
            entry = history_entry(annotations, this, self._last, shared=recipe.learner.shared)
            if done < len(self._schedule.scores):
                entry["held_out_score"] = self._schedule.scores[done]
            self._keep(annotations, this, entry)
            self._tell(entry)
            yield self

    def _keep(self, annotations: Annotations, last: Round, entry: dict[str, Any]) -> None:
        """Set the fitted attributes to what a round found."""
        model = last.model
        if last.number in self._schedule.averaged:
            self._averaged = [*self._averaged, last.model]
            model = average_models(self._averaged)
        if last.number == self._schedule.rounds:
            self._averaged = []
        if last.number >= len(self._done):
            self._done = []
        names = ("predictions", "counts", "posterior", "weighting", "prior")
        recipe = {name: getattr(self._schedule.recipe, name) for name in names} | {
            "learner": clone(self._schedule.learner),
            "worker_model": clone(self._schedule.recipe.worker_model),
            "rounds": last.number,
            "averaged": self._schedule.averaged,
        }
        set_fitted(
            self,
            confusion=last.confusion,
            prior=last.prior,
            workers=annotations.workers,
            classes=annotations.classes,
            answers=annotations.answers,
            annotation_counts=np.bincount(annotations.worker, minlength=annotations.n_workers),
            tasks=annotations.tasks,
            posterior=last.posterior,
            picks=last.posterior.argmax(axis=1),
            model_=model,
            worker_model_=last.workers,
            predictions_=last.predictions,
            n_rounds_=last.number,
            recipe_=recipe,
            history_=[*self.history_, entry],
            _last=last,
        )

    def _judge(self, X: Any, annotations: Annotations, gold: Codes | None) -> Floats | None:
        """Set what people are shown, and return the predictions behind it, of models that did not see the task."""
        recipe, labels = self._schedule.recipe, self.posterior_.argmax(axis=1)
        unseen, self.trust_, self._unseen_picks = None, None, None
        self._given = annotations.task, annotations.worker, annotations.label
        self.calibrated_: Floats = self.posterior_
        if self.confidence == "held_out" and not (recipe.learner.shared and n_processes() > 1):
            log = FitLog()
            with counting(log), sharing_threads([recipe.learner], X, annotations.n_classes):
                unseen, found = self._held_out(X, annotations, gold)
            self.n_fits_ += log.number
            self.calibrated_, self.trust_ = found.posterior, found.trust
            warn_if_flattened(found.flattened, unseen, annotations)
            self._unseen_picks = unseen.argmax(axis=1).astype(np.int32)
            self.skill_, *_ = self._skills(LEVEL)
        self.confidence_: Floats = self.calibrated_[np.arange(len(labels)), labels]
        own = float(self.posterior_.max(axis=1).mean())
        if unseen is not None:
            warn_of_gap(own, float(self.confidence_.mean()), self._last, unseen)
        self.estimated_accuracy_: Estimate = share_right(self.calibrated_, labels, own)
        return unseen

    def _held_out(self, X: Any, annotations: Annotations, gold: Codes | None) -> tuple[Any, Confidence]:
        """Return the predictions of models that did not see the task, and the confidence that follows."""
        recipe, seed = self._schedule.recipe, self._schedule.seed
        if recipe.candidates:
            candidates = unseen_candidates(X, recipe, self._last, seed)
            return candidates, calibrated_candidates(annotations, candidates, recipe, self._last, gold)
        unseen, promised = unseen_predictions(X, recipe, self._last, seed), self.posterior_
        found = calibrated(annotations, unseen, recipe.worker_model, gold, seed, promised=promised)
        return unseen, replace(found, posterior=reconciled(found.posterior, promised.argmax(axis=1)))

    def _skills(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return the skills that people are shown, and the ends of their intervals; only where models were held out."""
        shown = (self.calibrated_, self.posterior_)
        return skills(self.annotations_, *shown, trust=self.trust_ or 0.0, picks=self._unseen_picks, level=level)

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per task: task, label, confidence, and `posterior_<class>`, calibrated."""
        check_is_fitted(self, "confidence_")
        return labels_frame(self.tasks_, self.classes_, self.calibrated_, self.posterior_.argmax(axis=1))

    @property
    def annotations_(self) -> Annotations:
        """The annotations of the fit."""
        check_is_fitted(self, "_given")
        return Annotations(*self._given, self.tasks_, self.workers_, self.classes_, self.answers_)

    def review(self, *, least: float = LEAST) -> pa.Table:
        """Return an Arrow table of the given labels that are worth checking, the most likely wrong first.

        Its columns are task, given (the label), worker, label (ours), `chance_wrong` (calibrated, of the given label)
        and action: "replace" where ours has a calibrated probability of at least 0.9, "check" where a person should
        look, "keep" where the given label is ours and has at least 0.8.

        Parameters
        ----------
        least : float
            The least chance of being wrong of the labels listed; 0 lists all.

        Examples
        --------
        >>> import numpy as np, labelonce as lo
        >>> X = np.arange(40.0)[:, None]
        >>> y = (X[:, 0] > 19).astype(int); y[5] = 1
        >>> lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, y).review()["task"][0].as_py()
        5
        """
        check_is_fitted(self, "confidence_")
        if self.trust_ is None:
            warnings.warn(NOTHING_HELD_OUT, DoubtWarning, stacklevel=2)
        return review_table(self.annotations_, self.calibrated_, self.posterior_.argmax(axis=1), least=least)

    def workers_to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per worker, best first: worker, annotations, skill, its 90 % interval."""
        check_is_fitted(self, "model_")
        low, high = self.worker_model_.skill_interval(self.prior_) if self.trust_ is None else self._skills(LEVEL)[1:]
        return workers_table(self, skill_low=low, skill_high=high)
