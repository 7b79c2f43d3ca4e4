"""What a plan says to watch out for."""

import numpy as np

import labelonce as lo
from labelonce import planning, simulate
from labelonce.planning._advice import PilotDoubts, guards
from labelonce.planning._curve import check_money, curve


def said(pilot: PilotDoubts | None, *, task_price: float = 10.0) -> str:
    crowd, money = planning.assume(skill=0.7, n_classes=3), check_money(1000, 1, task_price, None)
    found = curve(crowd, money, None, "gini", 0)
    row = next(row for row in found.rows if row.redundancy == found.best)
    return " ".join(guards(row, found, money, crowd, pilot, None))


def test_a_model_near_chance_asks_for_overlap_first() -> None:
    assert "agrees with 36.0% of the labels where chance gives 33.0%" in said(PilotDoubts(0.36, 0.33))
    assert "buy 2 or 3 labels" not in said(PilotDoubts(0.6, 0.33))


def test_hard_tasks_are_no_matter_where_tasks_are_labelled_once() -> None:
    assert "On hard tasks" in said(None)
    assert "On hard tasks" not in said(None, task_price=0.0)


def test_every_plan_asks_for_a_test_set() -> None:
    assert "The budget has no test set. One costs" in said(None)


def test_few_labels_per_worker_are_said_with_their_number() -> None:
    rng = np.random.default_rng(0)
    confusion = simulate.one_coin([0.8] * 20, 2)
    ann = simulate.annotate(rng.integers(0, 2, 40), confusion, simulate.assign(40, 20, 2, rng, replace=False), rng)
    found = " ".join(planning.plan(lo.DawidSkene().fit(ann), budget=300).guards)
    assert "gave 4.0 labels each" in found
    assert "Each worker will give 15 labels, fewer than 10 for each of the 2 classes" in found


def test_workers_with_many_labels_are_not_warned_of() -> None:
    found = planning.plan(planning.assume(skill=0.8, n_workers=5), budget=1000)
    assert "per worker" not in " ".join(found.guards)
