"""Runs on disk: fitted objects saved without pickle, and run folders that survive a kill."""

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
