"""Real crowd-labelled data sets: three come with the package, the others are read from a folder of your own."""

from labelonce.datasets._dataset import Dataset
from labelonce.datasets._load import load, names

__all__ = ["Dataset", "load", "names"]
