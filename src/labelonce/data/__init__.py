"""What a label is: annotations, their ids and rows, gold, held-out parts, and what `check` finds in them."""

from labelonce.data._annotations import Annotations
from labelonce.data._answers import OtherAnswersWarning
from labelonce.data._check import Check, Finding, check

__all__ = ["Annotations", "Check", "Finding", "OtherAnswersWarning", "check"]
