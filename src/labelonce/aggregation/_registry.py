"""The aggregators, one line each. It loads nothing, so the command line can name them before any of them is needed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelonce.aggregation._base import Aggregator

COMMANDS = {  # the class, and its name on the command line: kos is in _kos.py, one-coin in _one_coin.py
    "MajorityVote": "majority-vote",
    "DawidSkene": "dawid-skene",
    "OneCoin": "one-coin",
    "IBCC": "ibcc",
    "Wawa": "wawa",
    "ExpertiseVote": "expertise-vote",
    "GLAD": "glad",
    "MACE": "mace",
    "MeanField": "mean-field",
    "BeliefPropagation": "belief-propagation",
    "KOS": "kos",
    "EigenRatio": "eigen-ratio",
    "EBCC": "ebcc",
    "SpectralDawidSkene": "spectral-dawid-skene",
    "MinimaxEntropy": "minimax-entropy",
    "MultidimensionalWisdom": "multidimensional-wisdom",
    "DataProgramming": "data-programming",
}
HOMES = {name: f"labelonce.aggregation._{command.replace('-', '_')}" for name, command in COMMANDS.items()}


def aggregators() -> dict[str, type[Aggregator]]:
    """Return every aggregator by the name of its class."""
    return {name: getattr(import_module(home), name) for name, home in HOMES.items()}


def aggregator_of(command: str) -> type[Aggregator]:
    """Return the aggregator with this name on the command line."""
    name = next(name for name, known in COMMANDS.items() if known == command)
    kind: type[Aggregator] = getattr(import_module(HOMES[name]), name)
    return kind
