"""Slots: the sums on them are those of the dense engine, on numpy and on torch."""

from typing import Any

import numpy as np
import pytest
from grouped_crowd import GROUP, ROWS, crowd, factors
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations
from labelonce._kernels import (
    Factors,
    Mistakes,
    Pattern,
    label_slots,
    make_evidence,
    make_slot_evidence,
    pattern_of,
    unique_in_rows,
)
from labelonce._kernels._slots import WIDEST
from labelonce._types import Codes, Floats

ENGINES = pytest.mark.parametrize("engine", ["scipy", pytest.param("torch", marks=pytest.mark.neural)])


def all_classes(n_tasks: int) -> Codes:
    """Return slots for all classes, in another order for every task."""
    rng = np.random.default_rng(2)
    return np.stack([rng.permutation(6) for _ in range(n_tasks)]).astype(np.int32)


def wide(dense: Floats, classes: Codes) -> Floats:
    """Return a dense log prior on slots for all classes."""
    inside = np.take_along_axis(dense, classes, axis=1)
    return np.concatenate([inside, np.full((len(dense), 1), -np.inf)], axis=1)


def on_slots(ann: Annotations, classes: Codes, workers: Factors, engine: str = "scipy", **options: Any) -> Any:
    pattern = pattern_of(workers)
    assert pattern is not None
    return make_slot_evidence(ann, classes, pattern, engine=engine, **options)


@ENGINES
@pytest.mark.parametrize("redundancy", [1, 3])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_with_slots_for_all_classes_both_steps_are_the_dense_ones(row: Codes, redundancy: int, engine: str) -> None:
    ann, workers, classes = crowd(redundancy), factors(row), all_classes(60)
    log_prior = np.log(np.random.default_rng(3).dirichlet(np.ones(6), 60))
    dense, slots = make_evidence(ann), on_slots(ann, classes, workers, engine)
    given = slots.keep(wide(log_prior, classes))
    expected, found = dense.e_step(workers, log_prior), slots.e_step(workers, given)
    assert_allclose(np.asarray(found.beliefs), np.asarray(expected.beliefs), atol=1e-9)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-9)
    there = dense.tallies(expected.beliefs).by(workers.mistakes, row)
    for here in (slots.sweep(workers, given).tallies, slots.tallies(found.beliefs)):
        for name in ("right", "wrong", "mistakes", "others"):
            assert_allclose(getattr(here, name), getattr(there, name), atol=1e-9)


@ENGINES
def test_messages_and_gold_are_the_dense_ones(engine: str) -> None:
    ann, workers, classes = crowd(3), factors(ROWS["group"]), all_classes(60)
    gold = np.where(np.arange(60) < 9, 2, -1).astype(np.int32)
    slots, dense = on_slots(ann, classes, workers, engine), make_evidence(ann)
    expected = np.take_along_axis(dense.messages(workers), classes, axis=1)
    assert_allclose(slots.messages(workers)[:, :-1], expected, atol=1e-9)
    even = np.full(6, 1 / 6)
    both = [one.e_step(workers, one.log_prior(even), gold).beliefs for one in (slots, dense)]
    assert_allclose(np.asarray(both[0]), np.asarray(both[1]), atol=1e-9)


@ENGINES
def test_the_evidence_of_some_rows_is_about_them_alone(engine: str) -> None:
    ann, workers, classes = crowd(2), factors(ROWS["class"]), all_classes(60)
    rows = np.arange(60) % 3 == 0
    whole = on_slots(ann, classes, workers, engine)
    assert_allclose(whole.select(rows).messages(workers), whole.messages(workers)[rows], atol=1e-9)


@ENGINES
def test_the_sums_of_a_sweep_are_those_of_its_posteriors(engine: str) -> None:
    ann, workers = crowd(2), factors(ROWS["group"])
    classes = label_slots(ann, Pattern(workers.mistakes, workers.row), np.full((60, 1), 5))
    log_prior = np.log(np.full((60, classes.shape[1] + 1), 0.1))
    log_prior[:, :-1][classes < 0] = -np.inf
    slots = on_slots(ann, classes, workers, engine)
    apart = slots.tallies(slots.e_step(workers, slots.keep(log_prior)).beliefs)
    together = slots.sweep(workers, slots.keep(log_prior)).tallies
    for name in ("right", "wrong", "mistakes", "others", "unknown"):
        assert_allclose(getattr(together, name), getattr(apart, name), atol=1e-12)
    assert float((together.right + together.wrong).sum()) == pytest.approx(len(ann))


