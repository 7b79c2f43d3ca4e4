"""Train classifiers and clean labels from noisy crowd labels, even with one label per task.

The public names, each loaded when it is first used: `labelonce --help` must not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelonce import datasets, learning, metrics, planning, simulate, workers
    from labelonce._annotations import Annotations
    from labelonce.aggregation import (
        EBCC,
        IBCC,
        DataProgramming,
        DawidSkene,
        MajorityVote,
        MinimaxEntropy,
        MultidimensionalWisdom,
        OneCoin,
        RedundancyWarning,
        SpectralDawidSkene,
        compare_aggregators,
    )
    from labelonce.io import read_annotations, write
    from labelonce.learning import (
        MBEM,
        BoostedTrees,
        DoubtWarning,
        ForwardCorrection,
        OracleConfusion,
        OracleCorrect,
        SoftmaxRegression,
        TrainOnAggregate,
        UnbiasedLoss,
        annotation_log_likelihood,
    )

__version__ = "0.1.0"

__all__ = [
    "EBCC",
    "IBCC",
    "MBEM",
    "Annotations",
    "BoostedTrees",
    "DataProgramming",
    "DawidSkene",
    "DoubtWarning",
    "ForwardCorrection",
    "MajorityVote",
    "MinimaxEntropy",
    "MultidimensionalWisdom",
    "OneCoin",
    "OracleConfusion",
    "OracleCorrect",
    "RedundancyWarning",
    "SoftmaxRegression",
    "SpectralDawidSkene",
    "TrainOnAggregate",
    "UnbiasedLoss",
    "annotation_log_likelihood",
    "compare_aggregators",
    "datasets",
    "learning",
    "metrics",
    "planning",
    "read_annotations",
    "simulate",
    "workers",
    "write",
]

_HOME = {
    "EBCC": "labelonce.aggregation",
    "IBCC": "labelonce.aggregation",
    "MBEM": "labelonce.learning",
    "Annotations": "labelonce._annotations",
    "BoostedTrees": "labelonce.learning",
    "DataProgramming": "labelonce.aggregation",
    "DawidSkene": "labelonce.aggregation",
    "DoubtWarning": "labelonce.learning",
    "ForwardCorrection": "labelonce.learning",
    "MajorityVote": "labelonce.aggregation",
    "MinimaxEntropy": "labelonce.aggregation",
    "MultidimensionalWisdom": "labelonce.aggregation",
    "OneCoin": "labelonce.aggregation",
    "OracleConfusion": "labelonce.learning",
    "OracleCorrect": "labelonce.learning",
    "RedundancyWarning": "labelonce.aggregation",
    "SoftmaxRegression": "labelonce.learning",
    "SpectralDawidSkene": "labelonce.aggregation",
    "TrainOnAggregate": "labelonce.learning",
    "UnbiasedLoss": "labelonce.learning",
    "annotation_log_likelihood": "labelonce.learning",
    "compare_aggregators": "labelonce.aggregation",
    "read_annotations": "labelonce.io",
    "write": "labelonce.io",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in __all__:
        return import_module(f"labelonce.{name}")
    raise AttributeError(f"module 'labelonce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
