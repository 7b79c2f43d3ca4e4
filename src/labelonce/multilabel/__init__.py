"""Several labels at once: yes-or-no questions about every task, answered by workers."""

from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._base import MultiLabelAggregator
from labelonce.multilabel._check import MultiLabelCheck
from labelonce.multilabel._dawid_skene import MultiLabelDawidSkene
from labelonce.multilabel._mbem import MultiLabelMBEM
from labelonce.multilabel._metrics import (
    average_precision,
    bootstrap_interval,
    exact_match,
    f1_score,
    hamming_loss,
    mean_average_precision,
)
from labelonce.multilabel._per_question import PerQuestion
from labelonce.multilabel._read import read_multilabel, read_multilabel_gold
from labelonce.multilabel._sigmoid import SigmoidRegression, text_heads
from labelonce.multilabel._vote import MultiLabelVote

__all__ = [
    "MultiLabelAggregator",
    "MultiLabelAnnotations",
    "MultiLabelCheck",
    "MultiLabelDawidSkene",
    "MultiLabelMBEM",
    "MultiLabelVote",
    "PerQuestion",
    "SigmoidRegression",
    "average_precision",
    "bootstrap_interval",
    "exact_match",
    "f1_score",
    "hamming_loss",
    "mean_average_precision",
    "read_multilabel",
    "read_multilabel_gold",
    "text_heads",
]
