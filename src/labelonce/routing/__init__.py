"""Who labels what next: a router that hands out tasks, and the strategies by which it chooses."""

from labelonce.routing._belief import Belief
from labelonce.routing._beside import Fit
from labelonce.routing._router import Router
from labelonce.routing._strategies import (
    ActiveLab,
    AdaptiveRounds,
    ExpertList,
    FewestLabels,
    ImpactSampling,
    Information,
    IntervalEstimation,
    LabelModelUncertainty,
    ModelUncertainty,
    Random,
    RiskThreshold,
    Strategy,
    WorkerTesting,
)

__all__ = [
    "ActiveLab",
    "AdaptiveRounds",
    "Belief",
    "ExpertList",
    "FewestLabels",
    "Fit",
    "ImpactSampling",
    "Information",
    "IntervalEstimation",
    "LabelModelUncertainty",
    "ModelUncertainty",
    "Random",
    "RiskThreshold",
    "Router",
    "Strategy",
    "WorkerTesting",
]
