"""Several labels at once: yes-or-no questions about every task, answered by workers."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
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

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.multilabel._base import pair_gold
    from labelonce.multilabel._check import yes_shares
    from labelonce.multilabel._question_problem import default_heads
    from labelonce.multilabel._read import is_multilabel
    from labelonce.multilabel._shared_workers import SharedWorkers
