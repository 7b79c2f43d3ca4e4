from typing import Any

import numpy as np
from crowds import crowd
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import expit

from labelonce import GLAD, Annotations, OneCoin, metrics, simulate
from labelonce._types import Codes, Floats
from labelonce.aggregation._glad import AbilityAndEasiness, newton_step

UNIFORM = np.log(np.full(3, 1 / 3))


def drawn_from_the_model(ability: Floats, n_tasks: int, n_classes: int) -> tuple[Annotations, Codes, Floats]:
    """Return annotations of workers with these abilities, the true labels and the easiness of the tasks."""
    rng = np.random.default_rng(0)
    log_easiness, y_true = rng.normal(0.5, 1, n_tasks), rng.integers(0, n_classes, n_tasks, dtype=np.int32)
    worker = simulate.assign(n_tasks, len(ability), 10, rng, replace=False)
    right = rng.random(worker.shape) < expit(ability[worker] * np.exp(log_easiness)[:, None])
    other = (y_true[:, None] + rng.integers(1, n_classes, worker.shape)) % n_classes
    label, task = np.where(right, y_true[:, None], other), np.repeat(np.arange(n_tasks), 10)
    ann = Annotations.from_arrays(task, worker.ravel(), label.ravel(), classes=range(n_classes))
    return ann, y_true, log_easiness


def objective(flat: Floats, ann: Annotations) -> float:
    """The log-likelihood plus log-priors, by sums over classes and annotations, abilities first."""
    ability, log_easiness = flat[: ann.n_workers], flat[ann.n_workers :]
    total = -0.5 * float(((flat - 1) ** 2).sum())
    for task in range(ann.n_tasks):
        rows = np.flatnonzero(ann.task == task)
        right = expit(ability[ann.worker[rows]] * np.exp(log_easiness[task]))
        likelihoods = [np.where(ann.label[rows] == k, right, (1 - right) / 2).prod() for k in range(3)]
        total += np.log(np.mean(likelihoods))
    return total


def test_recovers_simulated_abilities_and_difficulties_up_to_the_scale_of_the_prior() -> None:
    ability = np.linspace(-0.3, 1.2, 20)
    ann, y_true, log_easiness = drawn_from_the_model(ability, 3000, 3)
    model = GLAD().fit(ann)
    assert np.corrcoef(model.ability_, ability)[0, 1] > 0.98
    assert np.corrcoef(-np.log(model.difficulty_), log_easiness)[0, 1] > 0.65
    assert metrics.accuracy(y_true, model.posterior_) > metrics.accuracy(y_true, OneCoin().fit(ann).posterior_) - 0.002


def test_objective_equals_a_sum_over_classes_and_the_fit_is_its_maximum() -> None:
    ann, _ = crowd(n_tasks=8, n_workers=6)
    model = AbilityAndEasiness(ann, UNIFORM, None)
    rng = np.random.default_rng(0)
    model.ability, model.log_easiness = rng.normal(1, 1, 6), rng.normal(0, 1, 8)
    flat = np.concatenate([model.ability, model.log_easiness])
    assert_allclose(model.e_step()[1], objective(flat, ann), rtol=1e-9)
    model = GLAD(tol=0.0, max_iter=3000)
    model.fit(ann)
    flat = np.concatenate([model.ability_, -np.log(model.difficulty_)])
    assert_allclose(approx_fprime(flat, objective, 1e-6, ann), 0, atol=1e-3)


def test_newton_step_halves_until_no_coordinate_falls() -> None:
    def cliff(point: Floats) -> Any:  # Newton's step of 1 overshoots the top at 0.2
        return -((point - 0.2) ** 4), lambda: (np.full(2, 5.0), np.ones(2))

    start = np.zeros(2)
    end = newton_step(start, cliff)
    assert (cliff(end)[0] >= cliff(start)[0]).all()
    assert (end > 0).all()
