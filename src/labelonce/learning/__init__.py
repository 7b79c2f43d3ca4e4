"""Learners and the rounds: features and annotations in, a classifier with its workers out."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
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
from labelonce.learning._standardise import Standardiser
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
    "Standardiser",
    "TextComponents",
    "TextFeatures",
    "TrainOnAggregate",
    "annotation_log_likelihood",
    "default_learner",
    "default_workers",
    "text_model",
]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.learning._adapter import as_learner as as_learner
    from labelonce.learning._features import FeaturesClassifier as FeaturesClassifier
    from labelonce.learning._features import GivenLearner as GivenLearner
    from labelonce.learning._features import given_learners as given_learners
    from labelonce.learning._inputs import check_arrays as check_arrays
    from labelonce.learning._inputs import check_features as check_features
    from labelonce.learning._inputs import match_rows as match_rows
    from labelonce.learning._inputs import split_task_column as split_task_column
    from labelonce.learning._mbem import Callback as Callback
    from labelonce.learning._predict import take_rows as take_rows
    from labelonce.learning._problem import Problem as Problem
    from labelonce.learning._review import what_to_do as what_to_do
    from labelonce.learning._scoring import AnnotationsScorer as AnnotationsScorer
    from labelonce.learning._softmax import SoftmaxModel as SoftmaxModel
    from labelonce.learning._threads import n_values as n_values
    from labelonce.learning._verdict import LEVEL as LEVEL
    from labelonce.learning._verdict import Verdict as Verdict
else:
    __getattr__, _, _ = lazy_names(__name__)
