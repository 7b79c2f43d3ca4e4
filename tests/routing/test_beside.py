"""What another thread computes for a router while answers go on arriving is what it would have computed itself."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce.routing import Fit, Router, _pool
from labelonce.routing._beside import Adoption, Drawing
from labelonce.routing._pool import Pool

TASKS, CLASSES, WORKERS = [f"t{i}" for i in range(60)], ["a", "b", "c"], ["ann", "bob", "eve"]


def labelled(n: int, **options: Any) -> Router:
    rng = np.random.default_rng(0)
    router = Router(TASKS, CLASSES, temperature=1, **options)
    for place in range(n):
        router.add(TASKS[place], WORKERS[place % 3], CLASSES[int(rng.integers(3))])
    return router


def fit_of(router: Router, n: int) -> Fit:
    """Return a fit that knew the first answers."""
    rng = np.random.default_rng(1)
    task, worker, label = router.state.rows(n)
    answers = ([TASKS[one] for one in task], [WORKERS[one] for one in worker], [CLASSES[one] for one in label])
    confusion = rng.dirichlet(np.ones(3), size=(3, 3))
    return Fit(rng.dirichlet(np.ones(3), size=60), confusion, WORKERS, answers)


def same(one: Router, other: Router) -> None:
    assert_allclose(one.belief.posterior(), other.belief.posterior(), rtol=1e-12)
    assert_allclose(one.belief.mean_risk, other.belief.mean_risk, rtol=1e-12)
    assert_allclose(one.state.confusion, other.state.confusion)
    assert (one.state.n_fitted, list(one.state.task)) == (other.state.n_fitted, list(other.state.task))


def test_answers_that_arrive_while_a_fit_is_prepared_are_believed() -> None:
    one, other = labelled(20), labelled(30)
    fit = fit_of(one, 10)
    adoption = Adoption(one, fit)
    for place, label in enumerate(list(other.state.label)[20:25], 20):
        one.add(TASKS[place], WORKERS[place % 3], CLASSES[label])
    adoption.compute()
    for place, label in enumerate(list(other.state.label)[25:], 25):
        one.add(TASKS[place], WORKERS[place % 3], CLASSES[label])
    assert adoption.finish()
    other.adopt(fit)
    same(one, other)


def test_a_fit_is_prepared_anew_where_an_answer_was_taken_back_meanwhile() -> None:
    router = labelled(20)
    fit, before = fit_of(router, 10), router.belief.posterior()[1:]
    adoption = Adoption(router, fit)
    router.remove("t0", "ann")
    adoption.compute()
    assert not adoption.finish()
    assert_allclose(router.belief.posterior()[1:], before)
    again = Adoption(router, fit)
    again.compute()
    assert again.finish()
    assert router.state.n_fitted == 9


def test_a_worker_who_came_while_a_fit_was_prepared_is_like_the_average() -> None:
    router = labelled(20)
    adoption = Adoption(router, fit_of(router, 10))
    adoption.compute()
    router.add("t50", "new", "b")
    assert adoption.finish()
    assert_allclose(router.state.confusion_of(3), router.state.population)


def test_a_fit_of_unknown_tasks_is_refused() -> None:
    router = labelled(20)
    fit = fit_of(router, 10)
    adoption = Adoption(router, Fit(fit.posterior, fit.confusion, WORKERS, (["t0", "x"], ["ann", "ann"], ["a", "b"])))
    with pytest.raises(ValueError, match="tasks of a fit must be the router's; got 'x' at answer 1"):
        adoption.compute()


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Router:
    """Return a router whose pool is a part of the tasks."""
    monkeypatch.setattr(_pool, "_NUMBERS", 60)
    monkeypatch.setattr(_pool, "_FEWEST", 20)
    return labelled(20)


def test_a_pool_is_drawn_while_the_old_one_is_in_use(large: Router) -> None:
    first = large.next("ann")
    drawing = Drawing(large)
    drawing.compute()
    second = large.next("bob")
    drawing.finish()
    pool = large._pool
    assert pool is not None
    assert pool.taken == 0
    out = {large._task_codes[first], large._task_codes[second]}
    assert not out & set(pool.tasks[pool.free].tolist())
    assert large.next("eve") not in (first, second)


def test_a_task_that_was_settled_while_the_pool_was_drawn_is_not_free(large: Router) -> None:
    large.max_labels = 2
    drawing = Drawing(large)
    drawing.compute()
    task = next(one for one in drawing._pool.tasks.tolist() if one < 20)
    large.add(TASKS[task], "new", "a")
    drawing.finish()
    assert not drawing._pool.free[drawing._pool.tasks.tolist().index(task)]


def test_the_next_pool_is_due_before_this_one_is_used_up() -> None:
    tasks = np.arange(32, dtype=np.int32)
    pool = Pool(tasks, np.ones(32, dtype=bool), 100, is_all=False)
    found = []
    for place in range(8):
        pool.take(place)
        found.append((pool.half_used, pool.used_up))
    assert found == [(False, False)] * 3 + [(True, False)] * 4 + [(True, True)]
    assert not Pool(tasks, np.ones(32, dtype=bool), 32, is_all=True, taken=32).half_used
