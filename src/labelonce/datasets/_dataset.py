"""The record that `load` returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from labelonce._messages import shorten
from labelonce._types import Codes
from labelonce.data import Annotations, _ids


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
