"""The laws of the tasks that are handed out at random: they are a fair sample, whatever the strategy wants."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from labelonce.routing import Router
from labelonce.routing._random_tasks import RandomTasks
from labelonce.routing._state import State

N = 50


def state_of(n: int = N, gold: tuple[int, ...] = ()) -> State:
    known = np.full(n, -1, dtype=np.int32)
    known[list(gold)] = 0
    return State(2, None, np.ones(n), known, seed=0)


def router_of(**options: Any) -> Router:
    rng = np.random.default_rng(0)
    return Router(range(N), ["a", "b"], X=rng.normal(size=(N, 2)), **options)


def test_the_sample_ends_before_the_first_task_without_a_label() -> None:
    state = state_of()
    tasks = RandomTasks.draw(state, 0.5)
    for task in tasks.order[[0, 1, 2, 5, 30]]:
        state.add(int(task), 0, 0)
    assert_array_equal(tasks.sample(state), tasks.order[:3])


def test_what_the_strategy_has_labelled_is_not_handed_out_again() -> None:
    state = state_of()
    tasks = RandomTasks.draw(state, 0.5)
    for task in tasks.order[:3]:
        state.add(int(task), 0, 0)
    assert tasks.first(state, lambda _: True, None) == tasks.order[3]


def test_the_first_free_task_that_a_worker_can_label_is_handed_out() -> None:
    state = state_of()
    tasks = RandomTasks.draw(state, 0.5)
    able = np.sort(tasks.order[[7, 9, 11]])
    assert tasks.first(state, lambda task: task != tasks.order[7], able) == tasks.order[9]
    assert tasks.first(state, lambda _: False, None) is None


def test_gold_is_not_among_them() -> None:
    state = state_of(gold=(3, 4))
    assert sorted(RandomTasks.draw(state, 0.5).order.tolist()) == sorted(set(range(N)) - {3, 4})


def test_a_router_that_hands_out_random_tasks_alone_labels_the_order_from_its_front() -> None:
    router = router_of(random_share=1.0)
    asked = []
    for _ in range(20):
        asked.append(router.next("ann"))
        router.add(asked[-1], "ann", "a")
    assert_array_equal(asked, router._random.order[:20])
    assert_array_equal(router._random.sample(router.state), asked)


def test_a_removed_answer_is_asked_for_again() -> None:
    router = router_of(random_share=1.0)
    for _ in range(5):
        router.add(router.next("ann"), "ann", "a")
    first = int(router._random.order[0])
    router.remove(first, "ann")
    assert router.next("bob") == first


@pytest.mark.parametrize(("options", "share"), [({"random_share": 0.0}, 0.0), ({"X": None}, 0.0), ({}, 0.05)])
def test_without_features_or_a_share_nothing_is_handed_out_at_random(options: dict[str, Any], share: float) -> None:
    router = Router(range(N), ["a", "b"], **({"X": np.zeros((N, 1))} | options))
    assert router._random.share == share
    assert len(router._random.order) == (N if share else 0)
