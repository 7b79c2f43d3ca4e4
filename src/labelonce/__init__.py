"""Train classifiers and clean labels from noisy crowd labels, even with one label per task.

The public names, each loaded when it is first used: `labelonce --help` must not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelonce import (
        data,
        datasets,
        formats,
        learning,
        metrics,
        neural,
        report,
        runs,
        sharded,
        simulate,
        theory,
        workers,
    )
    from labelonce.aggregation import (
        EBCC,
        GLAD,
        IBCC,
        KOS,
        MACE,
        AssignmentWarning,
        BeliefPropagation,
        DataProgramming,
        DawidSkene,
        EigenRatio,
        MajorityVote,
        MeanField,
        MinimaxEntropy,
        MultidimensionalWisdom,
        OneCoin,
        RedundancyWarning,
        SpectralDawidSkene,
        Wawa,
        compare_aggregators,
    )
    from labelonce.data import Annotations, check
    from labelonce.io import read_annotations, read_gold, write
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
    from labelonce.report import write_report
    from labelonce.runs import load, save

__version__ = "0.1.0"

__all__ = [
    "EBCC",
    "GLAD",
    "IBCC",
    "KOS",
    "MACE",
    "MBEM",
    "Annotations",
    "AssignmentWarning",
    "BeliefPropagation",
    "BoostedTrees",
    "DataProgramming",
    "DawidSkene",
    "DoubtWarning",
    "EigenRatio",
    "ForwardCorrection",
    "MajorityVote",
    "MeanField",
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
    "Wawa",
    "annotation_log_likelihood",
    "check",
    "compare_aggregators",
    "data",
    "datasets",
    "formats",
    "learning",
    "load",
    "metrics",
    "neural",
    "read_annotations",
    "read_gold",
    "report",
    "runs",
    "save",
    "sharded",
    "simulate",
    "theory",
    "workers",
    "write",
    "write_report",
]

_HOME = {
    "EBCC": "labelonce.aggregation",
    "GLAD": "labelonce.aggregation",
    "IBCC": "labelonce.aggregation",
    "KOS": "labelonce.aggregation",
    "MACE": "labelonce.aggregation",
    "MBEM": "labelonce.learning",
    "Annotations": "labelonce.data",
    "AssignmentWarning": "labelonce.aggregation",
    "BeliefPropagation": "labelonce.aggregation",
    "BoostedTrees": "labelonce.learning",
    "DataProgramming": "labelonce.aggregation",
    "DawidSkene": "labelonce.aggregation",
    "DoubtWarning": "labelonce.learning",
    "EigenRatio": "labelonce.aggregation",
    "ForwardCorrection": "labelonce.learning",
    "MajorityVote": "labelonce.aggregation",
    "MeanField": "labelonce.aggregation",
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
    "Wawa": "labelonce.aggregation",
    "annotation_log_likelihood": "labelonce.learning",
    "check": "labelonce.data",
    "compare_aggregators": "labelonce.aggregation",
    "load": "labelonce.runs",
    "read_annotations": "labelonce.io",
    "read_gold": "labelonce.io",
    "save": "labelonce.runs",
    "write": "labelonce.io",
    "write_report": "labelonce.report",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in __all__:
        return import_module(f"labelonce.{name}")
    raise AttributeError(f"module 'labelonce' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
