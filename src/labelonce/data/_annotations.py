"""The one data structure: who gave which answer to which task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from labelonce._messages import argument, shorten, show
from labelonce._types import DUPLICATES, Codes, Duplicates, Floats, Ids, Mask, Missing
from labelonce._validate import RandomState, check_choice, check_codes, check_columns, check_count, check_int, check_rng
from labelonce.data import _ids, _rows
from labelonce.data._answers import answer_table, class_leanings, encode_labels, holds_classes, relabelled
from labelonce.data._extra import NONE, Extra, ExtraColumns, extra_names, extra_of, joined_distribution, kept_rows
from labelonce.data._memory import check_memory
from labelonce.data._missing import present_rows
from labelonce.data._spelling import spellings

NAMES = ("task", "worker", "label")
REPEATED = "a worker must label a task once"
MIN_OVERLAP = 0.05  # share of tasks with two annotations below which labels alone cannot tell good workers from bad


@dataclass(frozen=True, eq=False, repr=False)
class Annotations(ExtraColumns):
    """Immutable (task, worker, label) rows as dense codes, sorted by task and then by worker.

    Build one with `from_arrays`, `from_frame`, `from_matrix` or `labelonce.read_annotations`. The
    constructor itself takes codes and tables; it sorts the rows and copies what could still be written to.
    Two are equal if their tables and their sorted rows are.

    Attributes
    ----------
    task, worker, label : int32 arrays of shape (n_annotations,)
        Codes: positions in the tables below, those of `label` in `answers`. Read-only.
    tasks, workers, classes : arrays
        The ids behind the codes, int64 or str. Tasks are in the order in which they first appear in the data, or of
        their numbers where these are 0 to n - 1; workers and classes are sorted, unless a table was given. A table may
        hold ids that no annotation uses.
    answers : array
        What workers may say. Mostly the classes themselves; otherwise the classes and then other answers, such as
        "unsure", or, if none of them is a class, a scale in the order of the classes.
    names : tuple
        What the columns of tasks, workers and labels were called where they came from. A data frame X whose rows are to
        be matched with the tasks may have a column of that name.
    probability : array of shape (n_annotations, n_classes) or None
        P(class) as each annotation states it; a row of NaN where it states none and its label counts whole.
    weight : array of shape (n_annotations,) or None
        How often each annotation counts.
    order, orders : arrays or None
        Code of how the choices were shown, (n_annotations,), and the ids behind. A worker may answer once per order.
    family, families : arrays or None
        Code of the family of each worker, (n_workers,), such as the model behind several prompts, and the names behind.

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
    answers: Ids = field(default_factory=lambda: np.empty(0))  # empty: the classes
    names: tuple[Hashable, Hashable, Hashable] = field(default=NAMES, kw_only=True)
    extra: Extra = field(default_factory=Extra, kw_only=True)

    def __post_init__(self) -> None:
        check_columns(task=self.task, worker=self.worker, label=self.label)
        for table in ("tasks", "workers", "classes"):
            ids = getattr(self, table)
            if not _ids.is_increasing(ids):  # an increasing table repeats no id
                ids = _ids.table_of(ids, table)
            self._set(table, ids)
        self._set_answers()
        for name, table in (("task", "tasks"), ("worker", "workers"), ("label", "answers")):
            self._set(name, check_codes(getattr(self, name), f"{name} codes", len(getattr(self, table))))
        order = _rows.row_order(self.task, self.worker, self.n_tasks, self.n_workers, self.extra.order)
        if order is not None:
            for name in ("task", "worker", "label"):
                self._set(name, getattr(self, name)[order])
            object.__setattr__(self, "extra", self.extra.take(order))

    def _set_answers(self) -> None:
        """Use the table of classes itself as `answers` if they are equal: `is_square` is then a quick test."""
        if len(self.answers) == 0 or np.array_equal(self.answers, self.classes):
            object.__setattr__(self, "answers", self.classes)
            return
        answers, _ = answer_table(self.answers, self.classes)
        if not np.array_equal(answers, self.answers):
            raise ValueError(
                f"answers must start with the classes in their order, {shorten(answers)}; got {shorten(self.answers)}."
            )
        self._set("answers", answers)

    def _set(self, name: str, array: Ids) -> None:
        frozen = array.copy() if array.flags.writeable else array.view()
        frozen.flags.writeable = False
        object.__setattr__(self, name, frozen)

    def __reduce__(self) -> tuple[Any, tuple[Ids, ...]]:
        return partial(Annotations, names=self.names, extra=self.extra), self._arrays()

    def _arrays(self) -> tuple[Ids, ...]:
        """Return the arrays that the constructor takes: without answers where they are the classes."""
        left_out = {"names", "extra", "answers"} if self.is_square else {"names", "extra"}
        return tuple(getattr(self, one.name) for one in fields(self) if one.name not in left_out)

    @classmethod
    def from_arrays(
        cls,
        task: Any,
        worker: Any,
        label: Any,
        *,
        classes: Any = None,
        answers: Any = None,
        duplicates: Duplicates = "error",
        missing: Missing = "error",
        probability: Any = None,
        weight: Any = None,
        order: Any = None,
        family: Any = None,
    ) -> Annotations:
        """Return the annotations of three columns of equal length.

        Parameters
        ----------
        task, worker, label : columns
            Ids, integers or strings; lists, numpy, pandas or Arrow arrays. Whole floats and booleans
            become integers.
        classes : column, optional
            All classes, in the order wanted, so that a class nobody chose keeps its place. A label
            outside is an error. Default: the labels seen, sorted.
        answers : column, optional
            All answers that a label may be, where they are not the classes: the classes and others, such as "unsure",
            in any order; or a scale none of whose answers is a class, from the first class to the last. A label
            outside is an error. Default: the classes.
        duplicates : {"error", "first", "last", "keep"}
            What to do when one worker labelled one task more than once: raise (with the count and the
            first case), keep the first or the last row, or keep all of them.
        missing : {"error", "drop"}
            What to do with rows that have no task, no worker or no label: raise, or leave them out and count them in a
            `data.MissingWarning`.
        probability : column or (n_annotations, n_classes) array, optional
            How sure the worker is of the label, the other classes being equally likely; or of each class. Where one is
            missing, the label counts whole.
        weight : column, optional
            How often each annotation counts; a missing one is 1.
        order : column, optional
            How the choices were shown, such as 0 and 1 for swapped. A worker may then label a task once per order.
        family : column or mapping, optional
            The family of each annotation's worker, or of each worker by its id: the same language model with another
            prompt, a team. A worker without one is a family of its own.

        Examples
        --------
        >>> Annotations.from_arrays([1, 1, 2], ["x", "y", "x"], ["cat", "unsure", "dog"],
        ...                         classes=["cat", "dog"], answers=["cat", "dog", "unsure"])
        Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, 3 answers, redundancy 1.5)
        >>> Annotations.from_arrays([1, 2], ["x", "x"], ["cat", "dog"], probability=[0.9, 0.6]).probability
        array([[0.9, 0.1],
               [0.4, 0.6]])
        """
        check_columns(task=task, worker=worker, label=label)
        pairs = zip((task, worker, label), NAMES, strict=True)
        names: Any = tuple(getattr(one, "name", None) or name for one, name in pairs)
        columns, kept = present_rows(missing, task=task, worker=worker, label=label)
        extra = kept_rows({"probability": probability, "weight": weight, "order": order, "family": family}, kept)
        options: Any = {"classes": classes, "answers": answers, "duplicates": duplicates}
        return annotations_of(*columns, **options, names=names, extra=extra)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        task: Hashable = "task",
        worker: Hashable = "worker",
        label: Hashable = "label",
        classes: Any = None,
        answers: Any = None,
        duplicates: Duplicates = "error",
        missing: Missing = "error",
        plain: bool = False,
    ) -> Annotations:
        """Return the annotations in three columns of a frame: pandas, polars, Arrow, DuckDB, Spark and others.

        `task`, `worker` and `label` name the columns; the rest is as in `from_arrays`. The columns `probability` (or
        `probability_<class>`, one for each class), `weight`, `order` and `family` are read where they are there, unless
        `plain`. Other columns are not read.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"item": [1, 1, 2], "who": ["x", "y", "x"], "says": [0, 1, 1]})
        >>> Annotations.from_frame(table, task="item", worker="who", label="says")
        Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
        """
        found = dict(zip(NAMES, _ids.frame_columns(frame, task=task, worker=worker, label=label), strict=True))
        check_columns(**found)
        columns, kept = present_rows(missing, **found)
        names, column = _ids.columns_of(frame)
        wanted = [] if plain else [name for name in extra_names(names) if name not in (task, worker, label)]
        extra = kept_rows({name: column(names.index(name)) for name in wanted}, kept)
        options: Any = {"classes": classes, "answers": answers, "duplicates": duplicates}
        return annotations_of(*columns, **options, names=(task, worker, label), extra=extra)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        *,
        tasks: Any = None,
        workers: Any = None,
        classes: Any = None,
        answers: Any = None,
        duplicates: Duplicates = "error",
    ) -> Annotations:
        """Return the annotations of a (n_tasks, n_workers) matrix of labels.

        The numbers -1 and NaN, None, a masked entry, and in a scipy sparse matrix one that is not stored
        mean "not labelled"; a stored 0 is the label 0, a string is always a label. Every row is a task
        and every column a worker, labelled or not. `tasks` and `workers` name them; default 0, 1, 2, ...
        `classes` and `answers` are as in `from_arrays`, and so is `duplicates`, for a sparse matrix that stores an
        entry twice.

        Examples
        --------
        >>> Annotations.from_matrix([[0, -1], [1, 1], [-1, -1]])
        Annotations(3 annotations: 3 tasks x 2 workers, 2 classes, redundancy 1.5)
        """
        return matrix_annotations(matrix, -1, tasks, workers, classes, answers, duplicates)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of tasks and of workers: to scikit-learn annotations are a matrix with one row per task."""
        return self.n_tasks, self.n_workers

    def __getitem__(self, tasks: Any) -> Annotations:
        """Return some tasks, by a mask, codes or a slice, in this order, as `cross_val_score` asks for its folds.

        Examples
        --------
        >>> Annotations.from_arrays(["a", "b", "c"], [7, 7, 7], [0, 1, 0])[[2, 0]].tasks
        array(['c', 'a'], dtype=object)
        """
        rows = tasks[0] if isinstance(tasks, tuple) else tasks
        wanted = np.atleast_1d(np.arange(self.n_tasks)[rows])
        return self.part(np.isin(self.task, wanted)).align(self.tasks[wanted])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return `to_matrix(dense=True)`."""
        n_tasks, n_workers = self.shape
        check_memory(4.0 * n_tasks * n_workers, f"a matrix of {n_tasks:,} x {n_workers:,}", "Split.")
        return np.array(self.to_matrix(dense=True), dtype=dtype, copy=copy)

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
    def n_answers(self) -> int:
        """Number of answers, given by anybody or not."""
        return len(self.answers)

    @property
    def is_square(self) -> bool:
        """Whether the answers are the classes."""
        return self.answers is self.classes

    @property
    def is_scale(self) -> bool:
        """Whether no answer is a class: they are a scale, from the first class to the last."""
        return not holds_classes(self.answers, self.classes)

    @property
    def leaning(self) -> Floats:
        """The initial share of each answer as evidence for each class, shape (n_answers, n_classes).

        A class is evidence for itself, another answer for none; along a scale the classes take over from one another.
        """
        return class_leanings(self.answers, self.classes)

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
        task, tasks = _rows.tasks_among(self.task, self.tasks, task_ids)
        order = _rows.stable_order(task, len(tasks))
        return self._some(order, task=task[order], tasks=tasks)

    def select(self, task_mask: Any) -> Annotations:
        """Return the tasks where `task_mask`, of shape (n_tasks,), is True, with their annotations.

        Workers, classes and answers keep their codes.
        """
        mask, kept, task = _rows.tasks_where(self.task, task_mask, self.n_tasks)
        return self._some(kept, task=task, tasks=self.tasks[mask])

    def sample(self, *, redundancy: int = 1, random_state: RandomState = None) -> Annotations:
        """Return at most `redundancy` annotations of every task, drawn at random without replacement.

        All tasks, workers, classes and answers keep their codes.
        """
        check_int(redundancy, "redundancy", 1)
        shuffled = check_rng(random_state).permutation(np.arange(len(self), dtype=np.int32))
        drawn = _rows.stable_order(self.task[shuffled], self.n_tasks, shuffled)  # each task's rows, shuffled
        rank = np.arange(len(self), dtype=np.int32)
        rank -= _rows.first_rows(self.task, self.n_tasks)[self.task]
        kept = np.zeros(len(self), dtype=bool)
        kept[drawn[rank < redundancy]] = True
        return self.part(kept)

    def only_classes(self) -> Annotations:
        """Return the annotations whose answer is a class, as annotations whose answers are the classes.

        All tasks, workers and classes keep their codes. If no answer given is a class, that is an error.

        Examples
        --------
        >>> ann = Annotations.from_arrays([1, 1], ["x", "y"], ["cat", "unsure"],
        ...                               classes=["cat", "dog"], answers=["cat", "dog", "unsure"])
        >>> ann.only_classes()
        Annotations(1 annotations: 1 tasks x 2 workers, 2 classes, redundancy 1)
        """
        if self.is_square:
            return self
        kept = np.zeros(len(self), dtype=bool) if self.is_scale else self.label < self.n_classes
        if not kept.any():
            raise ValueError(
                f"some answers must be classes, {shorten(self.classes)}; got none in {len(self):,} annotations, "
                f"which say {shorten(self.answers[np.unique(self.label)])}."
            )
        return self._some(kept, answers=self.classes)

    def part(self, kept: Mask) -> Annotations:
        """Return some annotations, by a mask; tasks, workers, classes and answers keep their codes."""
        return self._some(kept)

    def _some(self, rows: Any, **other: Ids) -> Annotations:
        """Return some annotations, by a mask or positions, with other codes of tasks, or another table."""
        arrays = {name: getattr(self, name)[rows] for name in ("task", "worker", "label")}
        arrays |= {name: getattr(self, name) for name in ("tasks", "workers", "classes", "answers")}
        return owned_annotations(*(arrays | other).values(), names=self.names, extra=self.extra.take(rows))

    def relabel(self, mapping: Any) -> Annotations:
        """Return the annotations with other labels.

        Parameters
        ----------
        mapping : mapping or sequence
            A mapping of old class or answer ids to new ones (two old ones may become one, as when a spelling is
            corrected; those not named stay; annotations of an id that becomes None are left out). Those that remain
            keep their order, new ones follow.
            Or a permutation: the new code of each answer code; `classes` and `answers` stay.

        Examples
        --------
        >>> ann = Annotations.from_arrays([1, 2, 3], [1, 1, 1], ["cat", "kat", "dog"])
        >>> ann.relabel({"kat": "cat"}).classes
        array(['cat', 'dog'], dtype=object)
        """
        codes, classes, answers, extra = relabelled(self.classes, self.answers, self.extra, mapping)
        label = codes[self.label]
        kept = label >= 0
        rows = (self.task[kept], self.worker[kept], label[kept], self.tasks, self.workers, classes, answers)
        return owned_annotations(*rows, names=self.names, extra=extra.take(kept))

    def normalise(self) -> Annotations:
        """Return the annotations with one spelling for labels that differ only in case, blanks and punctuation.

        The most frequent spelling stays; numbers of equal value, such as "1" and "1.0", are one label.

        Examples
        --------
        >>> ann = Annotations.from_arrays([1, 2, 3, 4], [1, 1, 1, 1], ["cat", "Cat ", "cat", "dog."])
        >>> ann.normalise().classes
        array(['cat', 'dog'], dtype=object)
        """
        counts = np.bincount(self.label, minlength=self.n_answers).tolist()
        return self.relabel(spellings(dict(zip(self.answers.tolist(), counts, strict=True))))

    def to_frame(self) -> pa.Table:
        """Return an Arrow table of ids with columns task, worker, label, and the optional ones that there are.

        `.to_pandas()` and `polars.from_arrow` take it from there. Strings stay dictionary-encoded.
        """
        pairs = ((self.task, self.tasks), (self.worker, self.workers), (self.label, self.answers))
        columns = [_ids.decode(codes, ids) for codes, ids in pairs]
        more = self._extra_columns()
        return pa.table([*columns, *more.values()], names=[*NAMES, *more])

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
        own, others = self._arrays(), other._arrays()
        return len(own) == len(others) and all(map(np.array_equal, own, others)) and self.extra == other.extra

    __hash__ = None  # type: ignore[assignment]  # equal by value over arrays: no cheap hash

    def __repr__(self) -> str:
        answers = "" if self.is_square else f"{self.n_answers:,} answers, "
        return (
            f"Annotations({len(self):,} annotations: {self.n_tasks:,} tasks x {self.n_workers:,} workers, "
            f"{self.n_classes:,} classes, {answers}redundancy {self.redundancy:.3g})"
        )


