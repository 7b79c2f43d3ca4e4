"""The laws of the router: who is asked what, when, and by whom never."""

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import labelonce as lo
from labelonce._sklearn import clone
from labelonce.routing import FewestLabels, Fit, Information, Limits, Prices, Random, Router, WorkerTesting, _pool
from labelonce.routing._strategies import STRATEGIES

N_TASKS, N_CLASSES = 60, 3
RNG = np.random.default_rng(0)
Y = np.arange(N_TASKS) % N_CLASSES
X = np.eye(N_CLASSES)[Y] + 0.3 * RNG.normal(size=(N_TASKS, N_CLASSES))
DRAWN = RNG.random((N_TASKS, 4))
LEARNER = lo.MBEM(lo.SoftmaxRegression(), rounds=2, folds=1)

Step = tuple[Any, Any]


def answer(task: int, worker: int) -> int:
    """Workers 0 and 1 are nearly always right, 2 and 3 guess."""
    wrong = (Y[task] + 1 + int(DRAWN[task, worker] * 2)) % N_CLASSES
    return int(Y[task] if DRAWN[task, worker] > (0.05 if worker < 2 else 0.67) else wrong)


def drive(
    router: Router,
    n: int,
    *,
    refit_after: int = 20,
    start: int = 0,
    task_id: Callable[[int], Any] = int,
    worker_id: Callable[[int], Any] = int,
) -> list[Step]:
    """Let the workers come in turn, n times; return who got what, by position."""
    code = {task_id(task): task for task in range(N_TASKS)}
    steps: list[Step] = []
    for turn in range(start, start + n):
        worker = turn % 4
        task = router.next(worker_id(worker))
        steps.append((None if task is None else code[task], worker))
        if task is not None:
            router.add(task, worker_id(worker), answer(code[task], worker))
        if (turn + 1) % refit_after == 0:
            router.refit()
    return steps


def new(**options: Any) -> Router:
    """Return a router whose limits and prices are named alone."""
    terms = {name: kind(**found) for name, kind in KINDS.items() if (found := of_kind(kind, options))}
    defaults: dict[str, Any] = {"X": X, "learner": LEARNER, "random_state": 1}
    return Router(range(N_TASKS), range(N_CLASSES), **(defaults | terms | options))


KINDS: dict[str, Any] = {"limits": Limits, "prices": Prices}


def of_kind(kind: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {field.name: options.pop(field.name) for field in fields(kind) if field.name in options}


@pytest.mark.parametrize("name", STRATEGIES)
def test_one_worker_who_is_always_right_is_asked_every_task_once(name: str) -> None:
    options: dict[str, Any] = {"threshold": np.inf} if name == "AdaptiveRounds" else {}
    router, asked = new(strategy=STRATEGIES[name](**options)), []
    while (task := router.next("ann")) is not None:
        router.add(task, "ann", Y[task])
        asked.append(task)
        if len(asked) == 30:
            router.refit()
    assert sorted(asked) == list(range(N_TASKS))


def test_a_spammer_is_never_asked_where_others_are_free() -> None:
    router = new()
    drive(router, 60)
    router.refit()
    for _ in range(3):
        batch = router.next_batch(12)
        assert len(batch) == 12
        assert {worker for _, worker in batch} <= {0, 1}
        for task, worker in batch:
            router.add(task, worker, answer(task, worker))


@pytest.mark.parametrize("strategy", [None, Random(decline_below=0.5)])
def test_a_spammer_is_declined_by_next_where_that_is_allowed(strategy: Any) -> None:
    router = new(may_decline=True, strategy=strategy)
    drive(router, 60)
    router.refit()
    assert [router.next(worker) is None for worker in range(4)] == [False, False, True, True]
    assert router.next(9) is not None


def test_everybody_is_served_an_expensive_task_later_and_alike_for_a_seed() -> None:
    router = new()
    drive(router, 60)
    router.refit()
    assert None not in [router.next(worker) for worker in range(4)]
    costs = np.ones(N_TASKS)
    costs[7] = 100.0
    router = new(task_costs=costs)
    assert 7 not in [task for task, _ in drive(router, N_TASKS - 1, refit_after=1000)]
    assert drive(new(), 70) == drive(new(), 70)
    assert drive(new(), 70) != drive(new(random_state=2), 70)


@pytest.mark.parametrize("may_decline", [False, True])
def test_doubling_all_costs_changes_nothing(may_decline: bool) -> None:
    costs, factor = {0: 1.0, 1: 3.0, 2: 1.0, 3: 0.5}, np.linspace(1, 2, N_TASKS)
    doubled = {worker: 2 * cost for worker, cost in costs.items()}
    once = drive(new(costs=costs, task_costs=factor, may_decline=may_decline), 80)
    assert once == drive(new(costs=doubled, task_costs=factor, may_decline=may_decline), 80)


@pytest.mark.parametrize("strategy", [Information(), Random(), FewestLabels()])
def test_other_names_of_tasks_and_workers_change_nothing(strategy: Any) -> None:
    order = np.random.default_rng(5).permutation(N_TASKS)
    names: dict[str, Any] = {"task_id": lambda task: f"t{order[task]}", "worker_id": lambda worker: "dbca"[worker]}
    tasks = [f"t{one}" for one in order]
    renamed = Router(tasks, range(N_CLASSES), X=X, learner=LEARNER, strategy=strategy, random_state=1)
    assert drive(renamed, 70, **names) == drive(new(strategy=strategy), 70)


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_killed_and_loaded_router_continues_the_same(name: str, tmp_path: Path) -> None:
    def make() -> Router:
        return new(strategy=STRATEGIES[name](), may_decline=True, max_labels=3, clock=lambda: 0.0)

    whole = drive(make(), 90)
    stopped = make()
    first = drive(stopped, 50)
    stopped.next(9)  # out with a worker when the router is killed
    expected = make()
    drive(expected, 50)
    expected.next(9)
    stopped.save(tmp_path / "router.npz")
    loaded = Router.load(tmp_path / "router.npz", X=X, learner=LEARNER, clock=lambda: 0.0)
    assert first == whole[:50]
    assert drive(loaded, 40, start=50) == drive(expected, 40, start=50)
    assert loaded.spent == expected.spent


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "router.npz"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"router\.npz must be a file that Router\.save wrote"):
        Router.load(path)


