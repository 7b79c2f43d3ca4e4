"""Many strings in two arrays: what a saved model holds instead of one object a string."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelonce._types import Ids


@dataclass(frozen=True)
class PackedStrings:
    """Strings end to end in UTF-8, and the number of characters of each."""

    text: bytes
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, strings: Iterable[str]) -> PackedStrings:
        listed = list(strings)
        return cls("".join(listed).encode(), np.array([len(one) for one in listed], dtype=np.int64))

    def unpack(self) -> Ids:
        text, ends = self.text.decode(), np.cumsum(self.lengths).tolist()
        strings = np.empty(len(ends), dtype=object)
        strings[:] = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return strings
