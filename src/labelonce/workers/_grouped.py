"""Workers for many classes: right with a chance by row of classes; mistakes go where the crowd's mistakes go."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, Factors, Mistakes, Pattern, Tallies
from labelonce._rules import RULES
from labelonce._sklearn import check_is_fitted
from labelonce._types import Codes, Floats
from labelonce._validate import check_choice, check_number
from labelonce.workers._base import WorkerModel
from labelonce.workers._class_wise import ClassWise
from labelonce.workers._groups import Groups, check_room, groups_and_share, groups_hold, read_groups
from labelonce.workers._intervals import beta_interval
from labelonce.workers._one_coin import OneCoin
from labelonce.workers._shares import LEAK, commonest_mistakes, learn_shares

ROWS = ("worker", "group", "class", "position")


@dataclass(eq=False, repr=False)
class Grouped(WorkerModel):
    """Right with a chance of its own per worker, or row of it; mistakes are shared by all workers, and sparse.

    P(given s | true k, worker w) = q[w, row(k)] if s = k, else
    (1 - q[w, row(k)]) [(1 - leak) E[k, s] + leak / (K - 1)].
    The probabilities q are shrunk towards the worker's overall one, and that towards the population, as in `ClassWise`.
    E is the distribution of the crowd's mistakes within groups of classes, or over the commonest mistakes; the leak is
    the share of mistakes that may go to any class. Nothing of the size of a confusion matrix per worker is made unless
    asked for.

    Parameters
    ----------
    groups : None, mapping, table, "taxonomy", "auto" or Groups
        Classes that are confused with each other: a mapping of class to group, a frame with the columns class and
        group, one group per class, "taxonomy" for classes such as animal/dog/beagle, or "auto": found in the labels
        (and, with one label per task, in the predictions), and used if half of the disagreements or more are about
        classes that have a group. None, or too few: no groups; the 19 commonest mistakes of each class are learned
        instead.
    rows : {"worker", "group", "class", "position"}
        What a worker has one chance of being right for: all classes, the classes of a group, each class, or all classes
        with the same place within their group.
    errors : {"crowd", "uniform"}
        Whether E is learned from all workers together, shrunk towards equal shares as far as the evidence asks, or
        equal: within the group, or over all other classes without groups.
    leak : "auto" or float
        Share of the mistakes that follow no group.

    Attributes
    ----------
    factors_ : Factors
        `right`, the chances q (n_workers, n_rows), `row`, the row of each class, and the shares of mistakes.
    groups_ : Groups or None
    leak_ : float
    confusion_ : (n_workers, n_classes, n_classes)
        Made on request if it has at most 2^27 entries; `confusion(worker)` is one worker's matrix.
    population_ : (float, float)
        The Beta distribution of the workers' overall chances of being right.

    Examples
    --------
    Two groups of two classes; the second worker confuses classes within the groups:

    >>> import labelonce as lo
    >>> from labelonce import workers
    >>> y_true = np.arange(400) % 4
    >>> label = np.stack([y_true, np.where(np.arange(400) % 8 < 4, y_true, y_true ^ 1)], axis=1)
    >>> model = workers.Grouped(groups=np.array([0, 0, 1, 1])).fit(lo.Annotations.from_matrix(label), y_true)
    >>> model.factors_.right.round(1)
    array([[1. ],
           [0.5]])
    >>> model.confusion(1).round(1)
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    """

    groups: Any = None
    _: KW_ONLY
    rows: str = "worker"
    errors: str = "crowd"
    leak: Any = "auto"

    groups_: Groups | None = field(init=False)
    leak_: float = field(init=False)
    population_: tuple[float, float] = field(init=False)
    _chances: Any = field(init=False)  # OneCoin, or ClassWise with a row of chances in the place of each class

    learns_from_draws = True
    _forgotten = ("_chances", "error_strength_", "_mistakes", "groups_")

    def uses_slots(self, labels: Any) -> bool:
        """Return that these workers always live on slots; with answers that are no classes they are matrices."""
        return bool(labels.is_square)

    def prepare(self, labels: Any, predictions: Any = None) -> Pattern | None:
        """Set which classes are confused with each other; `predictions` are a model's classes, -1 none, or beliefs."""
        self._check()
        self._forget()
        groups = self.groups
        if self.finds_groups:
            groups, told = groups_and_share(labels, predictions)
            if told < RULES.groups_told and self.rows in ("worker", "class"):
                groups = None  # a class alone in its group would be right whatever is said
        elif groups is not None:
            groups = read_groups(groups, labels.classes)
        self.groups_ = groups
        if not labels.is_square:
            return None
        if groups is not None:
            check_room(groups, labels.n_tasks)
        codes = np.full(labels.n_tasks, -1, dtype=np.int32) if predictions is None else predictions
        true = codes if isinstance(codes, np.ndarray) else codes.argmax()
        self._set_pairs(groups, labels.n_classes, true[labels.task], labels.label)
        return Pattern(self._mistakes, self._row)

    def _set_pairs(
        self, groups: Groups | None, n_classes: int, true: Codes, given: Codes, amount: Floats | None = None
    ) -> None:
        """Set the pairs with a share of their own: those of groups, or the commonest mistakes among those seen."""
        self.groups_ = groups
        if groups is not None:
            self._mistakes = Mistakes.inside(groups.group)
        elif self.errors == "uniform":
            self._mistakes = Mistakes.of([], [], n_classes)
        else:
            seen = true >= 0
            amount = None if amount is None else amount[seen]
            self._mistakes = commonest_mistakes(true[seen], given[seen], amount, n_classes)
        self._row = self._rows_of(n_classes)

    def _rows_of(self, n_classes: int) -> Codes:
        if self.rows in ("group", "position"):
            if self.groups_ is None:
                raise ValueError(f"rows={self.rows!r} needs groups; got groups=None. Give a table, or rows='class'.")
            return self.groups_.group if self.rows == "group" else self.groups_.position
        if self.rows == "worker":
            return np.zeros(n_classes, dtype=np.int32)
        return np.arange(n_classes, dtype=np.int32)

    @property
    def needs_predictions(self) -> bool:  # type: ignore[override]  # by the options
        """Whether `prepare` has to know a model's predictions."""
        return self.errors == "crowd" if self.groups is None else self.finds_groups

    @property
    def finds_groups(self) -> bool:
        """Whether the groups are to be found in annotations."""
        return isinstance(self.groups, str) and self.groups == "auto"

    @property
    def in_groups(self) -> bool:  # type: ignore[override]  # known after `prepare`
        """Whether a label is evidence for the classes of one group, after `prepare`."""
        return self.groups_ is not None

    def holds(self, labels: Any, predictions: Beliefs) -> bool:
        """Return whether labels stay within the groups, given sure predictions, after `prepare`."""
        return self.groups_ is not None and groups_hold(labels, predictions, self.groups_)

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        """Estimate the workers; by a model's `first` argmax nothing is known of the leak."""
        if "_mistakes" not in vars(self):
            self._set_pairs_of(tallies.values.sum(axis=0))
        tallies = tallies.by(self._mistakes, self._row)
        self._chances = copy(vars(self).get("_chances") or (OneCoin() if tallies.right.shape[1] == 1 else ClassWise()))
        right = self._chances.learn(tallies.right_and_wrong(), tallies.drawn_right_and_wrong())
        self._set_factors(tallies, right, LEAK if first and self.leak == "auto" else self.leak)

    def _set_pairs_of(self, crowd: Floats) -> None:
        """Set the pairs as counts [true, given] of all workers tell, whose classes have no other names than codes."""
        self._check()
        n_classes = len(crowd)
        groups = vars(self).get("groups_")
        if groups is None and self.groups is not None:
            groups = read_groups(self.groups, np.arange(n_classes))
        true, given = (part.ravel().astype(np.int32) for part in np.indices(crowd.shape))
        self._set_pairs(groups, n_classes, true, given, crowd.ravel())

    def _set_factors(self, tallies: Tallies, right: Floats, leak: Any) -> None:
        """Set the workers from their chances of being right and the crowd's mistakes."""
        self.population_ = self._chances.population_
        near = vars(self).get("error_strength_")
        shares = learn_shares(self._mistakes, tallies, crowd=self.errors == "crowd", leak=leak, near=near)
        self.leak_, self.error_strength_ = shares.leak, shares.strength
        never = np.bincount(self._row, self._mistakes.empty) == np.bincount(self._row)
        if self.leak == 0 and self.groups_ is not None:
            right = np.where(never, 1.0, right)
        if len(self._row) == 1:
            right = np.ones_like(right)
        self.factors_ = Factors(right, self._row, self._mistakes, shares.share, shares.other_share)

    def drawn(self, rng: np.random.Generator) -> Factors:
        """Return workers drawn from all that are consistent with the labels; where none can be wrong none is."""
        factors: Factors = self.factors_
        certain, drawn = factors.right == 1.0, self._chances.drawn_chances(rng)
        return factors.with_chances(np.where(certain, 1.0, drawn))

    def confusion(self, worker: int) -> Floats:
        """Return the matrix [true, given] of a worker, by its code."""
        check_is_fitted(self, "_confusion")
        return np.asarray(self.factors_.confusion(worker))

    def _right_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the chances of being right, (n_workers, n_rows)."""
        mean, variance = self._chances.chance_moments()
        certain = self.factors_.right == 1.0
        return np.where(certain, 1.0, mean), np.where(certain, 0.0, variance)

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if (self.factors_.right == 1.0).all():
            return np.ones(self.factors_.n_workers), np.zeros(self.factors_.n_workers)
        by_row = np.bincount(self._row, prior, self.factors_.right.shape[1]).astype(np.float64)
        found: tuple[Floats, Floats] = self._chances.overall_moments(by_row)
        return found

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return intervals in which the chances of being right vary, and the shares of mistakes do not."""
        confusion, right = self.confusion_, self.factors_.right[:, self._row]
        low, high = (end[:, self._row, None] for end in beta_interval(*self._right_moments(), level))
        wrong = confusion / np.maximum(1 - right, 1e-300)[:, :, None]
        diagonal = np.eye(confusion.shape[1], dtype=bool)
        return np.where(diagonal, low, (1 - high) * wrong), np.where(diagonal, high, (1 - low) * wrong)

    def _check(self) -> None:
        check_choice(self.rows, "rows", ROWS)
        check_choice(self.errors, "errors", ("crowd", "uniform"))
        if self.leak != "auto":
            check_number(self.leak, "leak", 0.0, 1.0)
