"""Learners and the rounds: features and annotations in, a classifier with its workers out."""

from labelonce.aggregation._base import DoubtWarning as DoubtWarning
from labelonce.learning._adapter import RepeatedRows
from labelonce.learning._average import AveragedModels
from labelonce.learning._baselines import OracleConfusion, OracleCorrect, TrainOnAggregate
from labelonce.learning._boost import BoostedTrees
from labelonce.learning._default import default_learner, default_workers
from labelonce.learning._grouped_softmax import GroupedSoftmax
from labelonce.learning._learner import Learner
from labelonce.learning._mbem import MBEM
from labelonce.learning._scoring import annotation_log_likelihood
from labelonce.learning._softmax import SoftmaxRegression
from labelonce.learning._text import TextComponents, TextFeatures, text_model

__all__ = [
    "MBEM",
    "AveragedModels",
    "BoostedTrees",
    "GroupedSoftmax",
    "Learner",
    "OracleConfusion",
    "OracleCorrect",
    "RepeatedRows",
    "SoftmaxRegression",
    "TextComponents",
    "TextFeatures",
    "TrainOnAggregate",
    "annotation_log_likelihood",
    "default_learner",
    "default_workers",
    "text_model",
]
