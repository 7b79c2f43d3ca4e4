"""The gold of a file of labels: in a file of its own, or in the export that the labels came from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from labelonce._messages import argument
from labelonce._types import TOOLS
from labelonce.data import Annotations
from labelonce.files import File
from labelonce.io import read_gold

_READ = ("task", "label", "multiple", "relabel", "normalise")


def choose_gold(
    labels: Sequence[File], gold: str | os.PathLike[str] | None, annotations: Annotations, **source: Any
) -> dict[Any, Any] | None:
    """Return the gold in a file, else that in the exports that the labels came from.

    A warning says that the latter is used, or that it is not. `source` says how the labels were read.
    """
    read = {name: source[name] for name in _READ if source.get(name)}
    own: dict[Any, Any] = {}
    for file in labels:
        own |= read_gold(file, annotations=annotations, **read) if file.format in TOOLS else {}
    given = None if gold is None else read_gold(gold, annotations=annotations, **read)
    if own:
        files = ", ".join(str(file.path) for file in labels if file.format in TOOLS)
        found = f"{files}: its true labels of {len(own):,} task{'s' if len(own) > 1 else ''} are"
        used = given is None or given == own
        sentence = f"{found} used as gold." if used else f"{found} not used, since {argument('gold')} names others."
        warnings.warn(sentence, stacklevel=2)
    return given if given is not None else own or None
