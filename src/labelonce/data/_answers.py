"""Answers that are not classes: what workers may say, and which class each answer leans to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._messages import argument, shorten, show
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_codes
from labelonce.data import _ids

if TYPE_CHECKING:
    from labelonce.data._annotations import Annotations
    from labelonce.data._extra import Extra


class OtherAnswersWarning(UserWarning):
    """Some answers are not classes, and the method has no use for them."""


def answer_table(answers: Any, classes: Any) -> tuple[Ids, Ids]:
    """Return the tables of answers and of classes, both declared.

    The answers hold every class, and then the classes come first, in their order, and the other answers follow as
    given; or they hold none, and then they are a scale, in the order given.
    """
    if classes is None:
        raise ValueError(f"answers must come with the classes they are about; got none. Give {argument('classes')}")
    given, true = _ids.table_of(answers, "answers"), _ids.table_of(classes, "classes")
    class_of = _ids.lookup(given, true)
    n_found = int((class_of >= 0).sum())
    if n_found == len(true):
        return np.concatenate([true, given[class_of < 0]]), true
    if n_found:
        missing = true[np.isin(np.arange(len(true)), class_of, invert=True)]
        raise ValueError(
            f"answers must hold every class or, as a scale, none; got {show(given[class_of >= 0][0])} but not "
            f"{show(missing[0])}. Add the classes that are missing, or give the classes other names than the answers."
        )
    if len(given) < len(true):
        raise ValueError(
            f"a scale must have at least as many answers as there are classes, in their order, so that each class has "
            f"one; got {shorten(given)} for {shorten(true)}. Are these the answers?"
        )
    return given, true


def class_leanings(answers: Ids, classes: Ids) -> Floats:
    """Return the initial share of each answer as evidence for each class, shape (n_answers, n_classes).

    A class is evidence for itself, another answer for none. Along a scale the first answer is evidence for the first
    class, the last for the last, and those between for the two classes nearest, in proportion.
    """
    if holds_classes(answers, classes):
        return np.eye(len(answers), len(classes))
    place = np.linspace(0, len(classes) - 1, len(answers))
    return np.asarray(np.maximum(0.0, 1 - np.abs(place[:, None] - np.arange(len(classes)))))


def holds_classes(answers: Ids, classes: Ids) -> bool:
    """Return whether the first answers are the classes; otherwise the answers are a scale."""
    return answers is classes or bool(np.array_equal(answers[: len(classes)], classes))


def agreement(annotations: Annotations, picks: Codes) -> tuple[float, float]:
    """Return how many answers agree with the predicted class of their task, and of how many that lean to a class."""
    picked = picks[annotations.task]
    if annotations.is_square:
        return float((picked == annotations.label).sum()), float(len(picked))
    leaning = annotations.leaning
    return float(leaning[annotations.label, picked].sum()), float(leaning.sum(axis=1)[annotations.label].sum())


def disagreement(annotations: Annotations, picks: Codes) -> float:
    """Return the share of answers that disagree with the predicted class, of those that lean to a class."""
    if annotations.is_square:
        return float((picks[annotations.task] != annotations.label).mean())
    agreed, total = agreement(annotations, picks)
    return 1 - agreed / max(total, 1e-300)


def encode_labels(label: Any, name: str, classes: Any, answers: Any) -> tuple[Codes, Ids, Ids]:
    """Return the codes of the labels, the classes, and the answers that the codes stand for."""
    if answers is not None:
        table, declared = answer_table(answers, classes)
        codes, _ = _ids.encode(label, name, table, "answers")
        return codes, declared, table
    codes, found = _ids.encode(label, name, None if classes is None else _ids.table_of(classes, "classes"))
    return codes, found, found


def renamed(ids: Ids, mapping: Mapping[Any, Any]) -> tuple[Ids, Ids]:
    """Return the new name of each id, None for removed ones, and the table of the names: those that remain first."""
    known = ids.tolist()
    new = np.array([mapping.get(old, old) for old in known], dtype=object)
    gone = np.array([_ids.is_missing(name) for name in new], dtype=bool)
    new[gone], new[~gone] = None, _ids.column_of(new[~gone].tolist(), "new label")
    distinct = dict.fromkeys(new[~gone].tolist())
    kept = {old: None for old in known if old in distinct}
    return new, _ids.table_of(list(kept | distinct), "new label")


def only_classes(annotations: Annotations, name: str, *, stacklevel: int = 3) -> Annotations:
    """Return the annotations whose answer is a class, for a method that takes no others.

    It warns of how many are left out. A scale has no such answers, and is refused.
    """
    if annotations.is_square:
        return annotations
    if annotations.is_scale:
        raise ValueError(
            f"{name} must have answers that are classes; got the scale {shorten(annotations.answers)} for the classes "
            f"{shorten(annotations.classes)}. Use DawidSkene, IBCC or MajorityVote, or MBEM with workers.Full."
        )
    other = annotations.label >= annotations.n_classes
    if other.any():
        warnings.warn(
            f"{name} counts only answers that are classes; {int(other.sum()):,} of {len(annotations):,} annotations, "
            f"such as {show(annotations.answers[annotations.label[other.argmax()]])}, count for no class. DawidSkene, "
            "IBCC and MBEM learn what such answers tell.",
            OtherAnswersWarning,
            stacklevel=stacklevel,
        )
    return annotations.only_classes()


def relabelled(classes: Ids, answers: Ids, extra: Extra, mapping: Any) -> tuple[Codes, Ids, Ids, Extra]:
    """Return the new code of every answer, -1 where it goes, and the tables and optional columns that follow.

    `mapping` is that of `Annotations.relabel`; where the answers are the classes, both are the same table.
    """
    if not isinstance(mapping, Mapping):
        codes, extra = _permuted(len(classes), len(answers), extra, mapping)
        return codes, classes, answers, extra
    known = classes.tolist() if answers is classes else [*classes.tolist(), *answers.tolist()]
    unknown = [old for old in mapping if old not in known]
    if unknown:
        what = "classes" if answers is classes else "classes and answers"
        raise ValueError(
            f"mapping must start from the {what} {shorten(list(dict.fromkeys(known)))}; got {show(unknown[0])} "
            f"({len(unknown)} in total)."
        )
    names, new_classes = renamed(classes, mapping)
    extra = extra.with_classes(_codes_in(new_classes, names), len(new_classes))
    names, new_answers = renamed(answers, mapping)
    same = np.array_equal(new_answers, new_classes)
    new_answers = new_classes if same else answer_table(new_answers, new_classes)[0]
    return _codes_in(new_answers, names), new_classes, new_answers, extra


def _permuted(n_classes: int, n_answers: int, extra: Extra, mapping: Any) -> tuple[Codes, Extra]:
    permutation = check_codes(mapping, "permutation", n_answers)
    if len(np.unique(permutation)) != n_answers or len(permutation) != n_answers:
        raise ValueError(f"permutation must hold each code in [0, {n_answers}) once; got {show(mapping)}.")
    if extra.probability is None:
        return permutation, extra
    if (permutation[:n_classes] >= n_classes).any():
        raise ValueError(
            f"a permutation of annotations with probabilities must keep classes among classes; got {show(permutation)}."
        )
    return permutation, extra.with_classes(permutation[:n_classes], n_classes)


def _codes_in(table: Ids, names: Ids) -> Codes:
    """Return the place of each name in a table, -1 where it is not there."""
    place = {name: code for code, name in enumerate(table.tolist())}
    return np.array([place.get(name, -1) for name in names], dtype=np.int32)
