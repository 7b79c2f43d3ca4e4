"""The check boxes of one task, as a worker ticked them: sent as a list of classes, stored as one word."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence


def stored(ticked: Iterable[str], classes: Sequence[str]) -> str:
    """Return what is stored of the ticked classes: JSON, in the order of the classes, so that equal ones are equal.

    >>> stored(["sea", "dog"], ["dog", "cat", "sea"])
    '["dog", "sea"]'
    """
    chosen = set(ticked)
    known = [one for one in classes if one in chosen]
    return json.dumps([*known, *sorted(chosen.difference(classes))], ensure_ascii=False)


def ticked(label: str) -> list[str]:
    """Return the ticked classes of what is stored.

    >>> ticked('["dog", "sea"]'), ticked("[]")
    (['dog', 'sea'], [])
    """
    found: list[str] = json.loads(label)
    return found
