"""Train classifiers and clean labels from noisy crowd labels, even with one label per task.

The public names, each loaded when it is first used: `labelonce --help` must not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelonce import datasets, learning, metrics, planning, report, simulate, workers
    from labelonce._annotations import Annotations
    from labelonce.aggregation import IBCC, DawidSkene, MajorityVote, OneCoin, RedundancyWarning
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
    from labelonce.report import write_report

__version__ = "0.1.0"

__all__ = [
    "IBCC",
    "MBEM",
    "Annotations",
    "BoostedTrees",
    "DawidSkene",
    "DoubtWarning",
    "ForwardCorrection",
    "MajorityVote",
    "OneCoin",
    "OracleConfusion",
    "OracleCorrect",
    "RedundancyWarning",
    "SoftmaxRegression",
    "TrainOnAggregate",
    "UnbiasedLoss",
    "annotation_log_likelihood",
    "datasets",
    "learning",
    "metrics",
    "planning",
    "read_annotations",
    "report",
    "simulate",
    "workers",
    "write",
    "write_report",
]

_HOME = {
    "IBCC": "labelonce.aggregation",
    "MBEM": "labelonce.learning",
    "Annotations": "labelonce._annotations",
    "BoostedTrees": "labelonce.learning",
    "DawidSkene": "labelonce.aggregation",
    "DoubtWarning": "labelonce.learning",
    "ForwardCorrection": "labelonce.learning",
    "MajorityVote": "labelonce.aggregation",
    "OneCoin": "labelonce.aggregation",
    "OracleConfusion": "labelonce.learning",
    "OracleCorrect": "labelonce.learning",
    "RedundancyWarning": "labelonce.aggregation",
    "SoftmaxRegression": "labelonce.learning",
    "TrainOnAggregate": "labelonce.learning",
    "UnbiasedLoss": "labelonce.learning",
    "annotation_log_likelihood": "labelonce.learning",
    "read_annotations": "labelonce.io",
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
