"""Softmax regression in two steps, group and class within it: for a thousand classes on a CPU."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from labelonce._kernels import Beliefs, join_slots, on_slots, unique_in_rows
from labelonce._rules import RULES
from labelonce._sklearn import check_is_fitted, validate_data
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_codes, check_int, check_positive
from labelonce.learning._adapter import check_targets, weighted_rows
from labelonce.learning._learner import Learner
from labelonce.learning._slot_softmax import blocks, fit_slots, searched
from labelonce.learning._softmax import CHECKS, loss_and_gradient, softmax
from labelonce.workers import Groups

_TASKS = 1 << 16  # whose predictions are made at a time


@dataclass(eq=False, repr=False)
class GroupedSoftmax(Learner):
    """P(class | x) = P(group | x) P(class | group, x), two softmax regressions.

    With 1,000 classes in groups of 10 a task needs 100 scores for the groups and 10 for the classes of its own group
    instead of 1,000: it trains a million tasks of 64 features in seconds. Each part minimises C times its weighted
    cross-entropies plus half the squared norm of the slopes, by L-BFGS; with many tasks (more than 20 million
    tasks x groups) the search for the groups runs on samples that grow, and ends before it has fully converged.

    The other options are those of `SoftmaxRegression`.

    Parameters
    ----------
    groups : (n_classes,) codes or Groups
        The group of every class.
    warm_start : bool
        Start from the coefficients of the last fit; the rounds of `MBEM` then start from those of the round before.

    Attributes
    ----------
    group_coef_, group_intercept_ : (n_groups, n_features), (n_groups,)
    coef_, intercept_ : (n_classes, n_features), (n_classes,)
        Of a class within its group.
    classes_ : (n_classes,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(600) % 6
    >>> X = np.eye(6)[y] * 4 + rng.normal(size=(600, 6))
    >>> model = GroupedSoftmax(groups=[0, 0, 1, 1, 2, 2]).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.predict_proba(X[:2]).sum(axis=1).round(6).tolist()
    (True, [1.0, 1.0])
    """

    groups: Any
    _: KW_ONLY
    C: float = 1.0
    max_iter: int = 500
    tol: float = 1e-5
    warm_start: bool = False

    takes_slots = True
    group_coef_: Floats = field(init=False)
    group_intercept_: Floats = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labels, to probability targets (n_tasks, n_classes) or to `Beliefs`, whose rest is left out."""
        check_positive(self.C, "C")
        check_int(self.max_iter, "max_iter", 1)
        groups = self.groups if isinstance(self.groups, Groups) else _read(self.groups)
        X, targets, classes = self._targets(X, y)
        if targets.n_classes != groups.n_classes:
            raise ValueError(f"groups must have one entry per class, {targets.n_classes}; got {groups.n_classes}.")
        X, targets, weight = weighted_rows(X, targets, sample_weight)
        penalty = 1 / (self.C * weight.sum())
        warm = self.warm_start and getattr(self, "coef_", np.zeros(0)).shape == (len(classes), X.shape[1])
        self._groups, self.classes_ = groups, classes
        by_group = targets_of_groups(targets, groups.group)
        self._fit_groups(X, by_group, weight, penalty, warm=warm)
        self._fit_classes(X, targets, by_group, weight, warm=warm)
        return self

    def _targets(self, X: Any, y: Any) -> tuple[Any, Beliefs, Ids]:
        few = on_slots(y)
        if few is not None:
            X = validate_data(self, X, **CHECKS)
            return X, few, np.arange(few.n_classes)
        y = np.asarray(y)
        if y.ndim == 2:
            X = validate_data(self, X, **CHECKS)
            return X, Beliefs.from_dense(check_targets(y, X.shape[0]), y.shape[1]), np.arange(y.shape[1])
        X, y = validate_data(self, X, y, **CHECKS)
        classes, codes = np.unique(y, return_inverse=True)
        return X, Beliefs.certain(codes.astype(np.int32), len(classes), few=True), classes

    def _fit_groups(self, X: Any, targets: Beliefs, weight: Floats, penalty: float, *, warm: bool) -> None:
        start = np.zeros((X.shape[1] + 1, targets.n_classes))
        if warm:
            start[:-1], start[-1] = self.group_coef_.T, self.group_intercept_
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "warm": warm}
        found, self.n_iter_ = fit_slots(X, targets, weight, penalty, start, **options)
        self.group_coef_, self.group_intercept_ = found[:-1].T.copy(), found[-1] - found[-1].mean()

    def _fit_classes(self, X: Any, targets: Beliefs, by_group: Beliefs, weight: Floats, *, warm: bool) -> None:
        """Fit the classes of each group to the tasks that have a share in it."""
        groups, n_features = self._groups, X.shape[1]
        coef, intercept = np.zeros((targets.n_classes, n_features)), np.zeros(targets.n_classes)
        if warm:
            coef[:], intercept[:] = self.coef_, self.intercept_
        rough = len(targets) * targets.n_classes > 10**8
        limit = min(self.max_iter, RULES.group_rough_steps) if rough else self.max_iter
        options = {"maxiter": limit, "gtol": self.tol, "ftol": 1e-5 if rough else 1e-12, "maxls": 50}
        for group, rows, share in tasks_of_groups(by_group):
            members = groups.members(group)
            if len(members) == 1:
                continue
            inside = within_group(targets[rows], members)
            part = weight[rows] * share
            mass = part @ inside
            seen = np.flatnonzero(mass)
            start = np.concatenate([coef[members[seen]].T, intercept[members[seen]][None]])
            if not warm:
                start[-1] = np.log(mass[seen])
            x, total = X[rows], part.sum()
            arguments = (x, inside[:, seen], (part / total)[:, None], 1 / (self.C * total))
            size = x.shape[0] * x.shape[1] * len(seen)
            found = searched(loss_and_gradient, start, arguments, size, options).x.reshape(start.shape)
            coef[members[seen]], intercept[members] = found[:-1].T, -np.inf
            intercept[members[seen]] = found[-1] - found[-1].mean()
        self.coef_, self.intercept_ = coef, intercept

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes)."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, **CHECKS)
        by_group = self._group_probabilities(X)
        scores = np.asarray(X @ self.coef_.T.astype(X.dtype), dtype=np.float64) + self.intercept_
        for group in range(self._groups.n_groups):
            members = self._groups.members(group)
            scores[:, members] = softmax(_finite(scores[:, members])) * by_group[:, [group]]
        return scores

    def predict(self, X: Any) -> Ids:
        """Return the most probable class of each task."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, **CHECKS)
        n_classes = len(self.classes_)
        if X.shape[0] * n_classes <= 10**7:
            return super().predict(X)
        none = np.full((X.shape[0], 1), -1, dtype=np.int32)
        return np.asarray(self.classes_[self.predict_slots(X, none, 1).argmax()])

    def predict_slots(self, X: Any, classes: Codes, top: int) -> Beliefs:
        """Return P(class | features) on slots, and on the `top` classes of each task in its two likeliest groups.

        Scores of classes are made for these groups alone.
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, **CHECKS)
        parts = [self._on_slots(X[rows], classes[rows], top) for rows in blocks(len(classes), _TASKS)]
        return Beliefs.joined(parts)

    def _on_slots(self, X: Any, classes: Codes, top: int) -> Beliefs:
        by_group = self._group_probabilities(X)
        wanted = _top_two(by_group)
        member = np.where(classes >= 0, self._groups.group[classes], -1)
        inside = self._within(X, by_group, join_slots(_unique(member), wanted))
        best = inside.top(top).codes
        joined = join_slots(classes, best)
        probability = _look_up(inside, joined, self._groups)
        rest = np.maximum(1 - probability.sum(axis=1), 0.0).astype(np.float32)
        return Beliefs(probability.astype(np.float32), len(self.classes_), joined, rest)

    def _group_probabilities(self, X: Any) -> Floats:
        scores = np.asarray(X @ self.group_coef_.T.astype(X.dtype)) + self.group_intercept_.astype(X.dtype)
        return softmax(scores, out=scores)

    def _within(self, X: Any, by_group: Floats, wanted: Codes) -> Beliefs:
        """Return P(class) of all classes of the groups wanted (n_tasks, n_groups of a task)."""
        groups, (n_tasks, n_wanted) = self._groups, wanted.shape
        widest = int(groups.sizes.max())
        codes = np.full((n_tasks, n_wanted, widest), -1, dtype=np.int32)
        found = np.zeros((n_tasks, n_wanted, widest), dtype=np.float32)
        flat = wanted.ravel()
        order = np.argsort(flat, kind="stable")
        start = np.searchsorted(flat[order], np.arange(groups.n_groups + 1))
        for group in range(groups.n_groups):
            places = order[start[group] : start[group + 1]]
            if not len(places):
                continue
            task, slot, members = places // n_wanted, places % n_wanted, groups.members(group)
            scores = np.asarray(X[task] @ self.coef_[members].T.astype(X.dtype)) + self.intercept_[members]
            found[task, slot, : len(members)] = softmax(_finite(scores)) * by_group[task, group][:, None]
            codes[task, slot, : len(members)] = members
        shape = (n_tasks, n_wanted * widest)
        rest = np.zeros(n_tasks, dtype=np.float32)
        return Beliefs(found.reshape(shape), len(self.classes_), codes.reshape(shape), rest)

    def is_cheap(self, X: Any, n_classes: int) -> bool:
        """Return whether a fit takes well below a second or so."""
        return bool(X.shape[0] * X.shape[1] * (n_classes**0.5) <= RULES.cheap)


