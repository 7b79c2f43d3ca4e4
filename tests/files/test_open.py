"""Opening with a bound, the start of files that are no text, and writing whole or not at all."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import Patch
from small_files import saved

import labelonce as lo
from labelonce import io
from labelonce._types import TABLES, TOOLS
from labelonce.files import _json_table
from labelonce.files import _open as _files
from labelonce.files import _table_reader as _readers
from labelonce.files._atomic import atomic_write
from labelonce.files._places import file_system
from labelonce.formats._registry import TOOL_FORMATS, find_labels
from labelonce.runs._inputs import read_features

ROWS = b"task,worker,label\n" + b"1,a,cat\n" * 2000


@pytest.mark.parametrize(("name", "codec"), [("labels.csv.gz", "gzip"), ("labels.csv.zst", "zstd")])
def test_what_unpacks_to_far_too_much_is_refused(tmp_path: Path, monkeypatch: Patch, name: str, codec: str) -> None:
    packed = pa.compress(ROWS, codec, asbytes=True) if codec == "zstd" else gzip.compress(ROWS, mtime=0)
    (tmp_path / name).write_bytes(packed)
    assert len(lo.read_annotations(tmp_path / name, duplicates="keep")) == 2000
    monkeypatch.setattr(_files, "_UNPACKED", 1000)
    monkeypatch.setattr(_files, "_RATIO", 10)
    says = rf"{name}: .* 10 times its size; got more than 16,018 bytes from {len(packed)}"
    with pytest.raises(ValueError, match=says):
        lo.read_annotations(tmp_path / name, duplicates="keep")


@pytest.mark.parametrize("tool", ["label-studio", "prodigy", "toloka"])
def test_the_bound_holds_for_the_files_of_tools(tmp_path: Path, monkeypatch: Patch, tool: str) -> None:
    monkeypatch.setattr(_files, "_UNPACKED", 1000)
    with pytest.raises(ValueError, match=r"export\.json\.gz.* 100 times its size"):
        lo.read_annotations(saved(tmp_path, gzip.compress(b" " * 100_000, mtime=0), "export.json.gz"), format=tool)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"PK\x03\x04", "a workbook or zip file"),
        (b"\x1f\x8b\x08\0", "a gzip file without"),
        (b"PAR1", "a Parquet file"),
    ],
)
@pytest.mark.parametrize(("format", "kept_as"), [("csv", "csv"), ("jsonl", "jsonl"), ("mturk", "csv")])
def test_what_is_no_text_is_named(tmp_path: Path, start: bytes, kind: str, format: str, kept_as: str) -> None:
    with pytest.raises(ValueError, match=rf"labels\.dat: the file must be UTF-8 {kept_as}; got {kind}"):
        lo.read_annotations(saved(tmp_path, start + b"xyz", "labels.dat"), format=format)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(_json_table, "LONGEST_LINE", 100)
    monkeypatch.setattr(_json_table, "BLOCK_BYTES", 64)
    with pytest.raises(ValueError, match=r"labels\.jsonl: a line must have at most 100 bytes"):
        lo.read_annotations(saved(tmp_path, b'{"task": "' + b"x" * 1000, "labels.jsonl"))


def test_the_format_of_a_file_is_told_and_every_one_can_be_read_and_written() -> None:
    samples = Path(__file__).parents[1] / "formats" / "samples"
    names = ["label-studio.json", "mturk.csv", "toloka.tsv", "prodigy-choice.jsonl", "matrix.csv"]
    assert [io.detect_format(samples / name) for name in names] == ["label-studio", "mturk", "toloka", "prodigy", "csv"]
    assert io.detect_format("nowhere.csv", reading=False) == "csv"
    assert set(TOOL_FORMATS) == set(TOOLS)
    assert set(_readers._BATCHES) == set(TABLES)
    assert set(_files.SUFFIXES.values()) <= {*TABLES, *TOOLS}


def test_a_place_that_cannot_be_written_and_a_folder_are_named(tmp_path: Path) -> None:
    for place, reason in ((tmp_path / "nowhere" / "file", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(OSError, match=f"^{place}: {reason}. .* a file you may write.$"):
            atomic_write(place, b"x")
    with pytest.raises(OSError, match=r"labels\.csv: No such file or directory\. .* a file you may write\.$"):
        lo.write(pa.table({"task": [1]}), tmp_path / "nowhere" / "labels.csv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(IsADirectoryError, match=r": Is a directory\. Name a file in it\.$"):
        read_features(tmp_path)


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.json"])
def test_json_without_a_bottom_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"nested too deep|must hold one JSON object; got .* at line 1"):
        lo.read_annotations(saved(tmp_path, '{"task": 1, "worker": ' + "[" * 200_000 + "\n", name))


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "labels.jsonl", "labels.csv.gz"])
def test_a_table_is_opened_to_recognise_it_to_see_its_columns_and_to_read_it(
    tmp_path: Path, monkeypatch: Patch, name: str
) -> None:
    lo.write(lo.Annotations.from_arrays(["a", "b"], ["x", "y"], ["cat", "dog"]), tmp_path / name)
    opened: list[str] = []

    class Noting:
        def __init__(self, system: Any) -> None:
            self.system = system

        def open_input_file(self, place: str) -> Any:
            opened.append(place)
            return self.system.open_input_file(place)

    def noted(path: Any) -> tuple[Any, str]:
        system, place = file_system(path)
        return Noting(system), place

    monkeypatch.setattr("labelonce.files._open.file_system", noted)
    found = find_labels(tmp_path / name)
    lo.read_annotations(found)
    assert opened == [str(tmp_path / name)] * 3
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", None)  # nor by another way
        assert lo.read_annotations(found).n_tasks == 2


@pytest.mark.parametrize("digits", [1500, 6000])  # 1.5 and 6 MB, beyond a block of Arrow's and one of ours
def test_a_row_of_some_megabytes_is_read(tmp_path: Path, digits: int) -> None:
    cells = ",".join(["1." + "0" * digits] * 1000)
    (tmp_path / "wide.csv").write_text(f"task,{','.join(f'x{i}' for i in range(1000))}\n1,{cells}\n2,{cells}\n")
    assert read_features(tmp_path / "wide.csv").X.shape == (2, 1000)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_long_row_after_short_ones_is_one_sentence(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"task": [1, 2], "text": ["short", "x" * 9_000_000], "more": ["y" * 5_000_000, "z"]})
    lo.write(pa.concat_tables([table.slice(0, 1)] * 3 + [table]), tmp_path / f"texts{suffix}")
    with pytest.raises(ValueError, match=rf"texts{suffix} .* a line far longer than those before it|must not repeat"):
        read_features(tmp_path / f"texts{suffix}", ignore=["text", "more"])
