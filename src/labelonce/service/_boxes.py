"""The check boxes of one task, as a worker ticked them: sent as a list of classes, stored as one word."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np

from labelonce._types import Floats, Ids

NO, YES = ANSWERS = ("no", "yes")


def stored(ticked: Iterable[str], classes: Sequence[str]) -> str:
    """Return the stored form of the ticked classes: JSON, in the order of the classes, so that equal ones are equal.

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


def answers_of(labels: Sequence[str], classes: Sequence[str]) -> Ids:
    """Return what stored labels say about every class, (n_labels, n_classes): the questions of a `Router`.

    >>> answers_of(['["sea"]', "[]"], ["dog", "sea"]).tolist()
    [['no', 'yes'], ['no', 'no']]
    """
    chosen = [set(ticked(label)) for label in labels]
    found = [YES if one in said else NO for said in chosen for one in classes]
    return np.array(found, dtype=object).reshape(-1, len(classes))


def rows_of(chances: Floats) -> Floats:
    """Return P(no), P(yes) of every box, a row each, from P(yes) by task and class."""
    return np.stack([1 - chances, chances], axis=2).reshape(-1, 2)
