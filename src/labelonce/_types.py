"""Array types that every layer shares; the names say what the numbers mean."""

from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int32]
"""Dense integer codes: position in a table of ids; -1 where unknown."""

Floats = npt.NDArray[np.floating[Any]]
"""Real numbers, float64 or float32."""

Ids = npt.NDArray[Any]
"""Ids as the user wrote them: int64, or str in an object array."""

Mask = npt.NDArray[np.bool_]
"""True where kept."""
