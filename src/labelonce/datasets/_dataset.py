"""The record that every loader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from labelonce._messages import shorten
from labelonce._types import Codes, Floats, Ids
from labelonce.data import Annotations, _ids


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A crowd-labelled data set: row i of `gold`, `split`, `features`, `texts` and `images` is task i.

    The annotations cover only the tasks that workers labelled, and their `tasks` are those row numbers:
    `data.texts[data.annotations.tasks]` are the texts in the order of the posterior's rows.

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
    split : str array of shape (n_tasks,) or None
        "train", "valid" or "test". None where the set has no published split.
    features : float32 array of shape (n_tasks, n_features) or None
    texts : object array of str, shape (n_tasks,) or None
    images : uint8 array of shape (n_tasks, height, width, 3) or None
        RGB, and only if `load` was asked for images.
    raw : pyarrow.Table or None
        The labels as stored, in file order and repeats included, with the columns that `Annotations` has
        no room for: `seconds_for_batch_of_5` (cifar100n), `viewtime_ms` (stanford_dogs_crowd), `second`,
        `prob`, `prob_second`, `impossible_<class>` (cifar10s), the two models compared (`cmp_key` of pandalm), all
        questions (medical_relations_multilabel, crowdtruth_video).
    extra : mapping of str to array
        One row per task, but for `wnids`: `counts` (cifar10h_counts: how many people chose each class),
        `coarse` (cifar100n: the superclass), `sid`, `term1`, `term2`, `expert`, `baseline`
        (medical_relations_multilabel, the last two coded as `gold`), `wnids` (tiny_imagenet_100: one WordNet
        id per class).

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
    split: Ids | None = None
    features: Floats | None = None
    texts: Ids | None = None
    images: npt.NDArray[np.uint8] | None = None
    raw: pa.Table | None = None
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

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