def _read(groups: Any) -> Groups:
    codes = check_codes(np.unique(np.asarray(groups), return_inverse=True)[1], "groups", max(1, len(groups)))
    return Groups.of(codes)


def _finite(scores: Floats) -> Floats:
    return np.where(np.isneginf(scores), -1e30, scores)


def _top_two(by_group: Floats) -> Codes:
    best = by_group.argmax(axis=1)
    if by_group.shape[1] == 1:
        return np.asarray(best[:, None], dtype=np.int32)
    rows = np.arange(len(best))
    kept = by_group[rows, best]
    by_group[rows, best] = -1.0
    second = by_group.argmax(axis=1)
    by_group[rows, best] = kept
    return np.stack([best, second], axis=1).astype(np.int32)


def _unique(codes: Codes) -> Codes:
    """Return each row's codes once; most rows hold one code, many times."""
    first = codes[:, :1]
    same = ((codes == first) | (codes < 0)).all(axis=1)
    if same.all():
        return np.ascontiguousarray(first)
    some = unique_in_rows(codes[~same])
    found = np.full((len(codes), some.shape[1]), -1, dtype=np.int32)
    found[same, :1], found[~same] = first[same], some
    return found


def _look_up(inside: Beliefs, classes: Codes, groups: Groups) -> Floats:
    """Return the probabilities of classes whose groups are all in `inside`."""
    widest = int(groups.sizes.max())
    n_wanted = inside.codes.shape[1] // widest
    group = np.where(classes >= 0, groups.group[classes], -2)
    own = np.where(inside.codes[:, ::widest] >= 0, groups.group[inside.codes[:, ::widest]], -1)
    slot = np.zeros(classes.shape, dtype=np.int64)
    for number in range(1, n_wanted):
        slot[group == own[:, [number]]] = number
    place = slot * widest + np.where(classes >= 0, groups.position[classes], 0)
    return np.where(classes >= 0, np.take_along_axis(inside.probability, place, axis=1), 0.0)


