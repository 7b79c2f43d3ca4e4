"""Files from strangers: sound ones, spoilt in many ways, and a child process that opens them and reports what happened.

A spoilt file may be refused in one sentence, or read. It must not end the process, fail in another way than with a
sentence, or make it take more memory than `MOST_MEMORY` times its size above a base.
"""

import io
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

BASE_MEMORY = 300 * 2**20  # what unpacking 64 MiB takes, and what libraries load when they are first used
MOST_MEMORY = 500  # an archive unpacks to 100 times its size, and some of it is copied
_SECONDS = 600
_ODD: list[Any] = [None, True, False, -1, 0, 1, 2, 3, 2**31, 2**63, 2**70, -(2**70), 0.5, -0.5, 1e308, float("inf")]
_ODD += [float("nan"), "", "a", "\0", "posix.system", "x" * 1000, [], [[]], [None], {}, {"a": []}, [1, 2, 3], "1"]


class Bomb:
    """What creates a file if it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def odd_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return content that is cut, flipped, repeated or mixed up somewhere."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if not data:
            break
        place = rng.randrange(len(data))
        how = rng.randrange(6)
        if how == 0:
            data[place] = rng.randrange(256)
        elif how == 1:
            data[place] ^= 1 << rng.randrange(8)
        elif how == 2:
            del data[place : place + rng.choice((1, 4, 50, 5000))]
        elif how == 3:
            data[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 50))))
        elif how == 4:
            data[place:place] = data[place : place + rng.choice((4, 100))] * rng.choice((1, 30))
        else:
            data = data[:place]
    return bytes(data)


def odd_json(value: Any, rng: random.Random, chance: float = 0.02) -> Any:
    """Return a JSON value with something odd, or nothing, in places."""
    if rng.random() < chance:
        return rng.choice(_ODD)
    if isinstance(value, dict):
        return {name: odd_json(one, rng, chance) for name, one in value.items() if rng.random() > chance / 3}
    if isinstance(value, list):
        return [odd_json(one, rng, chance) for one in value if rng.random() > chance / 3]
    return value


def odd_array(array: Any, rng: random.Random) -> Any:
    """Return an array of another shape, type or with other values."""
    how, numbers = rng.randrange(7), array.dtype.kind in "iufb"
    array = array.copy()
    if how == 0:
        return array[..., :-1] if array.ndim and array.shape[-1] else array.reshape(-1)
    if how == 1:
        return array.reshape(-1)
    if how == 2:
        return np.repeat(array, 3, axis=0) if array.ndim else np.full(3, array)
    if how == 3 and numbers:
        return array.astype(rng.choice(("int8", "int64", "float32", "float64", "bool", "complex64", "uint64", "<U3")))
    if how == 4:
        return array[:0] if array.ndim else np.zeros(0)
    if numbers and array.size:
        values = {"f": (np.nan, np.inf, -np.inf, -1.0, 1e300, 0.0), "b": (True, False)}
        odd = values.get(array.dtype.kind, (-1, 2**30, 0, 5, -(2**31)))
        with np.errstate(all="ignore"):
            array.reshape(-1)[rng.randrange(array.size)] = np.asarray(rng.choice(odd)).astype(array.dtype)
    return array


def odd_archive(content: bytes, rng: random.Random) -> bytes:
    """Return a zip archive of arrays and JSON in which one or two members are spoilt."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in rng.sample(sorted(members), k=min(len(members), rng.choice((1, 1, 2)))):
        members[name] = _odd_member(name, members[name], rng)
    if rng.random() < 0.05:
        del members[rng.choice(sorted(members))]
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, one in members.items():
            archive.writestr(name, one)
    return sink.getvalue()


def _odd_member(name: str, content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.2:
        return odd_bytes(content, rng)
    if name.endswith(".json"):
        return json.dumps(odd_json(json.loads(content), rng)).encode()
    if content[:6] != b"\x93NUMPY":
        return odd_bytes(content, rng)
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype == np.uint8 and array.ndim == 1 and array[:1].tobytes() == b"{":  # JSON among the arrays of a router
        said = json.dumps(odd_json(json.loads(array.tobytes()), rng, 0.1)).encode()
        array = np.frombuffer(said, dtype=np.uint8)
    else:
        array = odd_array(array, rng)
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=False)
    made = bytearray(sink.getvalue())
    if rng.random() < 0.1:  # a header that promises more than there is
        made = bytearray(bytes(made).replace(b"'shape': (", b"'shape': (99999999999, ", 1))
    return bytes(made)


