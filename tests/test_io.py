"""`read_annotations` and `write`: every format, every compression, and what a broken file says."""

import gzip
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Capture, Patch
from small_files import saved

import labelonce as lo
from labelonce import io
from labelonce.files import _json_table
from labelonce.files import _table_reader as _readers
from labelonce.files._open import locate

SUFFIXES = [".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson", ".arrow", ".feather"]
COMPRESSED = [text + codec for text in (".csv", ".tsv", ".jsonl", ".ndjson") for codec in (".gz", ".zst")]
HEADER = b"task,worker,label\n"
ROW = b'{"task": "a", "worker": "w", "label": 0}\n'
FIVE = ROW.replace(b'"a"', b"5")
UNEVEN = "must have 3 cells, as the header has; got"
AWKWARD = ["a,b", 'say "hi"', "two\nlines", "two\r\nlines", "Zürich 東京 🎉", "007", " padded ", "tab\tbed"]
AWKWARD += ["NA", "null", "\\n"]


@pytest.fixture
def awkward() -> lo.Annotations:
    return lo.Annotations.from_arrays(AWKWARD, AWKWARD[::-1], np.arange(len(AWKWARD)) % 3)


@pytest.fixture
def table() -> pa.Table:
    return pa.table({"task": ["a", "b"], "worker": [1, 2], "label": ["y", "x"], "note": [0.5, 1.5]})


def ids(path: Path, **options: Any) -> list[list[Any]]:
    ann = lo.read_annotations(path, **options)
    return [ann.tasks.tolist(), ann.workers.tolist(), ann.classes.tolist()]


@pytest.mark.parametrize("suffix", SUFFIXES + COMPRESSED)
def test_annotations_survive_a_round_trip(tmp_path: Path, awkward: lo.Annotations, suffix: str) -> None:
    lo.write(awkward, tmp_path / f"labels{suffix}")
    assert lo.read_annotations(tmp_path / f"labels{suffix}") == awkward


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_integer_ids_stay_integers(tmp_path: Path, suffix: str) -> None:
    ann = lo.Annotations.from_arrays([-3, 2**40, 0], [1, 2, 3], [0, 1, 0])
    lo.write(ann, tmp_path / f"labels{suffix}")
    assert lo.read_annotations(tmp_path / f"labels{suffix}") == ann


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_are_found_by_name(tmp_path: Path, table: pa.Table, suffix: str) -> None:
    lo.write(table.rename_columns(["label", "task", "worker", "note"]), tmp_path / f"labels{suffix}")
    found = ids(tmp_path / f"labels{suffix}", task="label", worker="task", label="worker")
    assert found == [["a", "b"], [1, 2], ["x", "y"]]
    assert ids(tmp_path / f"labels{suffix}", worker="task")[1] == [1, 2]  # one column may play two parts


@pytest.mark.parametrize("name", ["labels.dat", "labels", "labels.csv"])
def test_format_goes_before_the_suffix(tmp_path: Path, awkward: lo.Annotations, name: str) -> None:
    lo.write(awkward, tmp_path / name, format="parquet")
    assert pq.read_metadata(tmp_path / name).num_rows == len(awkward)
    assert lo.read_annotations(tmp_path / name, format="parquet") == awkward


def test_compression_blank_lines_nul_bytes_and_options_are_taken(tmp_path: Path) -> None:
    content = gzip.compress(HEADER + b"a,w,0\n", mtime=0)
    assert ids(saved(tmp_path, content, "labels.txt.gz"), format="csv") == [["a"], ["w"], [0]]
    assert ids(saved(tmp_path, content, "LABELS.CSV.GZ")) == [["a"], ["w"], [0]]
    content = ROW.replace(b"}", b', "z": 1}') + b"\n" + ROW.replace(b'"a"', b'"b"').replace(b"}", b', "z": [{}]}')
    assert ids(saved(tmp_path, content, "labels.jsonl"))[0] == ["a", "b"]
    path = saved(tmp_path, HEADER + b"a,w,cat\na,w,dog\n")
    ann = lo.read_annotations(path, classes=["fox", "dog", "cat"], duplicates="last")
    assert ann.classes[ann.label].tolist() == ["dog"]
    assert ann.classes.tolist() == ["fox", "dog", "cat"]
    assert ids(saved(tmp_path, HEADER + b"a\0b,w,0\n"))[0] == ["a\0b"]


