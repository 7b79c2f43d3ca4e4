"""Calibration of predictions on candidates, found from the annotations without gold: one exponent is not enough.

A label says two things: which classes it speaks for (its group), nearly always right, and which of them, often wrong.
A prediction that is sure of a wrong group would be flattened by a single exponent until it says nothing within the
group either, and there it is all that tells workers apart. So there is one exponent between the classes that the labels
speak for and all others, and one inside them. Where the labels' classes are no groups, of which each task has exactly
one, that would favour the labels whatever they are: then there is one exponent for all classes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from labelonce._kernels import NUMPY, Arrays, Candidates
from labelonce._types import Codes, Floats, Mask

_EXPONENTS = (0.3, 15.0)  # between which predictions are flattened or sharpened: those of noisy labels are very flat
_SHIFT = 10.0  # of a class at most
_FIRST_STEPS, _STEPS = 5, 30  # of the search at most, for the exponent between and for all
_BLOCK = 1 << 18  # numbers that are worked on at once
LEAST = 1e-6  # probability that a model may give a class


@dataclass(frozen=True)
class CandidateCalibration:
    """What makes predictions P(true label): exponents inside and between, and a shift of every class inside."""

    inside: float
    between: float
    shift: Floats

    @classmethod
    def none(cls, n_classes: int) -> CandidateCalibration:
        """Return the one that changes nothing."""
        return cls(1.0, 1.0, np.zeros(n_classes))


@dataclass(frozen=True, eq=False)
class Spoken:
    """Predictions as calibration sees them, columns first: the classes that labels speak for, and all others.

    Attributes
    ----------
    spoken : (width + 1, n_tasks)
        Whether a candidate is one that the task's labels speak for; all are, where there is no label, and all and the
        rest where there are no groups.
    within : (width + 1, n_tasks)
        Log P(class | spoken), 0 elsewhere.
    between : (width + 1, n_tasks)
        Log P(class) of the others, -inf elsewhere and where there is none.
    mass : (n_tasks,)
        Log P(spoken).
    code : (width + 1, n_tasks)
        The class; the number of classes where there is none, as in the last row, which is the rest.
    number : (n_tasks,)
        Log of the number of classes in the rest, each of which is flattened by itself where there are no groups, and
        shifted as all classes are on average; 0 where there are groups.
    arrays : Arrays
        Where these are: numpy's, or tensors on a device.
    """

    spoken: Any
    within: Any
    between: Any
    mass: Any
    code: Any
    number: Any
    arrays: Arrays = NUMPY

    @classmethod
    def of(cls, predictions: Candidates, spoken: Mask | None) -> Spoken:
        """Return the parts of predictions; `spoken` (n_tasks, width) is as above, None without groups."""
        there = predictions.classes >= 0
        code = np.where(there, predictions.classes, predictions.n_classes).T
        code = np.concatenate([code, np.full((1, len(there)), predictions.n_classes, np.int32)])
        if spoken is None:
            return cls._without_groups(predictions, there, code)
        mine = spoken & there
        mine[~mine.any(axis=1)] = True
        mine &= there
        wide = np.concatenate([np.maximum(predictions.probability, LEAST), predictions.rest[:, None] + LEAST], axis=1)
        wide = np.ascontiguousarray(wide.T)
        mine = np.concatenate([mine.T, np.zeros((1, len(wide.T)), dtype=bool)])
        open_ = np.concatenate([there.T, np.full((1, len(wide.T)), True)]) & ~mine
        mass = np.where(mine, wide, 0.0).sum(axis=0)
        within = np.where(mine, np.log(wide / mass), 0.0)
        between = np.where(open_, np.log(wide), -np.inf)
        return cls(mine, within, between, np.log(mass), np.ascontiguousarray(code), np.zeros(len(there)))

    @classmethod
    def _without_groups(cls, predictions: Candidates, there: Mask, code: Codes) -> Spoken:
        """Return predictions of which all classes are in one part, the rest too."""
        number = np.log(np.maximum(predictions.n_classes - there.sum(axis=1), 1))
        wide = np.concatenate([np.maximum(predictions.probability, LEAST), predictions.rest[:, None] + LEAST], axis=1)
        within = np.log(np.ascontiguousarray(wide.T))
        within[-1] -= number
        mine = np.concatenate([there.T, np.full((1, len(there)), True)])
        nothing = np.full_like(within, -np.inf)
        return cls(mine, np.where(mine, within, 0.0), nothing, np.zeros(len(there)), np.ascontiguousarray(code), number)

    def on(self, arrays: Arrays) -> Spoken:
        """Return the same predictions elsewhere."""
        parts = {field.name: arrays.put(getattr(self, field.name)) for field in fields(self)[:-1]}
        return replace(self, **parts, arrays=arrays)

    def shown(self, found: CandidateCalibration) -> tuple[Any, Any, Any]:
        """Return calibrated P(class | spoken), P(class) of the others, and P(spoken)."""
        xp = self.arrays.functions
        shift = self.arrays.put(np.append(found.shift, found.shift.mean()))
        score = xp.where(self.spoken, found.inside * self.within + shift[self.code], -np.inf)
        score[-1] += self.number
        score -= xp.amax(score, 0)
        xp.exp(score, out=score)
        score /= score.sum(0)
        top = xp.maximum(self.mass, xp.amax(self.between, 0))
        others = xp.exp(found.between * (self.between - top))
        mass = xp.exp(found.between * (self.mass - top))
        total = mass + others.sum(0)
        others /= total
        return score, others, mass / total

    def log_prior(self, found: CandidateCalibration) -> Any:
        """Return log P(true label), (n_tasks, width + 1)."""
        inside, others, mass = self.shown(found)
        with np.errstate(divide="ignore"):
            return self.arrays.functions.log(inside * mass + others).T

    def by_class(self, values: Any, n_classes: int) -> Floats:
        """Return the sums over tasks of values of the candidates."""
        whole = self.arrays.functions.bincount(self.code.ravel(), values.ravel(), n_classes + 1)
        return np.asarray(self.arrays.get(whole)[:n_classes], dtype=np.float64)


def calibrated_log_prior(
    predictions: Candidates, spoken: Mask | None, found: CandidateCalibration, dtype: Any = np.float64
) -> Floats:
    """Return the calibrated log P(true label) of all tasks, (n_tasks, width + 1), made a block of tasks at a time."""
    log_prior = np.empty((len(predictions), predictions.classes.shape[1] + 1), dtype=dtype)
    step = max(1, _BLOCK // log_prior.shape[1])
    for start in range(0, len(predictions), step):
        tasks = slice(start, start + step)
        log_prior[tasks] = Spoken.of(predictions[tasks], None if spoken is None else spoken[tasks]).log_prior(found)
    return log_prior


def calibrate_candidates(
    said: Spoken, messages: Floats, shares: Floats, pull: float, start: CandidateCalibration, *, steps: int = _STEPS
) -> CandidateCalibration:
    """Return the exponents and shifts with which predictions explain the annotations best, after so many steps.

    `messages` (n_tasks, width + 1) are the sums of log P(label | true). The classes are pulled to `shares`, as in
    `calibrate`, by what is predicted among the classes that labels speak for.
    """
    n_tasks, n_classes = said.within.shape[1], len(shares)
    xp, put = said.arrays.functions, said.arrays.put
    odds = put(np.ascontiguousarray(messages.T, dtype=np.float64))
    possible = said.spoken | xp.isfinite(said.between)
    odds = xp.where(possible, xp.exp(odds - xp.amax(xp.where(possible, odds, -np.inf), 0)), 0.0)
    between = xp.where(xp.isfinite(said.between), said.between, 0.0)

    def loss(point: Floats) -> tuple[float, Floats]:
        here = CandidateCalibration(float(np.exp(point[0])), float(np.exp(point[1])), point[2:])
        inside, others, mass = said.shown(here)
        joint = (inside * mass + others) * odds
        likelihood = joint.sum(0).clip(1e-300)
        joint /= likelihood
        mine = xp.where(said.spoken, joint, 0.0)
        held = mine.sum(0)
        share = np.maximum(said.by_class(inside, n_classes) / n_tasks, 1e-12)
        wanted = put(np.append(pull * shares / share, 0.0))
        pulled = xp.where(said.spoken, wanted[said.code], 0.0)
        slope = mine - held * inside + inside * (pulled - (inside * pulled).sum(0))
        by_inside = here.inside * float(xp.tensordot(slope, said.within, 2))
        by_between = float(xp.tensordot(joint - mine - others, between, 2) + xp.tensordot(held - mass, said.mass, 1))
        value = float(xp.log(likelihood).sum()) + pull * n_tasks * float(shares @ np.log(share))
        by_shift = said.by_class(slope, n_classes) + float(slope[-1].sum()) / n_classes  # the rest: by the mean
        slopes = np.concatenate([[by_inside, here.between * by_between], by_shift])
        return -value / n_tasks, -slopes / n_tasks

    point = np.concatenate([np.log([start.inside, start.between]), start.shift])
    whole: Any = [tuple(np.log(_EXPONENTS))] * 2 + [(-_SHIFT, _SHIFT)] * n_classes
    alone: Any = [(here, here) for here in point]
    alone[1] = whole[1]  # first: it is the steepest by far, and would throw the others to their ends
    for bounds, most in ((alone, min(steps, _FIRST_STEPS)), (whole, steps)):
        point = minimize(loss, point, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": most}).x
    return CandidateCalibration(float(np.exp(point[0])), float(np.exp(point[1])), point[2:])
