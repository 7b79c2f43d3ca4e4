"""Calibration: what makes a model's predictions P(true class), found from the labels without gold.

With all classes, and without groups of them, one exponent and a shift of every class. A label on slots says two things:
which classes it is evidence for (its group), nearly always right, and which of them, often wrong. A prediction that is
sure of a wrong group would be made so flat by a single exponent that it says nothing within the group either, and there
it is all that tells workers apart: so there is one exponent inside the classes that labels are evidence for, and one
between these and all others. Rows of several kinds, such as questions, have an exponent and shifts of their own, as far
as their labels ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask

_BLOCK = 1 << 18  # numbers that are worked on at once
LEAST = 1e-6  # probability that a model may give a class


@dataclass(frozen=True)
class Calibration:
    """Exponents (n_kinds,) and shifts of every class's log-probability (n_kinds, n_classes), and one between groups."""

    exponent: Floats
    shift: Floats
    between: float = 1.0

    @classmethod
    def none(cls, n_kinds: int, n_classes: int) -> Calibration:
        """Return the one that changes nothing."""
        return cls(np.ones(n_kinds), np.zeros((n_kinds, n_classes)))

    @classmethod
    def at(cls, point: Floats, shape: tuple[int, int]) -> Calibration:
        """Return the calibration at a point of the search."""
        n_kinds = shape[0]
        return cls(np.exp(point[1 : n_kinds + 1]), point[n_kinds + 1 :].reshape(shape), float(np.exp(point[0])))

    @property
    def point(self) -> Floats:
        """The point of the search."""
        return np.concatenate([[np.log(self.between)], np.log(self.exponent), self.shift.ravel()])


