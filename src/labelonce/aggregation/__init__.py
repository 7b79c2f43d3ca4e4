"""Aggregators: annotations in, a posterior for every task and a confusion matrix for every worker out."""

from labelonce.aggregation._base import Aggregator, RedundancyWarning
from labelonce.aggregation._compare import Comparison, compare_aggregators
from labelonce.aggregation._data_programming import DataProgramming
from labelonce.aggregation._dawid_skene import DawidSkene
from labelonce.aggregation._ebcc import EBCC
from labelonce.aggregation._ibcc import IBCC
from labelonce.aggregation._majority_vote import MajorityVote
from labelonce.aggregation._minimax_entropy import MinimaxEntropy
from labelonce.aggregation._multidimensional_wisdom import MultidimensionalWisdom
from labelonce.aggregation._one_coin import OneCoin
from labelonce.aggregation._spectral_dawid_skene import SpectralDawidSkene

__all__ = [
    "EBCC",
    "IBCC",
    "Aggregator",
    "Comparison",
    "DataProgramming",
    "DawidSkene",
    "MajorityVote",
    "MinimaxEntropy",
    "MultidimensionalWisdom",
    "OneCoin",
    "RedundancyWarning",
    "SpectralDawidSkene",
    "compare_aggregators",
]
