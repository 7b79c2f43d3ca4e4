"""The strategies, one per file, with one interface."""

from typing import Any

from labelonce._validate import check_choice
from labelonce.aggregation import _plugins
from labelonce.routing._strategies._active_lab import ActiveLab
from labelonce.routing._strategies._adaptive_rounds import AdaptiveRounds
from labelonce.routing._strategies._fewest_labels import FewestLabels
from labelonce.routing._strategies._information import Information
from labelonce.routing._strategies._random import Random
from labelonce.routing._strategies._strategy import Strategy
from labelonce.routing._strategies._worker_testing import WorkerTesting

_OURS: tuple[type[Strategy], ...] = (ActiveLab, AdaptiveRounds, FewestLabels, Information, Random, WorkerTesting)
STRATEGIES = {one.__name__: one for one in _OURS}


def strategy_of(name: str, options: dict[str, Any]) -> Strategy:
    """Return the strategy of a name, as `Strategy.to_dict` wrote it: one of labelonce, or of an entry point."""
    others = _plugins.plugins(_plugins.STRATEGIES)
    check_choice(name, "strategy", (*STRATEGIES, *others))
    kind = STRATEGIES[name] if name in STRATEGIES else _plugins.load_plugin(others[name], Strategy)
    found: Strategy = kind(**options)
    return found
