"""Runs on disk: fitted objects saved without pickle, and run folders that survive a kill."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.runs._folder import RunFolder
from labelonce.runs._model_file import load, save
from labelonce.runs._predict import predict, read_run
from labelonce.runs._record import Options, RunRecord
from labelonce.runs._report import report
from labelonce.runs._results import review
from labelonce.runs._train import resume, train

__all__ = [
    "Options",
    "RunFolder",
    "RunRecord",
    "load",
    "predict",
    "read_run",
    "report",
    "resume",
    "review",
    "save",
    "train",
]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.runs._doors import settled as settled
    from labelonce.runs._folder import as_train_wrote as as_train_wrote
    from labelonce.runs._gold import choose_gold as choose_gold
    from labelonce.runs._inputs import read_features as read_features
    from labelonce.runs._inputs import read_texts as read_texts
    from labelonce.runs._inputs import tasks_of as tasks_of
    from labelonce.runs._labels import find_files as find_files
    from labelonce.runs._labels import names_of as names_of
    from labelonce.runs._labels import of_classes as of_classes
    from labelonce.runs._labels import read_labels as read_labels
    from labelonce.runs._labels import work_in as work_in
    from labelonce.runs._questions import choose_question_gold as choose_question_gold
    from labelonce.runs._questions import has_questions as has_questions
    from labelonce.runs._questions import read_questions as read_questions
    from labelonce.runs._questions import ticked_table as ticked_table
    from labelonce.runs._record import FORMAT as FORMAT
    from labelonce.runs._record import EstimatedAccuracy as EstimatedAccuracy
    from labelonce.runs._record import QuestionOutcome as QuestionOutcome
    from labelonce.runs._record import changed_paths as changed_paths
    from labelonce.runs._record import near as near
    from labelonce.runs._record import read_json as read_json
    from labelonce.runs._results import class_figures_of as class_figures_of
    from labelonce.runs._train import Progress as Progress
    from labelonce.runs._train import fitted_to as fitted_to
    from labelonce.runs._train import read_inputs as read_inputs
else:
    __getattr__, _, _ = lazy_names(__name__)
