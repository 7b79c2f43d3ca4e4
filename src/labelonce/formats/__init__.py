"""Other tools' files and objects: Label Studio, MTurk, Toloka, Prodigy, cleanlab, crowd-kit, Hugging Face.

Files go through `labelonce.read_annotations(path, format=...)` and `labelonce.write(..., format=...)`; here
are the objects in memory.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.data._missing import LeftOutWarning as LeftOutWarning
from labelonce.data._missing import MissingWarning as MissingWarning
from labelonce.formats._crowdkit import (
    from_crowdkit,
    gold_from_crowdkit,
    to_crowdkit,
    to_crowdkit_labels,
    to_crowdkit_probas,
)
from labelonce.formats._huggingface import from_dataset, to_dataset
from labelonce.formats._matrix import from_cleanlab, from_skactiveml, to_cleanlab, to_skactiveml

__all__ = [
    "from_cleanlab",
    "from_crowdkit",
    "from_dataset",
    "from_skactiveml",
    "gold_from_crowdkit",
    "to_cleanlab",
    "to_crowdkit",
    "to_crowdkit_labels",
    "to_crowdkit_probas",
    "to_dataset",
    "to_skactiveml",
]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.formats._answers import SEPARATOR as SEPARATOR
    from labelonce.formats._answers import Fields as Fields
    from labelonce.formats._answers import integers_if_all as integers_if_all
    from labelonce.formats._answers import to_gold as to_gold
    from labelonce.formats._labels import Part as Part
    from labelonce.formats._labels import Paths as Paths
    from labelonce.formats._labels import Relabel as Relabel
    from labelonce.formats._labels import Rows as Rows
    from labelonce.formats._labels import joined as joined
    from labelonce.formats._labels import listed as listed
    from labelonce.formats._labels import new_names as new_names
    from labelonce.formats._labels import read_part as read_part
    from labelonce.formats._labels import together as together
    from labelonce.formats._registry import find_labels as find_labels
    from labelonce.formats._registry import read as read
    from labelonce.formats._shape import ANSWERS as ANSWERS
    from labelonce.formats._shape import advice_on_repeats as advice_on_repeats
    from labelonce.formats._shape import question_column as question_column
    from labelonce.formats._task_files import Target as Target
    from labelonce.formats._task_files import shown_in as shown_in
    from labelonce.formats._task_files import shown_in_table as shown_in_table
    from labelonce.formats._task_files import write_tasks as write_tasks
    from labelonce.formats._verdicts import read_verdict_files as read_verdict_files
    from labelonce.formats._work import amount as amount
    from labelonce.formats._work import read_work as read_work
else:
    __getattr__, _, _ = lazy_names(__name__)
