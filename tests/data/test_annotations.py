"""The laws of `Annotations`: what comes in comes out, nothing changes afterwards, and every refusal says why."""

import copy
import pickle
from dataclasses import FrozenInstanceError, fields
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from labelonce import Annotations
from labelonce.data._annotations import check_positions
from labelonce.formats import MissingWarning

Row = tuple[Any, Any, Any]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
keys = st.one_of(st.just(st.integers(-9, 9)), st.just(texts))


@st.composite
def row_lists(draw: st.DrawFn) -> list[Row]:
    """Draw rows in which no worker labels a task twice; ids are integers or strings."""
    task, worker, label = draw(keys), draw(keys), draw(keys)
    rows = st.tuples(task, worker, label)
    return draw(st.lists(rows, min_size=1, max_size=20, unique_by=lambda row: row[:2]))


def build(rows: list[Row], **options: Any) -> Annotations:
    return Annotations.from_arrays(*(list(column) for column in zip(*rows, strict=True)), **options)


def rows_of(ann: Annotations) -> list[Row]:
    return [tuple(row.values()) for row in ann.to_frame().to_pylist()]


annotations = row_lists().map(build)


@pytest.fixture
def ann() -> Annotations:
    return build([("a", "x", "cat"), ("b", "x", "dog"), ("b", "y", "cat")])


@given(row_lists())
@example([(1, 0, 0), (0, 0, 0)])
@example([(2, 0, 0), (0, 0, 0)])
def test_rows_come_back_sorted_by_task_and_worker(rows: list[Row]) -> None:
    tasks = [row[0] for row in rows]
    if set(tasks) == set(range(len(set(tasks)))):  # numbers of rows keep their order
        tasks.sort()
    place = {task: i for i, task in reversed(list(enumerate(tasks)))}
    assert rows_of(build(rows)) == sorted(rows, key=lambda row: (place[row[0]], row[1]))


@given(row_lists(), st.randoms())
def test_equality_ignores_row_order(rows: list[Row], random: Any) -> None:
    one, other = build(random.sample(rows, len(rows))), build(rows)
    assert one.align(other.tasks) == other


@given(annotations)
def test_the_constructor_sorts_rows(ann: Annotations) -> None:
    back = (ann.task[::-1], ann.worker[::-1], ann.label[::-1])
    assert Annotations(*back, ann.tasks, ann.workers, ann.classes) == ann


@given(annotations)
def test_frames_of_every_kind_round_trip(ann: Annotations) -> None:
    assert Annotations.from_frame(ann.to_frame(), classes=ann.classes) == ann
    assert Annotations.from_frame(ann.to_frame().to_pandas()) == ann
    assert Annotations.from_frame(pl.DataFrame(ann.to_frame())) == ann


@given(annotations, st.booleans())
def test_matrices_round_trip(ann: Annotations, dense: bool) -> None:
    names: Any = {"tasks": ann.tasks, "workers": ann.workers, "classes": range(ann.n_classes)}
    again = Annotations.from_matrix(ann.to_matrix(dense=dense), **names)
    assert again == Annotations(ann.task, ann.worker, ann.label, ann.tasks, ann.workers, np.arange(ann.n_classes))


@given(annotations, st.randoms())
def test_aligning_to_a_permutation_keeps_the_rows_and_back_is_nothing(ann: Annotations, random: Any) -> None:
    task_ids = random.sample(ann.tasks.tolist(), ann.n_tasks)
    aligned = ann.align(task_ids)
    assert (aligned.tasks.tolist(), sorted(rows_of(aligned))) == (task_ids, sorted(rows_of(ann)))
    assert ann.align(random.sample(ann.tasks.tolist(), ann.n_tasks)).align(ann.tasks) == ann


