"""The one data structure: who gave which label to which task."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

import numpy as np
import pyarrow as pa
from scipy import sparse

from labelonce import _ids
from labelonce._types import Codes, Ids, Mask
from labelonce._validate import RandomState, check_choice, check_codes, check_columns, check_int, check_rng

Duplicates = Literal["error", "first", "last", "keep"]


@dataclass(frozen=True, eq=False, repr=False)
class Annotations:
    """Immutable (task, worker, label) rows as dense codes, sorted by task and then by worker.

    Build one with `from_arrays`, `from_frame`, `from_matrix` or `labelonce.read_annotations`.

    Attributes
    ----------
    task, worker, label : int32 arrays of shape (n_annotations,)
        Codes: positions in the tables below. Read-only.
    tasks, workers, classes : arrays
        The ids behind the codes, int64 or str. A table may hold ids that no annotation uses.

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

    def __post_init__(self) -> None:
        check_columns(task=self.task, worker=self.worker, label=self.label)
        for codes, ids in (("task", self.tasks), ("worker", self.workers), ("label", self.classes)):
            object.__setattr__(self, codes, check_codes(getattr(self, codes), f"{codes} codes", len(ids)))
        if (np.diff(self.task) < 0).any():
            raise ValueError("task codes must be sorted; build annotations with Annotations.from_arrays.")
        for field in fields(self):
            view = np.asarray(getattr(self, field.name)).view()
            view.flags.writeable = False
            object.__setattr__(self, field.name, view)

    def __reduce__(self) -> tuple[type[Annotations], tuple[Any, ...]]:
        return Annotations, tuple(getattr(self, field.name) for field in fields(self))

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
        check_choice(duplicates, "duplicates", ("error", "first", "last", "keep"))
        declared = None if classes is None else _ids.table_of(classes, "classes")
        task_codes, tasks = _ids.encode(task, "task")
        worker_codes, workers = _ids.encode(worker, "worker")
        label_codes, class_ids = _ids.encode(label, "label", declared)
        unsorted = (task_codes, worker_codes, label_codes)
        return _sorted(*unsorted, tasks, workers, class_ids, duplicates)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        task: str = "task",
        worker: str = "worker",
        label: str = "label",
        classes: Any = None,
        duplicates: Duplicates = "error",
    ) -> Annotations:
        """Return the annotations in three columns of a pandas, polars or Arrow frame.

        `task`, `worker` and `label` name the columns; the rest is as in `from_arrays`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"item": [1, 1, 2], "who": ["x", "y", "x"], "says": [0, 1, 1]})
        >>> Annotations.from_frame(table, task="item", worker="who", label="says")
        Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
        """
        names = list(getattr(frame, "column_names", None) or getattr(frame, "columns", []))
        for role, name in (("task", task), ("worker", worker), ("label", label)):
            if name not in names:
                raise ValueError(
                    f"the {role} column must be one of {_ids.shorten(np.array(names, dtype=object), 20)}; "
                    f"got {name!r}. Name it with {role}=..."
                )
        wanted = [task, worker, label]
        table = pa.table(frame.select(wanted) if hasattr(frame, "select") else frame[wanted])
        columns = [table.column(i) for i in range(3)]
        return cls.from_arrays(*columns, classes=classes, duplicates=duplicates)

    @classmethod
    def from_matrix(cls, matrix: Any, *, tasks: Any = None, workers: Any = None, classes: Any = None) -> Annotations:
        """Return the annotations of a (n_tasks, n_workers) matrix of labels.

        In a dense matrix -1, NaN and None mean "not labelled"; in a scipy sparse one, an entry that is
        not stored (a stored 0 is the label 0). Every row is a task and every column a worker, labelled
        or not. `tasks` and `workers` name them; default 0, 1, 2, ...

        Examples
        --------
        >>> Annotations.from_matrix([[0, -1], [1, 1], [-1, -1]])
        Annotations(3 annotations: 3 tasks x 2 workers, 2 classes, redundancy 1.5)
        """
        if sparse.issparse(matrix):
            stored = matrix.tocoo()
            rows, columns, labels = stored.row, stored.col, stored.data
        else:
            matrix = np.asarray(matrix)
            if matrix.ndim != 2:
                raise ValueError(f"matrix must be two-dimensional (n_tasks, n_workers); got shape {matrix.shape}.")
            rows, columns = (place.astype(np.int32) for place in np.nonzero(_labelled(matrix)))
            labels = matrix[rows, columns]
        n_tasks, n_workers = matrix.shape
        task_ids = np.arange(n_tasks) if tasks is None else _ids.table_of(tasks, "tasks")
        worker_ids = np.arange(n_workers) if workers is None else _ids.table_of(workers, "workers")
        for name, ids, n in (("tasks", task_ids, n_tasks), ("workers", worker_ids, n_workers)):
            if len(ids) != n:
                raise ValueError(f"{name} must name every one of the matrix's {n} {name}; got {len(ids)} ids.")
        check_columns(task=rows, worker=columns, label=labels)
        declared = None if classes is None else _ids.table_of(classes, "classes")
        label_codes, class_ids = _ids.encode(labels, "label", declared)
        return _sorted(rows, columns, label_codes, task_ids, worker_ids, class_ids, "error")

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
        return len(self) / int(np.count_nonzero(np.diff(self.task, prepend=-1)))

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
        codes = _ids.lookup(self.tasks, tasks)
        lost = np.flatnonzero(codes[self.task] < 0)
        if len(lost):
            first = self.tasks[self.task[lost[0]]]
            raise ValueError(
                f"task_ids must hold every labelled task; {len(lost)} annotations have other tasks, the first is "
                f"{_ids.shorten(np.array([first], dtype=object))}. To leave them out, call "
                "ann.select(numpy.isin(ann.tasks, task_ids)) before align."
            )
        return _sorted(codes[self.task], self.worker, self.label, tasks, self.workers, self.classes, "keep")

    def select(self, task_mask: Any) -> Annotations:
        """Return the tasks where `task_mask`, of shape (n_tasks,), is True, with their annotations.

        Workers and classes keep their codes.
        """
        mask = np.asarray(task_mask)
        if mask.dtype != bool or mask.shape != (self.n_tasks,):
            raise ValueError(
                f"task_mask must be boolean with one entry a task, shape ({self.n_tasks},); "
                f"got {mask.dtype} of shape {mask.shape}."
            )
        new_code = (np.cumsum(mask) - 1).astype(np.int32)
        kept = mask[self.task]
        rows = (new_code[self.task[kept]], self.worker[kept], self.label[kept])
        return Annotations(*rows, self.tasks[mask], self.workers, self.classes)

    def sample(self, *, redundancy: int = 1, random_state: RandomState = None) -> Annotations:
        """Return at most `redundancy` annotations of every task, drawn at random without replacement.

        All tasks, workers and classes keep their codes.
        """
        check_int(redundancy, "redundancy", 1)
        shuffled = check_rng(random_state).permutation(len(self))
        order = shuffled[_stable_order(self.task[shuffled], self.n_tasks)]
        start = np.searchsorted(self.task, np.arange(self.n_tasks))
        rank = np.arange(len(self)) - start[self.task]
        kept = np.sort(order[rank < redundancy])
        rows = (self.task[kept], self.worker[kept], self.label[kept])
        return Annotations(*rows, self.tasks, self.workers, self.classes)

    def relabel(self, mapping: Any) -> Annotations:
        """Return the annotations with other labels.

        Parameters
        ----------
        mapping : mapping or sequence
            A mapping of old class ids to new ones (two old ones may become one, as when a spelling is
            mended; classes not named stay). Or a permutation: the new code of each class code.

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
                raise ValueError(f"permutation must hold each code in [0, {self.n_classes}) once; got {mapping!r}.")
            classes, label = self.classes, permutation[self.label]
        return Annotations(self.task, self.worker, label, self.tasks, self.workers, classes)

    def _renamed_classes(self, mapping: Mapping[Any, Any]) -> tuple[Ids, Ids]:
        unknown = [old for old in mapping if old not in set(self.classes.tolist())]
        if unknown:
            raise ValueError(
                f"mapping must start from the classes {_ids.shorten(self.classes)}; got {unknown[0]!r} "
                f"({len(unknown)} in total)."
            )
        renamed = [mapping.get(old, old) for old in self.classes.tolist()]
        kept = [old for old in self.classes.tolist() if old in set(renamed)]
        added = [new for new in dict.fromkeys(renamed) if new not in set(kept)]
        return _ids.column_of(renamed, "new label"), _ids.table_of(kept + added, "classes")

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
        key = self.task.astype(np.int64) * self.n_workers + self.worker
        if (np.diff(np.sort(key)) == 0).any():
            raise ValueError("a matrix holds one label per worker and task; these annotations keep duplicates.")
        shape = (self.n_tasks, self.n_workers)
        if dense:
            matrix = np.full(shape, -1, dtype=np.int32)
            matrix[self.task, self.worker] = self.label
            return matrix
        start = np.searchsorted(self.task, np.arange(self.n_tasks + 1))
        return sparse.csr_array((self.label.copy(), self.worker.copy(), start), shape=shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        return all(np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

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
            f"<tr><td>{html.escape(str(self.classes[k]))}</td><td>{counts[k]:,}</td>"
            f"<td>{counts[k] / len(self):.1%}</td></tr>"
            for k in shown
        )
        more = f"<p>and {self.n_classes - len(shown):,} more classes</p>" if self.n_classes > len(shown) else ""
        head = "<tr><th>class</th><th>annotations</th><th>share</th></tr>"
        return f"<p>{html.escape(repr(self))}</p><table>{head}{rows}</table>{more}"


def _sorted(
    task: Codes, worker: Codes, label: Codes, tasks: Ids, workers: Ids, classes: Ids, duplicates: Duplicates
) -> Annotations:
    """Return annotations from rows in any order: by task, then worker, then as given."""
    order = _stable_order(worker, len(workers))
    order = order[_stable_order(task[order], len(tasks))]
    task, worker, label = task[order], worker[order], label[order]
    again = np.zeros(len(task), dtype=bool)
    again[1:] = (task[1:] == task[:-1]) & (worker[1:] == worker[:-1])
    if duplicates != "keep" and again.any():
        if duplicates == "error":
            raise ValueError(_duplicate_message(again, tasks[task], workers[worker]))
        kept = ~again if duplicates == "first" else ~np.append(again[1:], False)
        task, worker, label = task[kept], worker[kept], label[kept]
    return Annotations(task, worker, label, tasks, workers, classes)


def _stable_order(keys: Codes, n_keys: int) -> Codes:
    """Return the order that sorts `keys`, equal keys as they came: a counting sort, linear in time."""
    n = len(keys)
    one_a_row = sparse.csr_array((np.ones(n, dtype=bool), keys, np.arange(n + 1)), shape=(n, n_keys))
    return cast(Codes, one_a_row.tocsc().indices)


def _duplicate_message(again: Mask, tasks: Ids, workers: Ids) -> str:
    first = int(np.argmax(again))
    return (
        f"a worker must label a task once; got worker {_ids.shorten(workers[first : first + 1])[1:-1]} on task "
        f"{_ids.shorten(tasks[first : first + 1])[1:-1]} again ({int(again.sum())} repeated rows in total). "
        'Choose what to keep with duplicates="first", "last" or "keep".'
    )


def _labelled(matrix: Any) -> Mask:
    if matrix.dtype.kind == "f":
        return np.asarray(~np.isnan(matrix) & (matrix != -1))
    if matrix.dtype.kind in "iu":
        return np.asarray(matrix != -1)
    if matrix.dtype.kind == "O":
        absent = [[x is None or x != x or (not isinstance(x, str) and x == -1) for x in row] for row in matrix]
        return ~np.array(absent, dtype=bool)
    if matrix.dtype.kind == "U":
        return np.ones(matrix.shape, dtype=bool)
    raise TypeError(f"matrix must hold labels that are integers or strings; got {matrix.dtype}.")
