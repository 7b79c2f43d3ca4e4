"""Simulation of the user's own problem: the pilot's features, learner and workers, its predictions as the truth."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelonce._kernels import floored_log
from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import Codes, Estimate, Floats
from labelonce.data import Annotations, hold_out_tasks
from labelonce.learning import MBEM, match_rows, take_rows
from labelonce.planning._crowd import Crowd, with_skill
from labelonce.planning._curve import Curve, Money, Row
from labelonce.planning._pilot import Pilot
from labelonce.simulate import annotate, assign

Progress = Callable[[int, int], None]

TRUTHS = ("picks", "draws")
FOLDS = 4  # fits that measure the real pilot
FEWEST_FITS = FOLDS + 2 * len(TRUTHS)
_MOST_TASKS = 4000  # of a simulated fit
_MOST_TESTED = 2000
_TESTED = 0.25  # share of the rows that the fits do not see
_MOST_ROUNDS = 3
_POINTS = 4  # redundancies simulated
_CLEAR = 0.01  # gain of another redundancy, in accuracy, that overrules the information
_LEVEL = 1.645  # standard deviations on each side of a 90 % range
_SKILL_SHIFTS = np.linspace(-0.1, 0.25, 15)
_DOUBT = 0.05  # standard deviation of the accuracy for what no simulation knows
_STEEPEST = 1.5  # exponent of a learning curve
_FLATTEST = -0.05  # a flatter curve says that no more labels bring a point


@dataclass(frozen=True)
class Simulation:
    """What simulated fits reached."""

    redundancies: tuple[int, ...]  # (n_points,)
    worth: Floats  # (n_points,): Of the labels bought, at the size of the simulation
    # (n_repeats, 2, n_points): On tasks that the fits did not see; the true labels are the pilot model's picks, or
    # drawn from its predictions
    accuracy: Floats
    pilot: Floats  # (n_repeats, 2): The accuracy for a simulated pilot, otherwise the same
    level: float  # Accuracy of the real pilot's model on tasks that it did not see, by their labels
    level_error: float  # Standard error of `level`
    scale: float  # Size of the simulation as a share of the plan's
    fits: int


@dataclass(frozen=True)
class _Problem:
    """The rows, what is fitted to them, and how a simulated crowd labels them."""

    X: Any
    probabilities: Floats
    clf: MBEM
    crowd: Crowd

    def fit(self, rows: Codes, y_true: Codes, confusion: Floats, redundancy: int, rng: np.random.Generator) -> MBEM:
        """Return a fit to labels that the crowd gives these rows."""
        worker = assign(len(rows), len(confusion), redundancy, rng, replace=False, load=self.crowd.load)
        drawn = annotate(y_true[rows], confusion, worker, rng)
        codes = (drawn.task, drawn.worker, drawn.label)
        annotations = Annotations(*codes, drawn.tasks, drawn.workers, self.clf.classes_)  # groups name the classes
        return self.fit_labels(annotations, rows)

    def fit_labels(self, annotations: Annotations, rows: Codes) -> MBEM:
        """Return a short fit, of the pilot's recipe, to labels of some rows."""
        recipe = self.clf.recipe_
        short = MBEM(
            clone(recipe["learner"]),
            rounds=min(self.clf.n_rounds_, _MOST_ROUNDS),
            folds=1 if recipe["predictions"] == "in_sample" else "auto",
            worker_model=clone(recipe["worker_model"]),
            prior=self.clf.prior,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit doubts belongs to the fit of the pilot
            return short.fit(take_rows(self.X, rows), annotations, tasks=annotations.tasks)


def simulate_problem(
    pilot: Pilot, crowd: Crowd, found: Curve, *, fits: int, seed: int, progress: Progress
) -> Simulation:
    """Fit what the plan could buy, at a few redundancies, to labels of simulated crowds; at most `fits` times.

    All redundancies of a repeat share truth, workers and tasks. The number of tasks is cut where there are fewer
    rows of features.
    """
    clf, features, annotations = check_simulated(pilot)
    problem = _Problem(features, np.asarray(clf.predict_proba(features), dtype=np.float64), clf, crowd)
    points = _points(found, (fits - FOLDS) // len(TRUTHS) - 1)
    n_repeats = max(1, (fits - FOLDS) // (len(TRUTHS) * (len(points) + 1)))
    total = FOLDS + n_repeats * len(TRUTHS) * (len(points) + 1)
    progress(0, total)
    level, error = _level(problem, annotations, np.random.default_rng([seed, 4]))
    progress(FOLDS, total)
    n_test = min(_MOST_TESTED, int(np.ceil(_TESTED * len(problem.probabilities))))
    rows = [row for row in found.rows if row.redundancy in points]
    most = min(_MOST_TASKS, len(problem.probabilities) - n_test)
    scale = min(1.0, most / max(row.tasks for row in rows))
    n_labelled = len(np.unique(annotations.task))
    buys = [(min(n_labelled, most), min(max(1, round(len(annotations) / n_labelled)), len(crowd.load)))]
    buys += [(max(1, round(scale * row.tasks)), row.redundancy) for row in rows]
    repeats = []
    for repeat in range(n_repeats):
        repeats.append(_repeat(problem, buys, n_test, np.random.default_rng([seed, 3, repeat])))
        progress(FOLDS + (repeat + 1) * (total - FOLDS) // n_repeats, total)
    reached = np.array(repeats)
    worth = np.array([n * row.information for row, (n, _) in zip(rows, buys[1:], strict=True)])
    return Simulation(tuple(points), worth, reached[:, :, 1:], reached[:, :, 0], level, error, scale, total)


def check_simulated(pilot: Pilot) -> tuple[MBEM, Any, Annotations]:
    """Return the pilot's fit, features and annotations in one order; anything else cannot be simulated."""
    if not isinstance(pilot.workers, MBEM):
        raise TypeError(
            "features must go with a fitted MBEM, whose model stands for the truth; got "
            f"{type(pilot.workers).__name__}. Leave features out, or fit MBEM to the pilot."
        )
    check_is_fitted(pilot.workers, "model_")
    if pilot.annotations is None:
        raise ValueError(
            "features must go with the pilot's annotations (row i of features is task i); got no annotations. "
            "Call ann.align(tasks) where features has more rows than tasks were labelled."
        )
    features, annotations = match_rows(pilot.features, pilot.annotations, classes=pilot.workers.classes_)
    return pilot.workers, features, annotations


def _repeat(problem: _Problem, buys: list[tuple[int, int]], n_test: int, rng: np.random.Generator) -> list[list[float]]:
    """Return the accuracy of every purchase of (tasks, redundancy) in one crowd, for both truths."""
    order = rng.permutation(len(problem.probabilities)).astype(np.int32)
    test, train = order[:n_test], order[n_test:]
    confusion = problem.crowd.draw(rng)
    found = []
    for truth in TRUTHS:
        y_true = _truth(problem.probabilities, truth, rng)
        fits = (problem.fit(train[:n], y_true, confusion, redundancy, rng) for n, redundancy in buys)
        found.append([float(np.mean(_picks(fit, take_rows(problem.X, test)) == y_true[test])) for fit in fits])
    return found


def _level(problem: _Problem, annotations: Annotations, rng: np.random.Generator) -> tuple[float, float]:
    """Return the pilot model's out-of-fold accuracy by the labels, and its standard error.

    Models are fitted without a part of the tasks. The accuracy is the one that explains the labels of these tasks, seen
    through the workers' confusion: mean and standard deviation by its likelihood, every accuracy being as probable, and
    every shift of all skills as well. A poor model makes good workers look poor, and then itself look good; where tasks
    have several labels, their agreement tells the two apart.
    """
    tasks, picks = _unseen_picks(problem, annotations, rng)
    confusion, prior = problem.clf.confusion_, np.full(annotations.n_classes, 1 / annotations.n_classes)
    skill = np.einsum("wkk,k->w", confusion, prior)
    grid = np.linspace(0.005, 0.995, 100)
    log_likelihood = []
    for shift in _SKILL_SHIFTS:
        shifted = floored_log(with_skill(confusion, np.clip(skill + shift, 0.01, 0.99), prior))
        log_said = np.zeros((annotations.n_tasks, annotations.n_classes))
        np.add.at(log_said, annotations.task, shifted[annotations.worker, :, annotations.label])
        said = np.exp(log_said[tasks])
        right = said[np.arange(len(tasks)), picks]
        wrong = (said.sum(axis=1) - right) / (annotations.n_classes - 1)
        mixed = grid[:, None] * right + (1 - grid[:, None]) * wrong
        log_likelihood.append(np.log(np.maximum(mixed, 1e-300)).sum(axis=1))
    found = np.array(log_likelihood)
    weight = np.exp(found - found.max()).sum(axis=0)
    weight /= weight.sum()
    mean = float(weight @ grid)
    return mean, float(np.sqrt(weight @ (grid - mean) ** 2))


def _unseen_picks(problem: _Problem, annotations: Annotations, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Return the labelled tasks and, for each, the out-of-fold predicted class."""
    tasks, picks = [], []
    for kept, held in hold_out_tasks(annotations, 1 / FOLDS, FOLDS, rng):
        rows, unseen = np.unique(kept.task), np.unique(held.task)
        labelled = np.bincount(rows, minlength=kept.n_tasks) > 0
        tasks.append(unseen)
        picks.append(_picks(problem.fit_labels(kept.select(labelled), rows), take_rows(problem.X, unseen)))
    return np.concatenate(tasks), np.concatenate(picks)


def _points(found: Curve, most: int) -> list[int]:
    """Return the redundancies to simulate: the best, half and twice as many, and one."""
    known = [row.redundancy for row in found.rows]
    wanted = [found.best, 1, 2 * found.best, max(2, found.best // 2), 3]
    near = [min(known, key=lambda one: (abs(one - redundancy), one)) for redundancy in wanted]
    return sorted(list(dict.fromkeys(near))[: min(most, _POINTS)])


def _truth(probabilities: Floats, truth: str, rng: np.random.Generator) -> Codes:
    """Return a true class for every row: the predicted class, or a draw from the prediction."""
    if truth == "picks":
        return np.asarray(probabilities.argmax(axis=1), dtype=np.int32)
    cumulative = np.cumsum(probabilities, axis=1)
    drawn = (rng.random((len(cumulative), 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)
    return np.asarray(np.minimum(drawn, probabilities.shape[1] - 1), dtype=np.int32)


def _picks(fitted: MBEM, X: Any) -> Codes:
    return np.asarray(fitted.predict_proba(X).argmax(axis=1), dtype=np.int32)


def with_accuracy(found: Curve, simulation: Simulation) -> Curve:
    """Return the curve with the accuracy to expect at every redundancy.

    Two estimates are averaged: what simulated fits reach where the pilot's picks are the truth, and the accuracy of the
    real pilot plus what simulated fits gain over a simulated pilot, for the truth with the smaller gain. Their distance
    is part of the doubt, and so is that the model may be the limit: the range reaches down to the pilot's.
    """
    simulated = 1 - np.stack([_errors(simulation, kind, found) for kind in range(len(TRUTHS))])
    gained = np.maximum((simulated - simulation.pilot.mean(axis=0)[:, None]).min(axis=0), 0)
    grown = np.clip(simulation.level + gained, 0, 1)
    value = (simulated[0] + grown) / 2
    deviation = np.sqrt(((simulated[0] - grown) / 2) ** 2 + (simulation.level_error / 2) ** 2 + _DOUBT**2)
    pilot = max(0.0, simulation.level - simulation.level_error)
    rows = []
    for i, row in enumerate(found.rows):
        low, high = np.clip(value[i] + np.array([-_LEVEL, _LEVEL]) * deviation[i], 0, 1)
        expected = Estimate(float(value[i]), min(float(low), pilot), float(high))
        rows.append(_with_simulated(replace(row, accuracy=expected), simulation))
    return replace(found, rows=tuple(rows))


def _errors(simulation: Simulation, kind: int, found: Curve) -> Floats:
    """Return the error at every row of the curve: a power law in the worth, fitted to the simulated fits."""
    slope, x, y = _power_law(simulation, kind)
    worth = np.log([max(row.worth, 1e-9) for row in found.rows])
    return np.asarray(np.clip(np.exp(y + slope * (worth - x)), 0, 1))


def model_point_cost(row: Row, simulation: Simulation | None, money: Money) -> float | None:
    """Return what one more point of the model's accuracy costs, by more tasks; None where there are no more tasks."""
    if simulation is None or row.accuracy is None or (money.pool is not None and row.tasks >= money.pool):
        return None
    slope, error = _power_law(simulation, 0)[0], 1 - row.accuracy.value
    if slope > _FLATTEST or error <= 0.01:
        return None
    return float(row.cost * ((1 - 0.01 / error) ** (1 / slope) - 1))


def _power_law(simulation: Simulation, kind: int) -> tuple[float, float, float]:
    """Return the exponent of the error as a power of the worth, and the mean logs of worth and error."""
    errors = np.clip(1 - simulation.accuracy[:, kind].mean(axis=0), 1e-3, 1)
    x, y = np.log(simulation.worth), np.log(errors)
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / spread) if spread > 1e-3 else -0.5
    return float(np.clip(slope, -_STEEPEST, 0.0)), float(x.mean()), float(y.mean())


def _with_simulated(row: Row, simulation: Simulation) -> Row:
    if row.redundancy not in simulation.redundancies:
        return row
    values = simulation.accuracy[:, :, simulation.redundancies.index(row.redundancy)].mean(axis=1)
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return replace(row, simulated=float(values.mean()), simulated_error=error)


def clearly_better(simulation: Simulation, best: int) -> int:
    """Return the redundancy that the simulation puts above `best` in every repeat and by a point, else `best`."""
    own = simulation.accuracy[:, :, simulation.redundancies.index(best)]
    places = enumerate(simulation.redundancies)
    gains = {redundancy: simulation.accuracy[:, :, place] - own for place, redundancy in places}
    clear = {one: gain.mean() for one, gain in gains.items() if gain.min() > 0 and gain.mean() > _CLEAR}
    return max(clear, key=lambda one: clear[one]) if clear else best