@given(annotations, st.integers(1, 4), st.integers(0, 9))
def test_a_sample_is_a_repeatable_part_of_at_most_a_redundancy(ann: Annotations, redundancy: int, seed: int) -> None:
    sample = ann.sample(redundancy=redundancy, random_state=seed)
    wanted = np.minimum(np.bincount(ann.task, minlength=ann.n_tasks), redundancy)
    assert_array_equal(np.bincount(sample.task, minlength=ann.n_tasks), wanted)
    assert set(rows_of(ann.sample(random_state=seed))) <= set(rows_of(ann))
    assert ann.sample(redundancy=len(ann)) == ann
    assert ann.sample(random_state=seed) == ann.sample(random_state=seed)


def test_a_sample_draws_every_row_equally_often() -> None:
    ann, rng = build([(0, w, w) for w in range(4)]), np.random.default_rng(0)
    drawn = np.bincount([ann.sample(random_state=rng).label[0] for _ in range(2000)], minlength=4)
    assert np.abs(drawn - 500).max() < 5 * np.sqrt(2000 * 0.25 * 0.75)  # five standard deviations


@given(annotations, st.randoms())
def test_select_keeps_the_rows_of_the_tasks_and_the_codes_of_the_rest(ann: Annotations, random: Any) -> None:
    kept = {ann.tasks[ann.task[0]], *random.sample(ann.tasks.tolist(), ann.n_tasks // 2)}
    chosen = ann.select(np.array([task in kept for task in ann.tasks.tolist()]))
    assert rows_of(chosen) == [row for row in rows_of(ann) if row[0] in kept]
    chosen = ann.select(np.arange(ann.n_tasks) == ann.task[0])
    assert_array_equal(chosen.workers, ann.workers)
    assert_array_equal(chosen.classes, ann.classes)


@given(annotations, st.randoms())
def test_relabel_by_a_permutation_moves_codes_and_its_inverse_returns(ann: Annotations, random: Any) -> None:
    permutation = np.array(random.sample(range(ann.n_classes), ann.n_classes))
    moved = ann.relabel(permutation)
    assert_array_equal(moved.label, permutation[ann.label])
    assert moved.relabel(np.argsort(permutation)) == ann


@given(annotations, st.randoms())
def test_relabel_by_a_mapping_renames_every_row(ann: Annotations, random: Any) -> None:
    classes = ann.classes.tolist()
    mapping = {old: random.choice(classes) for old in classes}
    assert rows_of(ann.relabel(mapping)) == [(task, worker, mapping[old]) for task, worker, old in rows_of(ann)]


@given(annotations)
def test_pickles_are_equal_and_codes_fit_the_documented_types(ann: Annotations) -> None:
    assert pickle.loads(pickle.dumps(ann)) == ann
    assert all(getattr(ann, name).dtype == np.int32 for name in ("task", "worker", "label"))
    assert all(getattr(ann, name).dtype in (np.int64, object) for name in ("tasks", "workers", "classes"))


def test_relabel_merges_renames_and_leaves_out_classes(ann: Annotations) -> None:
    merged = ann.relabel({"dog": "cat"})
    assert (merged.classes.tolist(), merged.label.tolist()) == (["cat"], [0, 0, 0])
    assert ann.relabel({"cat": "ape"}).classes.tolist() == ["dog", "ape"]
    assert ann.relabel({"cat": 1, "dog": 0}).classes.tolist() == [1, 0]
    assert ann.relabel({"cat": None}).classes.tolist() == ["dog"]
    assert len(ann.relabel({"cat": None})) == (ann.label == ann.classes.tolist().index("dog")).sum()


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"cow": "cat"}, r"mapping must start from the classes \['cat', 'dog'\]; got 'cow' \(1 in total\)"),
        ({"cat": None, "dog": None}, "new label must hold at least one id; got none"),
        ([0, 0], r"permutation must hold each code in \[0, 2\) once; got \[0, 0\]"),
        ([0], r"permutation must hold each code in \[0, 2\) once; got \[0\]"),
        ([0, 2], r"permutation must be in \[0, 2\); got 2 at position 1"),
    ],
)
def test_relabel_refuses_with_the_value(ann: Annotations, mapping: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ann.relabel(mapping)


def test_relabel_align_and_select_refuse_with_the_value_and_a_way_out(ann: Annotations) -> None:
    says = r"new label must be all integers .*; got 'dog' \(str\) at row 1 after 0 \(int\)"
    with pytest.raises(TypeError, match=says):
        ann.relabel({"cat": 0})
    with pytest.raises(ValueError, match=r"every labelled task; got none for 'b' \(2 annotations in total\)"):
        ann.align(["a", "c"])
    task_ids = ["c", "a"]
    assert rows_of(ann.select(np.isin(ann.tasks, task_ids)).align(task_ids)) == [("a", "x", "cat")]
    with pytest.raises(TypeError, match=r"task_ids must be strings, as in \['a', 'b'\]; got integers, as in \[1, 2\]"):
        ann.align([1, 2])
    with pytest.raises(ValueError, match="task_ids must not repeat an id; got 'a' 2 times"):
        ann.align(["a", "b", "a"])
    with pytest.raises(ValueError, match="at least one row; got 0"):
        ann.select([False, False])
    with pytest.raises(ValueError, match=r"X must have one row for each of the 2 tasks .*; got 3 rows\. Give tasks="):
        check_positions(ann, "X", 3, "Give tasks=numpy.arange(3).")


def test_normalise_keeps_the_most_frequent_spelling() -> None:
    ann = build([(1, 1, "Yes"), (2, 1, "Yes"), (3, 1, " yes."), (4, 1, "no"), (5, 1, "1.0"), (6, 1, "1")])
    assert ann.normalise().classes.tolist() == ["1", "Yes", "no"]


@pytest.mark.parametrize("gone", [None, float("nan"), pd.NA])
def test_rows_with_a_missing_value_are_left_out_and_counted(gone: Any) -> None:
    columns: Any = ([1, 2, gone, gone], ["a", "b", "a", None], ["x", None, "y", None])
    with pytest.warns(MissingWarning, match=r"3 of 4 rows are left out \(.*\), the first is row 1\.") as caught:
        ann = Annotations.from_arrays(*columns, missing="drop")
    assert (ann.tasks.tolist(), ann.classes.tolist()) == ([1], ["x"])
    assert caught[0].message.counts == {"blank": 1, "without a task": 1, "without a label": 1}  # type: ignore[union-attr]


def test_what_cannot_be_annotations_is_refused_with_the_value() -> None:
    with pytest.raises(ValueError, match=r'label .* at row 1 \(1 in total\)\. Leave .* with missing="drop", or fill'):
        Annotations.from_arrays([1, 2], [1, 1], ["x", None])
    with pytest.raises(ValueError, match=r"label must be one of the declared \['a'\]; got 'b' at row 0 \(1 in total\)"):
        build([(1, 1, "b")], classes=["a"])
    with pytest.raises(ValueError, match=r"got worker 'x' on task 1 again \(2 repeated rows in total\).*\"first\""):
        build(TWICE)
    with pytest.raises(ValueError, match="duplicates must be one of 'error', 'first', 'last', 'keep'; got 'all'"):
        build(TWICE, duplicates="all")
    with pytest.raises(ValueError, match="one label per worker and task; got 2 repeated rows"):
        build(TWICE, duplicates="keep").to_matrix()
    column = np.broadcast_to(np.int8(0), (2**31,))
    with pytest.raises(ValueError, match=r"at most 2\^31 - 1 = 2147483647; got 2147483648\. Split"):
        Annotations.from_arrays(column, column, column)
    with pytest.raises(ValueError, match="annotations must have at least one row; got 0"):
        Annotations.from_frame(pd.DataFrame(columns=["task", "worker", "label"]))
    with pytest.raises(ValueError, match=r"must be one of the declared \[0, 1\]; got 7 at row 1 \(1 in total\)"):
        Annotations.from_matrix([[0, -1], [-1, 7]], classes=[0, 1])
    with pytest.raises(ValueError, match=r"got worker 0 on task 0 again \(1 repeated rows in total\)"):
        Annotations.from_matrix(sparse.coo_array(([5, 6], ([0, 0], [0, 0])), shape=(1, 1)))
    with pytest.raises(ValueError, match=r"label codes must be in \[0, 1\); got 3 at position 0 \(1 in total\)"):
        Annotations([0], [0], [3], ["a"], ["x"], ["c"])  # type: ignore[arg-type]


def test_columns_and_classes_keep_their_names_and_places(ann: Annotations) -> None:
    frame = pd.DataFrame({"id": [1, 2], "who": [1, 2], "says": ["cat", "dog"]})
    assert Annotations.from_arrays(frame["id"], frame["who"], ["cat", "dog"]).names == ("id", "who", "label")
    frame = pd.DataFrame(dict(enumerate(COLUMNS.values())))
    assert Annotations.from_frame(frame, task=0, worker=1, label=2) == ann
    declared = build([(1, 1, "b")], classes=["c", "b", "a"])
    assert (declared.classes.tolist(), declared.label.tolist()) == (["c", "b", "a"], [1])


TWICE = [(1, "x", "a"), (2, "y", "b"), (1, "x", "b"), (1, "x", "c")]


@pytest.mark.parametrize(("policy", "labels"), [("first", "ab"), ("last", "cb"), ("keep", "abcb")])
def test_duplicates_follow_the_policy(policy: Any, labels: str) -> None:
    assert [row[2] for row in rows_of(build(TWICE, duplicates=policy))] == list(labels)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([], [], []), "annotations must have at least one row; got 0"),
        (([1], [1, 2], [1]), "the same length; got task 1, worker 2, label 1"),
        (([1, 2], ["x", None], [0, 1]), r"worker must not be missing; got a missing value at row 1 \(1 in total\)"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Annotations.from_arrays(*columns)


COLUMNS = {"task": ["a", "b", "b"], "worker": ["x", "x", "y"], "label": ["cat", "dog", "cat"]}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS, index=[4, 4, 1]),
        pd.DataFrame(COLUMNS).astype("category"),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).cast(pl.Categorical),
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        pa.table(COLUMNS).to_reader(),
        COLUMNS,
    ],
    ids=["pandas", "categories", "polars", "polars categories", "arrow", "batch", "reader", "mapping"],
)
def test_every_frame_gives_the_same_annotations(ann: Annotations, frame: Any) -> None:
    assert Annotations.from_frame(frame) == ann