def check_positions(annotations: Any, name: str, n: int, fix: str) -> None:
    """Raise an error unless an array of `n` entries without ids can be matched with the tasks by position."""
    if n != annotations.n_tasks:
        raise ValueError(
            f"{name} must have one row for each of the {annotations.n_tasks} tasks of the annotations; "
            f"got {n} rows. {fix}"
        )


def matrix_annotations(
    matrix: Any,
    absent: Any,
    tasks: Any = None,
    workers: Any = None,
    classes: Any = None,
    answers: Any = None,
    duplicates: Duplicates = "error",
) -> Annotations:
    """Return the annotations of a matrix as `Annotations.from_matrix` does, with `absent` in the place of -1."""
    check_choice(duplicates, "duplicates", DUPLICATES)
    rows, columns, labels, (n_tasks, n_workers) = _rows.matrix_entries(matrix, absent)
    task_ids = _names(tasks, "tasks", n_tasks)
    worker_ids = _names(workers, "workers", n_workers)
    label_codes, *tables = encode_labels(labels, "label (a row here is one labelled entry)", classes, answers)
    return sorted_annotations(rows, columns, label_codes, task_ids, worker_ids, *tables, duplicates=duplicates)


def annotations_of(
    task: Any,
    worker: Any,
    label: Any,
    *,
    classes: Any = None,
    answers: Any = None,
    duplicates: Duplicates = "error",
    names: Any = NAMES,
    extra: Mapping[str, Any] | None = None,
) -> Annotations:
    """Return the annotations of three columns without missing values, as `Annotations.from_arrays` does.

    `extra` holds the optional columns by name, a distribution also as one column per class.
    """
    check_choice(duplicates, "duplicates", DUPLICATES)
    extra, classes = joined_distribution(extra or {}, label, classes if answers is None else answers, classes)
    label_codes, *tables = encode_labels(label, "label", classes, answers)
    task_codes, tasks = _ids.encode_seen(task, "task")
    worker_codes, workers = _ids.encode(worker, "worker")
    rows = (task_codes, worker_codes, label_codes)
    found = extra_of(extra, worker_codes, label_codes, workers, tables[0])
    return sorted_annotations(*rows, tasks, workers, *tables, duplicates=duplicates, names=names, extra=found)


