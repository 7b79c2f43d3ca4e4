"""`load`: the crowds that come with the package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from labelonce._messages import shorten
from labelonce._types import Codes, Ids
from labelonce._validate import check_choice
from labelonce.data import Annotations, _ids

SHIPPED = Path(__file__).parent / "shipped"
_VERDICTS = {"0": 0, "1": 1, "2": 2, "Tie": 0}  # of pandalm, as class codes


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A crowd-labelled data set: row i of `gold` is task i.

    The annotations cover only the tasks that workers labelled, and their `tasks` are those row numbers:
    `data.gold[data.annotations.tasks]` is the gold in the order of the posterior's rows.

    Attributes
    ----------
    name : str
        What `load` was given.
    gold : int32 array of shape (n_tasks,)
        Class code of every task, -1 where unknown.
    classes : tuple of str
        The classes' names in code order; the codes as text where nobody wrote down their meaning.
    annotations : Annotations or None
        Crowd labels; the class ids are the codes 0 .. n_classes - 1, all declared. None without a crowd.
    raw : pyarrow.Table or None
        The labels as stored, with the columns that `Annotations` has no room for: the two models compared (`cmp_key` of
        pandalm), the kind of pair (`subset` of llmbar), all questions (crowdtruth_video).

    Examples
    --------
    >>> import labelonce as lo
    >>> import numpy as np
    >>> ann = lo.Annotations.from_arrays([2, 2, 0], ["x", "y", "x"], [1, 1, 0])
    >>> data = Dataset(name="toy", gold=np.array([0, 1, 1]), classes=("no", "yes"), annotations=ann)
    >>> data
    Dataset('toy', 3 tasks, 3 with gold, 2 classes; 3 annotations by 2 workers)
    >>> data.gold_of(ann)
    array([1, 0])
    """

    name: str
    gold: Codes
    classes: tuple[str, ...]
    annotations: Annotations | None = None
    raw: pa.Table | None = None

    @property
    def n_tasks(self) -> int:
        """Number of tasks of the whole set, labelled or not."""
        return len(self.gold)

    def gold_of(self, annotations: Annotations) -> Codes:
        """Return the class code of every task of `annotations`, in their order, -1 where unknown.

        `annotations` may be this set's own, or what `sample`, `select` and `align` made of them.
        """
        tasks = annotations.tasks
        own = _ids.lookup(tasks, np.arange(self.n_tasks)) >= 0
        if not own.all():
            raise ValueError(
                f"annotations must have the task ids of data set {self.name!r}, 0 to {self.n_tasks - 1}; got "
                f"{shorten(tasks[~own], 1)} ({int((~own).sum())} in total)."
            )
        return self.gold[tasks]

    def __repr__(self) -> str:
        known = int(np.count_nonzero(self.gold >= 0))
        tasks = f"{self.n_tasks:,} tasks, {known:,} with gold, {len(self.classes):,} classes"
        if self.annotations is None:
            return f"Dataset({self.name!r}, {tasks}; no annotations)"
        crowd = f"{len(self.annotations):,} annotations by {self.annotations.n_workers:,} workers"
        return f"Dataset({self.name!r}, {tasks}; {crowd})"


def names() -> list[str]:
    """Return the names that `load` knows, sorted.

    Examples
    --------
    >>> import labelonce as lo
    >>> lo.datasets.names()
    ['bluebird', 'crowdtruth_video', 'llmbar', 'pandalm']
    """
    return ["bluebird", "crowdtruth_video", "llmbar", "pandalm"]


