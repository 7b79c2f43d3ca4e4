"""A file on disk: opened with a bound on what it unpacks to, named in every error, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from labelonce._messages import printable

CODECS = {".gz": "gzip", ".zst": "zstd"}
BINARY = ("parquet", "arrow")
_NO_TEXT = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK\x03\x04": "a spreadsheet or zip file"}
_NO_TEXT |= {b"\x1f\x8b": "a gzip file without .gz", b"PAR1": "a Parquet file", b"ARRO": "an Arrow file"}
_UNPACKED = 2**26  # below this many bytes any ratio is harmless
_RATIO = 100  # rows of labels pack 3 to 20 times; what packs better is padding


class File(NamedTuple):
    """A path, its format and its compression."""

    path: Path
    format: str
    codec: str | None


def split_codec(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Return the suffix in front of that of the compression, in small letters, and the compression."""
    name, last = os.path.splitext(os.fspath(path).lower())
    codec = CODECS.get(last)
    return (os.path.splitext(name)[1] if codec else last), codec


def check_is_file(path: str | os.PathLike[str]) -> None:
    """Raise if the path is a folder, before its missing suffix is blamed."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path}: Is a directory. Name the file in it that holds the labels.")


@contextmanager
def naming(file: File, may: str = "open") -> Iterator[None]:
    """Put the file's name in front of every error; what Arrow says of a broken file is a ValueError."""
    try:
        yield
    except UnicodeDecodeError as error:
        around = error.object[max(error.start - 20, 0) : error.start + 20]
        raise ValueError(f"{file.path}: text must be UTF-8; got {around!r}. Save the file as UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise with_path(error, file.path, may) from error
        said = printable(" ".join(str(error).split())).rstrip(".")
        kind = file.format if file.format in BINARY else f"UTF-8 {file.format}"
        fix = "Mend it, or name its format with format=..."
        raise ValueError(f"{file.path} must be a whole {kind} file; got: {_plain(said)}. {fix}") from error
    except (ValueError, TypeError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{file.path}: {error}") from error


def with_path(error: OSError, path: Path, may: str) -> OSError:
    """Return the system's error as a sentence that begins with the file's name."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return type(error)(f"{path}: {reason}. Check the path: it must be a file you may {may}.")


def _plain(said: str) -> str:
    """Return what Arrow says, in words that help where its own do not."""
    if "straddling object" in said or "Empty CSV file or block" in said:
        return "a line of more than 4 MB"
    return said if len(said) <= 160 else f"{said[:160]}..."


@contextmanager
def text(file: File) -> Iterator[tuple[Any, Callable[[], float]]]:
    """Open the text, and a function that tells the share of the file read so far."""
    with pa.OSFile(str(file.path)) as raw:
        size = raw.size()
        stream = _Unpacked(pa.CompressedInputStream(raw, file.codec), size) if file.codec else raw
        yield stream, lambda: raw.tell() / size


class _Unpacked:
    """A compressed stream that stops at what no honest file unpacks to."""

    closed = False

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._size, self._read = stream, size, 0

    def read(self, n: int | None = None) -> bytes:
        data: bytes = self._stream.read(n)
        self._read += len(data)
        if self._read > max(_UNPACKED, _RATIO * self._size):
            raise ValueError(
                f"a compressed file must not unpack to more than {_RATIO} times its size; got more than "
                f"{self._read:,} bytes from {self._size:,}. If you trust it, unpack it first."
            )
        return data

    def close(self) -> None:
        self.closed = True


def check_start(file: File) -> None:
    """Raise if the file holds no byte, or starts as no text does."""
    with file.path.open("rb") as opened:
        start = opened.read(4)
    if not start:
        raise ValueError("the file must hold annotations; got 0 bytes. Was it written to the end?")
    if file.format not in BINARY and file.codec is None:
        for mark, kind in _NO_TEXT.items():
            if start.startswith(mark):
                raise ValueError(f"the file must be UTF-8 {file.format}; got {kind}. Save it as UTF-8 {file.format}.")


def head(file: File, n: int = 2**16) -> bytes:
    """Return the first bytes of the text, unpacked."""
    with text(file) as (stream, _):
        return bytes(stream.read(n))


def whole_text(file: File) -> bytes:
    """Return all of the text, unpacked, without a byte order mark."""
    with text(file) as (stream, _):
        return b"".join(iter(lambda: stream.read(2**22), b"")).removeprefix(b"\xef\xbb\xbf")
