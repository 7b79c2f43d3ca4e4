"""True labels that are known at fit time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelonce._messages import shorten, show
from labelonce._types import Codes, Ids
from labelonce.data import _ids
from labelonce.data._annotations import Annotations, check_positions

Gold = Mapping[Any, Any] | Any


def check_gold(gold: Gold, annotations: Annotations) -> Codes:
    """Return the class code of every task's gold, -1 where it has none.

    `gold` maps task ids to class ids, or lists one class id per task with None, NaN or -1 where unknown. A pandas
    Series maps its index, unless that only counts 0, 1, 2, ...
    """
    tasks, classes = annotations.tasks, annotations.classes
    if hasattr(gold, "index") and hasattr(gold, "to_dict") and getattr(gold, "ndim", 0) == 1:
        gold = _from_series(gold, classes)
    codes = np.full(len(tasks), -1, dtype=np.int32)
    if isinstance(gold, Mapping):
        if gold:
            codes[_gold_codes(list(gold), "gold tasks", tasks)] = _gold_codes(list(gold.values()), "gold", classes)
        return codes
    values = np.array(gold, dtype=object)
    if isinstance(gold, np.ma.MaskedArray):
        values[np.ma.getmaskarray(gold)] = None
    if values.shape != (len(tasks),):
        raise ValueError(
            f"gold must have one entry per task, {len(tasks)}; got shape {values.shape}. "
            "Give a mapping of task id to class id if only some are known."
        )
    check_positions(annotations, "gold", len(values), "Give a mapping of task id to class id.")
    known = np.array([not _is_unknown(value, classes) for value in values], dtype=bool)
    if known.any():
        codes[known] = _gold_codes(values[known].tolist(), "gold", classes)
    return codes


def _from_series(gold: Any, classes: Ids) -> Any:
    tasks, values = list(gold.index), gold.tolist()
    if tasks == list(range(len(tasks))):
        return values
    check_once(tasks)
    return {task: value for task, value in zip(tasks, values, strict=True) if not _is_unknown(value, classes)}


def check_once(tasks: Sequence[Any]) -> None:
    seen = Counter(tasks)
    twice = [task for task, times in seen.items() if times > 1]
    if twice:
        times = "twice" if seen[twice[0]] == 2 else f"{seen[twice[0]]} times"
        raise ValueError(
            f"gold must name a task once; got {show(twice[0])} {times} "
            f"({len(twice)} repeated tasks in total). Keep one row of each."
        )


def _gold_codes(values: list[Any], name: str, ids: Ids) -> Codes:
    given = _ids.column_of(values, name)
    _ids.check_same_kind(given, name, ids)
    codes = _ids.lookup(given, ids)
    if codes.min() < 0:
        unknown = np.flatnonzero(codes < 0)
        raise ValueError(
            f"{name} must be among {shorten(ids)}; got {show(given[unknown[0]])} ({len(unknown)} in total)."
        )
    return codes


def _is_unknown(value: Any, classes: Ids) -> bool:
    return _ids.is_missing(value) or (not isinstance(value, str) and value == -1 and -1 not in classes)
