"""Runs on disk: fitted objects saved without pickle, and run folders that survive a kill."""

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.runs._folder import RunFolder
from labelonce.runs._model_file import load, save
from labelonce.runs._predict import predict, read_run
from labelonce.runs._record import Options, RunRecord
from labelonce.runs._results import report, review
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
    from labelonce.runs._doors import settled
    from labelonce.runs._folder import as_train_wrote
    from labelonce.runs._inputs import read_features, read_texts, tasks_of
    from labelonce.runs._labels import choose_gold, find_files, names_of, of_classes, read_labels, work_in
    from labelonce.runs._questions import choose_question_gold, has_questions, read_questions, ticked_table
    from labelonce.runs._record import FORMAT, EstimatedAccuracy, QuestionOutcome, changed_paths, near, read_json
    from labelonce.runs._results import class_figures_of
    from labelonce.runs._train import Progress, fitted_to, read_inputs
else:
    __getattr__, _, _ = lazy_names(__name__)
