"""Where arrays are worked on, so that a formula is written once for numpy and for torch on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Arrays(NamedTuple):
    """A module whose functions have numpy's names, how an array gets to where it works, and how one comes back."""

    functions: Any
    put: Callable[[Any], Any]
    get: Callable[[Any], Any]


NUMPY = Arrays(np, np.asarray, np.asarray)
