"""Who labels what next: a router that hands out tasks, and the strategies by which it chooses."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
    from labelonce.routing._belief import Belief
    from labelonce.routing._limits import Limits, Prices
    from labelonce.routing._refit import Fit
    from labelonce.routing._router import Router
    from labelonce.routing._strategies._active_lab import ActiveLab
    from labelonce.routing._strategies._adaptive_rounds import AdaptiveRounds
    from labelonce.routing._strategies._fewest_labels import FewestLabels
    from labelonce.routing._strategies._information import Information
    from labelonce.routing._strategies._random import Random
    from labelonce.routing._strategies._strategy import Strategy
    from labelonce.routing._strategies._worker_testing import WorkerTesting

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.routing._strategies import strategy_of
