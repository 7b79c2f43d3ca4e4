"""GLAD: the chance of a right label is a worker's ability times the task's easiness, on the scale of log-odds."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from labelonce._kernels import AnnotationSums, Factors, floored_log, posterior_of
from labelonce._sklearn import ConvergenceWarning
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_int, check_number
from labelonce.aggregation._base import Aggregator, Fit, warn_if_no_overlap
from labelonce.aggregation._em import fixed_prior
from labelonce.data import Annotations

_MAX_STEP = 1.0  # of ability and log-easiness in one Newton step: both have a prior of deviation 1
_HALVINGS = 4

Slopes = tuple[Floats, Floats]
"""The gradient, and the curvature with its sign changed, one number per coordinate."""


@dataclass(kw_only=True, eq=False, repr=False)
class GLAD(Aggregator):
    """EM with an ability per worker and a difficulty per task (Whitehill and others 2009), for any number of classes.

    Worker a gives the true label of task i with probability `sigmoid(ability[a] * exp(log_easiness[i]))`, else each
    other class with equal probability. An ability of 0 is a coin, a negative one an adversary. Both have a
    normal prior of mean 1 and deviation 1, as in the authors' code. The E-step adds
    `ability * easiness + log(n_classes - 1)` to the log-odds of a given class; the M-step takes a Newton step in all
    abilities at once, then one in all easinesses, each halved where it would lower the objective. So the
    objective, the log-likelihood plus the log-density of the priors, never falls.

    The other options are those of `DawidSkene`.

    Parameters
    ----------
    prior : "uniform" or (n_classes,) array
        P(true label).

    Attributes
    ----------
    ability_ : (n_workers,)
        On the log-odds scale.
    difficulty_ : (n_tasks,)
        One over easiness: 0 is a task that anybody with ability gets right.

    Notes
    -----
    `confusion_` is the one-coin matrix of each worker's expected share of right labels, with one label more of a worker
    and a task of prior mean.

    References
    ----------
    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan, "Whose Vote Should Count More: Optimal Integration
    of Labels from Labelers of Unknown Expertise", NIPS 2009.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1]])
    >>> model = lo.GLAD().fit(ann)
    >>> model.ability_.round(2)
    array([1.25, 1.25, 0.8 , 0.06])
    >>> model.difficulty_.argmax()  # the task with two labels against two
    np.int64(2)
    """

    prior: Any = "uniform"
    max_iter: int = 500
    tol: float = 1e-7
    random_state: RandomState = 0

    ability_: Floats = field(init=False)
    difficulty_: Floats = field(init=False)

    _tables = (5, 0)

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)
        prior = fixed_prior(self.prior, annotations.n_classes)
        warn_if_no_overlap(annotations, "GLAD")
        model = AbilityAndEasiness(annotations, floored_log(prior), gold)
        path: list[float] = []
        converged = False
        while len(path) < self.max_iter and not converged:
            posterior, objective = model.e_step()
            path.append(objective)
            converged = len(path) > 1 and path[-1] - path[-2] <= self.tol * len(annotations)
            if not converged:
                model.m_step(posterior)
        if not converged:
            warnings.warn(
                f"GLAD stopped after {len(path)} iterations before the objective per annotation changed by at most "
                f"{self.tol:g}. Raise max_iter, or tol if that is close enough.",
                ConvergenceWarning,
                stacklevel=3,
            )
        confusion = Factors.one_coin(model.skill(posterior), annotations.n_classes)
        more = {"ability_": model.ability, "difficulty_": np.exp(-model.log_easiness)}
        return Fit(posterior, confusion, prior, np.array(path), converged, more=more)


class AbilityAndEasiness:
    """The parameters of GLAD on some annotations, and the two steps of EM."""

    def __init__(self, annotations: Annotations, log_prior: Floats, gold: Codes | None) -> None:
        self._sums = AnnotationSums(annotations)
        self._log_prior, self._gold = log_prior, gold
        self._log_others = np.log(max(annotations.n_classes - 1, 1))
        self.ability: Floats = np.ones(annotations.n_workers)
        self.log_easiness: Floats = np.ones(annotations.n_tasks)

    def log_odds(self) -> Floats:
        easiness = np.exp(self.log_easiness)
        return np.asarray(self.ability[self._sums.worker] * easiness[self._sums.task])

    def e_step(self) -> tuple[Floats, float]:
        """Return the posterior and the objective: log-likelihood plus log-density of the priors."""
        log_odds = self.log_odds()
        log_wrong = -_softplus(log_odds) - self._log_others
        log_joint = self._sums.by_class(log_odds + self._log_others) + self._log_prior
        posterior, log_likelihood = posterior_of(log_joint, self._gold)
        density = -0.5 * (((self.ability - 1) ** 2).sum() + ((self.log_easiness - 1) ** 2).sum())
        return posterior, float(log_likelihood + log_wrong.sum() + density)

    def m_step(self, posterior: Floats) -> None:
        """Take a Newton step in all abilities, then one in all easinesses; never one downwards."""
        agreed, sums = self._sums.at_label(posterior), self._sums
        easiness = np.exp(self.log_easiness)[sums.task]

        def by_ability(ability: Floats) -> tuple[Floats, Callable[[], Slopes]]:
            return _at(agreed, ability[sums.worker], easiness, easiness, sums.by_worker, ability)

        self.ability = newton_step(self.ability, by_ability)
        ability = self.ability[sums.worker]

        def by_easiness(log_easiness: Floats) -> tuple[Floats, Callable[[], Slopes]]:
            easiness = np.exp(log_easiness)[sums.task]
            return _at(agreed, ability, easiness, ability * easiness, sums.by_task, log_easiness)

        self.log_easiness = newton_step(self.log_easiness, by_easiness)

    def skill(self, posterior: Floats) -> Floats:
        """Return each worker's expected share of right labels, shape (n_workers,), one label of a new worker added."""
        right, labels = self._sums.by_worker(self._sums.at_label(posterior)), self._sums.by_worker()
        return np.asarray((right + expit(np.e)) / (labels + 1))


def _at(
    agreed: Floats, ability: Floats, easiness: Floats, slope: Floats, add: Callable[[Floats], Floats], point: Floats
) -> tuple[Floats, Callable[[], Slopes]]:
    """Return the expected log-likelihood plus log-prior of each coordinate, and its slopes on demand.

    `slope` is the derivative of an annotation's log-odds by its coordinate; the curvature is Fisher's.
    """
    log_odds = ability * easiness
    value = add(agreed * log_odds - _softplus(log_odds)) - 0.5 * (point - 1) ** 2

    def slopes() -> Slopes:
        right = expit(log_odds)
        return add((agreed - right) * slope) - (point - 1), add(right * (1 - right) * slope**2) + 1

    return value, slopes


def newton_step(point: Floats, at: Callable[[Floats], tuple[Floats, Callable[[], Slopes]]]) -> Floats:
    """Return a better point, each coordinate on its own: a Newton step, halved while it lowers that coordinate's value.

    `at` gives the value of every coordinate and a function for its slopes.
    """
    value, slopes = at(point)
    gradient, curvature = slopes()
    step = np.clip(gradient / curvature, -_MAX_STEP, _MAX_STEP)
    for _ in range(_HALVINGS):
        worse = at(point + step)[0] < value
        if not worse.any():
            return np.asarray(point + step)
        step[worse] /= 2
    step[at(point + step)[0] < value] = 0
    return np.asarray(point + step)


def _softplus(x: Floats) -> Floats:
    """Return log(1 + exp(x)) without overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))
