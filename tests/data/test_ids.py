"""Every kind of id column becomes the same codes, and every bad one a sentence that names the value."""

import datetime
import decimal
from array import array
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.preprocessing import FunctionTransformer

from labelonce._messages import clip, described, shorten, show
from labelonce.data import _ids
from labelonce.data._packed_strings import PackedStrings

ids = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.integers(-5, 5), min_size=1),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), min_size=1),
)


def entries(indices: list[int | None], values: list[Any]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(values))


STRINGS = {
    "list": ["c", "a", "c"],
    "numpy": np.array(["c", "a", "c"]),
    "numpy objects": np.array(["c", "a", "c"], dtype=object),
    "numpy StringDType": np.array(["c", "a", "c"], dtype=np.dtypes.StringDType()),
    "pandas": pd.Series(["c", "a", "c"], index=[7, 7, 9]),
    "pandas python strings": pd.Series(["c", "a", "c"], dtype="string[python]"),
    "pandas arrow": pd.Series(["c", "a", "c"], dtype=pd.ArrowDtype(pa.string())),
    "pandas index": pd.Index(["c", "a", "c"]),
    "pandas categorical with unused": pd.Categorical(["c", "a", "c"], categories=["z", "c", "a"]),
    "polars": pl.Series(["c", "a", "c"]),
    "polars Categorical": pl.Series(["c", "a", "c"], dtype=pl.Categorical),
    "polars Enum": pl.Series(["c", "a", "c"], dtype=pl.Enum(["z", "c", "a"])),
    "arrow": pa.array(["c", "a", "c"]),
    "arrow large_string": pa.array(["c", "a", "c"], pa.large_string()),
    "arrow string_view": pa.array(["c", "a", "c"], pa.string_view()),
    "arrow chunks": pa.chunked_array([["c", "a"], [], ["c"]]),
    "arrow dictionary": entries([1, 0, 1], ["a", "c"]),
    "arrow dictionary with a null unused": entries([2, 0, 2], ["a", None, "c"]),
    "arrow dictionary with a repeat": entries([0, 1, 2], ["c", "a", "c"]),
    "arrow dictionary of string_view": entries([1, 0, 1], pa.array(["a", "c"], pa.string_view())),
    "arrow dictionary sliced": entries([0, 1, 0, 1], ["a", "c"])[1:],
    "arrow chunks of other dictionaries": pa.chunked_array([entries([0, 1], ["c", "a"]), entries([0], ["c"])]),
    "arrow chunks, one with a null unused": pa.chunked_array([entries([0, 2], ["c", None, "a"]), entries([0], ["c"])]),
}

INTEGERS = {
    "list": [3, -1, 3],
    "range of numpy ints": [np.int64(3), np.int8(-1), 3],
    "int8": np.array([3, -1, 3], dtype=np.int8),
    "other byte order": np.array([3, -1, 3], dtype=">i4"),
    "strided": np.array([3, 0, -1, 0, 3])[::2],
    "whole floats": [3.0, -1.0, 3.0],
    "float16": np.array([3, -1, 3], dtype=np.float16),
    "pandas Int64": pd.array([3, -1, 3], dtype="Int64"),
    "pandas categorical": pd.Series([3, -1, 3], dtype="category"),
    "polars": pl.Series([3, -1, 3], dtype=pl.Int16),
    "arrow dictionary with a half unused": entries([0, 1, 0], [3.0, -1.0, 0.5]),
    "array": array("i", [3, -1, 3]),
}


@pytest.mark.parametrize("column", STRINGS.values(), ids=STRINGS)
def test_every_column_of_strings_gives_the_same_codes(column: Any) -> None:
    codes, table = _ids.encode(column, "task")
    assert (codes.tolist(), table.tolist(), table.dtype.kind) == ([1, 0, 1], ["a", "c"], "O")


@pytest.mark.parametrize("column", INTEGERS.values(), ids=INTEGERS)
def test_every_column_of_integers_gives_the_same_codes(column: Any) -> None:
    codes, table = _ids.encode(column, "task")
    assert (codes.tolist(), table.tolist(), table.dtype.str) == ([1, 0, 1], [-1, 3], "<i8")


def test_booleans_become_zero_and_one() -> None:
    assert _ids.encode([True, False], "task")[1].tolist() == [0, 1]


