"""Where there are many tasks, the shortlist holds the ones that anybody would choose."""

import numpy as np
import pytest
from router_states import everything, state_of

from labelonce import routing
from labelonce.routing import _pool
from labelonce.routing._pool import Pool
from labelonce.routing._state import State


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> State:
    """300 tasks and shortlists of 60."""
    monkeypatch.setattr(_pool, "_NUMBERS", 180)
    monkeypatch.setattr(_pool, "_FEWEST", 10)
    confusion = np.stack([np.eye(3) * 0.7 + 0.1, np.full((3, 3), 1 / 3)])
    confusion[1, 2] = [0.05, 0.05, 0.9]  # knows one class
    return state_of(np.random.default_rng(0).dirichlet(np.full(3, 0.5), size=300), confusion)


@pytest.mark.parametrize("worker", [0, 1, 2])
def test_the_best_task_of_every_worker_is_in_the_pool(state: State, worker: int) -> None:
    strategy = routing.Information(trial=0)
    pool = Pool.draw(state, strategy, everything(state))
    assert len(pool.tasks) <= 60
    assert int(strategy.scores(state, worker, everything(state)).argmax()) in pool.tasks.tolist()


def test_a_task_that_was_outside_joins_when_it_is_offered(state: State) -> None:
    pool = Pool.draw(state, routing.Random(), everything(state)[1:])
    pool.set_free(0, free=True)
    assert pool.tasks[pool.free][-1] == 0


def test_among_equal_tasks_the_shortlist_is_left_to_chance(state: State) -> None:
    many = State(range(5000), range(3))
    pools = [Pool.draw(many, routing.Information(), everything(many)) for _ in range(30)]
    assert max(len(pool.tasks) for pool in pools) < len(state.gold)
    assert 0.4 < np.mean([(pool.tasks < 2500).mean() for pool in pools]) < 0.6


def test_the_next_pool_is_due_before_this_one_is_used_up() -> None:
    pool, found = Pool(np.arange(32, dtype=np.int32), 100, is_all=False), []
    for place in range(8):
        pool.take(place)
        found.append((pool.half_used, pool.used_up))
    assert found == [(False, False)] * 3 + [(True, False)] * 4 + [(True, True)]
    whole = Pool(np.arange(32, dtype=np.int32), 32, is_all=True)
    for place in range(32):
        whole.take(place)
    assert not whole.half_used
