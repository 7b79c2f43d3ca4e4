"""What a label is: annotations, their ids and rows, gold, held-out parts, what `check` and `agreement` find."""

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
