"""Runs on disk: fitted objects saved without pickle, and run folders that survive a kill."""

from labelonce.runs._folder import RunFolder
from labelonce.runs._model_file import load, save
from labelonce.runs._predict import predict, read_run
from labelonce.runs._train import Options, options_of, resume, train

__all__ = ["Options", "RunFolder", "load", "options_of", "predict", "read_run", "resume", "save", "train"]
