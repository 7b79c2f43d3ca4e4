"""Texts and images of tasks, made small and safe to put into the file."""

import base64
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from labelonce._messages import clip, show
from labelonce._types import Ids

_LONGEST_TEXT = 400
_LARGEST_SIDE = 128


def shown_of(task: int, tasks: Ids, texts: Any, images: Any) -> dict[str, str | None]:
    """Return the short text and the small image of a task, None where there is none."""
    text, image = of_task(texts, task, tasks, "texts"), of_task(images, task, tasks, "images")
    return {
        "text": None if text is None else short_text(text),
        "image": None if image is None else data_uri(image, tasks[task]),
    }


def of_task(values: Any, task: int, tasks: Ids, name: str) -> Any:
    """Return what a sequence or a mapping says of a task; None where a mapping does not name it."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        key = tasks[task]
        return values.get(key.item() if isinstance(key, np.generic) else key)
    if len(values) != len(tasks):
        raise ValueError(
            f"{name} must have one entry per task, {len(tasks)}; got {len(values)}. "
            "Give a mapping of task id to entry if only some have one."
        )
    return values[task]


def short_text(text: Any) -> str:
    """Return a text in one line, cut where it is long."""
    return clip(" ".join(str(text).split()), _LONGEST_TEXT)


def data_uri(image: Any, task: Any) -> str:
    """Return a path or an array as a small image that needs no other file."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError(
            "images in the report need Pillow; install it with: pip install 'labelonce[images]'."
        ) from error
    if isinstance(image, (str, os.PathLike)):
        try:
            with Image.open(image) as opened:
                small = opened.convert("RGB")
        except (OSError, UnidentifiedImageError) as error:
            raise ValueError(
                f"images must be image files that can be read; got {show(image)} of task {show(task)}."
            ) from error
    else:
        small = Image.fromarray(_as_bytes(image, task)).convert("RGB")
    if max(small.size) <= _LARGEST_SIDE // 2:  # a few pixels: enlarged without blur
        scale = _LARGEST_SIDE // max(small.size)
        small = small.resize((small.width * scale, small.height * scale), Image.Resampling.NEAREST)
    small.thumbnail((_LARGEST_SIDE, _LARGEST_SIDE))
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=80)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


def _as_bytes(image: Any, task: Any) -> Any:
    """Return an array as bytes: those of type uint8 as they are, others stretched from darkest to brightest."""
    array = np.asarray(image)
    colours = array.shape[2] if array.ndim == 3 else 1
    if array.ndim not in (2, 3) or colours not in (1, 3, 4) or 0 in array.shape or array.dtype.kind not in "buif":
        raise ValueError(
            f"images must be paths or number arrays (height, width) or (height, width, 3); got {array.dtype} of shape "
            f"{array.shape} for task {show(task)}."
        )
    array = array[:, :, 0] if array.ndim == 3 and colours == 1 else array
    if array.dtype == np.uint8:
        return array
    values = np.nan_to_num(array.astype(np.float64))
    span = float(values.max() - values.min())
    return ((values - values.min()) * (255 / span if span else 0.0)).astype(np.uint8)
