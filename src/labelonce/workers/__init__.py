"""Worker models: predictions and annotations in, a confusion matrix for every worker out, with its uncertainty."""

from labelonce.workers._base import WorkerModel
from labelonce.workers._class_wise import ClassWise
from labelonce.workers._counted import Counted
from labelonce.workers._full import Full
from labelonce.workers._grouped import Grouped
from labelonce.workers._groups import Groups, find_groups
from labelonce.workers._intervals import beta_interval
from labelonce.workers._known import Known
from labelonce.workers._one_coin import OneCoin

__all__ = [
    "ClassWise",
    "Counted",
    "Full",
    "Grouped",
    "Groups",
    "Known",
    "OneCoin",
    "WorkerModel",
    "beta_interval",
    "find_groups",
]
