"""What the answers to a question are, and how much of a yes each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labelonce._messages import argument, is_offered, shorten, show
from labelonce._types import Codes, Floats, Ids
from labelonce.data import _ids, key

WORDS: dict[str, float | None] = {"no": 0.0, "maybe": 0.5, "yes": 1.0, "skip": None}
"""Words that need no declaration; None: the answer says neither yes nor no by itself."""


def declare(answers: Any) -> tuple[Ids, Floats]:
    """Return the answers and how much of a yes each is, NaN where it says neither.

    A mapping gives the value of each answer; a sequence runs from no to yes in even steps.

    >>> declare(["no", "maybe", "yes"])
    (array(['no', 'maybe', 'yes'], dtype=object), array([0. , 0.5, 1. ]))
    >>> declare({"no": 0, "yes": 1, "skip": None})
    (array(['no', 'yes', 'skip'], dtype=object), array([ 0.,  1., nan]))
    """
    if isinstance(answers, Mapping):
        values = [np.nan if value is None else value for value in answers.values()]
        return check_answers(_ids.table_of(list(answers), "answers"), values)
    ids = _ids.table_of(answers, "answers")
    return check_answers(ids, np.linspace(0.0, 1.0, len(ids)))


def check_answers(ids: Ids, values: Any) -> tuple[Ids, Floats]:
    """Return answers with their values, each in [0, 1] or NaN, one below a half and one above."""
    try:
        shares = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the value of an answer must be a number or None; got {show(values)}.") from error
    if shares.shape != (len(ids),):
        raise ValueError(f"every one of the {len(ids)} answers must have one value; got shape {shares.shape}.")
    outside = np.flatnonzero((shares < 0) | (shares > 1))
    if len(outside):
        first = outside[0]
        raise ValueError(
            f"the value of an answer must be in [0, 1], from no to yes; got {shares[first]} for {show(ids[first])}."
        )
    if not ((shares < 0.5).any() and (shares > 0.5).any()):
        raise ValueError(
            f"answers must hold one that means no and one that means yes; got {shorten(ids)}. "
            f"Declare them from no to yes with {argument('answers')}"
        )
    return ids, shares


def encode_answers(answer: Any, answers: Any) -> tuple[Codes, Ids, Floats]:
    """Return the code of every answer, the answers and their values; by default 0 and 1, or the known words."""
    if answers is not None:
        ids, values = declare(answers)
        return _ids.encode(answer, "answer", ids)[0], ids, values
    codes, seen = _ids.encode(answer, "answer")
    ids, values = _known(seen)
    return _ids.lookup(seen, ids)[codes], ids, values


def _known(seen: Ids) -> tuple[Ids, Floats]:
    if seen.dtype != object and np.isin(seen, (0, 1)).all():
        return np.array([0, 1]), np.array([0.0, 1.0])
    unknown = [value for value in seen.tolist() if value not in WORDS]
    if unknown:
        odd = [value for value in unknown if value not in (0, 1)] or unknown
        spelled = isinstance(odd[0], str) and key(odd[0]) in WORDS and is_offered("normalise")
        fix = f"Give them one spelling with {argument('normalise')}, or declare them" if spelled else "Declare them"
        raise ValueError(
            f"answers must be 0 and 1, or the words {', '.join(WORDS)}, where they are not declared; got "
            f"{show(odd[0])} ({len(odd)} in total). {fix} from no to yes with "
            f"{argument('answers')}"
        )
    return declare({word: value for word, value in WORDS.items() if word in ("no", "yes") or word in seen})