def test_a_leased_task_is_not_handed_out_until_it_times_out() -> None:
    now = [0.0]
    router = Router(["only"], [0, 1], limits=Limits(lease_seconds=60), clock=lambda: now[0])
    assert router.next("ann") == "only"
    now[0] = 59.0
    assert router.next("bob") is None
    now[0] = 60.0
    assert router.next("bob") == "only"


def test_an_answered_task_goes_to_others_and_a_worker_is_asked_only_what_it_can_label() -> None:
    router = Router(["only"], [0, 1])
    router.add(router.next("ann"), "ann", 0)
    assert [router.next("ann"), router.next("bob")] == [None, "only"]
    router = new()
    assert {router.next("ann", among=[3, 5]) for _ in range(2)} == {3, 5}
    assert router.next("ann", among=[3, 5]) is None


def test_a_late_answer_of_one_worker_leaves_the_lease_of_another() -> None:
    now = [0.0]
    router = Router(["only"], [0, 1], limits=Limits(lease_seconds=60), clock=lambda: now[0])
    router.next("ann")
    now[0] = 61.0
    assert router.next("bob") == "only"
    router.add("only", "ann", 0)
    assert router.next("cy") is None


def test_no_task_or_worker_gets_more_than_its_limit() -> None:
    router = new(max_labels=2)
    steps = drive(router, 200)
    assert max(Counter(task for task, _ in steps if task is not None).values()) == 2
    assert len(router.settled) == N_TASKS
    router = new(capacity={0: 5})
    steps = drive(router, 80)
    assert Counter(worker for task, worker in steps if task is not None)[0] == 5


def test_a_batch_keeps_to_capacity_and_to_each_and_asks_for_no_task_twice() -> None:
    router = new(capacity={"a": 2})
    assert Counter(worker for _, worker in router.next_batch(9, workers=["a", "b", "c"])) == {"a": 2, "b": 3, "c": 3}
    assert len(router.next_batch(9, workers=["b", "c"], each=2)) == 4
    batch = new().next_batch(40, workers=range(4))
    assert len({task for task, _ in batch}) == 40


def test_gold_is_asked_only_of_who_is_able_to_answer_it() -> None:
    gold = {task: int(Y[task]) for task in range(6)}
    router = new(strategy=WorkerTesting(), gold=gold, may_decline=True)
    assert router.next(0, among=[4, 30, 31]) == 4
    router.add(4, 0, int(Y[4]))
    assert router.next(0, among=[4, 30, 31]) in {30, 31}


