"""The sorting helpers agree with Python's own sort, and a matrix of labels keeps only what is labelled."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from labelonce.data import _rows

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1)


def codes_of(rows: list[tuple[int, int]]) -> tuple[Any, Any]:
    task, worker = np.array(rows, dtype=np.int32).T
    return task, worker


@given(pairs)
def test_row_order_is_the_stable_sort(rows: list[tuple[int, int]]) -> None:
    order = _rows.row_order(*codes_of(rows), 4, 3)
    expected = sorted(range(len(rows)), key=rows.__getitem__)
    assert (list(range(len(rows))) if order is None else order.tolist()) == expected


@given(pairs)
def test_sorted_rows_need_no_order(rows: list[tuple[int, int]]) -> None:
    assert _rows.row_order(*codes_of(sorted(rows)), 4, 3) is None


@given(pairs)
def test_repeats_are_all_but_the_first_of_a_pair(rows: list[tuple[int, int]]) -> None:
    assert _rows.repeats(*codes_of(sorted(rows))).sum() == len(rows) - len(set(rows))


def test_first_rows_count_tasks_without_rows() -> None:
    assert _rows.first_rows(np.array([1, 1, 3], dtype=np.int32), 5).tolist() == [0, 0, 2, 2, 3, 3]


STRINGS = [
    [["a", None], [None, "b"]],
    [["a", float("nan")], [pd.NA, "b"]],
    [["a", -1], [-1, "b"]],
    np.array([["a", None], [-1, "b"]], dtype=object),
    np.ma.masked_array([["a", "x"], ["x", "b"]], mask=np.eye(2) == 0),
    pd.DataFrame([["a", None], [None, "b"]]),
]
NUMBERS = [
    [[0, -1], [-1, 1]],
    np.asmatrix([[0, -1], [-1, 1]]),
    [[0, np.nan], [-1.0, 1]],
    np.array([[0, -1], [-1, 1]], dtype=np.int8),
    np.ma.masked_array([[0, 5], [5, 1]], mask=np.eye(2) == 0),
    pd.DataFrame([[0, None], [None, 1]], dtype="Int64"),
    sparse.csr_array((np.array([0, 1]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2)),
]


@pytest.mark.parametrize(
    ("matrix", "given"), [*((one, ["a", "b"]) for one in STRINGS), *((one, [0, 1]) for one in NUMBERS)]
)
def test_matrices_keep_what_is_labelled(matrix: Any, given: list[Any]) -> None:
    rows, columns, labels, _ = _rows.matrix_entries(matrix)
    assert (rows.tolist(), columns.tolist(), labels.tolist()) == ([0, 1], [0, 1], given)


def test_a_stored_minus_one_or_nan_is_not_labelled() -> None:
    stored = sparse.coo_array((np.array([-1.0, np.nan, 2.0]), ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert _rows.matrix_entries(stored)[2].tolist() == [2.0]


FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


@pytest.mark.parametrize("name", [f"{form}_{kind}" for form in FORMATS for kind in ("array", "matrix")])
def test_every_sparse_format_is_read(name: str) -> None:
    rows, columns, labels, shape = _rows.matrix_entries(getattr(sparse, name)(np.array([[0, 1, 0], [2, 0, 0]])))
    found = sorted(zip(rows.tolist(), columns.tolist(), labels.tolist(), strict=True))
    assert (found, shape) == ([(0, 1, 1), (1, 0, 2)], (2, 3))


@pytest.mark.parametrize("matrix", [[1, 2], np.zeros((1, 1, 1)), sparse.coo_array(np.array([1, 2]))])
def test_other_than_two_dimensions_are_refused(matrix: Any) -> None:
    with pytest.raises(ValueError, match=r"matrix must be two-dimensional .*; got shape \((2,|1, 1, 1)\)"):
        _rows.matrix_entries(matrix)


def test_rows_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"matrix must have rows of one length; got \[\[1\], \[1, 2\]\]"):
        _rows.matrix_entries([[1], [1, 2]])


@pytest.mark.parametrize(("dtype", "shown"), [("S1", r"\|S1"), ("M8[D]", "datetime64"), (complex, "complex128")])
def test_matrices_of_other_things_are_refused(dtype: Any, shown: str) -> None:
    with pytest.raises(TypeError, match=f"matrix must hold labels that are integers or strings; got {shown}"):
        _rows.matrix_entries(np.zeros((1, 1), dtype=dtype))


@pytest.mark.parametrize(
    "matrix",
    [
        [[-1, -1]],
        [[np.nan]],
        np.zeros((0, 3)),
        sparse.csr_array((3, 3)),
        sparse.csr_array(np.array([[-1.0, 0.0], [np.nan, -1.0]])),
    ],
)
def test_a_matrix_without_labels_is_refused(matrix: Any) -> None:
    with pytest.raises(ValueError, match="annotations must have at least one row; got 0"):
        _rows.matrix_entries(matrix)
