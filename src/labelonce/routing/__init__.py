"""Who labels what next: a router that hands out tasks, and the strategies by which it chooses."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.routing._belief import Belief
from labelonce.routing._limits import Limits, Prices
from labelonce.routing._refit import Fit
from labelonce.routing._router import Router
from labelonce.routing._strategies import (
    ActiveLab,
    AdaptiveRounds,
    FewestLabels,
    Information,
    Random,
    Strategy,
    WorkerTesting,
)

__all__ = [
    "ActiveLab",
    "AdaptiveRounds",
    "Belief",
    "FewestLabels",
    "Fit",
    "Information",
    "Limits",
    "Prices",
    "Random",
    "Router",
    "Strategy",
    "WorkerTesting",
]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.routing._strategies import strategy_of
else:
    __getattr__, _, _ = lazy_names(__name__)
