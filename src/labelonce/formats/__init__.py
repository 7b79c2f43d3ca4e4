"""Other tools' files and objects: Label Studio, MTurk, Toloka, Prodigy, cleanlab, crowd-kit, Hugging Face.

Files go through `labelonce.read_annotations(path, format=...)` and `labelonce.write(..., format=...)`; here
are the objects in memory.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.data._missing import LeftOutWarning, MissingWarning
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
    from labelonce.formats._answers import SEPARATOR, Fields, integers_if_all, to_gold
    from labelonce.formats._labels import Part, Paths, Relabel, Rows, joined, listed, new_names, read_part, together
    from labelonce.formats._registry import find_labels, read
    from labelonce.formats._shape import ANSWERS, advice_on_repeats, question_column
    from labelonce.formats._task_files import Target, shown_in, shown_in_table, write_tasks
    from labelonce.formats._verdicts import read_verdict_files
    from labelonce.formats._work import amount, read_work
else:
    __getattr__, _, _ = lazy_names(__name__)
