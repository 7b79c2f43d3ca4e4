"""What the strategies of the related work are after, on states whose answer is known."""

from itertools import product

import numpy as np
import pytest
import strategies
from numpy.testing import assert_allclose
from router_states import everything, state_of

from labelonce.routing import Limits, Router, Strategy
from labelonce.simulate import one_coin

ALL: list[Strategy] = [
    *(strategies.ModelUncertainty(), strategies.LabelModelUncertainty(), strategies.IntervalEstimation()),
    *(strategies.RiskThreshold(), strategies.ExpertList(), strategies.ImpactSampling()),
]


def test_label_model_uncertainty_is_lowest_where_both_are_sure() -> None:
    state = state_of(np.array([[0.9, 0.1], [0.5, 0.5], [0.9, 0.1]]), one_coin([0.8], 2))
    for task, worker in product((0, 1), range(3)):
        state.add(task, worker, [0])
    scores = strategies.LabelModelUncertainty().scores(state, 0, everything(state))
    assert scores[0] < min(scores[1:])
    assert_allclose(scores[2] ** 2, 0.5 * 0.1, rtol=1e-5)  # no vote is doubt 1/2, the model's is 0.1


def test_impact_prefers_what_would_move_most() -> None:
    state = state_of(np.array([[0.5, 0.5], [0.99, 0.01]]), one_coin([0.9], 2))
    strategy = strategies.ImpactSampling()
    strategy.refitted(state)
    scores = strategy.scores(state, 0, everything(state))
    assert_allclose(scores[0], 0.4, rtol=1e-9)  # from 1/2 to 0.9 whatever the answer
    assert scores[1] < scores[0]


@pytest.mark.parametrize("strategy", [strategies.IntervalEstimation(), strategies.ExpertList()])
def test_who_is_surely_bad_is_declined(strategy: Strategy) -> None:
    state = state_of(np.full((60, 2), 0.5), one_coin([0.99, 0.99, 0.1], 2))
    for task in range(60):
        for worker in range(3):
            state.add(task, worker, [int(worker == 2)])
    state.answers.fit(np.ones(180, dtype=bool), 180)
    strategy.refitted(state)
    assert [strategy.accepts(state, worker) for worker in range(4)] == [True, True, False, True]


@pytest.mark.parametrize("strategy", [strategies.RiskThreshold(risk=0.1), strategies.ExpertList(risk=0.1)])
def test_tasks_below_the_risk_are_settled(strategy: Strategy) -> None:
    state = state_of(np.array([[0.95, 0.05], [0.8, 0.2]]), one_coin([0.8], 2))
    assert strategy.settled(state, everything(state)).tolist() == [True, False]


@pytest.mark.parametrize("strategy", ALL, ids=str)
def test_scores_are_at_least_zero_and_one_per_task(strategy: Strategy) -> None:
    rng = np.random.default_rng(0)
    state = state_of(rng.dirichlet(np.ones(3), size=10), rng.dirichlet(np.ones(3), size=(4, 3)))
    for task, worker in zip(range(10), rng.integers(4, size=10), strict=True):
        state.add(task, int(worker), [int(rng.integers(3))])
    state.answers.fit(np.arange(10) < 5, 10)
    strategy.refitted(state)
    for worker in (-1, 0, 9):
        scores = strategy.scores(state, worker, everything(state))
        assert scores.shape == (10,)
        assert (scores >= 0).all()


@pytest.mark.parametrize("strategy", ALL, ids=str)
def test_a_router_takes_them(strategy: Strategy) -> None:
    router = Router(["a", "b"], ["yes", "no"], strategy=strategy, limits=Limits(may_decline=True))
    assert router.next("ann") in {"a", "b"}
