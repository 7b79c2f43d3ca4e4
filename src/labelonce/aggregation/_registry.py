"""The aggregators, one line each, and those of other packages. Nothing is loaded before it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from labelonce.aggregation._plugins import AGGREGATORS, load_plugin, plugins

if TYPE_CHECKING:
    from labelonce.aggregation._base import Aggregator

_BASE = "labelonce.aggregation._base"
_OURS = {  # the class, and its name on the command line: ibcc is in _ibcc.py, one-coin in _one_coin.py
    "MajorityVote": "majority-vote",
    "DawidSkene": "dawid-skene",
    "OneCoin": "one-coin",
    "IBCC": "ibcc",
    "Wawa": "wawa",
    "GLAD": "glad",
    "MACE": "mace",
    "EBCC": "ebcc",
}
_BASELINES = {  # the same of those in `labelonce.baselines`
    "ExpertiseVote": "expertise-vote",
    "MeanField": "mean-field",
    "BeliefPropagation": "belief-propagation",
    "KOS": "kos",
    "EigenRatio": "eigen-ratio",
    "SpectralDawidSkene": "spectral-dawid-skene",
    "MinimaxEntropy": "minimax-entropy",
    "MultidimensionalWisdom": "multidimensional-wisdom",
    "DataProgramming": "data-programming",
}
_OTHERS = {point.attr: name for name, point in plugins(AGGREGATORS).items()}
COMMANDS = _OTHERS | _OURS | _BASELINES
HOMES = {
    name: f"labelonce.{room}._{command.replace('-', '_')}"
    for room, names in (("aggregation", _OURS), ("baselines", _BASELINES))
    for name, command in names.items()
}


def aggregators() -> dict[str, type[Aggregator]]:
    return {name: aggregator_of(command) for name, command in COMMANDS.items()}


def aggregator_of(command: str) -> type[Aggregator]:
    name = next(name for name, known in COMMANDS.items() if known == command)
    if name in HOMES:
        kind: type[Aggregator] = getattr(import_module(HOMES[name]), name)
        return kind
    found: type[Aggregator] = load_plugin(plugins(AGGREGATORS)[command], import_module(_BASE).Aggregator)
    return found
