"""What a label is: annotations, their ids and rows, gold, held-out parts, what `check` and `agreement` find."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.data._agreement import Agreement, Figure, agreement
from labelonce.data._annotations import Annotations
from labelonce.data._answers import OtherAnswersWarning
from labelonce.data._check import Check, check
from labelonce.data._missing import LeftOutWarning, MissingWarning
from labelonce.data._problems import Finding

__all__ = [
    "Agreement",
    "Annotations",
    "Check",
    "Figure",
    "Finding",
    "LeftOutWarning",
    "MissingWarning",
    "OtherAnswersWarning",
    "agreement",
    "check",
]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.data._agreement import without_nan
    from labelonce.data._annotations import (
        MIN_OVERLAP,
        NAMES,
        REPEATED,
        annotations_of,
        check_positions,
        matrix_annotations,
        sorted_annotations,
    )
    from labelonce.data._answers import class_leanings, holds_classes, only_classes
    from labelonce.data._check import ROW_LABELS, Summary, agreement_in, worker_groups
    from labelonce.data._extra import SPREAD, check_whole, encode_stated, extra_names, floats, kept_rows
    from labelonce.data._gold import Gold, check_gold, check_once
    from labelonce.data._ids import is_text
    from labelonce.data._memory import MOST_NUMBERS, check_memory, is_large, label_memory
    from labelonce.data._missing import present_rows
    from labelonce.data._numbers import Fault, array_fault, as_features
    from labelonce.data._packed_strings import PackedStrings
    from labelonce.data._problems import SKILL_LABELS, check_labels, is_panel
    from labelonce.data._rows import first_rows, hold_out, hold_out_tasks, stable_order
    from labelonce.data._spelling import Renaming, alike, key, renamed_column, renaming
else:
    __getattr__, _, _ = lazy_names(__name__)
