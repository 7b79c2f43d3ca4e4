"""A router changed from outside: fits made elsewhere, answers taken back, tasks skipped or handed out by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce.routing import Fit, Limits, Router, _pool

TASKS, CLASSES, WORKERS = [f"t{i}" for i in range(60)], ["a", "b", "c"], ["ann", "bob", "eve"]
LABELS = [CLASSES[code] for code in np.random.default_rng(0).integers(3, size=60)]


def give(router: Router, start: int, end: int) -> None:
    for place in range(start, end):
        router.add(TASKS[place], WORKERS[place % 3], LABELS[place])


def labelled(n: int) -> Router:
    router = Router(TASKS, CLASSES)
    give(router, 0, n)
    return router


def fit_of(router: Router, n: int = 60) -> Fit:
    """Return a fit that knew the first answers."""
    rng = np.random.default_rng(1)
    answers = tuple(column[:n] for column in router.answers)
    return Fit(rng.dirichlet(np.ones(3), size=60), rng.dirichlet(np.ones(3), size=(3, 3)), WORKERS, answers)  # type: ignore[arg-type]


def same(one: Router, other: Router) -> None:
    assert_allclose(one.belief.posterior(), other.belief.posterior(), rtol=1e-9)
    assert_allclose(one.belief.mean_risk, other.belief.mean_risk, rtol=1e-9)
    assert_allclose(one.state.crowd.confusion, other.state.crowd.confusion)
    assert one.state.answers.n_fitted == other.state.answers.n_fitted
    assert [column.tolist() for column in one.answers] == [column.tolist() for column in other.answers]


def test_an_adopted_fit_is_believed_as_it_is() -> None:
    router = labelled(20)
    fit = fit_of(router)
    router.adopt(fit)
    assert_allclose(router.belief.posterior(), fit.posterior, rtol=1e-9)
    assert_allclose(router.state.crowd.population[0], fit.confusion.mean(axis=0))


def test_answers_that_the_fit_did_not_know_are_added_exactly() -> None:
    one, other = labelled(10), labelled(13)
    fit = fit_of(one)
    one.adopt(fit)
    give(one, 10, 13)
    other.adopt(fit)
    same(one, other)


def test_answers_that_arrive_while_a_fit_is_prepared_are_believed() -> None:
    one, other = labelled(20), labelled(30)
    fit = fit_of(one, 10)
    job = one.adoption(fit)
    give(one, 20, 25)
    job.compute()
    give(one, 25, 30)
    assert job.finish()
    other.adopt(fit)
    same(one, other)


def test_a_fit_is_prepared_again_where_an_answer_was_taken_back_meanwhile() -> None:
    router = labelled(20)
    fit, before = fit_of(router, 10), router.belief.posterior()[1:]
    job = router.adoption(fit)
    router.remove("t0", "ann")
    job.compute()
    assert not job.finish()
    assert_allclose(router.belief.posterior()[1:], before)
    router.adopt(fit)
    assert router.state.answers.n_fitted == 9


def test_an_answer_that_was_removed_or_changed_since_counts_as_it_is_now() -> None:
    one, other = labelled(20), labelled(20)
    fit = fit_of(one)
    one.adopt(fit)
    one.remove("t5", WORKERS[5 % 3])
    other.remove("t5", WORKERS[5 % 3])
    other.adopt(fit)
    same(one, other)
    one, other = labelled(20), labelled(20)
    fit, changed = fit_of(one), next(label for label in CLASSES if label != LABELS[5])
    one.adopt(fit)
    for router in (one, other):
        router.remove("t5", WORKERS[5 % 3])
        router.add("t5", WORKERS[5 % 3], changed)
    other.adopt(fit)
    same(one, other)


def test_a_worker_who_came_while_a_fit_was_prepared_is_like_the_average() -> None:
    router = labelled(20)
    job = router.adoption(fit_of(router))
    job.compute()
    router.add("t50", "new", "b")
    assert job.finish()
    assert_allclose(router.state.crowd.of(3)[0], router.state.crowd.population[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fit: fit | {"posterior": np.full((2, 3), 1 / 3)}, r"shape \(60, 3\); got \(2, 3\)"),
        (lambda fit: fit | {"answers": (["t0", "x"], ["ann"] * 2, ["a"] * 2)}, "router's; got 'x' at answer 1"),
    ],
)
def test_a_fit_of_something_else_is_refused(change: Callable[[Any], Any], message: str) -> None:
    router = labelled(20)
    with pytest.raises(ValueError, match=message):
        router.adopt(Fit(**change(vars(fit_of(router)))))


def test_removing_an_answer_undoes_it_and_needs_one() -> None:
    router = labelled(20)
    before, answers = router.belief.posterior(), [column.tolist() for column in router.answers]
    router.add("t3", "kim", "b")
    assert router.remove("t3", "kim") == "b"
    assert_allclose(router.belief.posterior(), before, rtol=1e-9)
    assert (router.spent, [column.tolist() for column in router.answers]) == (20, answers)
    router.add("t3", "kim", "c")
    with pytest.raises(ValueError, match="got none of worker 'nobody' on 't1'"):
        labelled(3).remove("t1", "nobody")


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


def test_a_task_can_be_handed_out_by_name_and_given_back() -> None:
    now = 0.0
    router = Router(["a", "b"], CLASSES, limits=Limits(lease_seconds=10), clock=lambda: now)
    router.hand_out("a", "ann", age=5.0)
    assert (router.holds("a", "ann"), router.holds("a", "bob"), router.next("bob")) == (True, False, "b")
    router.give_back("b", "bob")
    assert router.next("eve") == "b"
    now = 6.0
    assert not router.holds("a", "ann")
    assert router.next("bob") == "a"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Router:
    """Return a router that chooses from a part of its tasks."""
    monkeypatch.setattr(_pool, "_NUMBERS", 60)
    monkeypatch.setattr(_pool, "_FEWEST", 20)
    router = Router(TASKS, CLASSES, limits=Limits(max_labels=2))
    give(router, 0, 20)
    return router


def test_while_a_pool_is_drawn_tasks_are_handed_out_and_none_twice(large: Router) -> None:
    out = {large.next(f"w{place}") for place in range(3)}
    job = large.drawing()
    assert job is not None
    job.compute()
    out |= {large.next(f"w{place}") for place in range(3, 6)}
    job.finish()
    while (task := large.next("kim")) is not None:
        assert task not in out
        out.add(task)
    assert len(out) == 60


def test_a_task_that_was_settled_while_a_pool_was_drawn_is_not_offered(large: Router) -> None:
    large.next("ann")
    large.next("ann")
    large.next("ann")
    job = large.drawing()
    assert job is not None
    job.compute()
    for place in range(20):
        large.add(TASKS[place], "kim", "a")
    job.finish()
    assert not {large.next("zoe") for _ in range(37)} & set(TASKS[:20])
