"""Workers for many classes: right with a chance by row of classes; mistakes go where the crowd's mistakes go."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from labelonce._kernels import Candidates, CandidateSums, Chances, Factors, Heard, Mistakes, Tallies, candidate_classes
from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_choice, check_number
from labelonce.data import Annotations
from labelonce.data._answers import only_classes
from labelonce.workers._base import WorkerModel, _check_predictions, _check_weight
from labelonce.workers._chance_grid import ChanceGrid
from labelonce.workers._class_wise import ClassWise
from labelonce.workers._groups import TOLD, Groups, check_room, groups_and_share, groups_hold, read_groups
from labelonce.workers._intervals import beta_interval
from labelonce.workers._one_coin import OneCoin
from labelonce.workers._shares import LEAK, commonest_mistakes, learn_shares

ROWS = ("worker", "group", "class", "position")
_SAMPLE = (400, 10)  # workers, and rows of each, that tell the population
_MOVED = 0.003  # mean change of the shares of right labels from which a population is learned again
_ROWS = 2000  # with labels, up to which all workers do


class Grouped(WorkerModel):
    """Right with a chance of its own per worker, or row of it; mistakes are shared by all workers, and sparse.

    P(given s | true k, worker w) = q[w, row(k)] if s = k, else
    (1 - q[w, row(k)]) [(1 - leak) E[k, s] + leak / (K - 1)].
    The chances q lean on the worker's overall one and that on the population, as in `ClassWise`; E holds where the
    crowd's mistakes go, within groups of classes or among the commonest mistakes; the leak is the share of mistakes
    that go anywhere. Nothing of the size of a confusion matrix per worker is made unless asked for.

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

    factors_: Factors
    groups_: Groups | None
    leak_: float
    population_: tuple[float, float]
    _chances: OneCoin | ClassWise | ChanceGrid

    def __init__(self, groups: Any = None, *, rows: str = "worker", errors: str = "crowd", leak: Any = "auto") -> None:
        self.groups = groups
        self.rows = rows
        self.errors = errors
        self.leak = leak

    def prepare(self, annotations: Annotations, picks: Codes | Candidates | None = None) -> Self:
        """Set which classes are confused with each other; `picks` are a model's classes, -1 for none, or candidates."""
        self._check()
        for name in ("_chances", "error_strength_", "_learned_from"):
            self.__dict__.pop(name, None)
        groups = self.groups
        if self.finds_groups:
            groups, told = groups_and_share(annotations, picks)
            if told < TOLD and self.rows in ("worker", "class"):
                groups = None  # a class alone in its group would be right whatever is said
        elif groups is not None:
            groups = read_groups(groups, annotations.classes)
        if groups is not None:
            check_room(groups, annotations.n_tasks)
        if isinstance(picks, Candidates):
            picks = picks.top_class()
        true = np.full(annotations.n_tasks, -1, dtype=np.int32) if picks is None else picks
        self._set_pairs(groups, annotations.n_classes, true[annotations.task], annotations.label)
        return self

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

    def fit(self, annotations: Annotations, predictions: Any, weight: Any = None) -> Self:
        """Estimate the workers from their disagreement with the predictions.

        Parameters
        ----------
        annotations : Annotations
        predictions : (n_tasks,) class codes, (n_tasks, n_classes) probabilities or Candidates
            As in the other models.
        weight : (n_tasks,), optional
            How much each task counts, at least 0.
        """
        annotations = only_classes(annotations, type(self).__name__)
        soft = _as_candidates(predictions, annotations)
        self.prepare(annotations, soft)
        classes = candidate_classes(annotations, self._mistakes, soft.classes)
        sums = CandidateSums(annotations, classes, self._mistakes, self._row)
        weight = None if weight is None else _check_weight(weight, annotations.n_tasks)
        return self.fit_tallies(sums.m_step(moved(soft, classes), weight))

    @property
    def needs_picks(self) -> bool:
        """Whether `prepare` has to know a model's picks."""
        return self.errors == "crowd" if self.groups is None else self.finds_groups

    @property
    def finds_groups(self) -> bool:
        """Whether the groups are to be found in annotations."""
        return isinstance(self.groups, str) and self.groups == "auto"

    def with_groups_of(self, classes: Ids) -> Self:
        """Return a copy that knows the group of every class by its code, for counts, which have no ids."""
        known: Self = clone(self)
        return known if self.groups is None else known.set_params(groups=read_groups(self.groups, classes))

    @property
    def in_groups(self) -> bool:
        """Whether a label speaks for the classes of one group, after `prepare`."""
        return self.groups_ is not None

    def holds(self, annotations: Annotations, predictions: Candidates) -> bool:
        """Return whether labels stay within the groups, as far as sure predictions tell, after `prepare`."""
        return self.groups_ is not None and groups_hold(annotations, predictions, self.groups_)

    @property
    def pattern(self) -> tuple[Mistakes, Codes]:
        """The pairs with a share of their own, and the row of every class, after `prepare`."""
        return self._mistakes, self._row

    def fit_tallies(self, tallies: Tallies, *, first: bool = False) -> Self:
        """Estimate the workers from right and wrong labels, after `prepare`.

        `first`: they are by a model's picks among the classes that labels speak for, which say nothing of the leak.
        """
        self._chances = self._learn_chances(tallies)
        right = self._chances.chance().reshape(len(tallies.right), -1)
        return self._set_factors(tallies, right, LEAK if first and self.leak == "auto" else self.leak)

    def _set_factors(self, tallies: Tallies, right: Floats, leak: Any) -> Self:
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
        return self

    @property
    def chances(self) -> Chances:
        """What is believed of the chances of being right; the whole population before any evidence was heard."""
        grid = vars(self).get("_chances")
        if not isinstance(grid, ChanceGrid):
            grid = ChanceGrid(*self.factors_.right.shape)
        return Chances(grid.grid, grid.belief)

    def fit_evidence(self, heard: Heard) -> Self:
        """Estimate the workers from the likelihoods of their labels by chance, and the mistakes that they make."""
        chances = vars(self).get("_chances")
        if not isinstance(chances, ChanceGrid):
            chances = self._chances = ChanceGrid(*self.factors_.right.shape)
        chances.learn(heard.log_likelihood)
        return self._set_factors(heard.tallies, chances.chance(), self.leak)

    def _learn_chances(self, tallies: Tallies) -> OneCoin | ClassWise:
        right, wrong = tallies.right, np.maximum(tallies.wrong, 0.0)
        before = vars(self).get("_chances")  # of the last step of EM, if there was one
        near = None if before is None or isinstance(before, ChanceGrid) else before.mode
        is_known = near is not None and not self._has_moved(right, wrong)
        drawn = (right, wrong)
        if tallies.drawn_right is not None and tallies.drawn_wrong is not None:
            drawn = (tallies.drawn_right, tallies.drawn_wrong)
        if right.shape[1] == 1:
            coin = OneCoin()
            counts = right[:, 0], wrong[:, 0]
            some = np.flatnonzero(counts[0] + counts[1])[:: max(1, len(right) // _ROWS)]
            coin.learn(counts, (drawn[0][some, 0], drawn[1][some, 0]), near, is_known=is_known)
            return coin
        rows = ClassWise()
        rows.learn((right, wrong), sample_rows(*drawn), near, is_known=is_known)
        return rows

    def _has_moved(self, right: Floats, wrong: Floats) -> bool:
        """Return whether the shares of right labels are others than when the population was learned, and note them."""
        share, before = right / np.maximum(right + wrong, 1.0), vars(self).get("_learned_from")
        if before is not None and before.shape == share.shape and float(np.abs(share - before).mean()) < _MOVED:
            return False
        self._learned_from = share
        return True

    def _fit(self, counts: Floats) -> None:
        self._check()
        for name in ("_chances", "error_strength_", "_learned_from"):
            self.__dict__.pop(name, None)
        n_classes = counts.shape[1]
        groups = None if self.groups is None else read_groups(self.groups, np.arange(n_classes))
        true, given = (part.ravel().astype(np.int32) for part in np.indices((n_classes, n_classes)))
        self._set_pairs(groups, n_classes, true, given, counts.sum(axis=0).ravel())
        self.fit_tallies(_tallies_of(counts, self._row, self._mistakes))

    def confusion(self, worker: int) -> Floats:
        """Return the matrix [true, given] of a worker, by its code."""
        check_is_fitted(self, "factors_")
        return self.factors_.confusion(worker)

    def _right_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the chances of being right, (n_workers, n_rows)."""
        if isinstance(self._chances, ChanceGrid):
            mean, variance = self._chances.moments()
        elif isinstance(self._chances, OneCoin):
            mean, variance = (part[:, None] for part in self._chances.chance_moments())
        else:
            mean, variance = self._chances._right_moments()
        certain = self.factors_.right == 1.0
        return np.where(certain, 1.0, mean), np.where(certain, 0.0, variance)

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if (self.factors_.right == 1.0).all():
            return np.ones(self.factors_.n_workers), np.zeros(self.factors_.n_workers)
        if isinstance(self._chances, OneCoin):
            return self._chances.chance_moments()
        return self._chances.overall_moments(
            np.bincount(self._row, prior, self.factors_.right.shape[1]).astype(np.float64)
        )

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


def sample_rows(right: Floats, wrong: Floats) -> tuple[Floats, Floats]:
    """Return right and wrong labels of some workers, evenly spread, and some rows of each: enough for a population."""
    number = np.count_nonzero(right + wrong, axis=1)
    if number.sum() <= _ROWS:
        return right[number > 0], wrong[number > 0]
    some = np.flatnonzero(number)[:: max(1, np.count_nonzero(number) // _SAMPLE[0])]
    step = max(1, -(-right.shape[1] // max(_SAMPLE[1], _ROWS // len(some))))
    offset = (np.arange(right.shape[1]) - np.arange(len(some))[:, None]) % step == 0
    return np.where(offset, right[some], 0.0), np.where(offset, wrong[some], 0.0)


def moved(posterior: Candidates, classes: Codes) -> Candidates:
    """Return distributions on other candidates, which must hold all candidates that have a probability."""
    if posterior.classes is classes:
        return posterior
    each = posterior.each_other
    probability = np.repeat(each[:, None], classes.shape[1], axis=1)
    for column, own in zip(posterior.classes.T, posterior.probability.T, strict=True):
        np.copyto(probability, own[:, None], where=(classes == column[:, None]) & (column >= 0)[:, None])
    probability[classes < 0] = 0.0
    n_others = posterior.n_classes - (classes >= 0).sum(axis=1)
    return Candidates(classes, probability, each * n_others, posterior.n_classes)


def _as_candidates(predictions: Any, annotations: Annotations) -> Candidates:
    found = _check_predictions(predictions, annotations)
    if isinstance(found, Candidates):
        return found
    if found.ndim == 1:
        return Candidates.certain(found, annotations.n_classes)
    return Candidates.from_dense(found, annotations.n_classes)


def _tallies_of(counts: Floats, row: Codes, mistakes: Mistakes) -> Tallies:
    """Return counts [worker, true, given] as right and wrong labels by row, and the crowd's mistakes."""
    n_rows = int(row.max()) + 1
    by_row = np.zeros((len(row), n_rows))
    by_row[np.arange(len(row)), row] = 1.0
    right = np.einsum("wkk->wk", counts)
    wrong = np.maximum(counts.sum(axis=2) - right, 0.0)
    crowd = counts.sum(axis=0)
    own = crowd[mistakes.true, mistakes.given]
    others = np.maximum(wrong.sum(axis=0) - np.bincount(mistakes.true, own, len(row)), 0.0)
    return Tallies(right @ by_row, wrong @ by_row, own, others)
