"""A belief is updated exactly, one answer at a time, for tasks with one question and with several."""

import numpy as np
from numpy.testing import assert_allclose

from labelonce.routing import Belief
from labelonce.routing._belief import Crowd, possible

RNG = np.random.default_rng(0)


def test_answers_one_by_one_give_the_posterior_of_all_at_once() -> None:
    prior, confusion = RNG.dirichlet(np.ones(4)), RNG.dirichlet(np.ones(4), size=4)
    belief = Belief(np.stack([prior, np.full(4, 0.25)]))
    for label in (1, 3, 1, 0):
        belief.update(0, confusion[:, label])
    joint = prior * np.prod(confusion[:, [1, 3, 1, 0]], axis=1)
    assert_allclose(belief.posterior(), [joint / joint.sum(), np.full(4, 0.25)], rtol=1e-9)


def test_an_answer_to_several_questions_is_one_to_each() -> None:
    prior, confusion = RNG.dirichlet(np.ones(2), size=6), RNG.dirichlet(np.ones(2), size=(1, 3, 2))
    several, alone = Belief(prior, 3), Belief(prior)
    crowd = Crowd(confusion, confusion[0])
    several.update(1, crowd.chances(0, [1, 0, 1]))
    for question, label in enumerate([1, 0, 1]):
        alone.update(3 + question, confusion[0, question, :, label])
    assert_allclose(several.posterior(), alone.posterior(), rtol=1e-12)
    assert_allclose(several.risk, alone.risk.reshape(2, 3).max(axis=1))
    assert_allclose(several.mean_risk, alone.mean_risk)


def test_the_risk_is_that_of_the_posteriors_and_answers_bring_back_what_a_fit_ruled_out() -> None:
    belief = Belief(RNG.dirichlet(np.ones(3), size=20))
    for task in RNG.integers(20, size=50):
        belief.update(int(task), RNG.dirichlet(np.ones(3)))
    assert_allclose(belief.risk, 1 - belief.posterior().max(axis=1), rtol=1e-9)
    assert_allclose(belief.mean_risk, belief.risk.mean(), rtol=1e-9)
    belief = Belief(possible(np.array([[1.0, 0.0]])))
    for _ in range(20):
        belief.update(0, np.array([0.1, 0.9]))
    assert belief.posterior()[0, 1] > 0.9


def test_a_thousand_answers_can_be_counted_and_taken_out_again() -> None:
    belief = Belief(np.full((1, 2), 0.5))
    for _ in range(1000):
        belief.update(0, np.array([0.3, 0.2]))
    assert_allclose(belief.posterior(), [[1.0, 0.0]], atol=1e-12)
    for _ in range(1000):
        belief.update(0, 1 / np.array([0.3, 0.2]))
    assert_allclose(belief.posterior(), [[0.5, 0.5]], rtol=1e-9)


def test_information_is_that_of_the_joint_table_summed_over_questions() -> None:
    posterior, confusion = RNG.dirichlet(np.ones(3), size=5), RNG.dirichlet(np.ones(3), size=3)
    for row, found in zip(posterior, Belief(posterior).information(slice(None), confusion[None]), strict=True):
        joint = row[:, None] * confusion
        product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        assert_allclose(found, (joint * np.log(joint / product)).sum(), rtol=1e-9)
    posterior, confusion = RNG.dirichlet(np.ones(2), size=8), RNG.dirichlet(np.ones(2), size=(4, 2, 2))
    each = [Belief(posterior[place::2]).information(slice(None), confusion[:, [place]]) for place in range(2)]
    assert_allclose(Belief(posterior, 2).information(slice(None), confusion), sum(each), rtol=1e-9)
