"""MBEM: a classifier and its workers from annotations, even with one label per task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from labelonce._annotations import Annotations
from labelonce._ids import shorten
from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import Floats, Ids
from labelonce._validate import (
    Gold,
    RandomState,
    check_choice,
    check_distribution,
    check_gold,
    check_int,
    check_number,
    check_rng,
)
from labelonce.aggregation._base import skill
from labelonce.learning._doubt import warn_of_doubt
from labelonce.learning._features import Features, FeaturesClassifier, candidates_of
from labelonce.learning._inputs import as_annotations, check_features, is_matrix
from labelonce.learning._rounds import Recipe, Round, memorises, run_rounds
from labelonce.learning._selection import Choice, annotation_log_likelihood, choose
from labelonce.workers import Counted, Full, WorkerModel

Callback = Callable[[dict[str, Any]], None]


class MBEM(FeaturesClassifier):
    """Model bootstrapped EM: train, find the workers by their disagreement with the model, train again.

    Every round fits the learner to the tasks' label posteriors, estimates each worker's confusion from its
    disagreement with the model's predictions, and recomputes the posteriors. After Khetan, Lipton and
    Anandkumar (ICLR 2018), whose algorithm to the letter is `MBEM.paper`. What is left open is chosen without
    gold, by the likelihood of annotations held out from the fit: the first recipe within one standard error of the
    best.

    Parameters
    ----------
    learner : classifier, Pipeline or a list of them
        A learner that takes probability targets (`SoftmaxRegression`, `BoostedTrees`) or any scikit-learn
        classifier with `sample_weight`, at the end of a `Pipeline` or alone. From a list one is chosen, the first
        of equals: put the simplest first.
        Default: `SoftmaxRegression` with C from 0.001 to 10.
    rounds : int or "auto"
        Fits of the model. "auto": as many as held-out annotations ask for, at most `max_rounds`.
    predictions : {"auto", "in_sample", "out_of_fold"}
        Whether the workers are judged by the model itself or by models that did not see the task. "auto": by
        the model itself, unless in the first round it has memorised more than a quarter of the labels that
        models which did not see the task disagree with.
    posterior : {"joint", "prior", "auto"}
        From the second round on, whether the model's calibrated prediction for a task takes the place of the
        class prior. "auto" tries both, at twice the time.
    counts : {"refined", "hard", "soft"}
        How the workers are counted: against the model's picks ("hard"), its probabilities ("soft"), or, from
        the second round on, against the posterior that prediction and labels give together, to a fixed point
        ("refined"). The first round always counts picks.
    weighting : {"information", "none"}
        How much a task counts in the next fit: 1 - H(posterior) / log K, or 1.
    worker_model : WorkerModel, optional
        Default `workers.Full()`.
    prior : {"uniform", "learned", "picks"} or (n_classes,) array
        P(true label) where no prediction stands in for it. "learned": what explains the annotations best given
        the workers; "picks": the share of the model's picks, as in the paper's equation 7, which may collapse.
    max_rounds : int
        Most rounds that "auto" tries.
    holdout : float
        Share of the annotations held out to choose by.
    callbacks : sequence of callables
        Each is called after every round with that round's entry of `history_`.
    tol : float
        Rounds asked for by number stop early where the mean total variation between the posteriors of two rounds
        is below it; `n_rounds_` tells. 0 never stops.
    random_state : int, numpy.random.Generator or None
        Draws folds and the annotations held out.

    Attributes
    ----------
    model_ : fitted learner
    posterior_ : (n_tasks, n_classes)
        P(true label | annotations, features) of the training tasks.
    labels_ : (n_tasks,)
    confusion_, prior_, skill_ : arrays
        As in the aggregators.
    worker_model_ : WorkerModel
        The fitted workers, with `skill_interval` and `confusion_interval`.
    history_ : list of dict
        A row a round: change of posteriors and workers, agreement, confidence, held-out score.
    recipe_ : dict
        What was used, chosen or given.
    choices_ : list of dict
        Everything that was tried: the mean log-likelihood of held-out annotations round by round, and where it is
        within one standard error of the best (`near_best`).
    classes_ : (n_classes,)

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

    history_: list[dict[str, Any]]

    def __init__(
        self,
        learner: Any = None,
        *,
        rounds: Any = "auto",
        predictions: str = "auto",
        posterior: str = "joint",
        counts: str = "refined",
        weighting: str = "information",
        worker_model: WorkerModel | None = None,
        prior: Any = "uniform",
        max_rounds: int = 6,
        holdout: float = 0.2,
        callbacks: Sequence[Callback] = (),
        tol: float = 1e-3,
        random_state: RandomState = 0,
    ) -> None:
        self.learner = learner
        self.rounds = rounds
        self.predictions = predictions
        self.posterior = posterior
        self.counts = counts
        self.weighting = weighting
        self.worker_model = worker_model
        self.prior = prior
        self.max_rounds = max_rounds
        self.holdout = holdout
        self.callbacks = callbacks
        self.tol = tol
        self.random_state = random_state

    @classmethod
    def paper(cls, learner: Any = None, *, rounds: int = 2, prior: Any = "uniform", **options: Any) -> MBEM:
        """Return Algorithm 1 of the paper: vote fractions, in-sample picks, equations 7 and 6, no weighting.

        `prior` "uniform" is what its experiments assume; "picks" is its equation 7.
        """
        fixed: dict[str, Any] = {"predictions": "in_sample", "posterior": "prior", "counts": "hard"}
        fixed |= {"weighting": "none", "worker_model": Counted(), "tol": 0.0}
        return cls(learner, rounds=rounds, prior=prior, **(fixed | options))

    def fit(self, X: Any, y: Any, *, gold: Gold | None = None) -> Self:
        """Fit the classifier and its workers.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list of texts
            Row i belongs to task i of the annotations (`ann.align` puts them in that order).
        y : Annotations, (n_tasks, n_workers) matrix or (n_tasks,) labels
            In a matrix -1, NaN or a sparse matrix's absence mean "not labelled"; plain labels are taken as one
            worker's. Tasks without labels are used as unlabelled data.
        gold : mapping or array, optional
            Known true labels, as in the aggregators.
        """
        annotations = self._prepare(X, y)
        codes = None if gold is None else check_gold(gold, annotations.tasks, annotations.classes)
        seed = int(check_rng(self.random_state).integers(2**31))
        tries = self._recipes(X, annotations, codes, seed)
        longest = self.max_rounds if self.rounds == "auto" else self.rounds
        open_choice = len(tries) > 1 or (self.rounds == "auto" and longest > 1)
        best = Choice(0, longest)
        if open_choice and len(annotations) > 1:
            best = choose(
                tries, annotations, codes, max_rounds=longest, free=self.rounds == "auto", share=self.holdout, seed=seed
            )
        self.choices_ = best.table
        self._run(tries[best.number], annotations, codes, best.rounds, seed, scores=best.scores)
        warn_of_doubt(annotations, self._last)
        return self

    def resume(self, X: Any, y: Any, *, rounds: int = 1, gold: Gold | None = None) -> Self:
        """Go on for some more rounds with what was fitted; the same as having asked for them at once.

        X, y and gold are those of the fit. Nothing happens where the rounds had stopped by `tol`.
        """
        check_is_fitted(self, "model_")
        check_features(self, X, reset=False)
        annotations = as_annotations(y, X, classes=self.classes_)
        if (annotations.n_tasks, annotations.n_workers) != (len(self.tasks_), len(self.workers_)):
            raise ValueError(
                f"resume needs the {len(self.tasks_)} tasks and {len(self.workers_)} workers of the fit; "
                f"got {annotations.n_tasks} and {annotations.n_workers}."
            )
        codes = None if gold is None else check_gold(gold, annotations.tasks, annotations.classes)
        chosen = (self._features, self._features.transform(X), self._recipe)
        self._run(chosen, annotations, codes, check_int(rounds, "rounds", 1), self._seed, after=self._last)
        warn_of_doubt(annotations, self._last)
        return self

    def _prepare(self, X: Any, y: Any) -> Annotations:
        check_choice(self.predictions, "predictions", ("auto", "in_sample", "out_of_fold"))
        check_choice(self.posterior, "posterior", ("joint", "prior", "auto"))
        check_choice(self.counts, "counts", ("refined", "hard", "soft"))
        check_choice(self.weighting, "weighting", ("information", "none"))
        if isinstance(self.prior, str):
            check_choice(self.prior, "prior", ("uniform", "learned", "picks"))
        check_int(self.max_rounds, "max_rounds", 1)
        if self.rounds != "auto":
            check_int(self.rounds, "rounds", 1)
        check_number(self.holdout, "holdout", 0.01, 0.9)
        check_number(self.tol, "tol", 0.0)
        check_features(self, X, reset=True)
        annotations = as_annotations(y, X)
        if not isinstance(self.prior, str):
            check_distribution(self.prior, "prior", (annotations.n_classes,))
        return annotations

    def _recipes(self, X: Any, annotations: Annotations, gold: Any, seed: int) -> list[tuple[Features, Any, Recipe]]:
        """Return every recipe that the options leave open, each with its features."""
        posteriors = ("joint", "prior") if self.posterior == "auto" else (self.posterior,)
        workers = Full() if self.worker_model is None else self.worker_model
        tries = []
        for features, learner in candidates_of(self.learner):
            transformed = features.fit(X, annotations).transform(X)
            how = self.predictions
            if how == "auto":
                how = "out_of_fold" if memorises(learner, transformed, annotations, gold, seed) else "in_sample"
            tries += [
                (features, transformed, Recipe(learner, workers, how, self.counts, kind, self.weighting, self.prior))
                for kind in posteriors
            ]
        return tries

    def _run(
        self,
        chosen: tuple[Features, Any, Recipe],
        annotations: Annotations,
        gold: Any,
        rounds: int,
        seed: int,
        *,
        scores: Sequence[float] = (),
        after: Round | None = None,
    ) -> None:
        """Run the rounds on all annotations and keep what the last one found."""
        self._features, X, self._recipe = chosen
        self._seed = seed
        self.history_ = [] if after is None else list(self.history_)
        before, tol = after, 0.0 if self.rounds == "auto" else self.tol
        coming = run_rounds(X, annotations, self._recipe, gold=gold, seed=seed, after=after)
        for _ in range(rounds):
            if self.history_ and self.history_[-1]["posterior_change"] < tol:
                break
            this = next(coming)
            entry = history_entry(annotations, this, before)
            if this.number <= len(scores):
                entry["held_out_score"] = scores[this.number - 1]
            self.history_.append(entry)
            for callback in self.callbacks:
                callback(entry)
            before = this
        assert before is not None
        self._keep(annotations, before)

    def _keep(self, annotations: Annotations, last: Round) -> None:
        self._last = last
        self.classes_ = annotations.classes
        self.tasks_, self.workers_ = annotations.tasks, annotations.workers
        self.model_ = last.model
        self.posterior_, self.confusion_, self.prior_ = last.posterior, last.confusion, last.prior
        self.labels_: Ids = annotations.classes[last.posterior.argmax(axis=1)]
        self.skill_: Floats = skill(last.confusion, last.prior)
        self.worker_model_ = last.workers
        self.n_rounds_ = last.number
        names = ("predictions", "counts", "posterior", "weighting", "prior")
        self.recipe_ = {name: getattr(self._recipe, name) for name in names} | {
            "learner": self._features.joined(clone(self._recipe.learner)),
            "worker_model": clone(self._recipe.worker_model),
            "rounds": last.number,
        }

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on true labels, or the mean log-likelihood of annotations (a matrix or Annotations).

        The second needs no gold, so `GridSearchCV` and `cross_val_score` can choose by it.
        """
        if is_matrix(y):
            return self.score_annotations(X, y)
        return float(super().score(X, y, sample_weight))

    def score_annotations(self, X: Any, y: Any) -> float:
        """Return `annotation_log_likelihood` of annotations by the same workers, on these or other tasks."""
        check_is_fitted(self, "model_")
        annotations = as_annotations(y, X, classes=self.classes_)
        if not np.array_equal(annotations.workers, self.workers_):
            raise ValueError(
                f"annotations must have the {len(self.workers_)} workers of the fit, {shorten(self.workers_)}; "
                f"got {annotations.n_workers}, {shorten(annotations.workers)}."
            )
        return annotation_log_likelihood(annotations, self.predict_proba(X), self.confusion_)


def history_entry(annotations: Annotations, this: Round, before: Round | None) -> dict[str, Any]:
    """Return one row of the history."""
    picks = this.predictions.argmax(axis=1)
    changed = {"posterior_change": float("nan"), "worker_change": float("nan")}
    if before is not None:
        changed["posterior_change"] = float(np.abs(this.posterior - before.posterior).sum(axis=1).mean() / 2)
        changed["worker_change"] = float(np.abs(this.confusion - before.confusion).sum(axis=2).mean() / 2)
    return {
        "round": this.number,
        "agreement": float((picks[annotations.task] == annotations.label).mean()),
        "estimated_accuracy": float(this.posterior.max(axis=1).mean()),
        "log_likelihood": this.log_likelihood,
        "held_out_score": float("nan"),
    } | changed