def targets_of_groups(targets: Beliefs, group: Codes) -> Beliefs:
    """Return targets of groups, the rest left out; negligible ones too.

    >>> two = Beliefs(np.array([[0.5, 0.2, 0.3]]), 4, np.array([[0, 3, 1]]), np.zeros(1))
    >>> targets_of_groups(two, np.array([0, 0, 1, 1])).to_dense()
    array([[0.8, 0.2]])
    """
    n_groups = int(group.max()) + 1
    if len(targets) > _TASKS:
        return Beliefs.joined([_some_groups(targets[rows], group, n_groups) for rows in blocks(len(targets), _TASKS)])
    return _some_groups(targets, group, n_groups)


def _some_groups(targets: Beliefs, group: Codes, n_groups: int) -> Beliefs:
    own = np.where(targets.codes >= 0, group[targets.codes], -1)
    codes = _unique(own)
    mass = np.stack([(targets.probability * (own == code[:, None])).sum(axis=1) for code in codes.T], axis=1)
    mass[codes < 0] = 0.0
    kept = mass > RULES.group_negligible * mass.sum(axis=1, keepdims=True)
    width = max(1, int(kept.sum(axis=1).max(initial=1)))
    order = np.argsort(~kept, axis=1, kind="stable")[:, :width]
    codes, mass = np.take_along_axis(codes, order, axis=1), np.take_along_axis(np.where(kept, mass, 0.0), order, axis=1)
    total = np.maximum(mass.sum(axis=1, keepdims=True), 1e-30)
    return Beliefs(mass / total, n_groups, np.where(mass > 0, codes, -1), np.zeros(len(mass)))


def tasks_of_groups(by_group: Beliefs) -> Iterator[tuple[int, Any, Floats]]:
    """Yield each group with its tasks and their shares in it."""
    task, place = np.nonzero(by_group.codes >= 0)
    code, share = by_group.codes[task, place], by_group.probability[task, place]
    order = np.argsort(code, kind="stable")
    start = np.searchsorted(code[order], np.arange(by_group.n_classes + 1))
    for group in range(by_group.n_classes):
        rows = order[start[group] : start[group + 1]]
        if len(rows):
            yield group, task[rows], share[rows]


def within_group(targets: Beliefs, members: Codes) -> Floats:
    """Return the targets of tasks among the members of a group, rows sum to 1."""
    place = np.full(targets.n_classes + 1, -1)
    place[members] = np.arange(len(members))
    own = place[targets.codes]
    own[targets.codes < 0] = -1
    dense = np.zeros((len(targets), len(members) + 1))
    for column, amount in zip(own.T, targets.probability.T, strict=True):
        dense[np.arange(len(dense)), column] += amount
    dense = dense[:, :-1]
    return np.asarray(dense / np.maximum(dense.sum(axis=1, keepdims=True), 1e-30))
