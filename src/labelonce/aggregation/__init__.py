"""Aggregators: annotations in, a posterior for every task and a confusion matrix for every worker out.

A new one is a file here, a line in `_registry.py` and a line below. Each is loaded when it is first used. Older
methods, for comparison, are in `labelonce.baselines`.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce.aggregation._base import Aggregator as Aggregator
    from labelonce.aggregation._base import Fit as Fit
    from labelonce.aggregation._base import RedundancyWarning as RedundancyWarning
    from labelonce.aggregation._compare import Comparison as Comparison
    from labelonce.aggregation._compare import compare_aggregators as compare_aggregators
    from labelonce.aggregation._dawid_skene import DawidSkene as DawidSkene
    from labelonce.aggregation._ebcc import EBCC as EBCC
    from labelonce.aggregation._em import EMAggregator as EMAggregator
    from labelonce.aggregation._em import Parameters as Parameters
    from labelonce.aggregation._glad import GLAD as GLAD
    from labelonce.aggregation._ibcc import IBCC as IBCC
    from labelonce.aggregation._mace import MACE as MACE
    from labelonce.aggregation._majority_vote import MajorityVote as MajorityVote
    from labelonce.aggregation._one_coin import OneCoin as OneCoin
    from labelonce.aggregation._wawa import Wawa as Wawa

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.aggregation._base import DoubtWarning as DoubtWarning
    from labelonce.aggregation._base import has_no_room as has_no_room
    from labelonce.aggregation._base import labels_frame as labels_frame
    from labelonce.aggregation._base import other_answers as other_answers
    from labelonce.aggregation._base import set_fitted as set_fitted
    from labelonce.aggregation._base import warn_if_no_overlap as warn_if_no_overlap
    from labelonce.aggregation._base import warn_of_overlap as warn_of_overlap
    from labelonce.aggregation._em import Iteration as Iteration
    from labelonce.aggregation._em import check_float32_is_smooth as check_float32_is_smooth
    from labelonce.aggregation._em import fixed_prior as fixed_prior
    from labelonce.aggregation._em import pseudo_counts as pseudo_counts
    from labelonce.aggregation._em import warn_not_converged as warn_not_converged
    from labelonce.aggregation._em import warn_not_settled as warn_not_settled
    from labelonce.aggregation._ibcc import divergence as divergence
    from labelonce.aggregation._ibcc import expected_log as expected_log
    from labelonce.aggregation._plugins import STRATEGIES as STRATEGIES
    from labelonce.aggregation._plugins import plugins as plugins
    from labelonce.aggregation._registry import COMMANDS as COMMANDS
    from labelonce.aggregation._registry import aggregator_of as aggregator_of
