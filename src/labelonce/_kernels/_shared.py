"""Annotations spread over processes: each has its own tasks, and counts are added up over all."""

from __future__ import annotations

from labelonce._kernels._engine import Engine, EStep, Sweep
from labelonce._kernels._processes import add_up
from labelonce._kernels._tallies import Counts
from labelonce._types import Codes, Floats


class SharedEngine:
    """An engine of this process's tasks whose sums over annotations are those of all processes.

    The annotations of all processes must have the same workers, classes and answers, in the same order.
    """

    def __init__(self, own: Engine) -> None:
        self._own = own
        self.leaning = own.leaning

    def vote_counts(self) -> Floats:
        return self._own.vote_counts()

    def e_step(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> EStep:
        posterior, log_likelihood = self._own.e_step(log_confusion, log_prior, gold)
        return EStep(posterior, float(add_up(log_likelihood)))

    def messages(self, log_confusion: Floats) -> Floats:
        return self._own.messages(log_confusion)

    def m_step(self, posterior: Floats) -> Floats:
        return add_up(self._own.m_step(posterior))

    def sweep(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> Sweep:
        own = self._own.sweep(log_confusion, log_prior, gold)
        counts = Counts(add_up(own.tallies.values), self.leaning)
        return Sweep(counts, add_up(own.class_counts), float(add_up(own.log_likelihood)))
