"""Which column is which: the names asked for, and likely names if they are missing."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from shlex import quote

import numpy as np

from labelonce._messages import argument, at_command_line, is_offered, shorten

_NAMED = ("task", "worker", "label", "question", "answer", "ticked")  # roles whose columns are arguments of readers
NUMBERS = ("probability", "weight")  # optional columns of numbers: a whole one in the first row makes no integers
_USUAL = {  # what people and programs call the columns, without case, blanks and underscores
    "task": "task taskid item itemid id questionid sampleid exampleid docid image hitid reviewid sentence sentenceid",
    "worker": "worker workerid annotator annotatorid rater raterid user userid username who annotatoremail coder "
    "labeler labeller performer completedby judge",
    "label": "label labels answer class category annotation choice rating verdict",
}


class ColumnError(ValueError):
    """A table has no column of a name, or has it twice."""


def find_columns(names: Iterable[str], wanted: Mapping[str, str]) -> list[str]:
    """Return the names of the wanted columns, each once; one that is not there or there twice is an error.

    Where several are not there, the error names them all.
    """
    present = list(names)
    missing = {role: name for role, name in wanted.items() if name not in present}
    if len(missing) > 1:
        roles, got = (" and ".join(map(str, part)) for part in (missing, map(repr, missing.values())))
        raise ColumnError(
            f"the {roles} columns must be among {shorten(np.array(present, dtype=object), 20)}; got {got}. "
            f"{_naming(missing, present)}"
        )
    for role, name in wanted.items():
        if present.count(name) != 1:
            fix = "Rename the second one." if name in present else _naming([role], present)
            shown = shorten(np.array(present, dtype=object), 20)
            raise ColumnError(f"the {role} column must be one of {shown}; got {name!r}. {fix}")
    return list(dict.fromkeys(wanted.values()))


def _naming(roles: Collection[str], present: Sequence[str]) -> str:
    """Return how to name the missing columns, with likely names, if the caller has arguments for that."""
    them = "it" if len(roles) == 1 else "them"
    if all(role in _NAMED and is_offered(role) for role in roles):
        named = {re.sub(r"[\W_]+", "", name).casefold(): name for name in reversed(present)}
        likely = {role: [named[one] for one in _USUAL.get(role, "").split() if one in named] for role in roles}
        typed = quote if at_command_line() else str
        shown = [argument(role, *map(typed, likely[role][:1])) for role in roles]
        return f"Name {them} with {', '.join(shown)}"
    return f"Rename {them} in the file."
