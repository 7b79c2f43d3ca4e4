"""Files of features, texts and gold: what is read, and what each broken one is told."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from forging import Bomb
from numpy.testing import assert_array_equal
from small_files import written

import labelonce as lo
from labelonce.formats._answers import Fields
from labelonce.formats._registry import find_labels
from labelonce.runs._inputs import align_rows, read_features, read_texts

TABLE = pa.table({"task": ["b", "a"], "x": [1.5, 2.0], "n": [3, 4], "yes": [True, False]})


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".arrow", ".csv.gz"])
def test_every_table_is_read_alike(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"features{suffix}"
    lo.write(TABLE, path)
    rows = read_features(path)
    assert rows.tasks.tolist() == ["b", "a"]
    assert rows.columns == ["x", "n", "yes"]
    assert_array_equal(rows.X, [[1.5, 3, 1], [2, 4, 0]])


def test_columns_can_be_left_out_or_asked_for_and_unknown_ones_are_named(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    lo.write(TABLE, path)
    assert read_features(path, ignore=["n"]).columns == ["x", "yes"]
    assert_array_equal(read_features(path, columns=["n", "x"]).X, [[3, 1.5], [4, 2]])
    lo.write(TABLE, path)
    with pytest.raises(ValueError, match=r"a column 'z'; got none among \['task', 'x', 'n', 'yes'\]"):
        read_features(path, ignore=["z"])
    with pytest.raises(ValueError, match="a column 'review'; got none"):
        read_texts(path, "review")


def test_task_ids_in_text_follow_the_rule_of_the_labels_and_arrays_their_order_or_ids(tmp_path: Path) -> None:
    whole, padded = tmp_path / "whole.csv", tmp_path / "padded.csv"
    whole.write_text("task,x\n10,1\n9,2\n")
    padded.write_text("task,x\n010,1\n9,2\n")
    assert read_features(whole).tasks.tolist() == [10, 9]
    assert read_features(padded).tasks.tolist() == ["010", "9"]
    X = np.arange(6).reshape(3, 2)
    np.save(tmp_path / "features.npy", X)
    np.savez(tmp_path / "features.npz", task=np.array(["c", "b", "a"]), X=X)
    assert read_features(tmp_path / "features.npy").tasks.tolist() == [0, 1, 2]
    rows = read_features(tmp_path / "features.npz")
    assert (rows.tasks.tolist(), rows.columns) == (["c", "b", "a"], None)
    assert_array_equal(rows.X, X)


def test_a_table_without_tasks_is_numbered_only_if_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "features.csv", "x,text\n1,a\n2,b\n")
    assert read_features(path, ignore=["text"], new=True).tasks.tolist() == [0, 1]
    message = r"features.csv: the table must have a column 'task'; got none among \['x', 'text'\].*task="
    with pytest.raises(ValueError, match=message):
        read_features(path, ignore=["text"])
    with pytest.raises(ValueError, match=message):
        read_texts(path, "text")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_column_of_tasks_twice_is_told(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"features{suffix}"
    columns = [pa.array(["a", "b"]), pa.array(["a", "b"]), pa.array(["p", "q"])]
    lo.write(pa.Table.from_arrays(columns, names=["task", "task", "text"]), path)
    for new in (False, True):
        with pytest.raises(ValueError, match=r"must have one column 'task'; got \['task', 'task', 'text'\]"):
            read_features(path, new=new)
        with pytest.raises(ValueError, match=r"must have one column 'task'; got \['task', 'task', 'text'\]"):
            read_texts(path, "text", new=new)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_integers_that_no_float_holds_are_rounded(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"features{suffix}"
    lo.write(pa.table({"task": ["a", "b"], "nanoseconds": [2**53 + 1, 1_700_000_000_123_456_789]}), path)
    assert_array_equal(read_features(path).X, [[float(2**53 + 1)], [float(1_700_000_000_123_456_789)]])


def test_missing_numbers_are_read_where_allowed_and_texts_keep_what_looks_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "features.csv", "task,x,y\na,,1\nb,2,NaN\n")
    assert np.isnan(read_features(path, missing=True).X).tolist() == [[True, False], [False, True]]
    path = written(tmp_path / "texts.csv", 'task,text\n1,007\n2,NA\n4,"two\nlines, and ""quotes"""\n')
    rows = read_texts(path, "text")
    assert rows.X == ["007", "NA", 'two\nlines, and "quotes"']
    assert (rows.tasks.tolist(), rows.columns) == ([1, 2, 4], ["text"])


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("blank", ["", '""', "  ", '" \n "'])
def test_an_empty_text_is_named(tmp_path: Path, blank: str, new: bool) -> None:
    path = written(tmp_path / "texts.csv", f"task,text\n1,fine\n2,{blank}\n3,{blank}\n")
    with pytest.raises(ValueError, match=r"'text' must hold a text in every row; got .* at row 3 \(2 in total\)"):
        read_texts(path, "text", new=new)


