"""Tasks with several questions, such as check boxes: every answer is one to each of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce.routing import FewestLabels, Fit, Information, Limits, Random, Router, Strategy

TASKS, BOXES = [f"t{i}" for i in range(12)], ["dog", "sea", "road"]
RNG = np.random.default_rng(0)


def boxes(**options: Any) -> Router:
    return Router(TASKS, ["no", "yes"], questions=BOXES, **options)


def drawn() -> list[str]:
    return ["yes" if one else "no" for one in RNG.integers(2, size=3)]


def answered(n: int, **options: Any) -> Router:
    router = boxes(**options)
    for turn in range(n):
        task = router.next(f"w{turn % 3}")
        if task is not None:
            router.add(task, f"w{turn % 3}", drawn())
    return router


def fit_of(router: Router) -> Fit:
    posterior, confusion = RNG.dirichlet([1, 1], size=36), RNG.dirichlet([4, 4], size=(3, 3, 2))
    return Fit(posterior, confusion, ["w0", "w1", "w2"], router.answers)


def test_an_answer_is_believed_box_by_box_and_can_be_taken_back() -> None:
    router = boxes()
    router.add("t1", "ann", ["no", "yes", "no"])
    assert_allclose(router.belief.posterior()[3:6, 1], [0.25, 0.75, 0.25])
    assert_allclose(router.belief.mean_risk, (33 * 0.5 + 3 * 0.25) / 36)
    assert router.remove("t1", "ann") == ["no", "yes", "no"]
    assert_allclose(router.belief.posterior(), 0.5)


def test_one_question_is_the_task_without_questions() -> None:
    one, other = Router(TASKS, ["no", "yes"], questions=["dog"]), Router(TASKS, ["no", "yes"])
    posterior, confusion = RNG.dirichlet([1, 1], size=12), RNG.dirichlet([4, 4], size=(1, 2))
    for turn in range(30):
        worker = f"w{turn % 4}"
        task = other.next(worker)
        assert one.next(worker) == task
        if task is not None:
            one.add(task, worker, ["yes"])
            other.add(task, worker, "yes")
        if turn == 15:
            one.adopt(Fit(posterior, confusion[None], ["w0"], one.answers))
            other.adopt(Fit(posterior, confusion, ["w0"], other.answers))
    assert_allclose(one.belief.posterior(), other.belief.posterior(), rtol=1e-12)


@pytest.mark.parametrize("questions", [None, ["dog", "sea"]])
def test_many_answers_at_once_are_believed_as_one_by_one(questions: list[str] | None) -> None:
    rng, gold = np.random.default_rng(0), {"t1": "yes"} if questions is None else None
    tasks, classes, n = [f"t{i}" for i in range(5)], ["yes", "no", "maybe"], len(questions or [0])
    rows = [(f"t{i % 5}", f"w{i}", rng.choice(classes, size=n).tolist()) for i in range(20)]
    one, all_ = (Router(tasks, classes, questions=questions, gold=gold) for _ in "ab")
    for task, worker, said in rows:
        one.add(task, worker, said if questions else said[0])
    with all_.state.at_once():
        for task, worker, said in rows:
            all_.add(task, worker, said if questions else said[0])
    assert_allclose(all_.belief.posterior(), one.belief.posterior(), rtol=1e-9)
    assert_allclose(all_.belief.mean_risk, one.belief.mean_risk, rtol=1e-9)


def test_a_fit_is_believed_with_the_answers_that_it_did_not_know() -> None:
    router = answered(9)
    fit = fit_of(router)
    router.add("t11", "w1", ["yes", "no", "yes"])
    router.adopt(fit)
    expected = np.array(fit.posterior)
    for box, label in enumerate([1, 0, 1]):
        expected[33 + box] *= fit.confusion[1, box, :, label]
    assert_allclose(router.belief.posterior(), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
    router.adopt(fit_of(router))
    assert router.state.answers.n_fitted == 10


def test_the_worker_whose_ticks_tell_something_is_asked_about_them() -> None:
    router = answered(9, strategy=Information(trial=0))
    posterior, confusion = np.full((36, 2), [0.99, 0.01]), np.full((2, 3, 2, 2), 0.5)
    posterior[12] = posterior[25] = 0.5  # the dog of t4, the sea of t8
    confusion[0, 0] = confusion[1, 1] = np.eye(2)
    router.adopt(Fit(posterior, confusion, ["knows dogs", "knows seas"], router.answers))
    assert (router.next("knows dogs"), router.next("knows seas")) == ("t4", "t8")
    assert_allclose(router.value("t4", "knows dogs"), np.log(2), rtol=1e-6)


@pytest.mark.parametrize("strategy", [Information(), Random(), FewestLabels()])
def test_a_loaded_router_continues_the_same(strategy: Strategy, tmp_path: Path) -> None:
    router = answered(9, strategy=strategy, limits=Limits(may_decline=True, max_labels=2))
    router.adopt(fit_of(router))
    router.next("w0")
    router.save(tmp_path / "router")
    loaded = Router.load(tmp_path / "router")
    assert [router.next(f"w{turn % 5}") for turn in range(12)] == [loaded.next(f"w{turn % 5}") for turn in range(12)]
    assert_allclose(loaded.belief.posterior(), router.belief.posterior())


@pytest.mark.parametrize(
    ("label", "message"),
    [(["yes"], r"each of 3 questions; got \['yes'\]"), (["yes", "no", "maybe"], "label must be among .*got 'maybe'")],
)
def test_an_answer_has_a_class_for_each_question(label: Sequence[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        boxes().add("t1", "ann", label)


def test_fits_of_several_questions_are_made_elsewhere() -> None:
    with pytest.raises(ValueError, match="one question per task; got 3"):
        answered(9).refit()


def test_batches_limits_and_skips_are_those_of_tasks() -> None:
    router = boxes(limits=Limits(max_labels=1, capacity={"bob": 1}))
    batch = router.next_batch(6, workers=["ann", "bob"], each=5)
    assert [worker for _, worker in batch].count("bob") == 1
    assert len({task for task, _ in batch}) == 6
    for task, worker in batch:
        router.add(task, worker, drawn())
    assert router.settled.tolist() == [task for task in TASKS if task in {one for one, _ in batch}]
    left = [task for task in TASKS if router.is_open(task)]
    router.skip(left[0], "ann")
    assert router.next("ann", among=left[:2]) == left[1]
