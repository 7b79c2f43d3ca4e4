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


def test_models_near_chance_hard_tasks_and_missing_test_sets_are_told() -> None:
    assert "agrees with 36.0% of the labels where chance gives 33.0%" in said(PilotDoubts(0.36, 0.33))
    assert "buy 2 or 3 labels" not in said(PilotDoubts(0.6, 0.33))
    assert "On hard tasks" in said(None)
    assert "On hard tasks" not in said(None, task_price=0.0)
    assert "The budget has no test set. One costs" in said(None)


def test_few_labels_per_worker_are_said_with_their_number_and_many_are_not() -> None:
    rng = np.random.default_rng(0)
    confusion = simulate.one_coin([0.8] * 20, 2)
    ann = simulate.annotate(rng.integers(0, 2, 40), confusion, simulate.assign(40, 20, 2, rng, replace=False), rng)
    found = " ".join(planning.plan(lo.DawidSkene().fit(ann), budget=300).guards)
    assert "gave 4.0 labels each" in found
    assert "Each worker will give 15 labels, fewer than 10 for each of the 2 classes" in found
    many = planning.plan(planning.assume(skill=0.8, n_workers=5), budget=1000)
    assert "per worker" not in " ".join(many.guards)
