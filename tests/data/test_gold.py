"""Gold in every form gives the same codes, and what is wrong with it is said with the value and the place."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from labelonce.data import Annotations
from labelonce.data._gold import check_gold

TASKS = np.array(["t0", "t1", "t2"], dtype=object)
CLASSES = np.array([0, 1])


def annotated(tasks: Any, classes: Any) -> Annotations:
    """Annotations with these tables, one label."""
    zero = np.zeros(1, dtype=np.int32)
    return Annotations(zero, zero, zero, tasks, np.array(["w"], dtype=object), classes)


ANN = annotated(TASKS, CLASSES)


@pytest.mark.parametrize(
    "gold",
    [
        {"t0": 1, "t2": 0},
        [1, None, 0],
        [1, -1, 0],
        [1.0, np.nan, 0.0],
        np.array([1, -1, 0]),
        np.ma.masked_array([1, 1, 0], [False, True, False]),
        pd.Series([1, pd.NA, 0], dtype="Int64"),
        pd.Series({"t2": 0, "t1": None, "t0": 1}),
        pd.Series({"t2": 0, "t1": -1, "t0": 1}),
        pd.Series({"t2": 0, "t0": 1}),
    ],
)
def test_every_form_of_gold_gives_the_same_codes(gold: Any) -> None:
    assert_array_equal(check_gold(gold, ANN), [1, -1, 0])


@pytest.mark.parametrize("gold", [{}, [None, None, None]])
def test_no_gold_at_all_is_allowed(gold: Any) -> None:
    assert_array_equal(check_gold(gold, ANN), [-1, -1, -1])


def test_a_series_is_read_by_its_index_unless_that_only_counts_and_minus_one_may_be_a_class() -> None:
    tasks = np.array([0, 1, 2])
    assert_array_equal(check_gold(pd.Series([1, 0, 0], index=[2, 0, 1]), annotated(tasks, CLASSES)), [0, 0, 1])
    assert_array_equal(check_gold(pd.Series([1, 0, 0]), annotated(tasks + 5, CLASSES)), [1, 0, 0])
    assert_array_equal(check_gold([-1, 1, None], annotated(TASKS, np.array([-1, 1]))), [0, 1, -1])


@pytest.mark.parametrize("unknown", [-1, -1.0, np.int64(-1), None, np.nan])
def test_minus_one_is_unknown_among_strings_too(unknown: Any) -> None:
    classes = np.array(["-1", "cat"], dtype=object)
    assert_array_equal(check_gold(["cat", unknown, "-1"], annotated(TASKS, classes)), [1, -1, 0])


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({"t9": 1, "t8": 0}, r"gold tasks must be among \['t0', 't1', 't2'\]; got 't9' \(2 in total\)"),
        ({"t0": 7}, r"gold must be among \[0, 1\]; got 7 \(1 in total\)"),
        ([1, 7, None], r"gold must be among \[0, 1\]; got 7 \(1 in total\)"),
        ([1, 0], r"gold must have one entry per task, 3; got shape \(2,\)\. Give a mapping"),
        ({"t0": None}, "gold must not be missing; got a missing value at row 0"),
        (pd.Series([1, 0], index=["t0", "t0"]), "gold must name a task once; got 't0' twice"),
        (pd.Series([1, 0], index=["t0", "t9"]), r"gold tasks must be among .*; got 't9' \(1 in total\)"),
        (pd.Series([1, 1, 0], index=[5, 6, 7]), r"gold tasks must be strings, as in .*; got integers, as in \[5, 6"),
        ({0: 1}, r"gold tasks must be strings, as in \['t0', 't1', 't2'\]; got integers, as in \[0\]"),
        (["0", "1", None], r"gold must be integers, as in \[0, 1\]; got strings, as in \['0', '1'\]"),
    ],
)
def test_unknown_gold_is_refused_with_the_value(gold: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        check_gold(gold, ANN)


@pytest.mark.parametrize("gold", [[1, 0, None], np.array([1, 0, -1]), pd.Series([1, 0, None])])
def test_gold_without_ids_is_by_number_where_tasks_are_numbered_from_zero(gold: Any) -> None:
    ann = Annotations.from_arrays([0, 2, 1], ["w"] * 3, [0, 1, 1])
    assert check_gold(gold, ann).tolist() == check_gold({0: 1, 1: 0}, ann).tolist() == [1, 0, -1]