@given(ids)
def test_codes_point_at_the_values_in_sorted_tables_of_distinct_ids(values: list[Any]) -> None:
    codes, table = _ids.encode(values, "task")
    assert table[codes].tolist() == values
    assert _ids.encode(values, "task")[1].tolist() == sorted(set(values))
    assert _ids.encode(values, "task")[0].dtype == np.int32
    assert _ids.decode(*_ids.encode(values, "task")).to_pylist() == values


@given(ids, ids)
def test_lookup_finds_what_is_there_and_nothing_else(values: list[Any], others: list[Any]) -> None:
    table = list(dict.fromkeys(others))
    expected = [table.index(value) if value in table else -1 for value in values]
    assert _ids.lookup(values, _ids.table_of(table, "ids")).tolist() == expected


def test_lookup_does_not_find_a_missing_value_and_tables_are_copies() -> None:
    assert _ids.lookup(["a", None], np.array(["a"], dtype=object)).tolist() == [0, -1]
    given_ids = np.array([2, 1, 0])
    assert not np.shares_memory(_ids.table_of(given_ids, "classes"), given_ids)


@pytest.mark.parametrize("column", [["é", "😀"], ["שלום", "‏a"], ["a", "a\0"], ["", " "], ["e\u0301", "é"]])
def test_strings_that_look_odd_stay_apart(column: list[str]) -> None:
    assert sorted(_ids.encode(column, "task")[1].tolist()) == sorted(column)


MISSING = {
    "None": (["a", None, "b"], 1, 1),
    "NaN among strings": (["a", "b", float("nan")], 2, 1),
    "NaN among floats": ([float("nan"), 1.0], 0, 1),
    "pandas.NA": (["a", pd.NA], 1, 1),
    "NaT": ([pd.NaT, pd.NaT], 0, 2),
    "nullable": (pd.array([1, None], dtype="Int64"), 1, 1),
    "categorical": (pd.Categorical(["a", None]), 1, 1),
    "masked": (np.ma.masked_array([1, 2], mask=[False, True]), 1, 1),
    "polars": (pl.Series([1, None]), 1, 1),
    "polars NaN": (pl.Series([1.0, float("nan")]), 1, 1),
    "polars Categorical": (pl.Series(["a", None], dtype=pl.Categorical), 1, 1),
    "all null": (pa.nulls(3), 0, 3),
    "arrow NaN": (pa.array([1.0, float("nan")]), 1, 1),
    "null entry of a dictionary": (entries([0, 1], ["a", None]), 1, 1),
    "null entry and null index": (entries([0, None, 1], ["a", None]), 1, 2),
}


@pytest.mark.parametrize(("column", "row", "total"), MISSING.values(), ids=MISSING)
def test_a_missing_id_is_refused_with_its_row(column: Any, row: int, total: int) -> None:
    with pytest.raises(ValueError, match=rf"task must not be missing; got .* at row {row} \({total} in total\)\. Drop"):
        _ids.encode(column, "task")


UNREADABLE = {
    "int after str": (["a", 1], r"got 1 \(int\) at row 1 after 'a' \(str\)"),
    "str after int": ([1, 2, "a"], r"got 'a' \(str\) at row 2 after 1 \(int\)"),
    "str after int, one missing": ([None, 1, "a"], r"got 'a' \(str\) at row 2 after 1 \(int\)"),
    "objects of both": (np.array([1, "a"], dtype=object), r"got 'a' \(str\) at row 1"),
    "int after bool": ([True, 2], r"got 2 \(int\) at row 1 after True \(bool\)"),
    "beyond int64": ([1, 2**63], r"got 9223372036854775808 \(int\) at row 1"),
    "uint64 beyond int64": (np.array([1, 2**63], dtype=np.uint64), "got 9223372036854775808 at row 1"),
    "half": ([1.0, 1.5], r"got 1\.5 at row 1\. Round it"),
    "infinity": ([1.0, float("inf")], "got inf at row 1"),
    "lone surrogate": (["a", "\ud800"], r"got '\\ud800' \(str\) at row 1"),
    "object": ([object()], r"got <object object at .*> \(object\) at row 0"),
    "complex": (np.array([1j]), r"got 1j \(complex128\) at row 0"),
    "structured": (np.zeros(1, dtype="i4,i4"), r"got \(0, 0\) \(void\) at row 0"),
    "bytes": ([b"a"], "got binary. Convert the column to strings"),
    "date": ([datetime.date(2020, 1, 1)], r"got date32\[day\]"),
    "timestamp": (pd.Series(pd.to_datetime(["2020-01-01"])), r"got timestamp\["),
    "decimal": ([decimal.Decimal(1)], "got decimal128"),
    "tuple": ([(1, 2)], "got list<"),
    "dict in a list": ([{"a": 1}], "got struct<"),
    "generator": ((i for i in range(3)), r"got <generator .*\(generator\)\. Give a list"),
    "set": ({1}, r"got \{1\} \(set\)"),
    "mapping": ({"a": 1}, r"got \{'a': 1\} \(dict\)"),
    "one string": ("abc", r"got 'abc' \(str\)"),
    "number": (3, r"got 3 \(int\)"),
    "0-d": (np.array(3), r"got array\(3\) \(ndarray\)"),
    "None itself": (None, r"got None \(NoneType\)"),
}


