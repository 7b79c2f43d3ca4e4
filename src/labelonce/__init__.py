"""Train classifiers and clean labels from noisy crowd labels, even with one label per task.

The public names, each loaded when it is first used: `labelonce --help` must not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelonce import datasets, metrics, simulate
    from labelonce._annotations import Annotations
    from labelonce.aggregation import IBCC, DawidSkene, MajorityVote, OneCoin, RedundancyWarning
    from labelonce.io import read_annotations, write

__version__ = "0.1.0"

__all__ = [
    "IBCC",
    "Annotations",
    "DawidSkene",
    "MajorityVote",
    "OneCoin",
    "RedundancyWarning",
    "datasets",
    "metrics",
    "read_annotations",
    "simulate",
    "write",
]

_HOME = {
    "IBCC": "labelonce.aggregation",
    "Annotations": "labelonce._annotations",
    "DawidSkene": "labelonce.aggregation",
    "MajorityVote": "labelonce.aggregation",
    "OneCoin": "labelonce.aggregation",
    "RedundancyWarning": "labelonce.aggregation",
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