def bomb(size: int) -> bytes:
    """Return an archive of an array of zeros that unpacks to `size` bytes."""
    sink, made = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(sink, {"descr": "<f8", "fortran_order": False, "shape": (size // 8,)})
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("bomb.npy", "w", force_zip64=True) as member,
    ):
        member.write(sink.getvalue())
        for _ in range(size // 2**20):
            member.write(bytes(2**20))
    return made.getvalue()


def spoilt(sound: list[Path], folder: Path, n: int, spoil: Callable[[bytes, random.Random], bytes]) -> Iterator[Path]:
    """Yield `n` files, each a sound one of a list that was spoilt."""
    for number in range(n):
        rng, source = random.Random(number), sound[number % len(sound)]
        path = folder / f"{number:04d}{''.join(source.suffixes)}"
        path.write_bytes(spoil(source.read_bytes(), rng))
        yield path


def opened(paths: list[Path], code: str) -> list[str]:
    """Open files in child processes by the function `open_it` in some code, and return what was wrong with which.

    After a file that ended the process another process goes on with the next one.
    """
    trouble, rest = [], list(paths)
    program = f"import sys\nsys.path[:0] = {sys.path!r}\n{code}\nfrom forging import report\nreport(open_it)\n"
    while rest:
        run = subprocess.run(
            [sys.executable, "-c", program],
            input="\n".join(map(str, rest)),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        done = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
        trouble += [f"{one['path']}: {one['trouble']}" for one in done if one["trouble"]]
        assert done or run.returncode < 0, run.stderr  # the code itself is wrong
        if len(done) < len(rest):
            said = run.stderr.strip().splitlines()[-1:] or [""]
            trouble.append(f"{rest[len(done)]}: ended the process with {run.returncode}: {said[0]}")
        rest = rest[len(done) + 1 :]
    return trouble


def report(open_it: Callable[[Path], object]) -> None:
    """Open every file named on stdin, in the child process, and print a line of JSON about it."""
    import resource
    import warnings

    resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")
    for line in sys.stdin.read().splitlines():
        path, before = Path(line), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = (
            sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
            if path.is_dir()
            else path.stat().st_size
        )
        trouble = ""
        try:
            open_it(path)
        except (ValueError, TypeError, OSError, ImportError) as error:  # what the command line says in one line
            if not str(error).strip() or len(str(error)) > 3_000:
                trouble = f"no sentence: {type(error).__name__} {str(error)[:200]!r}"
        except BaseException as error:
            trouble = f"{type(error).__name__}: {str(error)[:300]}"
        taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        if taken > BASE_MEMORY + MOST_MEMORY * size:
            trouble = f"took {taken:,} bytes for {size:,}"
        sys.stdout.write(json.dumps({"path": str(path), "trouble": trouble}) + "\n")
        sys.stdout.flush()


def spoil_member(folder: Path, name: str, rng: random.Random) -> None:
    """Spoil a file in a folder by what it is."""
    path = folder / name
    content, roughly = path.read_bytes(), rng.random() < 0.2
    if path.suffix == ".parquet" and not roughly:
        path.write_bytes(odd_parquet(content, rng))
    elif path.suffix == ".json" and not roughly:
        path.write_text(json.dumps(odd_json(json.loads(content), rng, 0.05)))
    elif path.suffix == ".npy" and not roughly:
        np.save(path, odd_array(np.load(io.BytesIO(content)), rng))
    elif path.suffix == ".skops" and not roughly:
        path.write_bytes(odd_archive(content, rng))
    else:
        path.write_bytes(odd_bytes(content, rng))


def odd_parquet(content: bytes, rng: random.Random) -> bytes:
    """Return a table without a column, with one of another type or name, or with other rows."""
    table = parquet.read_table(pa.BufferReader(content))
    name, how, n = rng.choice(table.column_names), rng.randrange(5), table.num_rows
    if how == 0:
        table = table.drop_columns([name])
    elif how == 1:
        odd: Any = rng.choice((None, "a", 1.5, [1], -1, 2**40, True, [], [None], {"a": 1}))
        table = table.set_column(table.column_names.index(name), name, pa.array([odd] * n))
    elif how == 2:
        table = table.slice(0, rng.randrange(3))
    elif how == 3:
        table = table.rename_columns([f"{one}!" if one == name else one for one in table.column_names])
    else:
        table = pa.concat_tables([table, table])
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    return sink.getvalue()


def spoilt_folders(sound: Path, folder: Path, names: list[str], n: int) -> list[Path]:
    """Return `n` copies of a folder, in each of which one of the named files is spoilt."""
    made = []
    for number in range(n):
        copy = folder / f"{number:04d}"
        shutil.copytree(sound, copy)
        spoil_member(copy, names[number % len(names)], random.Random(number))
        made.append(copy)
    return made
