"""The gold of a file of labels: in a file of its own, or in the export that the labels came from."""

from __future__ import annotations

import os
import warnings
from typing import Any

from labelonce._messages import argument
from labelonce._types import TOOLS
from labelonce.data import Annotations
from labelonce.formats._registry import find_labels
from labelonce.io import read_gold


def choose_gold(
    labels: str | os.PathLike[str], gold: str | os.PathLike[str] | None, annotations: Annotations, **source: Any
) -> dict[Any, Any] | None:
    """Return the gold in a file, else that in the export that the labels came from.

    A warning says that the latter is used, or that it is not. `source` says how the labels were read.
    """
    columns = {name: source[name] for name in ("task", "label", "multiple") if source.get(name)}
    file = find_labels(labels, source.get("format"))
    own = read_gold(file, annotations=annotations, **columns) if file.format in TOOLS else {}
    given = None if gold is None else read_gold(gold, annotations=annotations, **columns)
    if own:
        found = f"{file.path}: its true labels of {len(own):,} task{'s' if len(own) > 1 else ''} are"
        used = given is None or given == own
        sentence = f"{found} used as gold." if used else f"{found} not used, since {argument('gold')} names others."
        warnings.warn(sentence, stacklevel=2)
    return given if given is not None else own or None