def test_gold_is_asked_of_who_is_declined_and_of_nobody_else() -> None:
    gold = {task: int(Y[task]) for task in range(6)}
    router = new(gold=gold, may_decline=True, gold_tests=3)
    for task in range(6, 60):
        router.add(task, task % 4, answer(task, task % 4))
    router.refit()
    assert router.next(0) not in gold
    asked = []
    while (task := router.next(2)) is not None:
        router.add(task, 2, answer(task, 2))
        asked.append(task)
    assert len(set(asked) & set(gold)) == len(asked) == 3


def test_workers_are_tested_first_and_bad_ones_declined() -> None:
    gold = {task: int(Y[task]) for task in range(30)}
    router = new(strategy=WorkerTesting(), gold=gold, may_decline=True, gold_tests=0)
    steps = drive(router, 160, refit_after=1000)
    assert all(task in gold for task, _ in steps[:4])
    bought = Counter(worker for task, worker in steps if task is not None and task not in gold)
    assert bought[2] == bought[3] == 0
    assert min(bought[0], bought[1]) > 10


def test_it_stops_when_the_budget_is_spent_or_risk_or_gain_are_small() -> None:
    router = new(budget=10, costs=2.5)
    steps = drive(router, 20, refit_after=1000)
    assert [task is None for task, _ in steps] == [False] * 4 + [True] * 16
    assert (router.stop, router.spent) == ("budget", 10)
    router = new(max_risk=0.1)
    drive(router, 200)
    assert router.stop == "risk"
    assert router.belief.mean_risk <= 0.1
    cheap, expensive = new(min_gain=0.05), new(min_gain=0.05, costs=1000.0)
    for router in (cheap, expensive):
        drive(router, 20)
        router.refit()
    assert (cheap.stop, expensive.stop) == (None, "gain")


def test_an_answer_is_counted_as_bayes_says_and_a_refit_replaces_all_beliefs() -> None:
    router = new()
    drive(router, 40)
    before, confusion = router.belief.posterior(), router.state.crowd.of(0)[0]
    task = router.next(0)
    router.add(task, 0, 1)
    joint = before[task] * confusion[:, 1]
    assert_allclose(router.belief.posterior()[task], joint / joint.sum(), rtol=1e-6)
    router = new()
    drive(router, 39)
    router.refit()
    assert router.model_ is not None
    assert_allclose(router.belief.posterior(), router.model_.posterior_, atol=1e-6)


def test_a_refit_starts_from_the_workers_of_the_last_one() -> None:
    learner = clone(LEARNER).set_params(rounds=1)
    router = new(learner=learner)
    drive(router, 30, refit_after=1000)
    router.refit()
    workers = router.state.crowd.confusion[:, 0]
    drive(router, 8, start=30, refit_after=1000)
    router.refit()
    annotations = lo.Annotations.from_arrays(*router.answers, classes=range(N_CLASSES)).align(range(N_TASKS))
    expected, cold = (clone(learner).fit(X, annotations, confusion=one).predictions_ for one in (workers, None))
    assert_allclose(router.model_.predictions_, expected, atol=1e-6)
    assert np.abs(expected - cold).max() > 1e-3


