"""Groups of classes that are confused with each other: given as a table, as a taxonomy, or found in the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import pdtrc

from labelonce._kernels import Beliefs
from labelonce._messages import shorten, show
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_choice, check_codes
from labelonce.data import MOST_NUMBERS, Annotations, _ids
from labelonce.workers._base import check_beliefs
from labelonce.workers._communities import communities

SEPARATOR = "/"
_MOST_PAIRS = MOST_NUMBERS // 8


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the classes.

    Attributes
    ----------
    group : (n_classes,)
        The group of each class, as a code in [0, n_groups).
    position : (n_classes,)
        The place of each class within its group, 0, 1, ...
    names : (n_groups,)
        What the groups are called.

    Examples
    --------
    >>> groups = Groups.of([0, 1, 0, 1, 1])
    >>> groups.n_groups, groups.sizes, groups.position
    (2, array([2, 3]), array([0, 0, 1, 1, 2], dtype=int32))
    >>> groups.members(1)
    array([1, 3, 4], dtype=int32)
    """

    group: Codes
    position: Codes
    names: Ids

    @classmethod
    def of(cls, group: Any, position: Any = None, names: Any = None) -> Self:
        """Return the partition of a group code per class; positions are in the order of the classes by default."""
        codes = check_codes(group, "group", max(1, len(group)))
        if position is None:
            position = _places(codes)
        n_groups = int(codes.max()) + 1
        return cls(codes, np.asarray(position, np.int32), np.arange(n_groups) if names is None else np.asarray(names))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.group)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.names)

    @cached_property
    def sizes(self) -> Ids:
        """Return the number of classes in each group."""
        return np.bincount(self.group, minlength=self.n_groups)

    @cached_property
    def by_group(self) -> Codes:
        """Return all classes sorted by group, and by position within it."""
        return np.lexsort((self.position, self.group)).astype(np.int32)

    @cached_property
    def starts(self) -> Ids:
        """Return where each group starts in `by_group`, and after them the number of classes."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def members(self, group: int) -> Codes:
        """Return the classes of a group by their position."""
        return np.asarray(self.by_group[self.starts[group] : self.starts[group + 1]])


def read_groups(groups: Any, classes: Ids) -> Groups:
    """Return the groups of the classes.

    Parameters
    ----------
    groups : mapping, table, list of pairs, (n_classes,) codes, "taxonomy" or Groups
        The group of every class: a mapping of class id to group; a frame or a list of pairs with the columns class and
        group, whose order is that of the positions within a group; an integer array with one group per class, in the
        order of `classes`; "taxonomy" takes the parent of labels such as animal/dog/beagle.
    classes : (n_classes,) ids

    Examples
    --------
    >>> classes = np.array(["beagle", "poodle", "siamese"], dtype=object)
    >>> read_groups({"beagle": "dog", "poodle": "dog", "siamese": "cat"}, classes).group
    array([1, 1, 0], dtype=int32)
    """
    if isinstance(groups, Groups):
        return _check_size(groups, classes)
    if isinstance(groups, str):
        check_choice(groups, "groups", ("taxonomy", "auto"))
        if groups == "auto":
            raise ValueError("groups must be given to count labels; got 'auto', which needs annotations: use fit.")
        return taxonomy_groups(classes)
    if isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype.kind in "iu":
        return _check_size(Groups.of(np.unique(groups, return_inverse=True)[1], names=np.unique(groups)), classes)
    members, names = _two_columns(groups)
    return _from_columns(members, names, classes)


def taxonomy_groups(classes: Ids) -> Groups:
    """Return the groups of classes that are paths: a class is grouped with those of the same parent.

    Examples
    --------
    >>> classes = np.array(["animal/cat/siamese", "animal/dog/beagle", "animal/dog/poodle"], dtype=object)
    >>> taxonomy_groups(classes).names
    array(['animal/cat', 'animal/dog'], dtype=object)
    """
    parents = [str(name).rpartition(SEPARATOR)[0] for name in classes]
    if "" in parents:
        flat = [name for name, parent in zip(classes, parents, strict=True) if not parent]
        raise ValueError(
            f"every class must be a path such as animal/dog/beagle for groups='taxonomy'; got {show(flat[0])} "
            f"({len(flat)} in total). Give a table of classes and groups instead."
        )
    group, names = _ids.encode(parents, "group")
    return Groups.of(group, names=names)


def find_groups(annotations: Annotations, predictions: Any = None) -> Groups:
    """Return groups of classes that meet on the same tasks more often than by chance.

    Two classes meet on a task if both were given to it, or one was given and the other predicted. How often they would
    meet by chance follows from how often each meets any other class; pairs above that by a Poisson test (one pair in
    all is kept by mistake in a hundred crowds), and seen at least three times, are joined. The groups are the connected
    components, or their communities where some pairs bridge groups, as classes do that a model takes for each other. A
    class without such a pair is a group of its own.

    Parameters
    ----------
    annotations : Annotations
        With one label per task, `predictions` are needed.
    predictions : (n_tasks,) class codes, (n_tasks, n_classes) probabilities or Beliefs, optional
        A second answer for every task: a model's prediction, out of fold. A negative code is no answer. Of
        probabilities only those count of which the model is sure, as sure as leaves 50 tasks per class: classes that a
        model takes for each other need not be those that people do.

    Examples
    --------
    >>> import labelonce as lo
    >>> y_true = np.arange(6000) % 6
    >>> workers = lo.simulate.grouped_hammer_spammer(50, [0, 0, 0, 1, 1, 1], quality=0.5, rng=0)
    >>> ann = lo.simulate.annotate(y_true, workers, lo.simulate.assign(6000, 50, 2, rng=0), rng=0)
    >>> find_groups(ann).group
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    return groups_and_share(annotations, predictions)[0]