@pytest.mark.parametrize(("column", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_column_of_ids_is_refused_with_the_value(column: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"task must be .*{message}"):
        _ids.encode(column, "task")


@pytest.mark.parametrize(
    "column", [np.zeros((2, 1), dtype=int), pd.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2]})]
)
def test_two_dimensions_are_refused_with_the_shape(column: Any) -> None:
    with pytest.raises(ValueError, match=r"task must be one-dimensional; got shape \(2, 1\)"):
        _ids.encode(column, "task")


def test_ids_that_are_not_those_of_the_table_are_refused() -> None:
    with pytest.raises(TypeError, match=r"label must be strings, as in \['0', '1'\]; got integers, as in \[1\]"):
        _ids.encode([1, 0], "label", _ids.table_of(["0", "1"], "classes"))
    with pytest.raises(ValueError, match=r"classes must not repeat an id; got 'b' 3 times \(2 repeated ids in total\)"):
        _ids.table_of(["a", "b", "b", "b", "c", "c"], "classes")
    with pytest.raises(ValueError, match="classes must hold at least one id; got none"):
        _ids.table_of([], "classes")


def test_long_lists_and_ids_are_cut_in_messages() -> None:
    assert shorten(np.arange(9), 2) == "[0, 1, ... 9 in all]"
    assert show("x" * 10_000) == "'" + "x" * 56 + "..."


@pytest.mark.parametrize("value", [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NA, pd.NaT])
def test_missing_values_are_known(value: Any) -> None:
    assert _ids.is_missing(value)


@pytest.mark.parametrize("value", [0, -1, "", "nan", (1,), np.int64(0), False])
def test_other_values_are_not_missing(value: Any) -> None:
    assert not _ids.is_missing(value)


class Tensor:
    """As much of a torch tensor as a column needs."""

    shape = (3,)

    def __len__(self) -> int:
        return 3

    def __dlpack__(self) -> None: ...

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([3, 1, 3], dtype=dtype)


def test_a_tensor_is_a_column() -> None:
    assert_array_equal(_ids.encode(Tensor(), "task")[0], [1, 0, 1])


class Thing:
    """Has the text that Python gives to objects."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (partial(max, key=clip), "functools.partial(<built-in function max>, key=clip)"),
        ([clip, lambda: 0], "[clip, <lambda>]"),
        (FunctionTransformer(partial(clip, most=3)), "FunctionTransformer(func=functools.partial(clip, most=3))"),
        ("a\n  b", "a b"),
    ],
)
def test_functions_are_described_by_their_names(value: Any, text: str) -> None:
    assert described(value) == text


def test_equal_things_at_other_addresses_are_described_alike() -> None:
    one, other = Thing(), Thing()
    assert str(one) != str(other)
    assert described(one) == described(other)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_what_is_packed_comes_out_again(strings: list[str]) -> None:
    assert PackedStrings.of(strings).unpack().tolist() == strings


def test_packed_strings_never_read_beyond_the_text_and_hold_strings_alone() -> None:
    assert PackedStrings(b"cat", np.array([2, 1000])).unpack().tolist() == ["ca", "t"]
    with pytest.raises(TypeError, match="int found"):
        PackedStrings.of(["a", 1])  # type: ignore[list-item]
