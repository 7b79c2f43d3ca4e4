"""Excel workbooks: what is read of them, and what is refused."""

import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import labelonce as lo
from labelonce.files import _open, _workbook
from labelonce.files._open import locate
from labelonce.files._table_reader import dialect_in_words, read_table

ROWS: list[list[Any]] = [
    ["task", "worker", "label", "x"],
    [1, "ann", "cat, big", 1.5],
    [2.0, "bob", '"dog"\nsmall', None],
]


def workbook(folder: Path, *sheets: list[list[Any]], hidden: int = 0) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"Sheet {number}")
        sheet.sheet_state = "hidden" if number < hidden else "visible"
        for row in rows:
            sheet.append(row)
    book.save(folder / "labels.xlsx")
    return folder / "labels.xlsx"


def test_a_sheet_is_read_as_the_csv_that_it_could_be_saved_as(tmp_path: Path) -> None:
    path = workbook(tmp_path, ROWS)
    ann = lo.read_annotations(path)
    assert (ann.tasks.tolist(), ann.classes.tolist()) == ([1, 2], ['"dog"\nsmall', "cat, big"])
    assert read_table(locate(path), ["task"]).column("x").to_pylist() == [1.5, None]
    assert dialect_in_words(locate(path)) == "xlsx"


def test_values_of_every_kind_are_written_out_and_batches_of_mturk_recognised(tmp_path: Path) -> None:
    path = workbook(tmp_path, [["a", "b", "c", "d"], [True, date(2026, 1, 2), "007", 0.25]])
    assert read_table(locate(path)).to_pylist() == [{"a": "TRUE", "b": "2026-01-02T00:00:00", "c": "007", "d": "0.25"}]
    path = workbook(tmp_path, [["HITId", "WorkerId", "Answer.x"], ["h1", "w1", "cat"], ["h1", "w2", "dog"]])
    assert lo.read_annotations(path).n_workers == 2


def test_rows_are_counted_as_shown_in_the_first_sheet_that_is_visible(tmp_path: Path) -> None:
    path = workbook(tmp_path, [*ROWS, [3, None, "cat"], [None, None], [None]])
    with pytest.raises(ValueError, match=r"labels\.xlsx: worker .* missing value at row 4 \(1 in total\)"):
        lo.read_annotations(path)
    path = workbook(tmp_path, [["notes"]], ROWS, [["other"]], [], hidden=1)
    with pytest.warns(UserWarning, match=r"only the first sheet, 'Sheet 1', is read; it has 1 more"):
        assert len(lo.read_annotations(path)) == 2


def test_a_broken_workbook_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "labels.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match=r"labels\.xlsx: .* whole Excel workbook; got: File is not a zip file"):
        lo.read_annotations(tmp_path / "labels.xlsx")
    with zipfile.ZipFile(tmp_path / "labels.xlsx", "w") as packed:
        packed.writestr("a.txt", "no sheet")
    with pytest.raises(ValueError, match=r"labels\.xlsx: .* whole Excel workbook; got: "):
        lo.read_annotations(tmp_path / "labels.xlsx")


def test_a_workbook_that_unpacks_to_far_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path, ROWS)
    monkeypatch.setattr(_open, "_UNPACKED", 10)
    monkeypatch.setattr(_open, "_RATIO", 1)
    with pytest.raises(ValueError, match=r"labels\.xlsx: a workbook must not unpack to more than [\d,]+ bytes; got "):
        lo.read_annotations(path)


def test_workbooks_are_not_written_nor_read_without_openpyxl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"out\.xlsx: workbooks are read, and not written\. Write \.csv"):
        lo.write(lo.Annotations.from_arrays([1], [1], [1]), tmp_path / "out.xlsx")
    monkeypatch.setattr(_workbook, "find_spec", lambda _name: None)
    with pytest.raises(ValueError, match=r"pip install 'labelonce\[excel\]'; or .* save the sheet as CSV \(UTF-8\)"):
        lo.read_annotations(workbook(tmp_path, ROWS))


@pytest.mark.parametrize("name", ["labels.xls", "labels.ods", "labels.numbers"])
def test_other_spreadsheets_are_refused_with_the_way_to_save_them(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"got a spreadsheet: .* save the sheet as CSV"):
        lo.read_annotations(tmp_path / name)
