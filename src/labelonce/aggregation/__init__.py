"""Aggregators: annotations in, a posterior for every task and a confusion matrix for every worker out."""

from labelonce.aggregation._assignment import AssignmentWarning
from labelonce.aggregation._base import Aggregator, RedundancyWarning
from labelonce.aggregation._belief_propagation import BeliefPropagation
from labelonce.aggregation._compare import Comparison, compare_aggregators
from labelonce.aggregation._data_programming import DataProgramming
from labelonce.aggregation._dawid_skene import DawidSkene
from labelonce.aggregation._ebcc import EBCC
from labelonce.aggregation._eigen_ratio import EigenRatio
from labelonce.aggregation._glad import GLAD
from labelonce.aggregation._ibcc import IBCC
from labelonce.aggregation._kos import KOS
from labelonce.aggregation._mace import MACE
from labelonce.aggregation._majority_vote import MajorityVote
from labelonce.aggregation._mean_field import MeanField
from labelonce.aggregation._minimax_entropy import MinimaxEntropy
from labelonce.aggregation._multidimensional_wisdom import MultidimensionalWisdom
from labelonce.aggregation._one_coin import OneCoin
from labelonce.aggregation._spectral_dawid_skene import SpectralDawidSkene
from labelonce.aggregation._wawa import Wawa

__all__ = [
    "EBCC",
    "GLAD",
    "IBCC",
    "KOS",
    "MACE",
    "Aggregator",
    "AssignmentWarning",
    "BeliefPropagation",
    "Comparison",
    "DataProgramming",
    "DawidSkene",
    "EigenRatio",
    "MajorityVote",
    "MeanField",
    "MinimaxEntropy",
    "MultidimensionalWisdom",
    "OneCoin",
    "RedundancyWarning",
    "SpectralDawidSkene",
    "Wawa",
    "compare_aggregators",
]
