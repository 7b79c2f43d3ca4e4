"""Zip archives of arrays are looked at before they are unpacked."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO

from labelonce.files import _open


def check_unpacked(path: Path, archive: IO[bytes]) -> None:
    """Raise an error if a zip archive would unpack to far more than its size."""
    archive.seek(0, 2)
    size = archive.tell()
    try:
        with zipfile.ZipFile(archive) as opened:
            unpacked = sum(one.file_size for one in opened.infolist())  # zipfile unpacks no more than that
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        raise ValueError(f"{path} must be a whole zip archive of arrays; got: {error}.") from error
    finally:
        archive.seek(0)
    if unpacked > max(_open._UNPACKED, _open._RATIO * size):
        most = f"{_open._RATIO} times its size"
        raise ValueError(f"{path} must not unpack to more than {most}; got {unpacked:,} bytes from {size:,}.")