def test_a_learner_with_groups_of_classes_can_be_routed_by() -> None:
    groups = lo.workers.Grouped({code: str(code // 3) for code in range(60)})
    learner = lo.MBEM(lo.SoftmaxRegression(), rounds=2, worker_model=groups, folds=1)
    router = Router(range(N_TASKS), range(60), X=X, learner=learner)
    drive(router, 40)
    assert_allclose(router.belief.posterior(), router.model_.posterior_.to_dense(), atol=1e-6)


def test_the_default_refit_does_not_depend_on_the_scale_of_the_features() -> None:
    large, small = (Router(range(N_TASKS), range(N_CLASSES), X=X * scale) for scale in (1000.0, 0.001))
    for router in (large, small):
        for task in range(40):
            router.add(task, task % 2, answer(task, task % 2))
        router.refit()
    assert_allclose(large.belief.posterior(), small.belief.posterior(), atol=1e-3)


def test_without_features_an_aggregator_is_fitted() -> None:
    router = Router(range(10), ["no", "yes"])
    for task in range(10):
        for worker in range(3):
            router.add(task, worker, ["no", "yes"][task % 2])
    router.refit()
    assert isinstance(router.model_, lo.DawidSkene)
    assert router.belief.mean_risk < 0.05


def test_what_a_router_knows_can_be_asked_for() -> None:
    router = Router(["a", "b"], [0, 1], limits=Limits(max_labels=1), prices=Prices(costs={"ann": 3.0}))
    router.add("a", "ann", 1)
    assert (router.is_open("a"), router.is_open("b"), router.open.tolist()) == (False, True, [False, True])
    assert (router.has_answered("a", "ann"), router.has_answered("a", "new")) == (True, False)
    assert [column.tolist() for column in router.answers] == [["a"], ["ann"], [1]]
    assert (router.settled.tolist(), router.workers, router.spent) == (["a"], ["ann"], 3.0)
    assert router.value("b", "new") > router.value("a", "new") > 0


def test_tasks_that_are_out_are_replaced_by_others_of_a_large_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "_NUMBERS", 40)
    monkeypatch.setattr(_pool, "_FEWEST", 10)
    router = Router(range(200), [0, 1])
    router.adopt(Fit(RNG.dirichlet([1, 1], size=200), np.zeros((0, 2, 2)), [], ([], [], [])))
    assert len({task for task, _ in router.next_batch(150, workers=["ann", "bob"])}) == 150


def test_what_cannot_be_asked_of_a_router_is_refused() -> None:
    with pytest.raises(TypeError, match=r"strategy must be one of labelonce.routing.*got 'Random'"):
        Router(["a", "b"], [0, 1], strategy="Random")  # type: ignore[arg-type]
    router = Router(["a", "b"], [0, 1])
    router.next(3)
    with pytest.raises(TypeError, match="got 'ann', and 3 first"):
        router.next("ann")
    router = Router(["a", "b"], [0, 1])
    router.add("a", "ann", 0)
    with pytest.raises(ValueError, match="got 1 labels of 1"):
        router.refit()
    with pytest.raises(ValueError, match="got no worker so far"):
        Router(["a"], [0, 1]).next_batch(1)


def test_features_may_be_sparse() -> None:
    X = np.eye(2)[np.arange(20) % 2]
    dense, thin = (Router(range(20), [0, 1], X=one, learner=lo.SoftmaxRegression()) for one in (X, sparse.csr_array(X)))
    for router in (dense, thin):
        for task in range(10):
            router.add(task, task % 3, task % 2)
        router.refit()
    assert_allclose(thin.belief.posterior(), dense.belief.posterior(), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("nowhere", "ann", 0), "task must be among .*got 'nowhere'"),
        (("b", "ann", 7), "label must be among .*got 7"),
        (("a", "ann", 1), "got worker 'ann' on task 'a' again"),
    ],
)
def test_a_bad_answer_is_refused(given: tuple[Any, Any, Any], message: str) -> None:
    router = Router(["a", "b"], [0, 1])
    router.add("a", "ann", 0)
    with pytest.raises(ValueError, match=message):
        router.add(*given)
    assert router.spent == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": np.zeros((3, 1))}, "one row per task, 2; got 3"),
        ({"learner": lo.SoftmaxRegression()}, "X=None"),
        ({"gold": {"a": 5}}, "gold must be among .*got 5"),
        ({"prices": Prices(task_costs=[1.0, -1.0])}, "above 0; got -1.0 at task 1"),
        ({"random_state": -1}, "random_state must be an integer of at least 0; got -1"),
        ({"questions": ["q"], "gold": {"a": 0}}, "gold must be left out with questions; got that of 1 tasks"),
        ({"questions": ["q"], "strategy": WorkerTesting()}, r"strategy must take several questions.*got WorkerTesting"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Router(["a", "b"], [0, 1], **options)


def test_a_file_of_an_older_router_or_of_impossible_beliefs_is_refused_in_a_sentence(tmp_path: Path) -> None:
    about = np.frombuffer(b'{"format": "labelonce router 1"}', dtype=np.uint8)
    np.savez(tmp_path / "old.npz", about=about)
    with pytest.raises(ValueError, match=r"'labelonce router 2'; got 'labelonce router 1'\. Make the router again"):
        Router.load(tmp_path / "old.npz")
    Router(["a", "b"], [0, 1]).save(tmp_path / "router.npz")
    with np.load(tmp_path / "router.npz") as saved:
        np.savez(tmp_path / "forged.npz", **({**saved} | {"posterior": np.full((2, 2), 0.7)}))
    with pytest.raises(ValueError, match=r"forged\.npz: 'posterior' must be as Router.save writes it"):
        Router.load(tmp_path / "forged.npz")