def sorted_annotations(
    task: Codes,
    worker: Codes,
    label: Codes,
    tasks: Ids,
    workers: Ids,
    classes: Ids,
    answers: Ids | None = None,
    *,
    duplicates: Duplicates,
    names: Any = NAMES,
    extra: Extra = NONE,
) -> Annotations:
    """Return annotations from rows in any order: by task, then worker, then as given. Takes the arrays over."""
    order = _rows.row_order(task, worker, len(tasks), len(workers), extra.order)
    if order is not None:
        task, worker, label, extra = task[order], worker[order], label[order], extra.take(order)
    if duplicates != "keep":
        again = _rows.repeats(task, worker, extra.order)
        if duplicates == "error" and again.any():
            first = int(np.argmax(again))
            raise ValueError(
                f"{REPEATED}; got worker {show(workers[worker[first]])} on task {show(tasks[task[first]])} again "
                f"({int(again.sum())} repeated rows in total). "
                f"Choose what to keep with {argument('duplicates', 'first', 'last', 'keep')}."
            )
        if again.any():
            kept = ~again if duplicates == "first" else ~np.append(again[1:], False)
            task, worker, label, extra = task[kept], worker[kept], label[kept], extra.take(kept)
    tables = (tasks, workers, classes, classes if answers is None else answers)
    return owned_annotations(task, worker, label, *tables, names=names, extra=extra)


def owned_annotations(*arrays: Ids, names: Any = NAMES, extra: Extra = NONE) -> Annotations:
    """Return annotations over sorted codes and tables that nobody else holds: none is copied or checked again.

    Answers that are the classes are the same table, or left out.
    """
    check_count(len(arrays[0]))
    if len(arrays) == 6 or (arrays[5] is not arrays[6] and np.array_equal(arrays[5], arrays[6])):
        arrays = (*arrays[:6], arrays[5])
    made = object.__new__(Annotations)
    for one, array in zip(fields(Annotations), arrays, strict=False):  # names are no array
        array.flags.writeable = False
        object.__setattr__(made, one.name, array)
    object.__setattr__(made, "names", names)
    object.__setattr__(made, "extra", extra)
    return made


def _names(ids: Any, name: str, n: int) -> Ids:
    """Return the ids of the matrix's tasks or workers; default their positions."""
    table = np.arange(n) if ids is None else _ids.table_of(ids, name)
    if len(table) != n:
        raise ValueError(f"{name} must name every one of the matrix's {n} {name}; got {len(table)} ids.")
    return table
