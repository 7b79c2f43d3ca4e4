"""Aggregators: annotations in, a posterior for every task and a confusion matrix for every worker out.

A new one is a file here, a line in `_registry.py` and a line below. Each is loaded when it is first used. Older
methods, for comparison, are in `labelonce.baselines`.
"""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce.aggregation._base import Aggregator, Fit, RedundancyWarning
    from labelonce.aggregation._compare import Comparison, compare_aggregators
    from labelonce.aggregation._dawid_skene import DawidSkene
    from labelonce.aggregation._ebcc import EBCC
    from labelonce.aggregation._em import EMAggregator, Parameters
    from labelonce.aggregation._glad import GLAD
    from labelonce.aggregation._ibcc import IBCC
    from labelonce.aggregation._mace import MACE
    from labelonce.aggregation._majority_vote import MajorityVote
    from labelonce.aggregation._one_coin import OneCoin
    from labelonce.aggregation._wawa import Wawa

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.aggregation._base import (
        DoubtWarning,
        has_no_room,
        labels_frame,
        other_answers,
        set_fitted,
        warn_if_no_overlap,
        warn_of_overlap,
    )
    from labelonce.aggregation._confidence import by_correlation
    from labelonce.aggregation._em import (
        AnswersEM,
        Iteration,
        check_float32_is_smooth,
        check_pair,
        fixed_prior,
        pseudo_counts,
        warn_not_converged,
        warn_not_settled,
    )
    from labelonce.aggregation._ibcc import divergence, expected_log
    from labelonce.aggregation._plugins import STRATEGIES, plugins
    from labelonce.aggregation._registry import COMMANDS, aggregator_of
