"""Real crowd-labelled data sets that come with the package."""

from labelonce.datasets._dataset import Dataset
from labelonce.datasets._load import load, names

__all__ = ["Dataset", "load", "names"]
