"""Learners and the rounds: features and annotations in, a classifier with its workers out."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names

if TYPE_CHECKING:
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

    __all__: list[str]
else:  # a type checker reads the names above
    __getattr__, __dir__, __all__ = lazy_names(__name__)

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.aggregation import DoubtWarning
    from labelonce.learning._adapter import as_learner
    from labelonce.learning._default import standardised
    from labelonce.learning._features import FeaturesClassifier, GivenLearner, given_learners
    from labelonce.learning._inputs import check_arrays, check_features, match_rows, split_task_column
    from labelonce.learning._predict import take_rows
    from labelonce.learning._problem import Problem
    from labelonce.learning._review import what_to_do
    from labelonce.learning._scoring import AnnotationsScorer
    from labelonce.learning._slot_softmax import Loss, searched
    from labelonce.learning._softmax import SoftmaxModel
    from labelonce.learning._threads import n_values
    from labelonce.learning._verdict import LEVEL, Verdict
