"""Image files: opened upright, in RGB, and with a limit on what they unpack to."""

import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import show

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # Pillow hands others, such as EPS, to other programs


def picture(content: bytes, path: Path, *, size: tuple[int, int] | None = None) -> Any:
    """Return an image in RGB, upright, on white where it is transparent; stretched to a size, if one is given.

    The limit on what it unpacks to holds inside `strict_about_bombs`.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as opened:
            if size is not None:
                opened.draft("RGB", (2 * size[0], 2 * size[1]))
            image = _in_colours(ImageOps.exif_transpose(opened))
            return image if size is None else image.resize(size, Image.Resampling.BILINEAR, reducing_gap=3.0)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(
            f"{path} must have at most {Image.MAX_IMAGE_PIXELS:,} pixels, Pillow's limit against files that unpack to "
            "fill the memory; got more. Make it smaller first."
        ) from error
    except Exception as error:  # a broken file may fail in any way
        got = f" {show(content[:12])} at its start" if isinstance(error, UnidentifiedImageError) else f": {error}"
        raise ValueError(f"{path} must be an image that can be read ({', '.join(_FORMATS)}); got{got}") from error


@contextmanager
def strict_about_bombs() -> Iterator[None]:
    """Make Pillow's warning about huge images an error, and ignore its other warnings."""
    from PIL import Image

    with warnings.catch_warnings(action="ignore"):
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def content_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} must be an image that can be read; got: {error.strerror}.") from error


def files_in(folder: Path) -> list[Path]:
    """Return all files in a folder of images except hidden ones."""
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a folder of images; got {'a file' if folder.exists() else 'nothing'}.")
    return [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]


def is_picture(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def pictures_in(folder: Path, *, suffix: bool = False) -> dict[str, Path]:
    """Return the images in a folder by their names, with or without suffix, in order."""
    found = sorted(path for path in files_in(folder) if is_picture(path))
    if not found:
        raise ValueError(f"{folder} must hold images ({', '.join(SUFFIXES)}); got none.")
    return {path.name: path for path in found} if suffix else by_stem(found)


def by_stem(paths: Iterable[Path]) -> dict[str, Path]:
    """Return files by their names without suffix; two of one name are an error."""
    found: dict[str, Path] = {}
    for path in sorted(paths):
        if found.setdefault(path.stem, path) != path:
            raise ValueError(
                f"{path.parent} must hold one image per task; got {show(found[path.stem].name)} and "
                f"{show(path.name)}. Remove one of them."
            )
    return found


def _in_colours(image: Any) -> Any:
    from PIL import Image

    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        raise ValueError(f"its colours are of mode {image.mode}; convert it to 8 or 16 bits.")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
