"""What each strategy is after, on states whose answer is known."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from router_states import everything, state_of

from labelonce import routing
from labelonce._types import Codes, Floats
from labelonce.routing import Router, Strategy
from labelonce.routing._state import State
from labelonce.routing._strategies import STRATEGIES
from labelonce.simulate import one_coin


def test_information_asks_a_specialist_about_what_it_knows() -> None:
    knows_0_or_1, knows_2_or_3 = np.full((4, 4), 0.25), np.full((4, 4), 0.25)
    knows_0_or_1[:2], knows_2_or_3[2:] = np.eye(4)[:2], np.eye(4)[2:]
    posterior = np.array([[0.49, 0.49, 0.01, 0.01], [0.01, 0.01, 0.49, 0.49]])
    state = state_of(posterior, np.stack([knows_0_or_1, knows_2_or_3]))
    best = [routing.Information(trial=0).scores(state, worker, everything(state)).argmax() for worker in (0, 1)]
    assert best == [0, 1]


def test_a_guesser_tells_nothing_and_an_unknown_worker_is_taken_for_the_population() -> None:
    state = state_of(np.array([[0.5, 0.5], [0.9, 0.1]]), np.full((1, 2, 2), 0.5))
    strategy = routing.Information(trial=0)
    assert_allclose(strategy.scores(state, 0, everything(state)), 0.0, atol=1e-12)
    confusion = one_coin([0.9, 0.7], 2)
    state = state_of(np.array([[0.5, 0.5]]), confusion)
    found = routing.Information(trial=0).scores(state, 7, everything(state))
    assert_allclose(found, state.belief.information(np.array([0]), one_coin([0.8], 2)), rtol=1e-9)


def test_a_new_worker_gets_tasks_with_the_fewest_labels_first() -> None:
    state = state_of(np.array([[0.5, 0.5], [0.9, 0.1]]), one_coin([0.8], 2))
    state.add(0, 1, [0])
    strategy = routing.Information(trial=2)
    assert strategy.scores(state, 0, everything(state)).argmax() == 1
    for task in range(2):
        state.add(task, 0, [0])
    assert strategy.scores(state, 0, everything(state)).argmax() == 0


def test_active_lab_is_the_published_average_of_model_and_labels() -> None:
    """Four tasks with two labels each, one of which is disputed, and one without: the formula of the paper by hand."""
    predictions = np.array([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5], [0.3, 0.7], [0.1, 0.9]])
    state = state_of(predictions, one_coin([0.8, 0.8], 2))
    for task, labels in {0: (0, 0), 1: (1, 1), 3: (1, 0), 4: (1, 1)}.items():
        for worker, label in enumerate(labels):
            state.add(task, worker, [label])
    state.answers.fit(np.ones(8, dtype=bool), 8)
    strategy = routing.ActiveLab()
    strategy.refitted(state)
    chance_error, agreement = 1 / 2, 3 / 4  # consensus 0 1 0 1: a tie goes to the first class
    weight = 1 - (1 - agreement) / chance_error
    model = (1 - 0.25 / chance_error) * np.sqrt(2)  # the model disagrees with one consensus of four
    likelihood = 7 / 8  # of the eight labels, seven are the consensus
    quality = (model * 0.8 + 2 * weight * likelihood + weight * 0.5) / (model + 3 * weight)
    scores = strategy.scores(state, 0, everything(state))
    assert_allclose(scores[0], 1 - quality, rtol=1e-6)
    assert_allclose(scores[2], 1 - (model * 0.5 + weight * 0.5) / (model + weight), rtol=1e-6)


def test_active_lab_counts_answers_since_the_fit() -> None:
    state = state_of(np.array([[0.6, 0.4], [0.6, 0.4]]), one_coin([0.8], 2))
    strategy = routing.ActiveLab()
    strategy.refitted(state)
    state.add(0, 0, [0])
    quality = [(0.6 + 0.8 + 0.5) / 3, (0.6 + 0.5) / 2]  # all weights are 1 before a fit
    assert_allclose(strategy.scores(state, 0, everything(state)), 1 - np.array(quality), rtol=1e-6)


def test_testing_workers_fires_and_hires_by_their_answers_where_it_pays() -> None:
    strategy = routing.WorkerTesting(skill=0.9, good=0.5, labels=50)
    state = State(range(8), range(2), gold=dict.fromkeys(range(8), 0))
    for worker in (0, 1):
        state.worker_code(worker)
    strategy.refitted(state)
    assert strategy.tests(state, 0)
    for task in range(6):
        for worker in (0, 1):
            state.add(task, worker, [worker])
    assert [strategy.accepts(state, worker) for worker in (0, 1)] == [True, False]
    assert not strategy.tests(state, 1)
    strategy = routing.WorkerTesting(labels=1)
    state = State(range(2), range(2), gold={0: 0, 1: 0})
    strategy.refitted(state)
    assert not strategy.tests(state, 0)


def test_adaptive_rounds_close_what_labels_have_decided_and_an_own_strategy_works() -> None:
    state = state_of(np.array([[0.5, 0.5], [0.99, 0.01]]), one_coin([0.99], 2))
    state.add(0, 0, [1])
    assert routing.AdaptiveRounds().settled(state, everything(state)).tolist() == [True, False]

    @dataclass
    class Last(Strategy):
        def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
            return 1.0 + worker * state.n_classes + tasks

    assert Router(["a", "b"], [0, 1], strategy=Last()).next("w") == "b"


@pytest.mark.parametrize("name", STRATEGIES)
def test_scores_are_at_least_zero_and_one_per_task(name: str) -> None:
    rng = np.random.default_rng(0)
    state = state_of(rng.dirichlet(np.ones(3), size=10), rng.dirichlet(np.ones(3), size=(4, 3)))
    for task, worker in zip(range(10), rng.integers(4, size=10), strict=True):
        state.add(task, int(worker), [int(rng.integers(3))])
    state.answers.fit(np.arange(10) < 5, 10)
    strategy = STRATEGIES[name]()
    strategy.refitted(state)
    for worker in (-1, 0, 9):
        scores = strategy.scores(state, worker, everything(state))
        assert scores.shape == (10,)
        assert (scores >= 0).all()


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_is_rebuilt_from_its_name_and_options(name: str) -> None:
    strategy = STRATEGIES[name]()
    assert routing._strategies.strategy_of(**strategy.to_dict()) == strategy