@dataclass(frozen=True, eq=False)
class Scores:
    """Predictions as calibration sees them, slots first.

    Inside are the classes that labels are evidence for, or all without groups. They are among the first slots, and all
    others among the last: what no row has inside, or outside, is left out, so that the steps of a search are short.

    Attributes
    ----------
    n_slots : int
    within : (n_inside, n_rows)
        Log P(class | inside) of the first slots, after which none is inside; 0 where one is not.
    code : (n_inside, n_rows), optional
        The class of every slot; the number of classes where there is none, as in the rest. None: slot k is class k.
    closed : (n_inside, n_rows) mask, optional
        Which of these slots are not inside; None: none.
    between, mass : (n_others, n_rows), (n_rows,), optional
        Log P(class) of the last slots, before which none is outside, -inf where one is not, and log P(inside); None
        without groups.
    number : (n_rows,) or 0
        Log of the number of classes in the rest, each of which is calibrated by itself where there are no groups.
    kind : (n_rows,), optional
    n_classes : int
    """

    n_slots: int
    within: Floats
    code: Any
    closed: Any
    between: Floats | None
    mass: Any
    number: Any
    kind: Codes | None
    n_classes: int

    @classmethod
    def of(cls, predictions: Beliefs, inside: Mask | None, kind: Codes | None = None) -> Scores:
        """Return the scores of predictions; `inside` (n_rows, n_slots) is given where labels stay within groups."""
        n_classes, wide = predictions.n_classes, np.array(predictions.wide().T, dtype=np.float64, order="C")
        n_slots = len(wide)
        if predictions.rest is None:
            within = np.log(np.maximum(wide, LEAST, out=wide), out=wide)
            return cls(n_slots, within, None, None, None, None, 0.0, kind, n_classes)
        there = np.pad(predictions.codes.T >= 0, ((0, 1), (0, 0)))
        n_others = n_classes - there.sum(axis=0)
        there[-1] = n_others > 0
        code = np.full(wide.shape, n_classes, dtype=np.intp)
        np.copyto(code[:-1], predictions.codes.T, where=there[:-1])
        np.maximum(wide[:-1], LEAST, out=wide[:-1])
        wide[-1] = np.where(there[-1], wide[-1] + LEAST, 0.0)
        if inside is None:
            number = np.log(np.maximum(n_others, 1))
            within = np.log(np.where(there, wide, 1.0))
            within[-1] -= number
            return cls(n_slots, within, code, _unless_none(~there), None, None, number, kind, n_classes)
        mine = np.pad(inside.T, ((0, 1), (0, 0))) & there
        none = ~mine.any(axis=0)
        mine[:-1, none] = there[:-1, none]
        others = there & ~mine
        used: Any = mine.any(axis=1)
        last, first = n_slots - int(used[::-1].argmax()), int(np.argmax(others.any(axis=1)))
        mine, others = mine[:last], others[first:]
        mass = np.where(mine, wide[:last], 0.0).sum(axis=0)
        within = np.log(np.where(mine, wide[:last] / mass, 1.0))
        between = np.where(others, np.log(np.where(others, wide[first:], 1.0)), -np.inf)
        return cls(n_slots, within, code[:last], _unless_none(~mine), between, np.log(mass), 0.0, kind, n_classes)

    @cached_property
    def steps(self) -> tuple[Any, Any]:
        """The differences of `between` and `mass` to the largest of them in each row."""
        assert self.between is not None
        top = np.maximum(self.mass, self.between.max(axis=0))
        return self.between - top, self.mass - top

    @cached_property
    def outside(self) -> Any:
        """`between`, with 0 where a slot is not outside."""
        assert self.between is not None
        return np.where(np.isfinite(self.between), self.between, 0.0)

    def shown(self, found: Calibration) -> tuple[Floats, Floats | None, Any]:
        """Return calibrated P(class | inside), P(class) of the others, and P(inside)."""
        exponent = found.exponent[0] if self.kind is None else found.exponent[self.kind]
        score = exponent * self.within
        score += self.spread(found.shift, found.shift.mean())
        if self.code is not None:
            score[-1] += self.number
        if self.closed is not None:
            np.copyto(score, -np.inf, where=self.closed)
        score -= score.max(axis=0)
        np.exp(score, out=score)
        score /= score.sum(axis=0)
        if self.between is None:
            return score, None, 1.0
        others, mass = (found.between * step for step in self.steps)
        np.exp(others, out=others)
        np.exp(mass, out=mass)
        total = mass + others.sum(axis=0)
        others /= total
        return score, others, mass / total

    def spread(self, by_class: Floats, rest: float) -> Floats:
        """Return numbers (n_kinds, n_classes) by slot and row."""
        if self.code is not None:
            return np.asarray(np.append(by_class[0], rest).take(self.code))
        return by_class[0][:, None] if self.kind is None else np.asarray(by_class[self.kind].T)

    def by_class(self, values: Floats, n_kinds: int) -> Floats:
        """Return the sums over rows of values by slot, (n_kinds, n_classes)."""
        if self.code is not None:
            whole = np.bincount(self.code.ravel(), values.ravel(), self.n_classes + 1)
            return np.asarray(whole[None, : self.n_classes])
        if self.kind is None:
            return np.asarray(values.sum(axis=1)[None])
        return np.stack([np.bincount(self.kind, row, n_kinds) for row in values], axis=1)

    def by_kind(self, values: Floats, n_kinds: int) -> Floats:
        """Return the sums of a number per row over the rows of each kind, (n_kinds,)."""
        if self.kind is None:
            return np.array([values.sum()])
        return np.asarray(np.bincount(self.kind, values, n_kinds), dtype=np.float64)

    def log_prior(self, found: Calibration) -> Floats:
        """Return log P(true class), (n_rows, n_slots), minus infinity where a slot is empty."""
        wide, others, mass = self.shown(found)
        if others is not None:
            inside, wide = wide, np.zeros((self.n_slots, wide.shape[1]))
            np.multiply(inside, mass, out=wide[: len(inside)])
            wide[-len(others) :] += others
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(wide, out=wide).T)


def _unless_none(mask: Mask) -> Mask | None:
    """Return a mask, None where it marks nothing."""
    return mask if mask.any() else None


