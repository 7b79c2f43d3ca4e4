"""An Excel workbook as CSV: the first sheet that is not hidden, each cell as its value is written."""

import csv
import io
import warnings
import zipfile
from collections.abc import Iterable
from datetime import date, datetime, time
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WORKBOOKS = (".xlsx", ".xlsm")
SAVE_AS_CSV = "in the spreadsheet program save the sheet as CSV (UTF-8), and read that"


def sheet_as_csv(path: Path, most_bytes: int) -> tuple[bytes, str]:
    """Return the first visible sheet of a workbook as CSV, and a note where there are more.

    A workbook that unpacks to more than `most_bytes` is an error.
    """
    about = path.stat()
    if find_spec("openpyxl") is None:
        raise ValueError(f"an Excel workbook needs openpyxl: pip install 'labelonce[excel]'; or {SAVE_AS_CSV}.")
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(one.file_size for one in packed.infolist())
        if unpacked > most_bytes:
            raise ValueError(
                f"a workbook must not unpack to more than {most_bytes:,} bytes; got {unpacked:,}. If you trust it, "
                f"{SAVE_AS_CSV}."
            )
        return _as_csv(path, about.st_mtime_ns, about.st_size)
    except (zipfile.BadZipFile, KeyError, TypeError, AttributeError) as error:  # what openpyxl says of broken ones
        raise ValueError(f"the file must be a whole Excel workbook; got: {error}. Save it again.") from error


@lru_cache(maxsize=2)  # a command opens a file of labels several times: its header, a sample, all of it
def _as_csv(path: Path, _changed: int, _size: int) -> tuple[bytes, str]:
    from openpyxl import load_workbook

    with warnings.catch_warnings(action="ignore"):  # of styles and the like
        book = load_workbook(path, read_only=True, data_only=True)
    try:
        sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        for sheet in sheets:
            sheet.reset_dimensions()  # some programs write wrong ones
        rows = [_texts(row) for row in sheets[0].iter_rows(values_only=True)]
        others = [sheet.title for sheet in sheets[1:] if any(map(any, sheet.iter_rows(max_row=2, values_only=True)))]
    finally:
        book.close()
    note = f"only the first sheet, {sheets[0].title!r}, is read; it has {len(others)} more." if others else ""
    return _written(rows), note


def _texts(row: Iterable[Any]) -> list[str]:
    cells = [_text(value) for value in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _written(rows: list[list[str]]) -> bytes:
    while rows and not rows[-1]:  # formatted, and empty
        rows.pop()
    width = max(map(len, rows), default=0)
    sink = io.StringIO(newline="")
    csv.writer(sink, lineterminator="\n").writerows([*row, *[""] * (width - len(row))] for row in rows)
    return sink.getvalue().encode()