def groups_and_share(annotations: Annotations, predictions: Any = None) -> tuple[Groups, float]:
    """Return what `find_groups` does, and the share of all meetings that no class takes part in that is alone."""
    meetings = _meetings(annotations, predictions)
    if meetings.nnz == 0 and predictions is not None:
        return Groups.of(np.arange(annotations.n_classes, dtype=np.int32)), 1.0
    if meetings.nnz == 0:
        raise ValueError(
            f"groups can be found where a task has two different labels, or with predictions; got "
            f"{annotations.n_tasks:,} tasks of one label each. Give a table of classes and groups instead."
        )
    kept, n_pairs = meetings.data >= RULES.group_meetings, annotations.n_classes * (annotations.n_classes - 1) // 2
    kept &= pdtrc(meetings.data - 1, _by_chance(meetings)) < RULES.false_pairs / max(1, n_pairs)
    joined = sparse.coo_array((meetings.data[kept], (meetings.row[kept], meetings.col[kept])), shape=meetings.shape)
    found = Groups.of(communities(joined + joined.T))
    alone = np.bincount(found.group)[found.group] == 1
    told = ~(alone[meetings.row] | alone[meetings.col])
    return found, float(meetings.data[told].sum() / meetings.data.sum())


def labels_tell_groups(annotations: Annotations) -> bool:
    """Return whether labels of the same tasks tell, without a model, which classes are taken for each other."""
    groups, told = groups_and_share(annotations, np.full(annotations.n_tasks, -1, dtype=np.int32))
    return groups.n_groups < annotations.n_classes and told >= RULES.groups_told


def check_room(groups: Groups, n_tasks: int) -> None:
    """Raise if the pairs of classes in one group, or the classes in question of all tasks, are too many to hold."""
    pairs, largest = int((groups.sizes.astype(np.int64) ** 2).sum()), int(groups.sizes.max())
    if pairs > _MOST_PAIRS or n_tasks * largest > MOST_NUMBERS:
        raise ValueError(
            f"groups must have at most {_MOST_PAIRS:,} pairs of classes, and {MOST_NUMBERS:,} classes in question over "
            f"all tasks; got {pairs:,} and {n_tasks * largest:,}: the largest group has {largest:,} classes. Split it, "
            "or leave groups out: Grouped()."
        )


def groups_hold(annotations: Annotations, predictions: Beliefs, groups: Groups) -> bool:
    """Return whether labels are taken to stay within the groups of the true classes.

    The test looks at the surest predictions, 5 % of all, that contradict a label: in at least half of them the
    predicted class and the label must be in one group. With the right groups nearly all are, even for a weak model;
    with real workers' mistakes about a third, and with unrelated groups almost none. Too few contradictions: True.
    """
    task, picks = annotations.task, predictions.argmax()
    sure = predictions.max()[task]
    other = (sure >= np.quantile(sure, 1 - RULES.groups_surest)) & (picks[task] != annotations.label)
    if np.count_nonzero(other) < RULES.groups_contradictions:
        return True
    inside = groups.group[picks[task[other]]] == groups.group[annotations.label[other]]
    return bool(inside.mean() >= RULES.groups_inside)