@pytest.mark.parametrize("odd", ["007", "+1", "1.0", "-0", "0x1", " 1", "9223372036854775808", "one"])
def test_one_odd_value_keeps_a_csv_column_strings(tmp_path: Path, odd: str) -> None:
    path = saved(tmp_path, HEADER + f"5,w,0\n{odd},w,1\n".encode())
    assert ids(path)[0] == ["5", odd]


def test_csv_is_read_over_all_blocks(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(_readers, "BLOCK_BYTES", 64)
    path = saved(tmp_path, HEADER + b"".join(b"%d,1,0\n" % i for i in range(100)) + b"x,1,0\n")
    tasks, workers, _ = ids(path)
    assert "99" in tasks
    assert workers == [1]
    monkeypatch.setattr(_readers, "BLOCK_BYTES", 64)
    path = saved(tmp_path, HEADER + b"".join(b'"%02d\n\n\n",w,0\n' % i for i in range(50)))
    assert ids(path)[0] == [f"{i:02}\n\n\n" for i in range(50)]


@pytest.mark.parametrize(("name", "content"), [("labels.csv", HEADER + b"a,w,0\n"), ("labels.jsonl", ROW)])
def test_byte_order_mark_is_skipped(tmp_path: Path, name: str, content: bytes) -> None:
    assert ids(saved(tmp_path, b"\xef\xbb\xbf" + content, name)) == [["a"], ["w"], [0]]


def test_arrow_streams_and_late_large_integers_are_read_and_bad_types_named(tmp_path: Path, table: pa.Table) -> None:
    with pa.ipc.new_stream(tmp_path / "labels.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    assert ids(tmp_path / "labels.arrow") == [["a", "b"], [1, 2], ["x", "y"]]
    lo.write(table, tmp_path / "labels.parquet")
    with pytest.raises(TypeError, match=r"labels\.parquet: label must be .* got 0\.5 at row 0"):
        lo.read_annotations(tmp_path / "labels.parquet", label="note")
    task = np.append(np.arange(70_000), 2**40)
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"task": task, "worker": task % 7, "label": task % 2}), path)
    assert lo.read_annotations(path).tasks[-1] == 2**40


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_stored_dictionaries_that_differ_are_unified(tmp_path: Path, suffix: str) -> None:
    parts = [pa.table({"task": pa.array([i]).cast(pa.string()).dictionary_encode()}) for i in range(3)]
    whole = pa.concat_tables(parts)
    whole = whole.append_column("worker", pa.array([1, 2, 3])).append_column("label", pa.array(["x", "y", "x"]))
    path = tmp_path / f"labels{suffix}"
    pq.write_table(whole, path) if suffix == ".parquet" else lo.write(whole, path)
    assert ids(path) == [["0", "1", "2"], [1, 2, 3], ["x", "y"]]


@pytest.mark.parametrize("cell", [b"", b'""'])
def test_empty_cell_is_missing_and_named_with_file_and_row(tmp_path: Path, cell: bytes) -> None:
    path = saved(tmp_path, HEADER + b"a,w,0\nb," + cell + b",1\n")
    with pytest.raises(ValueError, match=r"labels\.csv: worker .* missing value at row 3 \(1 in total\)"):
        lo.read_annotations(path)


