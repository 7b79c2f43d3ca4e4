"""Ids that look alike or look missing, what a person would fix in a table, and other names for labels."""

import html
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import shorten, show
from labelonce._types import Ids
from labelonce.data import _ids

_MISSING = {"", "nan", "na", "nat", "<na>", "n/a", "n.a.", "k.a.", "null", "undefined", "missing", "?", "...", "\u2026"}
_MISSING |= {"#n/a", "#nv", "#null!", "#ref!", "#value!", "#wert!", "#div/0!", "#name?", "#num!", "(blank)", "(leer)"}
_DASHES = {"-", "--", "---", "\u2013", "\u2014"}  # missing, unless there is a plus
_NUMBER = re.compile(r"\+?(-?)0*([0-9]+)(?:\.([0-9]*))?")
_AROUND = ".,;:!'\"`\u2018\u2019\u201c\u201d\u201e\u00b4"  # not "?", "+" or "#", which may be the label
_SHARE = re.compile(r"[01]|[01]?[.,]\d+(?:[eE]-\d+)?|1[.,]0+")
_MANY = 12  # different numbers between 0 and 1: more than a scale of tenths has
_RARE = 20  # a typo is at most one in N of what was meant
_SHORTEST, _LONGEST = 3, 100  # letters of words that are compared for slips; a long word has too many forms
Renaming = Callable[[Any], Any]
_MOST = 12  # merged spellings in a message


def look_missing(ids: Ids, *, strict: bool = False) -> list[str]:
    """Return the ids that are blank or a word for a missing value; `strict`: "none" is not one."""
    if ids.dtype != object:
        return []
    words = (_MISSING if strict else _MISSING | {"none"}) | (set() if "+" in ids else _DASHES)
    return [name for name in ids if name.strip().casefold() in words]


def blank_twins(ids: Ids, *, case: bool) -> list[tuple[str, str]]:
    """Return pairs of ids that differ only in blanks around them, and with `case` in capitals."""
    if ids.dtype != object:
        return []
    return _twins(list(ids), lambda name: name.strip().casefold() if case else name.strip())


def alike(counts: Mapping[Any, int]) -> list[tuple[Any, Any]]:
    """Return pairs of labels that look alike, the rarer first.

    Alike are labels equal but for capitals, blanks, hyphens and the form of their characters, numbers of equal
    value, and a rare label one slip of the keyboard away from a frequent one.

    >>> alike({"cat": 40, "Cat ": 3, "cta": 1, "dog": 30})
    [('Cat ', 'cat'), ('cta', 'cat')]
    """
    names = [name for name in counts if isinstance(name, str)]
    rarest_first = sorted(names, key=lambda name: counts[name])
    same = [(two, one) if counts[two] < counts[one] else (one, two) for two, one in _twins(names, key)]
    paired = set(same)
    slips = [pair for pair in _one_slip(rarest_first) if pair not in paired]
    return same + [(one, other) for one, other in slips if counts[one] * _RARE <= counts[other]]


def spellings(counts: Mapping[Any, int], declared: Collection[Any] = ()) -> dict[Any, str]:
    """Return a mapping of labels to the spelling that should stand for them, without those that have it.

    Labels are one class spelled differently if they differ only in case, blanks, hyphens and punctuation around them,
    or are numbers of equal value. The declared spelling stands for them, or else the most frequent, without blanks and
    punctuation around it.

    >>> spellings({"cat": 40, "Cat ": 3, "dog": 30, "DOG.": 1, "cta": 1})
    {'Cat ': 'cat', 'DOG.': 'dog'}
    """
    chosen: dict[Any, str] = {}
    for names in same_labels([*counts, *declared]):
        best = max(names, key=lambda name: (name in declared, counts.get(name, 0), name == _bare(name), name.islower()))
        stands = best if best in declared else _bare(best)
        chosen |= {name: stands for name in names if name in counts and name not in (stands, *declared)}
    return chosen


def same_labels(names: Iterable[Any]) -> list[list[str]]:
    """Return the groups of names that are spellings of one label."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if isinstance(name, str):
            groups.setdefault(key(name), []).append(name)
    return list(groups.values())


def key(name: str) -> str:
    """Return what is the same in all spellings of a label."""
    shown = (letter for letter in html.unescape(name) if unicodedata.category(letter) != "Cf")  # no zero-width blank
    plain = unicodedata.normalize("NFKC", "".join(shown)).strip()
    if number := _NUMBER.fullmatch(plain):
        sign, whole, part = number.groups("")
        return f"{sign}{whole}.{part.rstrip('0')}"
    return re.sub(r"[\s_\-\u2010-\u2015]+", " ", _bare(plain)).strip().casefold() or plain


def look_like_probabilities(ids: Ids) -> int:
    """Return how many different probabilities there are if nearly all ids are numbers between 0 and 1, else 0."""
    if ids.dtype != object or len(ids) < _MANY:
        return 0
    numbers = [float(name.replace(",", ".")) for name in ids if _SHARE.fullmatch(name)]
    inside = len({number for number in numbers if 0 < number < 1})
    return len(set(numbers)) if len(numbers) == len(ids) and inside >= _MANY else 0


def misread(name: str) -> str:
    """Return the repaired text of a name that was written in UTF-8 and read as Windows-1252, else nothing.

    >>> misread("GrÃ¶ÃŸe"), misread("Größe")
    ('Größe', '')
    """
    if name.isascii():
        return ""
    try:
        return name.encode("cp1252").decode()
    except (UnicodeEncodeError, UnicodeDecodeError):
        return ""


def _bare(name: str) -> str:
    """Return a name without the blanks and the punctuation around it, unless that is all of it."""
    return name.strip().strip(_AROUND).strip() or name


def _twins(names: list[str], same: Any) -> list[tuple[str, str]]:
    first: dict[str, str] = {}
    found = []
    for name in names:
        other = first.setdefault(same(name), name)
        if other != name:
            found.append((name, other))
    return found


def _one_slip(names: list[str]) -> list[tuple[str, str]]:
    """Return pairs of names that differ by one letter: added, missing, wrong or swapped.

    Two such words share a form with one letter left out, so each word meets only those that share one.
    """
    forms: dict[str, list[int]] = {}
    words = [key(name) for name in names]
    fit = [_SHORTEST <= len(word) <= _LONGEST and not any(map(str.isdigit, word)) for word in words]
    for i, word in enumerate(words):
        if fit[i]:
            for form in {word} | {word[:j] + word[j + 1 :] for j in range(len(word))}:
                forms.setdefault(form, []).append(i)
    pairs = {(i, j) for together in forms.values() for i in together for j in together if i < j}
    return [(names[i], names[j]) for i, j in sorted(pairs) if _is_slip(words[i], words[j])]


def _is_slip(one: str, other: str) -> bool:
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[start:], other[start:]
    swapped = len(a) > 1 and len(b) > 1 and (a[0], a[1]) == (b[1], b[0]) and a[2:] == b[2:]
    return swapped or a[1:] == b[1:] or a[1:] == b or a == b[1:]


def renaming(
    relabel: Mapping[Any, Any] | None, label: Any, declared: Any = None, *, normalise: bool = False
) -> Renaming | None:
    """Return the function from a label to its new name, None for one that is left out; None if there is nothing to do.

    A mapping finds labels by their text, so that its "1" is also the number 1. What is merged by `normalise` is said in
    a warning; `declared` are spellings that somebody wrote down.
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
