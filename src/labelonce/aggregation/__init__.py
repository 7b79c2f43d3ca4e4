"""Aggregators: annotations in, a posterior for every task and a confusion matrix for every worker out.

A new one is a file here and a line in `_registry.py`; type checkers want a line here and in `labelonce/__init__.py`.
Each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelonce.aggregation._registry import HOMES as _HOMES

if TYPE_CHECKING:
    from labelonce.aggregation._assignment import AssignmentWarning as AssignmentWarning
    from labelonce.aggregation._base import Aggregator as Aggregator
    from labelonce.aggregation._base import RedundancyWarning as RedundancyWarning
    from labelonce.aggregation._belief_propagation import BeliefPropagation as BeliefPropagation
    from labelonce.aggregation._compare import Comparison as Comparison
    from labelonce.aggregation._compare import compare_aggregators as compare_aggregators
    from labelonce.aggregation._data_programming import DataProgramming as DataProgramming
    from labelonce.aggregation._dawid_skene import DawidSkene as DawidSkene
    from labelonce.aggregation._ebcc import EBCC as EBCC
    from labelonce.aggregation._eigen_ratio import EigenRatio as EigenRatio
    from labelonce.aggregation._expertise_vote import ExpertiseVote as ExpertiseVote
    from labelonce.aggregation._glad import GLAD as GLAD
    from labelonce.aggregation._ibcc import IBCC as IBCC
    from labelonce.aggregation._kos import KOS as KOS
    from labelonce.aggregation._mace import MACE as MACE
    from labelonce.aggregation._majority_vote import MajorityVote as MajorityVote
    from labelonce.aggregation._mean_field import MeanField as MeanField
    from labelonce.aggregation._minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from labelonce.aggregation._multidimensional_wisdom import MultidimensionalWisdom as MultidimensionalWisdom
    from labelonce.aggregation._one_coin import OneCoin as OneCoin
    from labelonce.aggregation._spectral_dawid_skene import SpectralDawidSkene as SpectralDawidSkene
    from labelonce.aggregation._wawa import Wawa as Wawa

    __all__: list[str]
else:  # a type checker reads the names above
    _HOME = _HOMES | {
        "Aggregator": "labelonce.aggregation._base",
        "AssignmentWarning": "labelonce.aggregation._assignment",
        "Comparison": "labelonce.aggregation._compare",
        "RedundancyWarning": "labelonce.aggregation._base",
        "compare_aggregators": "labelonce.aggregation._compare",
    }
    __all__ = sorted(_HOME)

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            return getattr(import_module(_HOME[name]), name)
        raise AttributeError(f"module 'labelonce.aggregation' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