@pytest.mark.parametrize("name", ["features.json", "features.npy.gz"])
def test_features_that_are_no_table_are_told_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("[]")
    with pytest.raises(ValueError, match=rf"{name} must be a table \(\.csv, \.tsv, .*\); got a "):
        read_features(tmp_path / name)


def test_the_texts_of_a_tools_export_are_read(tmp_path: Path) -> None:
    samples = Path(__file__).parents[1] / "formats" / "samples"
    studio = read_texts(find_labels(samples / "label-studio.json"), "text", fields=Fields(label="stars"))
    assert dict(zip(studio.tasks.tolist(), studio.X, strict=True))[101] == "The kettle boils fast and sings."
    (tmp_path / "mturk.csv").write_text("HITId,WorkerId,Input.said,Answer.x\nh1,a,one,0\nh1,b,one,1\nh2,a,two,1\n")
    (tmp_path / "toloka.tsv").write_text(
        "INPUT:said\tOUTPUT:y\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\none\t0\th1\ta\ntwo\t1\th2\ta\n"
    )
    line = (
        '{"text": "%s", "_input_hash": %d, "_task_hash": 1, "accept": ["x"], "answer": "accept", "_annotator_id": "a"}'
    )
    (tmp_path / "prodigy.jsonl").write_text(f"{line % ('one', 1)}\n{line % ('two', 2)}\n")
    for name, column in (("mturk.csv", "said"), ("toloka.tsv", "said"), ("prodigy.jsonl", "text")):
        assert read_texts(find_labels(tmp_path / name), column).X == ["one", "two"]
    (tmp_path / "matrix.csv").write_text("task,a\n1,0\n")
    with pytest.raises(ValueError, match="a matrix holds only labels; got the column 'said'"):
        read_texts(find_labels(tmp_path / "matrix.csv", "matrix"), "said")


def test_a_file_of_labels_has_one_text_a_task(tmp_path: Path) -> None:
    path = written(tmp_path / "labels.csv", "task,worker,label,text\n2,a,0,two\n1,a,0,one\n2,b,1,two\n")
    rows = read_texts(path, "text")
    assert (rows.tasks.tolist(), rows.X) == ([2, 1], ["two", "one"])
    path.write_text("task,worker,label,text\n2,a,0,two\n2,b,1,TWO\n")
    with pytest.raises(ValueError, match="'TWO' at row 3 for task 2, after 'two'"):
        read_texts(path, "text")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,x\na,1\na,2\n", "must not repeat an id; got 'a' 2 times"),
        ("task,x\na,1\nb,\n", "got NaN in column 'x' at row 3 (1 in total). Fill them in"),
        ("task,x\na,1\nb,inf\n", "got inf in column 'x' at row 3"),
        ("task,x\na,1\nb,two\n", "column 'x' must hold numbers; got 'two' at row 3 (text). Leave it out with ignore="),
        ("task,x\n,1\n", "task must not be missing; got a missing value at row 2"),
        ("task\na\n", "a column besides 'task'; got none. For texts, train with text=..."),
        ("task,x\n", "at least one row; got 0"),
        ("task,x\na,1,2\n", "must be a whole UTF-8 csv file"),
        ("", "must not be empty; got 0 bytes"),
    ],
)
def test_broken_features_are_told_in_a_sentence(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "features.csv", text)
    with pytest.raises(ValueError, match=r"^[^\n]+$") as told:
        read_features(path)
    assert message in str(told.value)
    assert str(path) in str(told.value)


