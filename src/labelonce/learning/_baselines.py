"""What the paper compares with: training on an aggregate, and two oracles."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from labelonce._kernels import Beliefs, Matrices, make_evidence
from labelonce._messages import show
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce._validate import check_choice, check_codes, check_distribution
from labelonce.aggregation import Aggregator, has_no_room
from labelonce.data import Annotations, _ids
from labelonce.learning._features import FeaturesClassifier, given_learners
from labelonce.learning._inputs import check_arrays, check_features, match_rows
from labelonce.learning._problem import Problem
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
        if not has_no_room(annotations):
            check_arrays(self, annotations, matrices=0)
        check_features(self, X, reset=True)
        targets, weight = self._targets(annotations)
        (given,) = given_learners([self.learner])
        self._features = given.features.fit(X, annotations)
        self.classes_ = annotations.classes
        self.posterior_: Any = targets.shown()
        problem = Problem(self._features.transform(X), annotations)
        self.model_ = problem.fit(given.learner, targets, weight)
        return self

    @abstractmethod
    def _targets(self, annotations: Annotations) -> tuple[Beliefs, Floats]:
        """Return targets for the tasks, and weights (n_tasks,)."""


@dataclass(eq=False, repr=False)
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

    aggregator: Aggregator
    learner: Any
    _: KW_ONLY
    targets: str = "hard"
    classes: Any = None

    _takes_answers = True

    def _targets(self, annotations: Annotations) -> tuple[Beliefs, Floats]:
        check_choice(self.targets, "targets", ("hard", "soft"))
        if not isinstance(self.aggregator, Aggregator):
            raise TypeError(
                f"aggregator must be an aggregator, such as labelonce.DawidSkene(); got {show(self.aggregator)}."
            )
        self.aggregator_ = clone(self.aggregator).fit(annotations)
        self.__dict__.pop("_answers", None)
        self._confusion = self.aggregator_._confusion
        self.workers_ = annotations.workers
        if self.aggregator_.answers_ is not self.aggregator_.classes_:
            self._answers = self.aggregator_.answers_
        labelled = (np.bincount(annotations.task, minlength=annotations.n_tasks) > 0).astype(np.float64)
        if self.targets == "soft":
            return Beliefs.of(self.aggregator_.posterior_), labelled
        picks = _ids.lookup(self.aggregator_.labels_, annotations.classes)
        return Beliefs.certain(picks, annotations.n_classes, few=has_no_room(annotations)), labelled


@dataclass(eq=False, repr=False)
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

    confusion: Any
    learner: Any
    _: KW_ONLY
    prior: Any = None
    weighting: str = "none"

    _takes_answers = True

    def _targets(self, annotations: Annotations) -> tuple[Beliefs, Floats]:
        n_classes = annotations.n_classes
        check_choice(self.weighting, "weighting", ("none", "information"))
        shape = (annotations.n_workers, n_classes, annotations.n_answers)
        confusion = check_distribution(self.confusion, "confusion", shape)
        flat = np.full(n_classes, 1 / n_classes)
        prior = flat if self.prior is None else check_distribution(self.prior, "prior", (n_classes,))
        evidence = make_evidence(annotations, engine="scipy")
        posterior = evidence.e_step(Matrices(confusion), evidence.log_prior(prior)).beliefs
        labelled = (np.bincount(annotations.task, minlength=annotations.n_tasks) > 0).astype(np.float64)
        return posterior, labelled * posterior.information() if self.weighting == "information" else labelled


@dataclass(eq=False, repr=False)
class OracleCorrect(TargetsClassifier):
    """Train on the true labels of the tasks that some worker labelled right: the paper's "oracle correctly labeled".

    Parameters
    ----------
    y_true : (n_tasks,)
        Class codes of the true labels.
    learner : classifier or Pipeline
    """

    y_true: Any
    learner: Any

    def _targets(self, annotations: Annotations) -> tuple[Beliefs, Floats]:
        true: Codes = check_codes(self.y_true, "y_true", annotations.n_classes)
        if len(true) != annotations.n_tasks:
            raise ValueError(f"y_true must have one code for each of {annotations.n_tasks} tasks; got {len(true)}.")
        right = np.zeros(annotations.n_tasks)
        right[annotations.task[annotations.label == true[annotations.task]]] = 1.0
        return Beliefs.certain(true, annotations.n_classes, few=has_no_room(annotations)), right
