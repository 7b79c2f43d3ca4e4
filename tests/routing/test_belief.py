"""A belief is updated exactly, one answer at a time."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce._types import Floats
from labelonce.routing import Belief


def bayes(prior: Floats, confusion: Floats, labels: list[int]) -> Floats:
    """The posterior after all labels at once, as a brute-force product."""
    joint = prior * np.prod([confusion[:, label] for label in labels], axis=0)
    return np.asarray(joint / joint.sum())


def test_answers_one_by_one_give_the_posterior_of_all_at_once() -> None:
    rng = np.random.default_rng(0)
    prior, confusion = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), size=4)
    belief = Belief(np.stack([prior, np.full(4, 0.25)]))
    for label in (1, 3, 1, 0):
        belief.update(0, np.log(confusion[:, label]))
    assert_allclose(belief.posterior()[0], bayes(prior, confusion, [1, 3, 1, 0]), rtol=1e-9)


def test_an_answer_leaves_other_tasks_alone() -> None:
    belief = Belief(np.full((3, 2), 0.5))
    belief.update(1, np.log([0.9, 0.1]))
    assert_allclose(belief.posterior()[[0, 2]], 0.5, rtol=1e-12)


def test_the_mean_risk_is_that_of_the_posteriors_after_updates_and_after_a_refit() -> None:
    rng = np.random.default_rng(1)
    belief = Belief(rng.dirichlet(np.ones(3), size=20))
    for task in rng.integers(20, size=50):
        belief.update(int(task), np.log(rng.dirichlet(np.ones(3))))
    assert_allclose(belief.mean_risk, 1 - belief.posterior().max(axis=1).mean(), rtol=1e-9)
    belief.replace(rng.normal(size=(20, 3)))
    assert_allclose(belief.mean_risk, 1 - belief.posterior().max(axis=1).mean(), rtol=1e-9)


def test_a_thousand_answers_do_not_underflow() -> None:
    belief = Belief(np.full((1, 2), 0.5))
    for _ in range(1000):
        belief.update(0, np.log([0.3, 0.2]))
    assert_allclose(belief.posterior(), [[1.0, 0.0]], atol=1e-12)


def test_what_is_kept_is_what_would_be_computed_after_updates_and_after_a_refit() -> None:
    rng = np.random.default_rng(3)
    belief, tasks = Belief(rng.dirichlet(np.ones(3), 8)), np.array([5, 1, 6])
    belief.keep(tasks)
    for task in (1, 2, 6, 1):
        belief.update(task, np.log(rng.dirichlet(np.ones(3))))
        assert_allclose(belief.posterior(tasks), belief.posterior(tasks.copy()), rtol=1e-12)
    belief.replace(rng.normal(size=(8, 3)))
    belief.keep(tasks)
    assert_allclose(belief.posterior(tasks), belief.posterior(tasks.copy()), rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        tasks[0] = 2
