"""Calibration: what makes a model's predictions P(true label), found from the annotations without gold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from labelonce._kernels import Engine, ScipyEngine, SharedEngine, floored_log, total
from labelonce._types import Floats
from labelonce.data import Annotations

_EXPONENTS = (0.3, 5.0)  # between which a model's predictions are flattened or sharpened
_PULLS = (1.0, 0.5, 0.25, 0.125, 0.1)  # on the class balance in rounds 2, 3, ...: tasks it counts as, as a share
_KNOWN_PULL = 3.0  # on a class balance that is given, in every round
_ENOUGH_TASKS = 50_000  # with labels, to calibrate by
_SHIFT = 10.0  # of a class at most
_STEPS = 50  # of the search at most


@dataclass(frozen=True)
class Calibration:
    """What makes a model's predictions P(true label): an exponent and a shift of every class's log-probability."""

    exponent: float
    shift: Floats

    def apply(self, log_predictions: Floats) -> None:
        """Calibrate in place, up to a constant in each row."""
        log_predictions *= self.exponent
        log_predictions += self.shift

    def undo(self, log_predictions: Floats) -> None:
        """Take it back."""
        log_predictions -= self.shift
        log_predictions /= self.exponent


def calibrate(
    log_predictions: Floats,
    engine: Engine,
    confusion: Floats,
    shares: Floats,
    pull: float,
    start: Calibration | None = None,
) -> Calibration:
    """Return the exponent and the shifts with which predictions explain the annotations best.

    An exponent above 1 sharpens. Without the shifts, a class for which few workers are good is predicted too
    rarely, hence trained on too rarely, and is gone after some rounds. The classes are pulled to `shares` as if
    `pull` times as many tasks as there are had been seen with them: while the confusion matrices are poor, the
    likelihood alone would give up classes.
    """
    n_tasks, n_classes = float(total(engine, [len(log_predictions)])[0]), log_predictions.shape[1]
    by_labels = engine.e_step(floored_log(confusion), np.zeros(n_classes)).posterior
    by_labels, log_shown = (np.ascontiguousarray(one.T) for one in (by_labels, log_predictions))  # sums are fast so
    shown, slope = np.empty_like(log_shown), np.empty_like(log_shown)

    def loss(point: Floats) -> tuple[float, Floats]:
        exponent, shift = np.exp(point[0]), point[1:, None]
        np.add(np.multiply(log_shown, exponent, out=shown), shift, out=shown)
        np.exp(np.subtract(shown, shown.max(axis=0), out=shown), out=shown)
        np.divide(shown, shown.sum(axis=0), out=shown)
        share = np.maximum(total(engine, shown.sum(axis=1)) / n_tasks, 1e-12)
        likelihood = np.multiply(by_labels, shown, out=slope).sum(axis=0)
        np.divide(slope, likelihood, out=slope)
        wanted = pull * shares / share
        pulled = np.multiply(shown, wanted[:, None] - (1 + wanted @ shown), out=shown)
        np.add(slope, pulled, out=slope)  # posterior - prediction; the pull, by the same rule
        by_exponent = exponent * np.vdot(slope, log_shown)
        sums = np.asarray(total(engine, [np.log(likelihood).sum(), by_exponent, *slope.sum(axis=1)]))
        return float(-sums[0] - pull * n_tasks * (shares @ np.log(share))), -sums[1:]

    point = np.zeros(n_classes + 1) if start is None else np.append(np.log(start.exponent), start.shift)
    bounds = [tuple(np.log(_EXPONENTS)), *[(-_SHIFT, _SHIFT)] * n_classes]
    found = minimize(loss, point, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS}).x
    return Calibration(float(np.exp(found[0])), found[1:])


def pull_in_round(number: int, *, known: bool = False) -> float:
    """Return how strongly the class balance is pulled in a round, the second or a later one.

    The labels' shares are let go: workers who share mistakes give some classes too often. A balance that is `known` is
    not let go, because it tells of such mistakes what no label does.
    """
    return _KNOWN_PULL if known else _PULLS[min(number - 2, len(_PULLS) - 1)]


def label_shares(counts: Floats, leaning: Floats | None = None) -> Floats:
    """Return how often every class is given, of (n_workers, true, given) counts; none is impossible."""
    said = counts.sum(axis=(0, 1))
    given = (said if leaning is None else said @ leaning) + 1.0
    return np.asarray(given / given.sum())


def sample_tasks(annotations: Annotations, engine: Engine) -> tuple[Any, Engine]:
    """Return which tasks to calibrate by, and their engine: those with labels, or a draw of many, always the same."""
    labelled = np.flatnonzero(np.bincount(annotations.task, minlength=annotations.n_tasks))
    if len(labelled) == annotations.n_tasks <= _ENOUGH_TASKS:
        return slice(None), engine
    drawn = np.zeros(annotations.n_tasks, dtype=bool)
    if len(labelled) > _ENOUGH_TASKS:
        labelled = np.random.default_rng(0).choice(labelled, _ENOUGH_TASKS, replace=False)
    drawn[labelled] = True
    some: Engine = ScipyEngine(annotations.select(drawn), "float64")
    return drawn, SharedEngine(some) if isinstance(engine, SharedEngine) else some
