"""What the rounds need of a learner, with defaults for what most learners leave open."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from labelonce._sklearn import ClassifierBase, clone
from labelonce._types import Floats


class Learner(ClassifierBase, ABC):
    """Base of the classifiers that take probability targets.

    A subclass has `fit` and `predict_proba`, and a constructor that scikit-learn's `clone` understands. Every other
    scikit-learn classifier is wrapped instead (`RepeatedRows`).

    Attributes
    ----------
    any_shape : bool
        Whether X may be more than a table of features, such as images.
    n_folds : int
        Parts of the tasks that are left out in turn, where `folds="auto"`; 0: as many as `MBEM` has by default.
    auto : mapping
        For a learner that is too expensive to try rounds with: `rounds`, their number, and `predictions`, "in_sample"
        if it may judge the workers by predictions for its own tasks. Empty: found out.
    takes_slots : bool
        Whether targets may be `Beliefs` on slots: probabilities of a few classes per task, where there are many.
    shared : bool
        Whether the processes that `torchrun` started fit one model, each to its own tasks.

    Examples
    --------
    A learner that predicts the class shares whatever the features are:

    >>> import numpy as np, labelonce as lo
    >>> from labelonce.learning import Learner
    >>> class Shares(Learner):
    ...     def fit(self, X, y, sample_weight=None):
    ...         self.classes_, self.shares_ = np.arange(y.shape[1]), np.average(y, axis=0, weights=sample_weight)
    ...         return self
    ...     def predict_proba(self, X):
    ...         return np.tile(self.shares_, (len(X), 1))
    >>> ann = lo.Annotations.from_matrix([[0, 0], [0, 1], [1, 0], [0, 0]])
    >>> clf = lo.TrainOnAggregate(lo.MajorityVote(), Shares(), targets="soft").fit(np.zeros((4, 1)), ann)
    >>> clf.predict_proba([[9.0]])
    array([[0.75, 0.25]])
    """

    any_shape: ClassVar[bool] = False
    n_folds: ClassVar[int] = 0
    auto: ClassVar[Mapping[str, Any]] = {}
    takes_slots: ClassVar[bool] = False
    shared: bool = False

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to probability targets, shape (n_tasks, n_classes), whose rows sum to 1."""

    @abstractmethod
    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes)."""

    def is_cheap(self, X: Any, n_classes: int) -> bool:  # noqa: ARG002  # for those that know
        """Return whether a fit takes so little time that `MBEM` need not count its fits."""
        return False

    def for_round(self, number: int, last: int) -> Self:  # noqa: ARG002  # for those that treat rounds differently
        """Return an unfitted copy for round `number` of `MBEM`, of which `last` is meant to be the last."""
        copy: Self = clone(self)
        return copy

    def for_folds(self, last: int) -> Self:
        """Return an unfitted copy for models of parts of the tasks, which predict the others when rounds are over."""
        return self.for_round(last, last)

    def joint_from(self, last: int) -> int | None:  # noqa: ARG002  # for those that have some
        """Return the first of the rounds that are stages of one training; None: every round is a fit of its own.

        A learner that has some needs a method `stages(X, y, sample_weight, *, n, after)`: a generator that yields
        after each of `n` stages what predicts by then, and that is sent targets and weights for the next stage.
        """
        return None

    def mean_of(self, models: Sequence[Any]) -> Self | None:  # noqa: ARG002  # for those that have one
        """Return the model that stands for several fitted ones of this class, None if there is no such one."""
        return None

    @property
    def own_rounds(self) -> int | None:
        """How many rounds `MBEM` does where it is left to choose; None: found out."""
        return self.auto.get("rounds")

    @property
    def may_overfit(self) -> bool:
        """Whether the first round has to tell if it overfits, whatever `auto` says."""
        return False

    @property
    def last_round_differs(self) -> bool:
        """Whether the last round of `MBEM` is fitted with more care than the rounds before it."""
        return False
