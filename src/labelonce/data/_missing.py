"""Rows of which the task, the worker or the label is missing: refused, or left out and counted."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import argument, is_offered, row
from labelonce._types import MISSING, Codes
from labelonce._validate import check_choice
from labelonce.data import _ids


class LeftOutWarning(UserWarning):
    """Some rows of a file are no annotations; `counts` says how many for each reason."""

    def __init__(self, message: str, counts: dict[str, int]) -> None:
        super().__init__(message)
        self.counts = counts


class MissingWarning(LeftOutWarning):
    """Some rows have no task, no worker or no label."""


def present_rows(missing: str, source: str = "", **columns: Any) -> tuple[list[Any], Codes | None]:
    """Return the columns without the rows where one is missing, and the numbers of those kept; None: all rows.

    With `missing="error"` such a row is an error, with "drop" a `MissingWarning` counts them; `source` says where they
    come from.
    """
    check_choice(missing, "missing", MISSING)
    arrays = {role: _ids.as_arrow(values, role) for role, values in columns.items()}
    absent = {role: _ids.missing_in(array) for role, array in arrays.items()}
    gone = {role: mask for role, mask in absent.items() if mask is not None}
    if not gone:
        return list(arrays.values()), None
    if missing == "error":
        role, mask = next(iter(gone.items()))
        fix = f"Leave such rows out with {argument('missing', 'drop')}" if is_offered("missing") else "Drop these rows"
        raise ValueError(
            f"{role} must not be missing; got a missing value at {row(mask.argmax())} ({mask.sum():,} in total). "
            f"{fix}, or fill them in."
        )
    n_absent = np.sum(list(gone.values()), axis=0)
    counts = {"blank": int((n_absent == len(columns)).sum())}
    for role, mask in gone.items():
        counts[f"without {'an' if role[0] in 'aeiou' else 'a'} {role}"] = int((mask & (n_absent < len(columns))).sum())
    counts = {reason: n for reason, n in counts.items() if n}
    reasons = ", ".join(f"{reason} {n:,}" for reason, n in counts.items())
    left_out = n_absent > 0
    if left_out.all():
        raise ValueError(
            f"some rows must have {', '.join(columns)}; got {len(n_absent):,} rows without ({reasons}). Are these the "
            "right columns, or formulas that no spreadsheet program has computed?"
        )
    sentence = f"{left_out.sum():,} of {len(left_out):,} rows are left out ({reasons}), the first is "
    message = f"{source}{': ' if source else ''}{sentence}{row(left_out.argmax())}."
    warnings.warn(MissingWarning(message, counts), stacklevel=3)
    kept = np.flatnonzero(~left_out).astype(np.int32)
    return [array.take(pa.array(kept)) for array in arrays.values()], kept
