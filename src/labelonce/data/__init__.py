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
    from labelonce.data._agreement import without_nan as without_nan
    from labelonce.data._annotations import MIN_OVERLAP as MIN_OVERLAP
    from labelonce.data._annotations import NAMES as NAMES
    from labelonce.data._annotations import REPEATED as REPEATED
    from labelonce.data._annotations import annotations_of as annotations_of
    from labelonce.data._annotations import check_positions as check_positions
    from labelonce.data._annotations import matrix_annotations as matrix_annotations
    from labelonce.data._annotations import sorted_annotations as sorted_annotations
    from labelonce.data._answers import class_leanings as class_leanings
    from labelonce.data._answers import holds_classes as holds_classes
    from labelonce.data._answers import only_classes as only_classes
    from labelonce.data._check import ROW_LABELS as ROW_LABELS
    from labelonce.data._check import Summary as Summary
    from labelonce.data._check import agreement_in as agreement_in
    from labelonce.data._check import check_labels as check_labels
    from labelonce.data._check import worker_groups as worker_groups
    from labelonce.data._check_extra import is_panel as is_panel
    from labelonce.data._extra import SPREAD as SPREAD
    from labelonce.data._extra import check_whole as check_whole
    from labelonce.data._extra import encode_stated as encode_stated
    from labelonce.data._extra import extra_names as extra_names
    from labelonce.data._extra import floats as floats
    from labelonce.data._extra import kept_rows as kept_rows
    from labelonce.data._gold import Gold as Gold
    from labelonce.data._gold import check_gold as check_gold
    from labelonce.data._gold import check_once as check_once
    from labelonce.data._ids import is_text as is_text
    from labelonce.data._memory import MOST_NUMBERS as MOST_NUMBERS
    from labelonce.data._memory import check_memory as check_memory
    from labelonce.data._memory import fit_memory as fit_memory
    from labelonce.data._memory import is_large as is_large
    from labelonce.data._memory import label_memory as label_memory
    from labelonce.data._missing import present_rows as present_rows
    from labelonce.data._numbers import Fault as Fault
    from labelonce.data._numbers import array_fault as array_fault
    from labelonce.data._numbers import as_features as as_features
    from labelonce.data._packed_strings import PackedStrings as PackedStrings
    from labelonce.data._problems import SKILL_LABELS as SKILL_LABELS
    from labelonce.data._relabel import Renaming as Renaming
    from labelonce.data._relabel import renamed_column as renamed_column
    from labelonce.data._relabel import renaming as renaming
    from labelonce.data._rows import first_rows as first_rows
    from labelonce.data._rows import stable_order as stable_order
    from labelonce.data._spelling import alike as alike
    from labelonce.data._spelling import key as key
    from labelonce.data._split import hold_out as hold_out
    from labelonce.data._split import hold_out_tasks as hold_out_tasks
else:
    __getattr__, _, _ = lazy_names(__name__)
