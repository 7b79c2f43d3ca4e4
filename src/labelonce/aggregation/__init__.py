"""Aggregators: annotations in, a posterior for every task and a confusion matrix for every worker out."""

from labelonce.aggregation._base import Aggregator, RedundancyWarning
from labelonce.aggregation._dawid_skene import DawidSkene
from labelonce.aggregation._ibcc import IBCC
from labelonce.aggregation._majority_vote import MajorityVote
from labelonce.aggregation._one_coin import OneCoin

__all__ = ["IBCC", "Aggregator", "DawidSkene", "MajorityVote", "OneCoin", "RedundancyWarning"]
