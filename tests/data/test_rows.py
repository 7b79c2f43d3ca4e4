"""The sorting helpers agree with Python's own sort, and a matrix of labels keeps only what is labelled."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from labelonce.data import _memory, _rows
from labelonce.data._memory import available_memory, check_memory

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1)


def codes_of(rows: list[tuple[int, int]]) -> tuple[Any, Any]:
    task, worker = np.array(rows, dtype=np.int32).T
    return task, worker


@given(pairs)
def test_row_order_is_the_stable_sort_and_sorted_rows_need_none(rows: list[tuple[int, int]]) -> None:
    order = _rows.row_order(*codes_of(rows), 4, 3)
    expected = sorted(range(len(rows)), key=rows.__getitem__)
    assert (list(range(len(rows))) if order is None else order.tolist()) == expected
    assert _rows.row_order(*codes_of(sorted(rows)), 4, 3) is None


@given(pairs)
def test_repeats_are_all_but_the_first_of_a_pair(rows: list[tuple[int, int]]) -> None:
    assert _rows.repeats(*codes_of(sorted(rows))).sum() == len(rows) - len(set(rows))


def test_rows_without_labels_and_of_unequal_length_are_seen() -> None:
    assert _rows.first_rows(np.array([1, 1, 3], dtype=np.int32), 5).tolist() == [0, 0, 2, 2, 3, 3]
    stored = sparse.coo_array((np.array([-1.0, np.nan, 2.0]), ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert _rows.matrix_entries(stored)[2].tolist() == [2.0]
    with pytest.raises(ValueError, match=r"matrix must have rows of one length; got \[\[1\], \[1, 2\]\]"):
        _rows.matrix_entries([[1], [1, 2]])


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


def test_what_fits_or_is_not_told_passes_and_what_does_not_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "_machine_memory", lambda: float("inf"))
    monkeypatch.setattr(_memory, "_CGROUP", Path("nowhere"))
    check_memory(1e30, "This", "Use less.")
    monkeypatch.setattr(_memory, "available_memory", lambda: 2.0**30)
    check_memory(0.9 * 2**30, "This", "Use less.")
    with pytest.raises(ValueError, match=r"^This must fit .* got 1\.5 GiB of arrays with 1 GiB free\. Use less\.$"):
        check_memory(1.5 * 2**30, "This", "Use less.")


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "_CGROUP", tmp_path)
    free = available_memory()
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    (tmp_path / "memory.stat").write_text("anon 300000\ninactive_file 100000\n")
    assert available_memory() == 700_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() == pytest.approx(free, rel=0.5)
