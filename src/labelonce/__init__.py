"""Train classifiers and clean labels from noisy crowd labels, even with one label per task.

The public names, each loaded when it is first used: `labelonce --help` must not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelonce import data as data
    from labelonce import datasets as datasets
    from labelonce import formats as formats
    from labelonce import learning as learning
    from labelonce import metrics as metrics
    from labelonce import multilabel as multilabel
    from labelonce import neural as neural
    from labelonce import planning as planning
    from labelonce import report as report
    from labelonce import routing as routing
    from labelonce import runs as runs
    from labelonce import service as service
    from labelonce import sharded as sharded
    from labelonce import simulate as simulate
    from labelonce import theory as theory
    from labelonce import workers as workers
    from labelonce.aggregation import EBCC as EBCC
    from labelonce.aggregation import GLAD as GLAD
    from labelonce.aggregation import IBCC as IBCC
    from labelonce.aggregation import KOS as KOS
    from labelonce.aggregation import MACE as MACE
    from labelonce.aggregation import Aggregator as Aggregator
    from labelonce.aggregation import AssignmentWarning as AssignmentWarning
    from labelonce.aggregation import BeliefPropagation as BeliefPropagation
    from labelonce.aggregation import Comparison as Comparison
    from labelonce.aggregation import DataProgramming as DataProgramming
    from labelonce.aggregation import DawidSkene as DawidSkene
    from labelonce.aggregation import EigenRatio as EigenRatio
    from labelonce.aggregation import ExpertiseVote as ExpertiseVote
    from labelonce.aggregation import MajorityVote as MajorityVote
    from labelonce.aggregation import MeanField as MeanField
    from labelonce.aggregation import MinimaxEntropy as MinimaxEntropy
    from labelonce.aggregation import MultidimensionalWisdom as MultidimensionalWisdom
    from labelonce.aggregation import OneCoin as OneCoin
    from labelonce.aggregation import RedundancyWarning as RedundancyWarning
    from labelonce.aggregation import SpectralDawidSkene as SpectralDawidSkene
    from labelonce.aggregation import Wawa as Wawa
    from labelonce.aggregation import compare_aggregators as compare_aggregators
    from labelonce.data import Annotations as Annotations
    from labelonce.data import check as check
    from labelonce.io import read_annotations as read_annotations
    from labelonce.io import read_gold as read_gold
    from labelonce.io import write as write
    from labelonce.learning import MBEM as MBEM
    from labelonce.learning import BoostedTrees as BoostedTrees
    from labelonce.learning import DoubtWarning as DoubtWarning
    from labelonce.learning import ForwardCorrection as ForwardCorrection
    from labelonce.learning import OracleConfusion as OracleConfusion
    from labelonce.learning import OracleCorrect as OracleCorrect
    from labelonce.learning import SoftmaxRegression as SoftmaxRegression
    from labelonce.learning import TrainOnAggregate as TrainOnAggregate
    from labelonce.learning import UnbiasedLoss as UnbiasedLoss
    from labelonce.learning import annotation_log_likelihood as annotation_log_likelihood
    from labelonce.multilabel import MultiLabelAnnotations as MultiLabelAnnotations
    from labelonce.multilabel import MultiLabelDawidSkene as MultiLabelDawidSkene
    from labelonce.multilabel import MultiLabelMBEM as MultiLabelMBEM
    from labelonce.multilabel import MultiLabelVote as MultiLabelVote
    from labelonce.multilabel import read_multilabel as read_multilabel
    from labelonce.report import write_report as write_report
    from labelonce.runs import load as load
    from labelonce.runs import save as save

    __all__: list[str]
else:  # a type checker reads the names above
    from labelonce import aggregation

    _MODULES = ["data", "datasets", "formats", "learning", "metrics", "multilabel", "neural"]
    _MODULES += ["planning", "report", "routing", "runs", "service", "sharded", "simulate", "theory", "workers"]
    _NAMES = {
        "aggregation": aggregation.__all__,
        "data": ["Annotations", "check"],
        "io": ["read_annotations", "read_gold", "write"],
        "learning": [
            *["MBEM", "BoostedTrees", "DoubtWarning", "ForwardCorrection", "OracleConfusion", "OracleCorrect"],
            *["SoftmaxRegression", "TrainOnAggregate", "UnbiasedLoss", "annotation_log_likelihood"],
        ],
        "multilabel": [
            *["MultiLabelAnnotations", "MultiLabelDawidSkene", "MultiLabelMBEM", "MultiLabelVote", "read_multilabel"],
        ],
        "report": ["write_report"],
        "runs": ["load", "save"],
    }
    _HOME = {name: f"labelonce.{module}" for module, names in _NAMES.items() for name in names}
    __all__ = sorted([*_HOME, *_MODULES], key=lambda name: (not name.isupper(), name[0].islower(), name))

    def __getattr__(name: str) -> Any:
        if name in _HOME:
            return getattr(import_module(_HOME[name]), name)
        if name in _MODULES:
            return import_module(f"labelonce.{name}")
        raise AttributeError(f"module 'labelonce' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__version__ = "0.1.0"
