"""Train classifiers and clean labels from noisy crowd labels, even with one label per task.

The names at the top are the objects of the guides and the rooms that the guides speak of, each loaded when it is first
used: `labelonce --help` must not wait for scikit-learn. The other rooms are imported: `from labelonce import theory`.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce import baselines as baselines
    from labelonce import datasets as datasets
    from labelonce import embed as embed
    from labelonce import metrics as metrics
    from labelonce import neural as neural
    from labelonce import routing as routing
    from labelonce import simulate as simulate
    from labelonce import workers as workers
    from labelonce.aggregation import EBCC as EBCC
    from labelonce.aggregation import GLAD as GLAD
    from labelonce.aggregation import IBCC as IBCC
    from labelonce.aggregation import MACE as MACE
    from labelonce.aggregation import DawidSkene as DawidSkene
    from labelonce.aggregation import MajorityVote as MajorityVote
    from labelonce.aggregation import OneCoin as OneCoin
    from labelonce.aggregation import Wawa as Wawa
    from labelonce.aggregation import compare_aggregators as compare_aggregators
    from labelonce.data import Annotations as Annotations
    from labelonce.data import agreement as agreement
    from labelonce.data import check as check
    from labelonce.io import read_annotations as read_annotations
    from labelonce.io import read_gold as read_gold
    from labelonce.io import write as write
    from labelonce.judges import JudgePanel as JudgePanel
    from labelonce.learning import MBEM as MBEM
    from labelonce.learning import BoostedTrees as BoostedTrees
    from labelonce.learning import DoubtWarning as DoubtWarning
    from labelonce.learning import OracleConfusion as OracleConfusion
    from labelonce.learning import OracleCorrect as OracleCorrect
    from labelonce.learning import SoftmaxRegression as SoftmaxRegression
    from labelonce.learning import TrainOnAggregate as TrainOnAggregate
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
    __getattr__, __dir__, __all__ = lazy_names(__name__)

__version__ = "0.1.0"