@ENGINES
@pytest.mark.parametrize("workers", [factors(ROWS["class"]), Factors.one_coin(np.linspace(0.2, 0.9, 7), 6)])
def test_drawn_labels_are_those_of_one_class_per_task(workers: Factors, engine: str) -> None:
    ann, classes = crowd(2), all_classes(60)
    log_prior = wide(np.full((60, 6), np.log(1 / 6)), classes)
    many = Annotations(
        np.concatenate([ann.task + 60 * copy for copy in range(200)]).astype(np.int32),
        np.tile(ann.worker, 200),
        np.tile(ann.label, 200),
        np.arange(60 * 200),
        ann.workers,
        ann.classes,
    )
    slots = on_slots(many, np.tile(classes, (200, 1)), workers, engine, draws=True)
    found = slots.sweep(workers, slots.keep(np.tile(log_prior, (200, 1)))).tallies
    right, wrong = found.drawn_right_and_wrong()
    assert_array_equal(right % 1, 0)
    assert float((right + wrong).sum()) == len(many)
    assert_allclose(right.sum(axis=0), found.right.sum(axis=0), rtol=0.1)
    assert_allclose(wrong.sum(axis=0), found.wrong.sum(axis=0), rtol=0.1)


@ENGINES
@pytest.mark.parametrize("redundancy", [1, 3])
@pytest.mark.parametrize("row", [ROWS["worker"], ROWS["class"]], ids=["worker", "class"])
def test_where_other_classes_are_alike_their_rest_is_exact(row: Codes, redundancy: int, engine: str) -> None:
    right = np.random.default_rng(4).uniform(0.2, 0.9, (7, int(row.max()) + 1))
    ann, workers = crowd(redundancy), Factors.one_coin(right if row.any() else right[:, 0], 6)
    classes = label_slots(ann, Pattern(workers.mistakes, workers.row)) if not row.any() else all_classes(60)
    slots, dense, even = on_slots(ann, classes, workers, engine), make_evidence(ann), np.full(6, 1 / 6)
    gold, weight = np.where(np.arange(60) < 9, classes[:, 0], -1), np.linspace(0, 2, 60)
    found, expected = (one.e_step(workers, one.log_prior(even), gold) for one in (slots, dense))
    assert row.any() or classes.shape[1] < 6
    assert_allclose(np.asarray(found.beliefs), np.asarray(expected.beliefs), atol=1e-9)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-9)
    swept = slots.sweep(workers, slots.log_prior(even), gold, prior=even)
    assert_allclose(swept.class_counts, np.asarray(expected.beliefs).sum(axis=0), atol=1e-9)
    there = [dense.tallies(expected.beliefs, one).by(workers.mistakes, row) for one in (None, weight)]
    here = [slots.tallies(found.beliefs, one) for one in (None, weight)]
    for one, other in zip([swept.tallies, *here], [there[0], *there], strict=True):
        assert_allclose(one.right, other.right, atol=1e-9)
        assert_allclose(one.wrong, other.wrong, atol=1e-9)


@ENGINES
def test_float32_sums_agree_to_its_precision(engine: str) -> None:
    ann, workers, classes = crowd(3), factors(ROWS["class"]), all_classes(60)
    log_prior = wide(np.full((60, 6), np.log(1 / 6)), classes)
    both = [on_slots(ann, classes, workers, engine, dtype=dtype) for dtype in ("float64", "float32")]
    exact, rough = (one.sweep(workers, one.keep(log_prior)).tallies for one in both)
    assert_allclose(rough.wrong, exact.wrong, atol=1e-4)
    assert_allclose(rough.mistakes, exact.mistakes, atol=1e-4)


def test_slots_are_the_labels_what_they_are_evidence_for_and_the_models_classes() -> None:
    ann = crowd(3)
    mistakes = Mistakes.inside(GROUP)
    predicted = np.random.default_rng(5).integers(0, 6, (60, 2)).astype(np.int32)
    found = label_slots(ann, Pattern(mistakes, ROWS["class"]), predicted)
    for task in range(60):
        near = {int(one) for label in ann.label[ann.task == task] for one in mistakes.near[label] if one >= 0}
        own = found[task][found[task] >= 0]
        assert set(own.tolist()) == near | set(predicted[task].tolist())
        assert len(own) == len(set(own.tolist()))


def test_too_many_slots_leave_the_labels_and_the_models_classes() -> None:
    n = 200
    pattern = Pattern(Mistakes.inside(np.arange(n, dtype=np.int32) // 50), np.arange(n, dtype=np.int32))
    ann = Annotations.from_arrays(np.repeat([0, 1], 4), [0, 1, 2, 3] * 2, [0, 60, 110, 160] * 2, classes=np.arange(n))
    found = label_slots(ann, pattern, np.array([[199, 0], [5, 150]]))
    assert found.shape[1] == WIDEST
    assert {0, 60, 110, 160, 199} <= set(found[0].tolist())
    assert len(set(found[1].tolist())) == WIDEST


def test_unique_in_rows_keeps_the_first_of_each() -> None:
    assert_array_equal(unique_in_rows(np.array([[-1, 4, 4, 1], [2, 2, -1, 2]])), [[4, 1], [2, -1]])
