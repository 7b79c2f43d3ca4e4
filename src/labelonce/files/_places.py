"""Where files lie: one path, a pattern, a folder of parts, or an address in an object store."""

import glob
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

PARQUET = (".parquet", ".pq")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.+)", re.DOTALL)  # a Path leaves one slash of two


def address_of(path: str | os.PathLike[str]) -> str:
    """Return the address that a path is, such as s3://bucket/labels, or nothing where it is a path on this machine.

    >>> address_of("s3://bucket/labels.csv"), address_of(Path("s3://bucket/labels.csv")), address_of("labels.csv")
    ('s3://bucket/labels.csv', 's3://bucket/labels.csv', '')
    """
    found = _ADDRESS.fullmatch(os.fspath(path))
    if found is None or os.path.lexists(path):
        return ""
    scheme, rest = found.groups()
    return f"{scheme}://{'/' if scheme == 'file' else ''}{rest}"


def absolute(path: str) -> str:
    """Return a path from the root of the file system, an address as it is."""
    return address_of(path) or os.path.abspath(path)


def file_system(path: str | os.PathLike[str]) -> tuple[Any, str]:
    """Return the file system that holds a path or an address, pyarrow's or else fsspec's, and the path in it."""
    address = address_of(path)
    if not address:
        return fs.LocalFileSystem(), os.fspath(path)
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(address)
    except pa.ArrowInvalid as unknown:
        try:
            import fsspec

            system, place = fsspec.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise ValueError(
                f"{address} must be an address that pyarrow or fsspec knows; got: {error}. Install the fsspec file "
                "system of that store, or copy the files here."
            ) from unknown
        return fs.PyFileSystem(fs.FSSpecHandler(system)), place
    return found


def places_of(path: Any) -> list[Any]:
    """Return what a path stands for: the files that match a pattern, or those in a folder; else the path itself.

    A folder of nothing but Parquet is one table in parts and stays as it is. What begins with a dot or an underscore is
    no part, as in the folders that Spark and Arrow write.
    """
    if not isinstance(path, str | Path) or address_of(path):
        return [path]
    if os.path.isdir(path):
        files = _parts(Path(path))
        return files if any(one.suffix not in PARQUET for one in files) else [path]
    if glob.has_magic(os.fspath(path)) and not os.path.lexists(path):
        found = sorted(glob.glob(os.fspath(path), recursive=True))
        if not found:
            raise FileNotFoundError(f"{path}: No such file. Check the pattern: it must match one file at least.")
        return [one for name in found for one in places_of(name)]
    return [path]


def fingerprint(path: str | os.PathLike[str]) -> tuple[str, int, int | None]:
    """Return a hash of a file or of the files in a folder, their bytes, and how many a folder has.

    Of what lies in an object store, names, sizes and times are hashed: it need not be read twice.
    """
    digest, n_bytes = hashlib.sha256(), 0
    if address_of(path):
        system, place = file_system(path)
        found = system.get_file_info(place)
        whole = system.get_file_info(fs.FileSelector(place, recursive=True)) if found.type != fs.FileType.File else None
        for one in sorted(whole or [found], key=lambda one: str(one.path)):
            digest.update(f"{one.path} {one.size} {one.mtime_ns}\n".encode())
            n_bytes += one.size or 0
        return digest.hexdigest(), n_bytes, None if whole is None else len(whole)
    files = _parts(Path(path)) if os.path.isdir(path) else [Path(path)]
    for one in files:
        with one.open("rb") as file:
            inside = hashlib.file_digest(file, "sha256")
            n_bytes += file.tell()
        digest.update(f"{one.relative_to(path)} {inside.hexdigest()}\n".encode())
    is_folder = os.path.isdir(path)
    return (digest if is_folder else inside).hexdigest(), n_bytes, len(files) if is_folder else None


def _parts(folder: Path) -> list[Path]:
    names = (path.relative_to(folder).parts for path in sorted(folder.rglob("*")) if path.is_file())
    return [folder.joinpath(*parts) for parts in names if not any(part[0] in "._" for part in parts)]


def is_table_in_parts(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder of Parquet files, or an address that names no file."""
    if address_of(path):
        system, place = file_system(path)
        return bool(system.get_file_info(place).type != fs.FileType.File)
    return os.path.isdir(path) and any(one.suffix in PARQUET for one in _parts(Path(path)))