def load(name: str, *, question: str | None = None) -> Dataset:
    """Return a data set by name.

    Parameters
    ----------
    name : {"bluebird", "crowdtruth_video", "llmbar", "pandalm"}
    question : str, optional
        crowdtruth_video only, and required there: which of its 27 yes/no questions.

    Notes
    -----
    pandalm's workers are three people and two language models, which say which of two answers is better; 25 verdicts
    of "gpt35" that name neither are left out. It has no gold: 879 of 999 pairs are unanimous among the people, since
    its authors removed those with large disagreement.
    llmbar's workers are language models with a prompt each, whose family is the model; most answered in both orders.
    319 of its 419 pairs were built to fool judges, so that the vote is right for 59 % of all.

    Examples
    --------
    >>> import labelonce as lo
    >>> lo.datasets.load("bluebird")
    Dataset('bluebird', 108 tasks, 108 with gold, 2 classes; 4,212 annotations by 39 workers)
    """
    check_choice(name, "name", tuple(names()))
    if name == "crowdtruth_video":
        return _load_video(question)
    if question is not None:
        raise ValueError(f"question is for 'crowdtruth_video' only; got {question!r} for {name!r}. Leave it out.")
    return {"bluebird": _load_bluebird, "llmbar": _load_llmbar, "pandalm": _load_pandalm}[name]()


def annotations_of(raw: pa.Table, n_classes: int, **options: Any) -> Annotations:
    """Return the labels in a table, all classes declared by code, tasks in the order of their numbers."""
    found = Annotations.from_frame(raw, classes=np.arange(n_classes), **options)
    return found.align(np.sort(found.tasks))


def by_task(table: pa.Table, column: str, n_tasks: int, absent: int | str) -> Ids:
    """Return a column with row i for task i, `absent` for tasks that the table does not have."""
    values = np.full(n_tasks, absent, dtype=object if isinstance(absent, str) else np.int32)
    values[table["task"].to_numpy()] = table[column].to_numpy()
    return values


def _load_bluebird() -> Dataset:
    raw, gold = (
        pq.read_table(SHIPPED / f"truth_inference/bluebird_{part}.parquet") for part in ("annotations", "gold")
    )
    return Dataset("bluebird", by_task(gold, "label", len(gold), -1), ("0", "1"), annotations_of(raw, 2), raw)


def _load_llmbar() -> Dataset:
    """Return the verdicts, the answers being swapped back; tasks are the rows of the gold."""
    raw, gold = (pq.read_table(SHIPPED / f"llmbar/{part}.parquet") for part in ("annotations", "gold"))
    task = pc.index_in(raw["task"].cast(pa.string()), value_set=gold["task"].cast(pa.string()).combine_chunks())
    annotations = annotations_of(raw.set_column(raw.column_names.index("task"), "task", task), 2)
    raw = raw.append_column("subset", gold["subset"].take(task))
    return Dataset("llmbar", gold["label"].to_numpy().astype(np.int32), ("first", "second"), annotations, raw)


def _load_video(question: str | None) -> Dataset:
    raw = pq.read_table(SHIPPED / "crowdtruth_video/annotations_wide.parquet")
    questions = [column for column in raw.column_names if column not in ("task", "worker")]
    if question not in questions:
        raise ValueError(f"question must be one of {', '.join(questions)}; got {question!r}.")
    annotations = annotations_of(raw, 2, label=question)
    return Dataset("crowdtruth_video", _unknown(annotations.n_tasks), ("no", "yes"), annotations, raw)


def _load_pandalm() -> Dataset:
    """Return the verdicts in long form; one that is none of the three classes is no label."""
    raw = pq.read_table(SHIPPED / "pandalm/verdicts.parquet")
    rows = [
        {"task": task, "worker": worker, "label": _VERDICTS[str(verdict)]}
        for worker in ("annotator1", "annotator2", "annotator3", "gpt35", "pandalm7b")
        for task, verdict in zip(raw["idx"].to_pylist(), raw[worker].to_pylist(), strict=True)
        if str(verdict) in _VERDICTS
    ]
    annotations = annotations_of(pa.Table.from_pylist(rows), 3)
    return Dataset("pandalm", _unknown(len(raw)), ("tie", "first", "second"), annotations, raw)


def _unknown(n_tasks: int) -> Ids:
    return np.full(n_tasks, -1, dtype=np.int32)
