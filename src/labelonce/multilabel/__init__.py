"""Several labels at once: yes-or-no questions about every task, answered by workers."""

from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._check import MultiLabelCheck
from labelonce.multilabel._read import read_multilabel

__all__ = ["MultiLabelAnnotations", "MultiLabelCheck", "read_multilabel"]
