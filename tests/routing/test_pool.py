"""Where there are many tasks, the shortlist holds the ones that anybody would choose."""

import numpy as np
import pytest

from labelonce import routing
from labelonce.routing import _pool
from labelonce.routing._pool import Pool
from labelonce.routing._state import State


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> State:
    """300 tasks and shortlists of 60."""
    monkeypatch.setattr(_pool, "_NUMBERS", 180)
    monkeypatch.setattr(_pool, "_FEWEST", 10)
    rng = np.random.default_rng(0)
    state = State(3, None, np.ones(300), np.full(300, -1, dtype=np.int32), 0)
    state.belief.replace(np.log(rng.dirichlet(np.full(3, 0.5), size=300)))
    confusion = np.stack([np.eye(3) * 0.7 + 0.1, np.full((3, 3), 1 / 3)])
    confusion[1, 2] = [0.05, 0.05, 0.9]  # knows one class
    state.know_workers(confusion, confusion.mean(axis=0))
    return state


@pytest.mark.parametrize("worker", [0, 1, 2])
def test_the_best_task_of_every_worker_is_in_the_pool(state: State, worker: int) -> None:
    strategy, everything = routing.Information(trial=0), np.arange(300, dtype=np.int32)
    pool = Pool.draw(state, strategy, everything, np.zeros(0, dtype=np.int32))
    assert len(pool.tasks) <= 60
    assert int(strategy.scores(state, worker, everything).argmax()) in pool.tasks.tolist()


def test_tasks_that_are_out_or_closed_are_not_free(state: State) -> None:
    leased = np.arange(200, 300, dtype=np.int32)
    pool = Pool.draw(state, routing.Random(), np.arange(100, 300, dtype=np.int32), leased)
    assert pool.tasks.min() >= 100
    assert pool.tasks[pool.free].max() < 200


def test_a_task_that_was_outside_joins_when_it_is_offered(state: State) -> None:
    pool = Pool.draw(state, routing.Random(), np.arange(1, 300, dtype=np.int32), np.zeros(0, dtype=np.int32))
    pool.set_free(0, free=True)
    assert pool.tasks[pool.free][-1] == 0


def test_among_equal_tasks_the_shortlist_is_left_to_chance(state: State) -> None:
    strategy = routing.Information()
    many, nobody = State(3, None, np.ones(5000), np.full(5000, -1, dtype=np.int32), 0), np.zeros(0, dtype=np.int32)
    strategy.refitted(many)
    pools = [Pool.draw(many, strategy, np.arange(5000, dtype=np.int32), nobody) for _ in range(30)]
    assert max(len(pool.tasks) for pool in pools) < len(state.gold)
    assert 0.4 < np.mean([(pool.tasks < 2500).mean() for pool in pools]) < 0.6
