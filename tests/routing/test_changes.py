"""A router changed from outside: fits made elsewhere, answers taken back, tasks skipped."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce.routing import Fit, Router
from labelonce.routing._changes import hand_out, holds

TASKS, CLASSES = [f"t{i}" for i in range(40)], ["a", "b", "c"]


def answered(n: int = 120, **options: float) -> Router:
    rng = np.random.default_rng(0)
    router = Router(TASKS, CLASSES, **options)  # type: ignore[arg-type]  # numbers only
    for _ in range(n):
        worker = f"w{rng.integers(6)}"
        task = router.next(worker)
        if task is not None:
            router.add(task, worker, CLASSES[int(rng.integers(3))])
    return router


def fit_of(router: Router) -> Fit:
    """Return the fit that a refit would make, as another process would send it."""
    task, worker, label = router.state.rows()
    columns = ([TASKS[one] for one in task], [router.workers[one] for one in worker], [CLASSES[one] for one in label])
    ann = lo.Annotations(task, worker, label, router.tasks, np.array(router.workers, dtype=object), router.classes)
    model = lo.DawidSkene().fit(ann)
    return Fit(model.posterior_, model.confusion_, list(router.workers), columns)


def test_an_adopted_fit_is_the_refit() -> None:
    one, other = answered(), answered()
    fit = fit_of(one)
    one.refit()
    other.adopt(fit)
    assert_allclose(other.belief.posterior(), one.belief.posterior(), rtol=1e-9)
    assert_allclose(other.state.confusion, one.state.confusion)
    assert_allclose(other.state.population, one.state.population)
    assert other.next("w1") == one.next("w1")


def test_answers_that_the_fit_did_not_know_are_added_exactly() -> None:
    one, other = answered(), answered()
    fit = fit_of(one)
    one.refit()
    for router in (one, other):
        router.add("t0", "new worker", "b")
        router.add("t7", "another", "c")
    other.adopt(fit)
    assert_allclose(other.belief.posterior(), one.belief.posterior(), rtol=1e-9)
    assert other.state.n_fitted == len(other.state.task) - 2


def test_an_answer_that_was_removed_since_is_not_believed() -> None:
    one, other = answered(), answered()
    fit = fit_of(one)
    task, worker = TASKS[one.state.task[5]], one.workers[one.state.worker[5]]
    one.refit()
    one.remove(task, worker)
    other.remove(task, worker)
    other.adopt(fit)
    assert_allclose(other.belief.posterior(), one.belief.posterior(), rtol=1e-9)
    assert other.state.n_fitted == len(other.state.task)


def test_removing_an_answer_undoes_it() -> None:
    router = answered()
    before, spent, rows = router.belief.posterior(), router.spent, [one.tolist() for one in router.state.rows()]
    router.add("t3", "eve", "b")
    assert router.remove("t3", "eve") == "b"
    assert_allclose(router.belief.posterior(), before, rtol=1e-9)
    assert (router.spent, [one.tolist() for one in router.state.rows()]) == (spent, rows)
    router.add("t3", "eve", "c")


def test_removing_an_answer_of_the_fit_takes_out_what_it_said() -> None:
    router = answered(temperature=2.0)
    router.refit()
    task, worker, label = (one[0] for one in router.state.rows())
    expected = router.belief.log_posterior[task] - router.state.log_chances(worker, label) / 2
    router.remove(TASKS[task], router.workers[worker])
    assert_allclose(router.belief.log_posterior[task], expected - np.logaddexp.reduce(expected), rtol=1e-9)


def test_removing_what_is_not_there_is_an_error() -> None:
    router = answered(3)
    with pytest.raises(ValueError, match="got none of worker 'nobody' on 't1'"):
        router.remove("t1", "nobody")


def test_a_skipped_task_goes_to_others_and_comes_back_after_undo() -> None:
    router = Router(["a", "b"], CLASSES)
    first = router.next("ann")
    router.skip(first, "ann")
    other = router.next("ann")
    assert {first, other} == {"a", "b"}
    router.add(other, "ann", "a")
    assert router.next("ann") is None
    router.skip(first, "ann", undo=True)
    assert router.next("ann") == first
    router.skip(first, "ann")
    assert router.next("bob") == first


def test_skips_survive_a_file(tmp_path: Path) -> None:
    router = Router(["a"], CLASSES)
    router.skip("a", "ann")
    router.save(tmp_path / "router")
    loaded = Router.load(tmp_path / "router")
    assert (loaded.next("ann"), loaded.next("bob")) == (None, "a")


def test_a_task_can_be_handed_out_by_name() -> None:
    now = 0.0
    router = Router(["a", "b"], CLASSES, lease_seconds=10, clock=lambda: now)
    hand_out(router, "a", "ann")
    assert (holds(router, "a", "ann"), holds(router, "a", "bob"), router.next("bob")) == (True, False, "b")
    now = 11.0
    assert not holds(router, "a", "ann")


def test_a_fit_of_other_tasks_is_an_error() -> None:
    router = answered(3)
    with pytest.raises(ValueError, match=r"shape \(40, 3\); got \(2, 3\)"):
        router.adopt(Fit(np.full((2, 3), 1 / 3), np.zeros((0, 3, 3)), [], ([], [], [])))
