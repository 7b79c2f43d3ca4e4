"""Real crowd-labelled data sets, read from a folder of your own: nothing is downloaded or shipped."""

from labelonce.datasets._dataset import Dataset
from labelonce.datasets._load import load, names

__all__ = ["Dataset", "load", "names"]
