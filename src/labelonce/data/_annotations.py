"""The one data structure: who gave which label to which task."""

from __future__ import annotations

import html
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from labelonce._messages import argument, clip, shorten, show
from labelonce._types import DUPLICATES, Codes, Duplicates, Ids, Mask
from labelonce._validate import RandomState, check_choice, check_codes, check_columns, check_count, check_int, check_rng
from labelonce.data import _ids, _rows

MIN_OVERLAP = 0.05  # share of tasks with two annotations below which labels alone cannot tell good workers from bad


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Immutable (task, worker, label) rows as dense codes, sorted by task and then by worker.

    Build one with `from_arrays`, `from_frame`, `from_matrix` or `labelonce.read_annotations`. The
    constructor itself takes codes and tables; it sorts the rows and copies what could still be written to.
    Two are equal if their tables and their sorted rows are.

    Attributes
    ----------
    task, worker, label : int32 arrays of shape (n_annotations,)
        Codes: positions in the tables below. Read-only.
    tasks, workers, classes : arrays
        The ids behind the codes, int64 or str. Tasks are in the order in which they first appear in the data,
        workers and classes are sorted, unless a table was given. A table may hold ids that no annotation uses.
    tasks_given : bool
        Whether somebody gave the order of `tasks` (by `align`, a matrix or the constructor), so that arrays
        without ids can only be in that order.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_arrays(["a", "a", "b"], ["ann", "bob", "bob"], ["cat", "dog", "dog"])
    >>> ann
    Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
    >>> ann.label, ann.classes
    (array([0, 1, 1], dtype=int32), array(['cat', 'dog'], dtype=object))
    """

    task: Codes
    worker: Codes
    label: Codes
    tasks: Ids
    workers: Ids
    classes: Ids
    tasks_given: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        check_columns(task=self.task, worker=self.worker, label=self.label)
        for name, table in (("task", "tasks"), ("worker", "workers"), ("label", "classes")):
            ids = getattr(self, table)
            if not _ids.is_increasing(ids):  # an increasing table repeats no id
                ids = _ids.table_of(ids, table)
            self._set(table, ids)
            self._set(name, check_codes(getattr(self, name), f"{name} codes", len(ids)))
        order = _rows.row_order(self.task, self.worker, self.n_tasks, self.n_workers)
        if order is not None:
            for name in ("task", "worker", "label"):
                self._set(name, getattr(self, name)[order])

    def _set(self, name: str, array: Ids) -> None:
        frozen = array.copy() if array.flags.writeable else array.view()
        frozen.flags.writeable = False
        object.__setattr__(self, name, frozen)

    def __reduce__(self) -> tuple[Any, tuple[Ids, ...]]:
        return partial(Annotations, tasks_given=self.tasks_given), self._arrays()

    def _arrays(self) -> tuple[Ids, ...]:
        return tuple(getattr(self, one.name) for one in fields(self) if one.name != "tasks_given")

    @classmethod
    def from_arrays(
        cls,
        task: Any,
        worker: Any,
        label: Any,
        *,
        classes: Any = None,
        duplicates: Duplicates = "error",
    ) -> Annotations:
        """Return the annotations of three columns of equal length.

        Parameters
        ----------
        task, worker, label : columns
            Ids, integers or strings; lists, numpy, pandas or Arrow arrays. Whole floats and booleans
            become integers. A missing value is an error.
        classes : column, optional
            All classes, in the order wanted, so that a class nobody chose keeps its place. A label
            outside is an error. Default: the labels seen, sorted.
        duplicates : {"error", "first", "last", "keep"}
            What to do when one worker labelled one task more than once: raise (with the count and the
            first case), keep the first or the last row, or keep all of them.
        """
        check_columns(task=task, worker=worker, label=label)
        check_choice(duplicates, "duplicates", DUPLICATES)
        declared = None if classes is None else _ids.table_of(classes, "classes")
        task_codes, tasks = _ids.encode_seen(task, "task")
        worker_codes, workers = _ids.encode(worker, "worker")
        label_codes, class_ids = _ids.encode(label, "label", declared)
        rows = (task_codes, worker_codes, label_codes)
        return sorted_annotations(*rows, tasks, workers, class_ids, duplicates, tasks_given=False)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        task: Hashable = "task",
        worker: Hashable = "worker",
        label: Hashable = "label",
        classes: Any = None,
        duplicates: Duplicates = "error",
    ) -> Annotations:
        """Return the annotations in three columns of a pandas, polars or Arrow frame.

        `task`, `worker` and `label` name the columns; the rest is as in `from_arrays`. Other columns are
        not read.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"item": [1, 1, 2], "who": ["x", "y", "x"], "says": [0, 1, 1]})
        >>> Annotations.from_frame(table, task="item", worker="who", label="says")
        Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
        """
        columns = _ids.frame_columns(frame, task=task, worker=worker, label=label)
        return cls.from_arrays(*columns, classes=classes, duplicates=duplicates)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        tasks: Any = None,
        workers: Any = None,
        classes: Any = None,
        duplicates: Duplicates = "error",
    ) -> Annotations:
        """Return the annotations of a (n_tasks, n_workers) matrix of labels.

        The numbers -1 and NaN, None, a masked entry, and in a scipy sparse matrix one that is not stored
        mean "not labelled"; a stored 0 is the label 0, a string is always a label. Every row is a task
        and every column a worker, labelled or not. `tasks` and `workers` name them; default 0, 1, 2, ...
        `duplicates`, as in `from_arrays`, is for a sparse matrix that stores an entry twice.

        Examples
        --------
        >>> Annotations.from_matrix([[0, -1], [1, 1], [-1, -1]])
        Annotations(3 annotations: 3 tasks x 2 workers, 2 classes, redundancy 1.5)
        """
        return matrix_annotations(matrix, -1, tasks, workers, classes, duplicates)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_tasks(self) -> int:
        """Number of tasks, labelled or not."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """Number of workers, with annotations or without."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """Number of classes, given by anybody or not."""
        return len(self.classes)

    @property
    def redundancy(self) -> float:
        """Mean number of annotations of a task that has any."""
        return len(self) / (1 + int(np.count_nonzero(self.task[1:] != self.task[:-1])))

    def align(self, task_ids: Any) -> Annotations:
        """Return the same annotations with `tasks` equal to `task_ids`, the order of the rows of X.

        Tasks that nobody labelled are allowed; an annotation whose task is not among `task_ids` is an
        error, because it would be lost.

        Examples
        --------
        >>> ann = Annotations.from_arrays(["a", "b"], ["x", "x"], [0, 1])
        >>> ann.align(["c", "b", "a"]).task
        array([1, 2], dtype=int32)
        """
        tasks = _ids.table_of(task_ids, "task_ids")
        _ids.check_same_kind(tasks, "task_ids", self.tasks)
        task = _ids.lookup(self.tasks, tasks)[self.task]
        lost = np.flatnonzero(task < 0)
        if len(lost):
            raise ValueError(
                f"task_ids must hold every labelled task; got none for {show(self.tasks[self.task[lost[0]]])} "
                f"({len(lost)} annotations in total). To leave such tasks out, call "
                "ann.select(numpy.isin(ann.tasks, task_ids)) before align."
            )
        order = _rows.stable_order(task, len(tasks))
        rows = (task[order], self.worker[order], self.label[order])
        return owned_annotations(*rows, tasks, self.workers, self.classes)

    def select(self, task_mask: Any) -> Annotations:
        """Return the tasks where `task_mask`, of shape (n_tasks,), is True, with their annotations.

        Workers and classes keep their codes.
        """
        mask = np.asarray(task_mask)
        if mask.dtype != bool or mask.shape != (self.n_tasks,):
            raise ValueError(
                f"task_mask must be boolean with one entry per task, shape ({self.n_tasks},); "
                f"got {mask.dtype} of shape {mask.shape}."
            )
        new_code = (np.cumsum(mask) - 1).astype(np.int32)
        kept = mask[self.task]
        rows = (new_code[self.task[kept]], self.worker[kept], self.label[kept])
        return owned_annotations(*rows, self.tasks[mask], self.workers, self.classes, tasks_given=self.tasks_given)

    def sample(self, *, redundancy: int = 1, random_state: RandomState = None) -> Annotations:
        """Return at most `redundancy` annotations of every task, drawn at random without replacement.

        All tasks, workers and classes keep their codes.
        """
        check_int(redundancy, "redundancy", 1)
        shuffled = check_rng(random_state).permutation(np.arange(len(self), dtype=np.int32))
        drawn = _rows.stable_order(self.task[shuffled], self.n_tasks, shuffled)  # each task's rows, shuffled
        rank = np.arange(len(self), dtype=np.int32)
        rank -= _rows.first_rows(self.task, self.n_tasks)[self.task]
        kept = np.zeros(len(self), dtype=bool)
        kept[drawn[rank < redundancy]] = True
        rows = (self.task[kept], self.worker[kept], self.label[kept])
        return owned_annotations(*rows, self.tasks, self.workers, self.classes, tasks_given=self.tasks_given)

    def relabel(self, mapping: Any) -> Annotations:
        """Return the annotations with other labels.

        Parameters
        ----------
        mapping : mapping or sequence
            A mapping of old class ids to new ones (two old ones may become one, as when a spelling is
            corrected; classes not named stay). Classes that remain keep their order, new ones follow.
            Or a permutation: the new code of each class code; `classes` stays.

        Examples
        --------
        >>> ann = Annotations.from_arrays([1, 2, 3], [1, 1, 1], ["cat", "kat", "dog"])
        >>> ann.relabel({"kat": "cat"}).classes
        array(['cat', 'dog'], dtype=object)
        """
        if isinstance(mapping, Mapping):
            new_ids, classes = self._renamed_classes(mapping)
            label = _ids.lookup(new_ids, classes)[self.label]
        else:
            permutation = check_codes(mapping, "permutation", self.n_classes)
            if len(np.unique(permutation)) != self.n_classes or len(permutation) != self.n_classes:
                raise ValueError(f"permutation must hold each code in [0, {self.n_classes}) once; got {show(mapping)}.")
            classes, label = self.classes, permutation[self.label]
        return owned_annotations(
            self.task, self.worker, label, self.tasks, self.workers, classes, tasks_given=self.tasks_given
        )

    def _renamed_classes(self, mapping: Mapping[Any, Any]) -> tuple[Ids, Ids]:
        known = self.classes.tolist()
        unknown = [old for old in mapping if old not in known]
        if unknown:
            raise ValueError(
                f"mapping must start from the classes {shorten(self.classes)}; got {show(unknown[0])} "
                f"({len(unknown)} in total)."
            )
        renamed = _ids.column_of([mapping.get(old, old) for old in known], "new label")
        distinct = dict.fromkeys(renamed.tolist())
        kept = {old: None for old in known if old in distinct}
        return renamed, _ids.table_of(list(kept | distinct), "classes")

    def to_frame(self) -> pa.Table:
        """Return an Arrow table of ids with columns task, worker, label.

        `.to_pandas()` and `polars.from_arrow` take it from there. Strings stay dictionary-encoded.
        """
        tables = (self.tasks, self.workers, self.classes)
        codes = (self.task, self.worker, self.label)
        columns = [_ids.decode(code, ids) for code, ids in zip(codes, tables, strict=True)]
        return pa.table(columns, names=["task", "worker", "label"])

    def to_matrix(self, *, dense: bool = False) -> Any:
        """Return the (n_tasks, n_workers) matrix of label codes.

        A scipy CSR array that stores one entry per annotation (label 0 is a stored zero: do not call
        `toarray` or `eliminate_zeros` on it), or with `dense` an int32 array with -1 for "not labelled".
        """
        again = _rows.repeats(self.task, self.worker)
        if again.any():
            raise ValueError(
                f"a matrix must hold one label per worker and task; got {int(again.sum())} repeated rows. "
                f"Build the annotations with {argument('duplicates', 'first', 'last')}."
            )
        shape = (self.n_tasks, self.n_workers)
        if dense:
            matrix = np.full(shape, -1, dtype=np.int32)
            matrix[self.task, self.worker] = self.label
            return matrix
        start = _rows.first_rows(self.task, self.n_tasks)
        return sparse.csr_array((self.label.copy(), self.worker.copy(), start), shape=shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        return all(map(np.array_equal, self._arrays(), other._arrays()))

    __hash__ = None  # type: ignore[assignment]  # equal by value over arrays: no cheap hash

    def __repr__(self) -> str:
        return (
            f"Annotations({len(self):,} annotations: {self.n_tasks:,} tasks x {self.n_workers:,} workers, "
            f"{self.n_classes:,} classes, redundancy {self.redundancy:.3g})"
        )

    def _repr_html_(self) -> str:
        counts = np.bincount(self.label, minlength=self.n_classes)
        shown = np.argsort(-counts, kind="stable")[:10]
        rows = "".join(
            f"<tr><td>{html.escape(clip(str(self.classes[k])))}</td><td>{counts[k]:,}</td>"
            f"<td>{counts[k] / len(self):.1%}</td></tr>"
            for k in shown
        )
        more = f"<p>and {self.n_classes - len(shown):,} more classes</p>" if self.n_classes > len(shown) else ""
        head = "<tr><th>class</th><th>annotations</th><th>share</th></tr>"
        return f"<p>{html.escape(repr(self))}</p><table>{head}{rows}</table>{more}"


def check_positions(annotations: Annotations, name: str, n: int, fix: str) -> None:
    """Raise unless an array of `n` entries without ids can only mean the tasks of the annotations, one by one.

    The rule: entry i belongs to `tasks[i]`. Where nobody gave that order, it is the order in which the tasks first
    appear in the data; if their ids are then the numbers 0 to n-1 in another order, entry i might as well belong to
    the task with the number i, and whoever made the array has to say which.

    Examples
    --------
    >>> check_positions(Annotations.from_arrays([1, 0], [7, 7], ["cat", "dog"]), "X", 2, "Give tasks=...")
    Traceback (most recent call last):
    ValueError: X must tell which task a row belongs to: the tasks first appear as [1, 0], so row 0 may be task 1 ...
    """
    if n != annotations.n_tasks:
        raise ValueError(
            f"{name} must have one row for each of the {annotations.n_tasks} tasks of the annotations; "
            f"got {n} rows. {fix}"
        )
    ids = annotations.tasks
    if annotations.tasks_given or ids.dtype == object or np.array_equal(ids, np.arange(n)):
        return
    if ids.min() == 0 and ids.max() == n - 1:
        place = int(np.argmax(ids != np.arange(n)))
        raise ValueError(
            f"{name} must tell which task a row belongs to: the tasks first appear as {shorten(ids, 4)}, so row "
            f"{place} may be task {ids[place]} (by first appearance) or task {place} (by its number). {fix}"
        )


def matrix_annotations(
    matrix: Any,
    absent: Any,
    tasks: Any = None,
    workers: Any = None,
    classes: Any = None,
    duplicates: Duplicates = "error",
) -> Annotations:
    """Return the annotations of a matrix as `Annotations.from_matrix` does, with `absent` in the place of -1."""
    check_choice(duplicates, "duplicates", DUPLICATES)
    rows, columns, labels, (n_tasks, n_workers) = _rows.matrix_entries(matrix, absent)
    task_ids = _names(tasks, "tasks", n_tasks)
    worker_ids = _names(workers, "workers", n_workers)
    declared = None if classes is None else _ids.table_of(classes, "classes")
    label_codes, class_ids = _ids.encode(labels, "label (a row here is one labelled entry)", declared)
    return sorted_annotations(rows, columns, label_codes, task_ids, worker_ids, class_ids, duplicates)


def sorted_annotations(
    task: Codes,
    worker: Codes,
    label: Codes,
    tasks: Ids,
    workers: Ids,
    classes: Ids,
    duplicates: Duplicates,
    *,
    tasks_given: bool = True,
) -> Annotations:
    """Return annotations from rows in any order: by task, then worker, then as given. Takes the arrays over."""
    order = _rows.row_order(task, worker, len(tasks), len(workers))
    if order is not None:
        task, worker, label = task[order], worker[order], label[order]
    if duplicates != "keep":
        again = _rows.repeats(task, worker)
        if duplicates == "error" and again.any():
            raise ValueError(_duplicate_message(again, task, worker, tasks, workers))
        if again.any():
            kept = ~again if duplicates == "first" else ~np.append(again[1:], False)
            task, worker, label = task[kept], worker[kept], label[kept]
    return owned_annotations(task, worker, label, tasks, workers, classes, tasks_given=tasks_given)


def owned_annotations(*arrays: Ids, tasks_given: bool = True) -> Annotations:
    """Return annotations over sorted codes and tables that nobody else holds: none is copied or checked again."""
    check_count(len(arrays[0]))
    made = object.__new__(Annotations)
    for one, array in zip(fields(Annotations), arrays, strict=False):
        array.flags.writeable = False
        object.__setattr__(made, one.name, array)
    object.__setattr__(made, "tasks_given", tasks_given)
    return made


def _duplicate_message(again: Mask, task: Codes, worker: Codes, tasks: Ids, workers: Ids) -> str:
    first = int(np.argmax(again))
    return (
        f"a worker must label a task once; got worker {show(workers[worker[first]])} on task "
        f"{show(tasks[task[first]])} again ({int(again.sum())} repeated rows in total). "
        f"Choose what to keep with {argument('duplicates', 'first', 'last', 'keep')}."
    )


def _names(ids: Any, name: str, n: int) -> Ids:
    """Return the ids of the matrix's tasks or workers; default their positions."""
    table = np.arange(n) if ids is None else _ids.table_of(ids, name)
    if len(table) != n:
        raise ValueError(f"{name} must name every one of the matrix's {n} {name}; got {len(table)} ids.")
    return table
