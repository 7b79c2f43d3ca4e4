"""What the paper compares with: training on an aggregate, and two oracles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from labelonce._kernels import Candidates, ScipyEngine, floored_log
from labelonce._memory import is_large
from labelonce._messages import show
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce._validate import check_choice, check_codes, check_distribution
from labelonce.aggregation import Aggregator
from labelonce.data import Annotations, _ids
from labelonce.learning._features import FeaturesClassifier, given_learners
from labelonce.learning._inputs import check_arrays, check_features, match_rows
from labelonce.learning._rounds import fit_model, information
from labelonce.learning._scoring import AnnotationsScorer


class TargetsClassifier(FeaturesClassifier, ABC):
    """Base of the classifiers that turn annotations into targets once and train on them."""

    learner: Any
    classes: Any = None
    _takes_answers = False  # that are not classes

    def fit(self, X: Any, y: Any, *, tasks: Any = None) -> Self:
        """Train on the targets of Annotations, a (n_tasks, n_workers) matrix or plain labels.

        `tasks` are the task ids of the rows of X, as in `MBEM.fit`.
        """
        taker = None if self._takes_answers else self
        X, annotations = match_rows(X, y, tasks, classes=self.classes, learner=taker)
        if not is_large(annotations.n_tasks, annotations.n_workers, annotations.n_classes):
            check_arrays(self, annotations, matrices=0)
        check_features(self, X, reset=True)
        targets, weight = self._targets(annotations)
        (given,) = given_learners([self.learner])
        self._features = given.features.fit(X, annotations)
        self.classes_ = annotations.classes
        self.posterior_: Floats = targets
        self.model_ = fit_model(given.learner, self._features.transform(X), targets, weight)
        return self

    @abstractmethod
    def _targets(self, annotations: Annotations) -> tuple[Floats, Floats]:
        """Return targets (n_tasks, n_classes) and weights (n_tasks,)."""


def certain_targets(codes: Codes, annotations: Annotations) -> Any:
    """Return targets of known classes: one-hot rows, or candidates where there is no room for those."""
    if is_large(annotations.n_tasks, annotations.n_workers, annotations.n_classes):
        return Candidates.certain(codes, annotations.n_classes)
    return np.eye(annotations.n_classes)[codes]


class TrainOnAggregate(TargetsClassifier, AnnotationsScorer):
    """Aggregate first, then train: the baselines MV, weighted MV, EM and weighted EM of the paper on MBEM.

    Parameters
    ----------
    aggregator : Aggregator
        `MajorityVote()` or `DawidSkene()` for the paper's baselines, or any other.
    learner : classifier or Pipeline
    targets : {"hard", "soft"}
        Train on the aggregator's labels, or on its posterior ("weighted" in the paper).
    classes : column, optional
        As in `MBEM`.

    References
    ----------
    A. Khetan, Z. C. Lipton and A. Anandkumar, "Learning From Noisy Singly-labeled Data", ICLR 2018.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 0, 1]])
    >>> lo.TrainOnAggregate(lo.MajorityVote(), lo.SoftmaxRegression(), targets="soft").fit(X, ann).predict(X)
    array([0, 0, 1, 1])
    """

    _takes_answers = True

    def __init__(self, aggregator: Aggregator, learner: Any, *, targets: str = "hard", classes: Any = None) -> None:
        self.aggregator = aggregator
        self.learner = learner
        self.targets = targets
        self.classes = classes

    def _targets(self, annotations: Annotations) -> tuple[Floats, Floats]:
        check_choice(self.targets, "targets", ("hard", "soft"))
        if not isinstance(self.aggregator, Aggregator):
            raise TypeError(
                f"aggregator must be an aggregator, such as labelonce.DawidSkene(); got {show(self.aggregator)}."
            )
        self.aggregator_ = clone(self.aggregator).fit(annotations)
        for name in ("confusion_", "factors_", "_answers"):
            self.__dict__.pop(name, None)
        known_as = "factors_" if "factors_" in vars(self.aggregator_) else "confusion_"
        setattr(self, known_as, getattr(self.aggregator_, known_as))
        self.workers_ = annotations.workers
        if self.aggregator_.answers_ is not self.aggregator_.classes_:
            self._answers = self.aggregator_.answers_
        labelled = (np.bincount(annotations.task, minlength=annotations.n_tasks) > 0).astype(np.float64)
        if self.targets == "soft":
            return self.aggregator_.posterior_, labelled
        picks = _ids.lookup(self.aggregator_.labels_, annotations.classes)
        return certain_targets(picks, annotations), labelled


class OracleConfusion(TargetsClassifier):
    """Train on the posterior that the true confusion matrices give: the paper's "oracle weighted EM".

    Parameters
    ----------
    confusion : (n_workers, n_classes, n_answers)
        The true P(given | true).
    learner : classifier or Pipeline
    prior : (n_classes,), optional
        P(true label); default uniform.
    weighting : {"none", "information"}
        As in `MBEM`; the paper has none.
    """

    _takes_answers = True

    def __init__(self, confusion: Any, learner: Any, *, prior: Any = None, weighting: str = "none") -> None:
        self.confusion = confusion
        self.learner = learner
        self.prior = prior
        self.weighting = weighting

    def _targets(self, annotations: Annotations) -> tuple[Floats, Floats]:
        n_classes = annotations.n_classes
        check_choice(self.weighting, "weighting", ("none", "information"))
        shape = (annotations.n_workers, n_classes, annotations.n_answers)
        confusion = check_distribution(self.confusion, "confusion", shape)
        flat = np.full(n_classes, 1 / n_classes)
        prior = flat if self.prior is None else check_distribution(self.prior, "prior", (n_classes,))
        engine = ScipyEngine(annotations, "float64")
        posterior = engine.e_step(floored_log(confusion), floored_log(prior)).posterior
        labelled = (np.bincount(annotations.task, minlength=annotations.n_tasks) > 0).astype(np.float64)
        return posterior, labelled * information(posterior) if self.weighting == "information" else labelled


class OracleCorrect(TargetsClassifier):
    """Train on the true labels of the tasks that some worker labelled right: the paper's "oracle correctly labeled".

    Parameters
    ----------
    y_true : (n_tasks,)
        Class codes of the true labels.
    learner : classifier or Pipeline
    """

    def __init__(self, y_true: Any, learner: Any) -> None:
        self.y_true = y_true
        self.learner = learner

    def _targets(self, annotations: Annotations) -> tuple[Floats, Floats]:
        true: Codes = check_codes(self.y_true, "y_true", annotations.n_classes)
        if len(true) != annotations.n_tasks:
            raise ValueError(f"y_true must have one code for each of {annotations.n_tasks} tasks; got {len(true)}.")
        right = np.zeros(annotations.n_tasks)
        right[annotations.task[annotations.label == true[annotations.task]]] = 1.0
        return certain_targets(true, annotations), right