def _meetings(annotations: Annotations, predictions: Any) -> Any:
    """Return on how many tasks each pair of classes meets: the upper triangle, without the diagonal, as COO."""
    task, label = annotations.task, annotations.label
    if predictions is not None:
        codes = _prediction_codes(predictions, annotations)
        answered = np.flatnonzero(codes >= 0)
        answered = answered[np.bincount(task, minlength=annotations.n_tasks)[answered] > 0]
        task, label = np.concatenate([task, answered]), np.concatenate([label, codes[answered]])
    shape = (annotations.n_tasks, annotations.n_classes)
    seen = sparse.csr_array((np.ones(len(task)), (task, label)), shape=shape)
    seen.data[:] = 1  # a task counts once, however many workers gave the two classes
    return sparse.coo_array(sparse.triu(seen.T @ seen, k=1))


def _by_chance(meetings: Any) -> Floats:
    """Return the number of meetings of each pair to expect from how often its classes meet any other."""
    total = meetings.data.sum()
    margin = (meetings.sum(axis=0) + meetings.sum(axis=1)) / (2 * total)
    return np.asarray(total * 2 * margin[meetings.row] * margin[meetings.col] / (1 - (margin**2).sum()))


def _prediction_codes(predictions: Any, annotations: Annotations) -> Codes:
    if hasattr(predictions, "probability") or np.ndim(predictions) == 2:
        found = check_beliefs(predictions, annotations)
        return _sure_codes(found.argmax(), found.max(), annotations)
    values = np.asarray(predictions)
    check_beliefs(np.maximum(values, 0) if values.dtype.kind == "i" else values, annotations, few=True)
    return values.astype(np.int32)


def _sure_codes(codes: Any, confidence: Floats, annotations: Annotations) -> Codes:
    """Return the predictions of which the model is sure, -1 for the others."""
    enough = RULES.groups_predictions * annotations.n_classes
    least = next((level for level in RULES.groups_sure if np.count_nonzero(confidence >= level) >= enough), 0.0)
    return np.where(confidence >= least, codes, -1).astype(np.int32)


def _places(group: Codes) -> Codes:
    """Return how many earlier classes are of the same group."""
    order = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group))])
    places = np.empty(len(group), dtype=np.int32)
    places[order] = np.arange(len(group)) - starts[group[order]]
    return places


def _two_columns(groups: Any) -> tuple[Any, Any]:
    """Return the columns class and group of a mapping, a frame or a list of pairs."""
    if isinstance(groups, Mapping) and set(groups) != {"class", "group"}:
        return list(groups), list(groups.values())
    if isinstance(groups, (list, tuple)):
        if any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in groups):
            raise TypeError(f"groups must be pairs of a class and its group; got {shorten(groups, 3)}.")
        return [pair[0] for pair in groups], [pair[1] for pair in groups]
    if not any(hasattr(groups, name) for name in ("keys", "columns", "__arrow_c_stream__")):
        raise TypeError(
            "groups must be a mapping of class to group, a table with the columns class and group, pairs, an array of "
            f"one whole number per class, 'taxonomy' or 'auto'; got {show(groups)} ({type(groups).__name__})."
        )
    members, names = _ids.frame_columns(groups, **{"class": "class", "group": "group"})
    return members, names


def _from_columns(members: Any, names: Any, classes: Ids) -> Groups:
    given, named = _ids.column_of(members, "class"), _ids.column_of(names, "group")
    _ids.check_same_kind(given, "groups", classes)
    codes, (group, group_names) = _ids.lookup(given, classes), _ids.encode(named, "group")
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise ValueError(
            f"groups must name classes among {shorten(classes)}; got {show(given[unknown[0]])} ({len(unknown)} in "
            "total). Leave it out, or declare it in classes."
        )
    first = np.full(len(classes), -1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of writes to one place the last stays
    _reject_two_groups(codes, group, first, given, named)
    absent = np.flatnonzero(first < 0)
    if len(absent):
        raise ValueError(
            f"every class must have a group; got none for {show(classes[absent[0]])} ({len(absent)} in total). Add it "
            "to the table, in a group of its own if it is like no other."
        )
    by_table = np.argsort(first)
    position = np.empty(len(classes), dtype=np.int32)
    position[by_table] = _places(group[first[by_table]])
    return Groups.of(group[first], position, group_names)


def _reject_two_groups(codes: Codes, group: Codes, first: Any, given: Ids, named: Ids) -> None:
    second = np.flatnonzero(group != group[first[codes]])
    if len(second):
        row = second[0]
        raise ValueError(
            f"a class must be in one group; got {show(given[row])} in {show(named[first[codes[row]]])} and "
            f"{show(named[row])} ({len(second)} in total). Keep one of the two."
        )


def _check_size(groups: Groups, classes: Ids) -> Groups:
    if groups.n_classes != len(classes):
        raise ValueError(
            f"groups must have one entry per class, {len(classes)} as in {shorten(classes)}; got {groups.n_classes}."
        )
    return groups
