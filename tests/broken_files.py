"""Files that people really have: what is wrong with each, and what every command must do with it.

`BROKEN` is for tests of any command that reads annotations: make the file in a folder, run, compare the exit
code, and where it is 2 expect one sentence that matches `says` and no file next to it.
"""

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

HEADER = "task,worker,label\n"
ROWS = "".join(f"{task},{worker},{'cat' if task % 3 else 'dog'}\n" for task in range(30) for worker in "abc")
GOOD = HEADER + ROWS


@dataclass(frozen=True)
class BrokenFile:
    """A file by name, how to make it, what is said about it, and the exit code of each command."""

    name: str
    file: str
    make: Callable[[Path], object]
    says: str
    check: int = 2
    aggregate: int = 2
    train: int = 2

    def made_in(self, folder: Path) -> Path:
        """Return the path of the file, made."""
        path = folder / self.file
        self.make(path)
        return path


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content.encode())


def raw(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def gzip_bomb(path: Path) -> None:
    with gzip.open(path, "wb") as packed:
        packed.write(HEADER.encode())
        for _ in range(80):
            packed.write(b"1,a,cat\n" * 2**17)


def truncated_parquet(path: Path) -> None:
    pq.write_table(pa.table({"task": [1, 2], "worker": ["a", "b"], "label": ["cat", "dog"]}), path)
    path.write_bytes(path.read_bytes()[:-20])


def unreadable(path: Path) -> None:
    """Make a file that nobody may open, not even the superuser, for whom permissions do not count: a socket."""
    import socket

    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as closed:
        os.chdir(path.parent)  # a socket's path has room for about a hundred characters
        try:
            closed.bind(path.name)
        finally:
            os.chdir(here)


BROKEN = [
    BrokenFile("semicolons", "labels.csv", text(GOOD.replace(",", ";")), "", 0, 0, 0),
    BrokenFile("utf-16", "labels.csv", raw(GOOD.encode("utf-16")), "", 0, 0, 0),
    BrokenFile("tabs in a csv", "labels.csv", text(GOOD.replace(",", "\t")), "", 0, 0, 0),
    BrokenFile("windows-1252", "labels.csv", raw(GOOD.encode() + b"31,a,caf\xe9\n"), "", 0, 0, 0),
    BrokenFile("byte order mark", "labels.csv", raw(b"\xef\xbb\xbf" + GOOD.encode()), "", 0, 0, 0),
    BrokenFile(
        "mixed types",
        "labels.jsonl",
        text('{"task": 1, "worker": "a", "label": "cat"}\n{"task": "one", "worker": "b", "label": "dog"}\n'),
        "task must hold only integers or only strings; got 'one' at line 2",
    ),
    BrokenFile(
        "empty ids",
        "labels.csv",
        text(GOOD + ",a,cat\n31,,cat\n"),
        r"missing value at row 92 \(1 in total\)\. Leave .* --missing drop|2 of 92 rows .* first is row 92",
        1,
    ),
    BrokenFile("nul bytes", "labels.csv", raw(HEADER.encode() + b"\0" * 4096), "3 cells, .*; got 1 at row 2"),
    BrokenFile("one long line", "labels.csv", text(HEADER + "x" * 10_000_000), "3 cells, .*; got 1 at row 2: x"),
    BrokenFile("one long json line", "labels.jsonl", text("x" * 10_000_000), "one JSON object; got .* at line 1"),
    BrokenFile("truncated parquet", "labels.parquet", truncated_parquet, "must be a whole parquet file"),
    BrokenFile("truncated gzip", "labels.csv.gz", raw(gzip.compress(GOOD.encode(), mtime=0)[:-12]), "Truncated"),
    BrokenFile("gzip bomb", "labels.csv.gz", gzip_bomb, "more than 100 times its size; got more than"),
    BrokenFile(
        "label typos",
        "labels.csv",
        text(GOOD + "31,a,cta\n31,b,dog\n32,a,cat\n"),
        "'cta' .1. and 'cat'.* look alike",
        1,
        0,
        0,
    ),
    BrokenFile(
        "spellings",
        "labels.csv",
        text(GOOD + "31,a,CAT\n31,b,Cat \n"),
        r"3 labels are spellings of 1 class: 'CAT' \(1\), 'Cat ' \(1\), 'cat' \(60\)\. .* --normalise",
        1,
    ),
    BrokenFile(
        "probabilities",
        "labels.csv",
        text(HEADER + "".join(f"{i},{'ab'[i % 2]},0.{i:03}\n" for i in range(1, 40))),
        r"got 39 different numbers between 0 and 1, such as '0\.\d+'",
        1,
    ),
    BrokenFile("duplicate rows", "labels.csv", text(GOOD + ROWS), "worker 'a' on task 0", 1),
    BrokenFile("one class", "labels.csv", text(GOOD.replace("dog", "cat")), "'cat'", 1),
    BrokenFile("one worker", "labels.csv", text(HEADER + "".join(ROWS.splitlines(True)[::3])), "'a'", 1, 2, 0),
    BrokenFile("a folder", "labels", lambda path: path.mkdir(), "labels: Is a directory"),
    BrokenFile("a folder with a suffix", "labels.csv", lambda path: path.mkdir(), r"labels\.csv: Is a directory"),
    BrokenFile("not to be opened", "labels.csv", unreadable, "it must be a file you may open"),
    BrokenFile("empty", "labels.csv", text(""), "got 0 bytes"),
    BrokenFile("header only", "labels.csv", text(HEADER), "at least one row; got 0"),
    BrokenFile("not utf-8", "labels.csv", raw(GOOD.encode() + b"31,a,caf\xe9\x81\n"), "invalid UTF8"),
    BrokenFile("missing column", "labels.csv", text(GOOD.replace("label", "answer", 1)), r"'answer'\]; got 'label'"),
    BrokenFile("ragged rows", "labels.csv", text(GOOD + "31,a\n"), "3 cells, .*; got 2 at row 92: 31,a"),
    BrokenFile("open quote", "labels.csv", text(GOOD + '31,a,"cat\n31,b,dog\n'), "a quoted cell must end with a quote"),
    BrokenFile("unknown suffix", "labels.txt", text(GOOD), r"must end in one of .*; got '\.txt'"),
    BrokenFile("a workbook", "labels.xlsx", raw(b"PK\x03\x04"), "whole Excel workbook; got: File is not a zip"),
    BrokenFile("dangling link", "labels.csv", lambda path: path.symlink_to("nowhere.csv"), "No such file"),
    BrokenFile("a link to itself", "labels.csv", lambda path: path.symlink_to(path), "levels of symbolic links"),
    BrokenFile("a pipe", "labels.csv", os.mkfifo, "it must be a file you may open; got a pipe"),
    BrokenFile("not an export", "labels.json", text('{"rows": []}'), "one JSON list of tasks"),
    BrokenFile(
        "a spreadsheet",
        "labels.csv",
        raw(b"PK\x03\x04\x14\0\x06\0" + bytes(range(256)) * 8),
        "got a workbook or zip file",
    ),
]
