"""What a label is: annotations, their ids and rows, gold, held-out parts, what `check` and `agreement` find."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.data._agreement import Agreement, Figure, agreement
from labelonce.data._annotations import Annotations
from labelonce.data._answers import OtherAnswersWarning
from labelonce.data._check import Check, Finding, check
from labelonce.data._missing import LeftOutWarning, MissingWarning

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
    from labelonce.data._annotations import MIN_OVERLAP as MIN_OVERLAP
    from labelonce.data._annotations import check_positions as check_positions
    from labelonce.data._check import SKILL_LABELS as SKILL_LABELS
    from labelonce.data._check import Summary as Summary
    from labelonce.data._check import agreement_in as agreement_in
    from labelonce.data._check import worker_groups as worker_groups
    from labelonce.data._extra import check_whole as check_whole
    from labelonce.data._gold import Gold as Gold
    from labelonce.data._gold import check_gold as check_gold
    from labelonce.data._gold import check_once as check_once
    from labelonce.data._memory import MOST_NUMBERS as MOST_NUMBERS
    from labelonce.data._memory import check_memory as check_memory
    from labelonce.data._memory import is_large as is_large
    from labelonce.data._missing import present_rows as present_rows
    from labelonce.data._relabel import renamed_column as renamed_column
    from labelonce.data._relabel import renaming as renaming
    from labelonce.data._rows import first_rows as first_rows
    from labelonce.data._rows import stable_order as stable_order
    from labelonce.data._spelling import alike as alike
else:
    __getattr__, _, _ = lazy_names(__name__)
