"""Worker models: predictions and annotations in, a confusion matrix for every worker out, with its uncertainty."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
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

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.workers._answers import leaning_moments as leaning_moments
    from labelonce.workers._groups import read_groups as read_groups
    from labelonce.workers._population import has_moved as has_moved
else:
    __getattr__, _, _ = lazy_names(__name__)