@pytest.mark.parametrize("column", ["x", "n"])
def test_numbers_are_no_texts(column: str, tmp_path: Path) -> None:
    path = tmp_path / "features.parquet"
    lo.write(TABLE, path)
    with pytest.raises(ValueError, match=f"column '{column}' must hold texts; got"):
        read_texts(path, column)


def test_truncated_files_folders_and_missing_texts_are_told(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    lo.write(pa.table({"task": [1, 2], "text": ["a", None]}), path)
    with pytest.raises(ValueError, match=r"got None at row 1 \(1 in total\)"):
        read_texts(path, "text")
    for suffix in (".parquet", ".npy", ".npz", ".arrow"):
        path = tmp_path / f"features{suffix}"
        if suffix in (".parquet", ".arrow"):
            lo.write(TABLE, path)
        else:
            (np.savez if suffix == ".npz" else np.save)(path, np.arange(40.0).reshape(20, 2))
        path.write_bytes(path.read_bytes()[:-60])
        with pytest.raises(ValueError, match=f"{path.name} must be a whole"):
            read_features(path)
    for suffix in (".csv", ".parquet", ".npy"):
        (tmp_path / f"folder{suffix}").mkdir()
        with pytest.raises(OSError, match=f"folder{suffix}: Is a directory"):
            read_features(tmp_path / f"folder{suffix}")


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_pickled_arrays_are_never_opened(suffix: str, tmp_path: Path) -> None:
    path, mark = tmp_path / f"features{suffix}", tmp_path / "mark"
    array = np.array([[Bomb(mark)]], dtype=object)
    np.save(path, array, allow_pickle=True) if suffix == ".npy" else np.savez(path, X=array)
    with pytest.raises(ValueError, match="without pickled objects"):
        read_features(path)
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ValueError, match="without pickled objects"):
        read_features(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"a": np.zeros((2, 1)), "b": np.zeros((2, 1))},
            r"one array of features, and may hold 'task'; got \['a', 'b'\]",
        ),
        ({"a": np.zeros(2)}, r"got float64 of shape \(2,\)"),
        ({"a": np.array([["x"]])}, "got <U1 of shape"),
        ({"a": np.zeros((2, 1)), "task": np.arange(3)}, "got 3 for 2 rows"),
        ({"a": np.zeros((2, 1)), "task": np.array([1, 1])}, "must not repeat an id; got 1 2 times"),
    ],
)
def test_arrays_of_another_shape_are_told(arrays: dict[str, Any], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "features.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_features(tmp_path / "features.npz")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every file")
def test_a_closed_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "features.csv"
    lo.write(TABLE, path)
    path.chmod(0)
    with pytest.raises(PermissionError, match="Permission denied"):
        read_features(path)


def test_rows_are_joined_by_task_and_tasks_without_labels_stay(tmp_path: Path) -> None:
    path = written(tmp_path / "features.csv", "task,x\nc,1\nb,2\na,3\n")
    rows = read_features(path)
    ann = align_rows(lo.Annotations.from_arrays(["a", "b"], ["w", "w"], [0, 1]), rows, path)
    assert ann.tasks.tolist() == ["c", "b", "a"]
    assert ann.task.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("tasks", "error", "message"),
    [
        (["a", "z"], ValueError, r"got none for 'z' \(1 of 2 tasks in total\). Add these rows"),
        ([1, 2], ValueError, r"got none for '1' \(2 of 2 tasks in total\)"),
    ],
)
def test_tasks_without_a_row_are_named(tasks: list[Any], error: type[Exception], message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "features.csv", "task,x\nb,2\na,3\n")
    with pytest.raises(error, match=message):
        align_rows(lo.Annotations.from_arrays(tasks, ["w", "w"], [0, 1]), read_features(path), path)
