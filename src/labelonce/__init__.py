"""Train classifiers and clean labels from noisy crowd labels, even with one label per task.

The names at the top are the objects of the guides and the rooms that the guides speak of, each loaded when it is first
used: `labelonce --help` must not wait for scikit-learn. The other rooms are imported: `from labelonce import theory`.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce import baselines, datasets, embed, metrics, neural, routing, simulate, workers
    from labelonce.aggregation import (
        EBCC,
        GLAD,
        IBCC,
        MACE,
        DawidSkene,
        MajorityVote,
        OneCoin,
        Wawa,
        compare_aggregators,
    )
    from labelonce.data import Annotations, agreement, check
    from labelonce.io import read_annotations, read_gold, write
    from labelonce.judges import JudgePanel
    from labelonce.learning import (
        MBEM,
        BoostedTrees,
        DoubtWarning,
        OracleConfusion,
        OracleCorrect,
        SoftmaxRegression,
        TrainOnAggregate,
    )
    from labelonce.multilabel import (
        MultiLabelAnnotations,
        MultiLabelDawidSkene,
        MultiLabelMBEM,
        MultiLabelVote,
        read_multilabel,
    )
    from labelonce.report import write_report
    from labelonce.runs import load, save

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)

__version__ = "0.1.0"