@pytest.mark.parametrize("name", ["select", "column_names", "columns", "iloc", "to_series"])
def test_a_column_may_be_called_as_an_attribute(ann: Annotations, name: str) -> None:
    assert Annotations.from_frame(pd.DataFrame({**COLUMNS, name: [1, 2, 3]})) == ann


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_that_are_not_asked_for_are_not_read(ann: Annotations, kind: Any) -> None:
    assert Annotations.from_frame(kind({**COLUMNS, "note": [object(), object(), object()]})) == ann


@pytest.mark.parametrize("frame", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)])
def test_an_unknown_column_is_refused_with_those_there(frame: Any) -> None:
    with pytest.raises(ValueError, match=r"worker column must be one of \['task', 'worker', 'label'\]; got 'who'\."):
        Annotations.from_frame(frame, worker="who")


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.table])
def test_a_column_name_that_repeats_is_refused(kind: Any) -> None:
    frame = pd.DataFrame([[1, 2, 3, 4]], columns=["task", "worker", "label", "task"])
    table = pa.table([[1], [2], [3], [4]], names=list(frame.columns))
    with pytest.raises(ValueError, match="got 'task', the name of 2 columns"):
        Annotations.from_frame(frame if kind is pd.DataFrame else table)


@pytest.mark.parametrize("frame", [None, [1, 2], "labels.csv", pd.Series([1])])
def test_what_is_no_frame_is_refused_with_its_type(frame: Any) -> None:
    with pytest.raises(TypeError, match=f"frame must be .* Arrow table; got {type(frame).__name__}"):
        Annotations.from_frame(frame)


