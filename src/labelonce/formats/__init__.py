"""Other tools' files and objects: Label Studio, MTurk, Toloka, Prodigy, cleanlab, crowd-kit, Hugging Face.

Files go through `labelonce.read_annotations(path, format=...)` and `labelonce.write(..., format=...)`; here
are the objects in memory.
"""

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
