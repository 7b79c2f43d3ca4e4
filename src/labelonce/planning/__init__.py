"""Planning: what theory says about how many labels to buy."""

from labelonce.planning import theory

__all__ = ["theory"]
