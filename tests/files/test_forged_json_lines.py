"""JSON lines from strangers: whatever the rows are, and however deep, Arrow reads nothing that would crash it."""

import json
import random
from pathlib import Path

import pytest
from forging import odd_bytes, odd_json, opened, spoilt
from small_files import saved

import labelonce as lo

TAGS = {"tags": ["a", {"b": None}]}
TABLE = [{"task": f"t{i // 2}", "worker": f"w{i % 5}", "label": ["cat", "dog"][i % 2]} | TAGS for i in range(60)]
ROWS = b"".join(json.dumps(row).encode() + b"\n" for row in TABLE)
LINES = [b"null", b"1", b'"x"', b"[]", b"true", b"", b"   ", b"{}", b"{", b"}", b"]", b"null null", b'{"task":1}null']
LINES += [b"[" * 100_000, b'{"task":' * 20_000, b'{"task": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"]
LINES += [b'{"a":1} {"a":2}', b'{"task": "\\ud800"}', b'{"task": 1e999}', b'{"task": NaN}', b'{"":""}']
LINES += [b"\xef\xbb\xbfnull"]


def odd_lines(content: bytes, rng: random.Random) -> bytes:
    """Return JSON lines with odd rows among them, before them, or alone."""
    lines = content.splitlines()
    if rng.random() < 0.3:
        lines = lines[: rng.randrange(3)]
    for _ in range(rng.randrange(1, 4)):
        how, place = rng.randrange(4), rng.randrange(len(lines) + 1)
        if how < 2:
            lines[place:place] = [rng.choice(LINES)] * rng.choice((1, 1, 3, 50))
        elif how == 2 and lines:
            place = rng.randrange(len(lines))
            lines[place] = odd_bytes(lines[place], rng)
        elif lines:
            place = rng.randrange(len(lines))
            try:
                lines[place] = json.dumps(odd_json(json.loads(lines[place]), rng, 0.2)).encode()
            except (ValueError, RecursionError):
                lines[place] = b"null"
    joined = rng.choice((b"\n", b"\n", b"\r\n", b" ")).join(lines)
    return joined if rng.random() < 0.3 else joined + b"\n"


OPEN_LINES = """
import labelonce as lo
from labelonce.files._open import locate, naming
from labelonce.files._table_reader import first_rows, read_table
def open_it(path):
    file = locate(path)
    for read in (lo.read_annotations, first_rows, read_table):
        try:
            with naming(file):
                read(path if read is lo.read_annotations else file)
        except (ValueError, TypeError) as error:
            last = error
        else:
            last = None
    if last:
        raise last
"""


@pytest.mark.slow
def test_forged_json_lines(tmp_path: Path) -> None:
    paths = list(spoilt([saved(tmp_path, ROWS, "sound.jsonl")], tmp_path, 1_000, odd_lines))
    for number, line in enumerate(LINES):
        for times in (1, 2):
            path = saved(tmp_path, (line + b"\n") * times, f"alone-{number}-{times}.jsonl")
            paths.append(path)
    assert opened(paths, OPEN_LINES) == []


@pytest.mark.parametrize("line", LINES[:6])
def test_rows_that_are_no_objects_are_told_where_they_are(tmp_path: Path, line: bytes) -> None:
    path = saved(tmp_path, ROWS.splitlines(keepends=True)[0] * 3 + line + b"\n", "labels.jsonl")
    if line.strip():
        with pytest.raises(ValueError, match=r"labels\.jsonl: a line must hold one JSON object; got .* at line 4"):
            lo.read_annotations(path)
