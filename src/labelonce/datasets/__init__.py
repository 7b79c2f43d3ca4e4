"""Real crowd-labelled data sets that come with the package."""

from labelonce.datasets._load import Dataset, load, names

__all__ = ["Dataset", "load", "names"]
