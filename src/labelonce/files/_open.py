"""A file on disk: located by its name, opened with a bound on what it unpacks to, named in every error."""

from __future__ import annotations

import codecs
import os
import re
import stat
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa

from labelonce._messages import argument, clip, printable, rows_called
from labelonce._types import TABLES, TOOLS
from labelonce._validate import check_choice
from labelonce.files._dialect import encoding_of
from labelonce.files._places import address_of, file_system, is_table_in_parts
from labelonce.files._workbook import SAVE_AS_CSV, WORKBOOKS, sheet_as_csv

CODECS = {".gz": "gzip", ".zst": "zstd"}
BINARY = ("parquet", "arrow")
DELIMITERS = {"csv": ",", "tsv": "\t"}
SUFFIXES = {f".{name}": name for name in TABLES}
SUFFIXES |= {".pq": "parquet", ".ndjson": "jsonl", ".feather": "arrow", ".json": "label-studio", ".npy": "matrix"}
SUFFIXES |= dict.fromkeys(WORKBOOKS, "csv")  # a sheet is read as the CSV that it could be saved as
_SPREADSHEETS = (".xls", ".ods", ".numbers")
_NOT_TEXT = {  # what a file begins with, what it is, and what to do; nothing: save it as text
    b"PK\x03\x04": ("a workbook or zip file", "Rename it to end in .xlsx, or unpack it."),
    b"\x1f\x8b": ("a gzip file without .gz", "Rename it to end in .gz."),
    b"PAR1": ("a Parquet file", "Rename it to end in .parquet."),
    b"ARRO": ("an Arrow file", "Rename it to end in .arrow."),
    b"<": ("a web page or XML file", ""),
}
_OF_JSON = ("jsonl", "label-studio", "prodigy")  # which is UTF-8 by definition
_UNPACKED = 2**26  # below this many bytes any ratio is harmless
_RATIO = 100  # rows of labels pack 3 to 20 times; what packs better is padding
_BYTES = 2**22
BLOCK_BYTES = 2**22  # read at once
LONGEST_LINE = 2**26


class File(NamedTuple):
    """A path, its format and its compression, `xlsx` for a sheet in a workbook; it can be given wherever a path can."""

    path: Path
    format: str
    codec: str | None

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return address_of(self.path) or str(self.path)


