"""Other names for the labels in a column: those of a mapping, or one spelling for each class."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import shorten, show
from labelonce._types import Ids
from labelonce.data import _ids
from labelonce.data._spelling import spellings

Renaming = Callable[[Any], Any]
_MOST = 12  # merged spellings in a message


def renaming(
    relabel: Mapping[Any, Any] | None, label: Any, declared: Any = None, *, normalise: bool = False
) -> Renaming | None:
    """Return the function from a label to its new name, None for one that is left out; None if there is nothing to do.

    A mapping finds labels by their text, so that its "1" is also the number 1. What is merged by `normalise` is said in
    a warning; `declared` are spellings that somebody wrote down.

    >>> renaming({"kat": "cat", "?": None}, ["kat", "?", "dog"])("kat")
    'cat'
    """
    if relabel is None and not normalise:
        return None
    codes, ids = _ids.encode(label, "label")
    new = {str(old): None if _ids.is_missing(name) else name for old, name in (relabel or {}).items()}
    if relabel is not None:
        _check_given(new, ids)
    counts: Counter[Any] = Counter()
    for old, n in zip(ids.tolist(), np.bincount(codes).tolist(), strict=True):
        counts[new.get(str(old), old)] += n
    merged = spellings(counts, () if declared is None else list(declared)) if normalise else {}
    if merged:
        listed = [f"{show(old)} ({counts[old]:,}) is {show(name)}" for old, name in merged.items()]
        more = f", and {len(merged) - _MOST:,} more" if len(merged) > _MOST else ""
        warnings.warn(f"spellings of one label are merged: {', '.join(listed[:_MOST])}{more}.", stacklevel=4)

    def renamed(old: Any) -> Any:
        name = new.get(str(old), old)
        return merged.get(name, name)

    return renamed


def renamed_column(label: Any, rename: Renaming) -> pa.Array:
    """Return a column of labels under their new names, null where a label is left out."""
    codes, ids = _ids.encode(label, "label")
    names = [rename(name) for name in ids.tolist()]
    if not any(isinstance(name, str) for name in names):
        return pa.array(names, pa.int64()).take(pa.array(codes))
    texts = [None if name is None else str(name) for name in names]
    return pa.array(texts, pa.large_string()).dictionary_encode().take(pa.array(codes))


def _check_given(new: Mapping[str, Any], ids: Ids) -> None:
    """Warn of labels in a mapping that nobody gave; if none was given, it is an error."""
    known = {str(name) for name in ids}
    unknown = [old for old in new if old not in known]
    if len(unknown) == len(new):
        raise ValueError(f"relabel must name labels that were given, {shorten(ids)}; got {shorten(unknown, 3)}.")
    if unknown:
        sentence = f"{len(unknown):,} of the {len(new):,} labels to be renamed were never given, such as "
        warnings.warn(f"{sentence}{show(unknown[0])}.", stacklevel=5)