def test_what_cannot_be_opened_or_has_no_format_or_a_column_twice_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv: No such file or directory\. Check the path"):
        lo.read_annotations(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.csv: Is a directory"):
        lo.read_annotations(tmp_path / "folder.csv")
    with pytest.raises(ValueError, match=r"'csv', 'tsv', 'parquet', 'jsonl', 'arrow', 'label-studio', .*; got 'xls'"):
        lo.read_annotations("labels.csv", format="xls")
    with pytest.raises(ValueError, match=r"\['task', 'worker', 'label', 'task'\]; got 'task'. Rename the second"):
        lo.read_annotations(saved(tmp_path, b"task,worker,label,task\n1,2,3,4\n"))


@pytest.mark.parametrize("name", ["labels.dat", "labels", "labels.gz", "labels.parquet.gz", "labels.arrow.zst"])
def test_unknown_suffix_is_named_with_those_known(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=rf"\.csv, .*\.feather, .* got '{name.removeprefix('labels')}'.*format="):
        lo.read_annotations(tmp_path / name)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unknown_column_is_named_with_those_present(tmp_path: Path, table: pa.Table, suffix: str) -> None:
    lo.write(table, tmp_path / f"labels{suffix}")
    message = rf"labels{suffix}: the worker column .* \['task', 'worker', 'label', 'note'\]; got 'who'.*worker="
    with pytest.raises(ValueError, match=message):
        lo.read_annotations(tmp_path / f"labels{suffix}", worker="who")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("labels.csv", HEADER + b"a,w,0\nb,w\n", rf"{UNEVEN} 2 at row 3: b,w\. Fix"),
        ("labels.csv", HEADER + b"a,w,0\nb,w,1,2\n", rf"{UNEVEN} 4 at row 3: b,w,1,2\. Fix"),
        ("labels.csv", HEADER + b'a,w,0\n"b,w,1\nc,w,1\n', r"a quoted cell must end with a quote .* at line 3"),
        ("labels.csv", HEADER + b"a,w,0\ncaf\xe9\x81,w,1\n", r"UTF-8 csv file; got: .*#0: Row #3: .* invalid UTF8"),
        ("labels.csv", b"t\xe9\x81,worker,label\na,w,1\n", r"must be UTF-8; got b't\\xe9"),
        ("labels.csv", (HEADER + b"a,w,0\n").decode().encode("utf-16")[:-1], r"text must be UTF-16-LE; got "),
        ("labels.csv.gz", HEADER + b"a,w,0\n", r"labels\.csv\.gz must .*incorrect header check"),
        ("labels.csv.gz", gzip.compress(HEADER + b"a,w,0\n", mtime=0)[:-12], r"Truncated compressed stream"),
        ("labels.jsonl", ROW + b'{"task": \n', r"""labels\.jsonl: .* got b'{"task":' at line 2"""),
        ("labels.jsonl", b"[\n" + ROW + b"]", r"one JSON object; got b'\[' at line 1"),
        ("labels.jsonl", ROW + b"\n" + FIVE, r"task must hold only .* got 5 at line 3"),
        ("labels.jsonl", ROW.replace(b'"a"', b"null") + FIVE, r"task must not be missing; .* at line 1"),
        ("labels.jsonl", ROW.replace(b'"a"', b"[1]"), r"task must hold only .* got \[1\] at line 1"),
        ("labels.jsonl", ROW.replace(b"a", b"\xe9", 1), r"must be UTF-8; got .*\\xe9"),
        ("labels.jsonl", ROW + ROW.replace(b'"a"', b'"\xe9"'), r"UTF-8 jsonl file; got: .*failed"),
        ("labels.parquet", b"not Parquet, but long enough", r"labels\.parquet must .*magic bytes not found"),
        ("labels.arrow", b"ARROW1\0\0 and no more of it", r"a whole arrow file; got: Not an Arrow file"),
        ("labels.arrow", b"not Arrow, but long enough", r"a whole arrow file; got: Expected to read"),
    ],
)
def test_broken_file_names_the_place(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lo.read_annotations(saved(tmp_path, content, name))


def test_broken_json_line_is_counted_over_blocks(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(_json_table, "BLOCK_BYTES", 64)
    with pytest.raises(ValueError, match="at line 31"):
        lo.read_annotations(saved(tmp_path, ROW * 30 + b"{\n", "labels.jsonl"))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_truncated_file_is_an_error(tmp_path: Path, table: pa.Table, suffix: str) -> None:
    path = tmp_path / f"labels{suffix}"
    lo.write(table, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=rf"labels{suffix} must be a whole {suffix[1:]} file; got: .*[Nn]ot "):
        lo.read_annotations(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(ValueError, match=rf"labels{suffix}: .* got 0 bytes"):
        lo.read_annotations(saved(tmp_path, b"", f"labels{suffix}"))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".arrow"])
def test_header_alone_is_an_error(tmp_path: Path, table: pa.Table, suffix: str) -> None:
    lo.write(table.slice(0, 0), tmp_path / f"labels{suffix}")
    with pytest.raises(ValueError, match=rf"labels{suffix}: annotations must have at least one row; got 0"):
        lo.read_annotations(tmp_path / f"labels{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".parquet", ".arrow"])
def test_progress_can_be_forced(tmp_path: Path, awkward: lo.Annotations, suffix: str, capsys: Capture) -> None:
    lo.write(awkward, tmp_path / f"labels{suffix}")
    lo.read_annotations(tmp_path / f"labels{suffix}", progress=True)
    shown = capsys.readouterr()
    assert f"Reading labels{suffix}" in shown.err
    assert "100%" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("terminal", "progress", "rows", "shown"),
    [(True, None, 1, True), (True, None, 10**6, False), (False, None, 1, False), (True, False, 1, False)],
)
def test_progress_is_for_long_files_on_a_terminal(
    tmp_path: Path,
    awkward: lo.Annotations,
    monkeypatch: Patch,
    capsys: Capture,
    terminal: bool,
    progress: bool | None,
    rows: int,
    shown: bool,
) -> None:
    lo.write(awkward, tmp_path / "labels.parquet")
    monkeypatch.setattr(_readers, "_MANY_ROWS", rows)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    lo.read_annotations(tmp_path / "labels.parquet", progress=progress)
    assert ("Reading" in capsys.readouterr().err) is shown


def test_the_bar_shows_any_name_as_it_is(tmp_path: Path, capsys: Capture) -> None:
    path = saved(tmp_path, b"task,worker,label\n1,a,cat\n", "[red]\x1b[31m[ bell].csv")
    lo.read_annotations(path, progress=True)
    shown = capsys.readouterr().err
    assert "[red]\\x1b[31m[" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(("suffix", "long"), [(".csv", False), (".csv.gz", True)])
def test_text_is_long_by_its_size(tmp_path: Path, monkeypatch: Patch, suffix: str, long: bool) -> None:
    monkeypatch.setattr(_readers, "_MANY_BYTES", 100)
    assert _readers._is_long(locate(saved(tmp_path, b"x" * 50, f"labels{suffix}"))) is long


def test_json_lines_hold_lists_and_tables_alone_are_written(tmp_path: Path) -> None:
    lo.write(pa.table({"task": ["é"], "posterior": [[0.25, 0.75]]}), tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text("utf-8") == '{"task": "é", "posterior": [0.25, 0.75]}\n'
    with pytest.raises(TypeError, match=r"pyarrow\.Table; got dict"):
        lo.write({"task": ["a"]}, tmp_path / "out.csv")
    with pytest.raises(ValueError, match=r"out\.jsonl: Out of range float values"):
        lo.write(pa.table({"confidence": [float("nan")]}), tmp_path / "out.jsonl")


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_list_cannot_go_to_csv(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"task": ["a"], "posterior": [[0.25, 0.75]]})
    with pytest.raises(ValueError, match=r"list<.*> in column 'posterior'\. Write \.parquet or \.jsonl"):
        lo.write(table, tmp_path / f"out{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".arrow"])
def test_failed_write_leaves_the_earlier_file_and_nothing_else(
    tmp_path: Path, table: pa.Table, monkeypatch: Patch, suffix: str
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    path = saved(tmp_path, b"earlier", f"out{suffix}")
    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        lo.write(table, path)
    assert path.read_bytes() == b"earlier"
    assert os.listdir(tmp_path) == [path.name]


def test_parquet_is_plain_strings_with_the_usual_permissions(
    tmp_path: Path, awkward: lo.Annotations, table: pa.Table
) -> None:
    lo.write(awkward, tmp_path / "out.parquet")
    assert pq.read_schema(tmp_path / "out.parquet").field("task").type == pa.string()
    lo.write(table, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").stat().st_mode == saved(tmp_path, b"", "other.csv").stat().st_mode


def test_gold_that_names_a_task_twice_is_refused_as_gold(tmp_path: Path) -> None:
    path = saved(tmp_path, b"task,label\n1,cat\n2,dog\n1,dog\n1,cat\n2,dog\n", "gold.csv")
    with pytest.raises(ValueError, match=r"gold\.csv: gold must name a task once; got 1 3 times \(2 repeated tasks"):
        io.read_gold(path)