def split_codec(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Return the suffix in front of that of the compression, in lower case, and the compression."""
    name, last = os.path.splitext(os.fspath(path).lower().partition("?" if address_of(path) else "\0")[0])
    codec = CODECS.get(last)
    return (os.path.splitext(name)[1] if codec else last), codec or ("xlsx" if last in WORKBOOKS else None)


def locate(
    path: str | os.PathLike[str], format: str | None = None, *, hint: bool = False, in_parts: bool = False
) -> File:
    """Return a path with its format, as named or by its suffix; a folder is an error.

    `hint`: that the caller can name the format is part of the message. `in_parts`: a folder of Parquet files is a
    table, and so is an address without a suffix.
    """
    suffix, codec = split_codec(path)
    if in_parts and suffix not in SUFFIXES and format in (None, "parquet") and is_table_in_parts(path):
        return File(Path(path), "parquet", None)
    if os.path.isdir(path) and not (in_parts and is_table_in_parts(path)):
        raise IsADirectoryError(f"{path}: Is a directory. Name a file in it.")
    known = format or SUFFIXES.get(suffix)
    if known is None and suffix in _SPREADSHEETS:
        raise ValueError(f"{path} must be a table; got a spreadsheet: {SAVE_AS_CSV}, or a copy as .xlsx.")
    if suffix == ".zip":
        raise ValueError(f"{path} must be a table; got a zip file. Unpack it, and name the files in it.")
    if known is None or (codec and known in BINARY) or (suffix in WORKBOOKS and codec in CODECS.values()):
        last = os.path.splitext(os.fspath(path).lower())[1]
        fix = f"Rename it, or name its format with {argument('format')}" if hint else "Rename it."
        raise ValueError(
            f"{path} must end in one of {', '.join(SUFFIXES)}, the text formats also followed by .gz or .zst; "
            f"got {suffix + last if codec else last!r}. {fix}"
        )
    check_choice(known, "format", (*TABLES, *TOOLS))
    return File(Path(path), known, codec)


@contextmanager
def naming(file: File, may: str = "open") -> Iterator[None]:
    """Put the file's name in front of every error, and turn Arrow's errors into ValueError.

    Rows are called as a spreadsheet shows them, where the header is row 1, and lines of JSON as an editor does.
    """
    try:
        with rows_called(row_in(file)):
            yield
    except UnicodeDecodeError as error:
        around = error.object[max(error.start - 20, 0) : error.start + 20]
        encoding = error.encoding.upper()
        raise ValueError(f"{file}: text must be {encoding}; got {around!r}. Save the file as UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise with_path(error, file, may) from error
        kind = file.format if file.format in BINARY else f"UTF-8 {file.format}"
        said = f"{file} must be a whole {kind} file; got: {_said(error)}. Fix it, or write it again."
        raise ValueError(said) from error
    except (ValueError, TypeError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{file}: {error}") from error


def row_in(file: File) -> Callable[[int], str]:
    """Return the function that names a row, counted from 0, as it is called in a file."""
    first = {"csv": 2, "tsv": 2, "jsonl": 1}.get(file.format, 0)
    return lambda number: f"{'line' if file.format == 'jsonl' else 'row'} {number + first}"


def check_no_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} must be a folder; got a file. Name another one.")


def with_path(error: OSError, path: Path | File, may: str) -> OSError:
    """Return the system's error as a sentence that begins with the file's name."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return type(error)(f"{path}: {reason}. Check the path: it must be a file you may {may}.")


def _said(error: Exception) -> str:
    """Return Arrow's message on one line, shortened, and reworded where it would not help."""
    said = printable(" ".join(str(error).split())).rstrip(".")
    if "cannot infer number of columns" in said:
        return "no row under the first one"
    if "straddling object" in said:
        return "a line far longer than those before it, of more than 4 MB"
    return said if len(said) <= 160 else f"{said[:160]}..."


@contextmanager
def opened(file: File) -> Iterator[Any]:
    """Open the bytes of a file; an empty one, or what is not a file, is an error."""
    system, place = file_system(file.path)
    if not address_of(file.path) and not stat.S_ISREG(os.stat(place).st_mode):
        raise ValueError("it must be a file you may open; got a pipe, a socket or a device. Write a file first.")
    with system.open_input_file(place) as raw:
        if not raw.size():
            raise ValueError("the file must not be empty; got 0 bytes. Was it written to the end?")
        yield raw


@contextmanager
def text(file: File) -> Iterator[Text]:
    """Open the text of a file, that of a workbook as CSV."""
    with opened(file) as raw:
        if file.codec == "xlsx":
            content, note = sheet_as_csv(file.path, max(_UNPACKED, _RATIO * raw.size()))
            yield Text(file, pa.BufferReader(content), note)
        else:
            yield Text(file, raw)


class Text:
    """The text of a file as a stream of UTF-8, limited in size when unpacked; quotes and line ends are counted.

    A `note` on how it is understood becomes a warning when it is read, and not when only its start is looked at.
    """

    closed = False

    def __init__(self, file: File, raw: Any, note: str = "") -> None:
        self._file, self._raw, self._size = file, raw, max(raw.size(), 1)
        self._packed = file.codec in CODECS.values()
        self._stream = pa.CompressedInputStream(raw, file.codec) if self._packed else raw
        self._start, self._unpacked = b"", 0
        self.quotes = self.lines = 0
        self.encoding: str | None = None
        start = self._more(_BYTES)
        self.encoding = encoding_of(start, guess=file.format not in _OF_JSON)
        self._decoder = None if self.encoding is None else codecs.getincrementaldecoder(self.encoding)()
        self._start = self._decoded(start)
        self._note = note
        if self.encoding == "cp1252":
            words = re.split(r'[\s,;|"]+', self._start.decode())
            word = next((word for word in words if not word.isascii()), "")  # to judge the guess by
            self._note = (
                f"the text is not UTF-8 and is read as Windows-1252, for example {clip(word, 40)!r}. If that is wrong, "
                "save the file as UTF-8."
            )

    @property
    def share(self) -> float:
        """The share of the file that was read so far."""
        return float(self._raw.tell() / self._size)

    def start(self, n: int = _BYTES, *, lines: int = 0) -> bytes:
        """Return the first `n` bytes, or more where the first `lines` lines are longer; they stay to be read."""
        while len(self._start) < n or (len(self._start) < LONGEST_LINE and self._start.count(b"\n") < lines):
            if not self._read_on(n):
                break
        if self._file.codec is None:
            name = f"UTF-8 {self._file.format}"
            for mark, (kind, fix) in _NOT_TEXT.items():
                if self._start.startswith(mark):
                    raise ValueError(f"the file must be {name}; got {kind}. {fix or f'Save it as {name}.'}")
        return self._start

    def read(self, n: int | None = None) -> bytes:
        if self._note:
            warnings.warn(f"{self._file}: {self._note}", stacklevel=2)
            self._note = ""
        while (n is None or len(self._start) < n) and self._read_on(n):
            pass
        data, self._start = self._start[:n], b"" if n is None else self._start[n:]
        self.quotes += data.count(b'"')
        self.lines += data.count(b"\n")
        return data

    def _read_on(self, n: int | None) -> bool:
        more = self._more(n)
        self._start += self._decoded(more)
        return bool(more)

    def _decoded(self, data: bytes) -> bytes:
        return data if self._decoder is None else self._decoder.decode(data, final=not data).encode()

    def _more(self, n: int | None) -> bytes:
        data: bytes = self._stream.read(n)
        self._unpacked += len(data)
        if self._packed and self._unpacked > max(_UNPACKED, _RATIO * self._size):
            raise ValueError(
                f"a compressed file must not unpack to more than {_RATIO} times its size; got more than "
                f"{self._unpacked:,} bytes from {self._size:,}. If you trust it, unpack it first."
            )
        return data

    def close(self) -> None:
        """Leave the file to `text`, which opened it."""
        self.closed = True


def whole_text(file: File) -> bytes:
    """Return all of the text, unpacked, in UTF-8 without a byte order mark."""
    with text(file) as stream:
        stream.start(4)
        return b"".join(iter(lambda: stream.read(_BYTES), b"")).removeprefix(b"\xef\xbb\xbf")


def check_unpacked(path: Path, archive: IO[bytes]) -> None:
    archive.seek(0, 2)
    size = archive.tell()
    try:
        with zipfile.ZipFile(archive) as opened:
            unpacked = sum(one.file_size for one in opened.infolist())  # zipfile unpacks no more than that
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise ValueError(f"{path} must be a whole zip archive of arrays; got: {error}.") from error
    finally:
        archive.seek(0)
    if unpacked > max(_UNPACKED, _RATIO * size):
        most = f"{_RATIO} times its size"
        raise ValueError(f"{path} must not unpack to more than {most}; got {unpacked:,} bytes from {size:,}.")