def calibrated_log_prior(
    predictions: Beliefs, inside: Mask | None, kind: Codes | None, found: Calibration, dtype: Any = np.float64
) -> Floats:
    """Return the calibrated log P(true class) of all rows, made a block of rows at a time."""
    width = predictions.probability.shape[1] + (predictions.rest is not None)
    log_prior = np.empty((len(predictions), width), dtype=dtype)
    step = max(1, _BLOCK // width)
    for start in range(0, len(predictions), step):
        rows = slice(start, start + step)
        scores = Scores.of(
            predictions[rows], None if inside is None else inside[rows], None if kind is None else kind[rows]
        )
        log_prior[rows] = scores.log_prior(found)
    return log_prior


def calibrate(
    scores: Scores,
    messages: Floats,
    shares: Floats,
    pull: float,
    start: Calibration | None = None,
    *,
    total: Callable[[Any], Floats] = np.asarray,
    steps: int = RULES.calibration_steps,
) -> Calibration:
    """Return the exponents and the shifts with which predictions explain the labels best.

    Without the shifts, a class for which few workers are good is predicted too rarely, hence trained on too rarely, and
    is gone after some rounds. The classes of each kind are pulled to `shares` (n_kinds, n_classes) as if `pull` times
    as many rows as there are had been seen with them: while the workers are poorly known, the likelihood alone would
    give up classes.

    Parameters
    ----------
    scores : Scores
    messages : (n_rows, n_slots)
        The sums of log P(label | true).
    start : Calibration, optional
        Where the search begins; default: where nothing is changed.
    total : callable
        Adds sums up over processes that share the rows.
    steps : int
        Of the search at most.
    """
    odds = odds_of(scores, messages)
    begun = Calibration.none(*shares.shape) if start is None else start
    point, n_kinds = begun.point, shares.shape[0]
    least, most = RULES.exponents
    most = max(most, RULES.exponent_by_classes * np.log(shares.shape[1]))
    exponents, shift = (np.log(least), np.log(most)), RULES.most_shift
    free: Any = [exponents] * (1 + n_kinds) + [(-shift, shift)] * shares.size
    fixed: Any = [(here, here) for here in point]
    stages = [(free if scores.between is not None else [fixed[0], *free[1:]], steps)]
    if (
        scores.between is not None and start is None
    ):  # it is the steepest by far, and would throw the others to their ends: first alone
        stages.insert(0, ([exponents, *fixed[1:]], RULES.first_calibration_steps))
    for bounds, most in stages:
        arguments, options = (scores, odds, shares, pull, total), {"maxiter": most, "gtol": 1e-6}
        point = minimize(loss, point, arguments, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return Calibration.at(point, shares.shape)


def odds_of(scores: Scores, messages: Floats) -> Floats:
    """Return what labels say by slot and row, up to a factor in each row; 0 where a slot is empty."""
    odds = np.array(messages.T, dtype=np.float64, order="C")
    if scores.code is not None:
        empty = np.ones(odds.shape, dtype=bool)
        empty[: len(scores.code)] = False if scores.closed is None else scores.closed
        if scores.between is not None:
            empty[-len(scores.between) :] &= ~np.isfinite(scores.between)
        odds[empty] = -np.inf
    odds -= odds.max(axis=0)
    return np.asarray(np.exp(odds, out=odds))


def loss(
    point: Floats, scores: Scores, odds: Floats, shares: Floats, pull: float, total: Callable[[Any], Floats]
) -> tuple[float, Floats]:
    """Return minus the log-likelihood of the labels and minus the pull, per row, and its gradient."""
    n_kinds = len(shares)
    here = Calibration.at(point, shares.shape)
    inside, others, mass = scores.shown(here)
    mine = inside * mass
    mine *= odds[: len(inside)]
    apart = None if others is None else others * odds[-len(others) :]
    likelihood, held, by_between = mine.sum(axis=0), 1.0, 0.0
    for row in () if apart is None else apart:
        likelihood += row
    np.maximum(likelihood, 1e-300, out=likelihood)
    mine /= likelihood
    if apart is not None and others is not None:
        held = mine.sum(axis=0)
        apart /= likelihood
        apart -= others
        by_between = here.between * _rise(scores, apart, held - mass)
    rows, counts = _totals(total, scores.by_kind(np.ones(odds.shape[1]), n_kinds), scores.by_class(inside, n_kinds))
    share = np.maximum(counts / np.maximum(rows, 1)[:, None], 1e-12)
    pulled = scores.spread(pull * shares / share, 0.0)
    slope = mine
    slope -= held * inside
    inside *= pulled - (inside * pulled).sum(axis=0)
    slope += inside
    by_exponent = here.exponent * scores.by_kind((slope * scores.within).sum(axis=0), n_kinds)
    by_shift = scores.by_class(slope, n_kinds)
    if scores.code is not None and others is None:
        by_shift = by_shift + float(slope[-1].sum()) / scores.n_classes  # the rest is shifted by the mean
    value, by_between, by_exponent, by_shift = _totals(
        total, np.log(likelihood).sum(), by_between, by_exponent, by_shift
    )
    value = value + pull * (rows * (shares * np.log(share)).sum(axis=1)).sum()
    gradient = np.concatenate([[by_between], by_exponent, by_shift.ravel()])
    lean, by_lean = _lean(here)
    n_rows = rows.sum()
    return float(lean - value) / n_rows, (by_lean - gradient) / n_rows


def _rise(scores: Scores, others: Floats, mass: Floats) -> float:
    """Return the slope by the log of the exponent between groups, of slopes by log P(class) and log P(inside)."""
    by_slot = np.zeros((scores.n_slots, others.shape[1]))  # of all slots: sums are then rounded alike for any n_others
    np.multiply(others, scores.outside, out=by_slot[-len(others) :])
    return float(by_slot.sum() + (mass * scores.mass).sum())


def _lean(here: Calibration) -> tuple[float, Floats]:
    """Return what it costs that kinds differ: their exponents as if labels had been seen, their shifts less."""
    exponent = np.log(here.exponent) - np.log(here.exponent).mean()
    shift = here.shift - here.shift.mean(axis=0)
    cost = 0.5 * (RULES.same_exponent * (exponent**2).sum() + RULES.same_shift * (shift**2).sum())
    return float(cost), np.concatenate([[0.0], RULES.same_exponent * exponent, RULES.same_shift * shift.ravel()])


def _totals(total: Callable[[Any], Floats], *parts: Any) -> list[Any]:
    """Return sums over all processes, in one exchange."""
    flat = np.concatenate([np.ravel(part) for part in parts]).astype(np.float64)
    found, ends = np.asarray(total(flat)), np.cumsum([np.size(part) for part in parts])
    return [piece.reshape(np.shape(part)) for piece, part in zip(np.split(found, ends[:-1]), parts, strict=True)]


def log_wide(predictions: Beliefs) -> Floats:
    """Return log P(class) by row and slot, none below that of `LEAST`, minus infinity where a slot is empty.

    That of the rest is of each of its classes; `log_sizes` tells how many these are.
    """
    found = np.log(np.maximum(predictions.wide(), LEAST))
    sizes = log_sizes(predictions)
    if sizes is not None:
        found -= sizes
        found[:, :-1][predictions.codes < 0] = -np.inf
        full = (predictions.codes >= 0).sum(axis=1) == predictions.n_classes
        found[full, -1] = -np.inf
    return np.asarray(found)


def log_sizes(predictions: Beliefs) -> Floats | None:
    """Return the log of how many classes a column of `log_wide` stands for; None where each is one class."""
    if predictions.rest is None:
        return None
    codes = predictions.codes
    found = np.zeros((len(codes), codes.shape[1] + 1))
    found[:, -1] = np.log(np.maximum(predictions.n_classes - (codes >= 0).sum(axis=1), 1))
    return found


def tempered(
    log_predictions: Floats, exponent: float, added: Floats | None = None, log_base: Floats | None = None
) -> Floats:
    """Return log-predictions to a power, with what is known besides, normalised.

    A power below 1 takes them towards `log_base`, the share of every class, or to even odds.
    """
    logs = exponent * log_predictions
    if log_base is not None and exponent < 1:
        logs += (1 - exponent) * log_base
    if added is not None:
        logs += added
    logs -= logs.max(axis=1, keepdims=True)
    return np.asarray(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))


def best_exponent(
    log_predictions: Floats,
    said: Floats,
    ends: tuple[float, float],
    added: Floats | None = None,
    mixing: Floats | None = None,
    log_base: Floats | None = None,
) -> float:
    """Return the power of predictions, between two ends, with which they explain best what labels say.

    `added` and `log_base` are those of `tempered`; `mixing` [predicted, true] is a further step to the classes.
    """
    chance = np.exp(said - said.max(axis=1, keepdims=True)).T
    logs = np.ascontiguousarray(log_predictions.T)
    more, base = (None if one is None else one.T for one in (added, log_base))

    def lost(log_exponent: float) -> float:
        power = np.exp(log_exponent) * logs
        if base is not None and log_exponent < 0:
            power += -np.expm1(log_exponent) * base
        if more is not None:
            power += more
        power -= power.max(axis=0)
        np.exp(power, out=power)
        total = power.sum(axis=0)
        found = power if mixing is None else mixing.T @ power
        return -float(np.log(np.maximum((found * chance).sum(axis=0) / total, 1e-300)).sum())

    bounds = tuple(np.log(ends))
    return float(np.exp(minimize_scalar(lost, bounds=bounds, method="bounded", options={"xatol": 0.05}).x))


def pull_in_round(number: int, *, known: bool = False) -> float:
    """Return how strongly the class balance is pulled in a round.

    The labels' shares are let go: workers who share mistakes give some classes too often. A balance that is `known` is
    not let go, because it tells of such mistakes what no label does.
    """
    return float(RULES.known_pull if known else RULES.pulls[int(np.clip(number - 2, 0, len(RULES.pulls) - 1))])


def label_shares(labels: Any, kind: Codes | None, total: Callable[[Any], Floats] = np.asarray) -> Floats:
    """Return how often every class is given to each kind of rows, (n_kinds, n_classes); none is impossible.

    `total` adds sums up over processes that share the rows.
    """
    n_kinds = 1 if kind is None else int(kind.max()) + 1
    of_label = np.zeros(len(labels), dtype=np.intp) if kind is None else kind[labels.task]
    place = of_label * labels.n_answers + labels.label
    said = total(np.bincount(place, minlength=n_kinds * labels.n_answers).astype(np.float64)).reshape(n_kinds, -1)
    given = (said if labels.is_square else said @ labels.leaning) + 1.0
    return np.asarray(given / given.sum(axis=1, keepdims=True))