def test_a_matrix_takes_names_and_keeps_tasks_and_workers_without_labels() -> None:
    ann = Annotations.from_matrix([[0, -1, -1], [-1, -1, -1]])
    assert (ann.n_tasks, ann.n_workers, len(ann)) == (2, 3, 1)
    ann = Annotations.from_matrix([["no", None]], tasks=["a"], workers=["x", "y"], classes=["yes", "no"])
    assert (rows_of(ann), ann.label.tolist()) == ([("a", "x", "no")], [1])


@pytest.mark.parametrize("name", ["tasks", "workers"])
def test_a_matrix_needs_a_name_for_each(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must name every one of the matrix's 1 {name}; got 2 ids"):
        Annotations.from_matrix([[0]], **cast(Any, {name: ["a", "b"]}))


@pytest.mark.parametrize(("policy", "label"), [("first", 5), ("last", 6)])
def test_an_entry_stored_twice_follows_the_policy(policy: Any, label: int) -> None:
    matrix = sparse.coo_array(([5, 6], ([0, 0], [0, 0])), shape=(1, 1))
    assert [row[2] for row in rows_of(Annotations.from_matrix(matrix, duplicates=policy))] == [label]


def test_a_dense_matrix_has_minus_one_where_nobody_labelled_and_is_a_copy(ann: Annotations) -> None:
    assert ann.to_matrix(dense=True).tolist() == [[0, -1], [1, 0]]
    ann.to_matrix().data[:] = 1
    assert ann.label.tolist() == [0, 1, 0]


def test_tasks_that_nobody_labelled_count_for_nothing(ann: Annotations) -> None:
    assert ann.align(["c", "b", "a"]).task.tolist() == [1, 1, 2]
    assert ann.align(["c", "a", "b"]).redundancy == 1.5


@pytest.mark.parametrize("mask", [[0, 1], [True], [[True, False]]])
def test_select_refuses_other_than_a_mask(ann: Annotations, mask: Any) -> None:
    got = np.asarray(mask)
    with pytest.raises(ValueError, match=rf"shape \(2,\); got {got.dtype} of shape \({got.shape[0]},"):
        ann.select(mask)


@pytest.mark.parametrize("redundancy", [0, 1.5, True])
def test_a_sample_needs_a_whole_redundancy(ann: Annotations, redundancy: Any) -> None:
    with pytest.raises(ValueError, match=f"redundancy must be an integer of at least 1; got {redundancy}"):
        ann.sample(redundancy=redundancy)


def test_tasks_are_in_the_order_of_first_appearance_or_of_their_numbers_from_zero() -> None:
    ann = Annotations.from_arrays([30, 4, 30, 17], ["y", "x", "x", "x"], [0, 1, 1, 0])
    assert ann.tasks.tolist() == [30, 4, 17]
    assert ann.workers.tolist() == ["x", "y"]
    assert Annotations.from_arrays(["b", "a"], [0, 0], [0, 1]).tasks.tolist() == ["b", "a"]
    ann = Annotations.from_arrays([0, 2, 1], [0, 0, 0], [0, 1, 1])
    assert_array_equal(ann.tasks, [0, 1, 2])
    assert_array_equal(ann.label, [0, 1, 1])
    assert_array_equal(Annotations.from_arrays([1, 3, 2], [0, 0, 0], [0, 1, 1]).tasks, [1, 3, 2])


@pytest.mark.parametrize(
    "made",
    [
        Annotations.from_arrays([0, 1, 2], [0, 0, 0], [0, 1, 1]),
        Annotations.from_arrays([5, 3, 9], [0, 0, 0], [0, 1, 1]),
        Annotations.from_arrays(["c", "a", "b"], [0, 0, 0], [0, 1, 1]),
        Annotations.from_arrays([2, 0, 1], [0, 0, 0], [0, 1, 1]).align([2, 1, 0]),
        Annotations.from_matrix([[0], [1], [1]], tasks=[2, 0, 1]),
    ],
    ids=["numbered in order", "other numbers", "names", "aligned", "matrix"],
)
def test_an_array_without_ids_follows_the_tasks(made: Annotations) -> None:
    check_positions(made, "X", 3, "Give tasks=...")


@pytest.mark.parametrize("rows", [[2, 0], np.array([True, False, True]), slice(0, 3, 2), (np.array([0, 2]),)])
def test_rows_are_tasks(rows: Any) -> None:
    ann = Annotations.from_arrays(["a", "b", "b", "c"], [0, 0, 1, 1], [0, 1, 1, 0])
    part = ann[rows]
    assert part.shape == (2, 2)
    assert set(part.tasks.tolist()) == {"a", "c"}
    assert part[0].tasks.tolist() == part.tasks[:1].tolist()
    assert_array_equal(np.asarray(part)[part.tasks == "c"], [[-1, 0]])


COPIES = {
    "itself": lambda ann: ann,
    "deepcopy": copy.deepcopy,
    "pickle": lambda ann: pickle.loads(pickle.dumps(ann)),
    "align": lambda ann: ann.align(["b", "a"]),
    "select": lambda ann: ann.select([True, False]),
    "sample": lambda ann: ann.sample(),
    "relabel": lambda ann: ann.relabel({"dog": "cat"}),
}


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
def test_no_array_can_be_written_to(ann: Annotations, made: Any) -> None:
    arrays = [getattr(made(ann), field.name) for field in fields(ann) if field.name not in ("names", "extra")]
    assert not any(array.flags.writeable for array in arrays)


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
def test_the_names_of_the_columns_are_remembered(made: Any) -> None:
    frame = pa.table({"Review ID": ["a", "b"], "who": [1, 2], "says": ["cat", "dog"]})
    ann = Annotations.from_frame(frame, task="Review ID", worker="who", label="says")
    assert made(ann).names == ("Review ID", "who", "says")


def test_annotations_cannot_be_changed_or_hashed_or_equal_other_ids_and_repr_counts(ann: Annotations) -> None:
    with pytest.raises(FrozenInstanceError, match="task"):
        ann.task = ann.worker  # type: ignore[misc]
    with pytest.raises(TypeError, match="unhashable type: 'Annotations'"):
        hash(ann)
    assert repr(ann) == "Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)"
    assert build([(1, 1, 1)]) != build([("1", 1, 1)])


def test_arrays_of_the_caller_are_not_shared_and_stay_writeable() -> None:
    codes, tables = np.zeros(1, dtype=np.int32), np.arange(1)
    ann = Annotations(codes, codes, codes, tables, tables, tables)
    assert not np.shares_memory(ann.task, codes)
    assert not np.shares_memory(ann.tasks, tables)
    column = np.array([2, 1], dtype=np.int64)
    Annotations.from_arrays(column, column, column, classes=column)
    assert (column.tolist(), column.flags.writeable) == ([2, 1], True)


@pytest.mark.parametrize("other", [1, None, "ann", [0, 1, 0]])
def test_other_things_are_not_equal(ann: Annotations, other: Any) -> None:
    assert ann != other


@pytest.mark.parametrize("field", range(3))
def test_another_row_is_not_equal(field: int) -> None:
    row = [0, 0, 0]
    row[field] = 1
    tables = {"tasks": [0, 1], "workers": [0, 1], "classes": [0, 1]}
    codes = [[code] for code in row]
    assert Annotations(*codes, **tables) != Annotations([0], [0], [0], **tables)  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [np.array(["a", "b", "a"], dtype=object), np.array([3, 1, 3]), ["a", "b", "a"]])
def test_a_table_that_repeats_an_id_is_refused_whatever_it_is(table: Any) -> None:
    codes = np.array([0, 1, 2])
    for role in range(3):
        tables = [np.arange(3)] * role + [table] + [np.arange(3)] * (2 - role)
        with pytest.raises(ValueError, match=r"(tasks|workers|classes) must not repeat an id; got ('a'|3) 2 times"):
            Annotations(codes, codes, codes, *tables)
