"""The seam between models and engines: what an engine does, and which one does it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from labelonce._types import Codes, Floats

if TYPE_CHECKING:
    from labelonce.data import Annotations

DEVICES = (None, "cpu", "cuda")
_PAYS = 1_000_000  # annotations from which "auto" takes torch, if it is loaded
_PAYS_LOADING = 10_000_000  # and from which it loads torch for that, which takes seconds


class EStep(NamedTuple):
    """What one E-step gives: posteriors (n_tasks, n_classes) and the log-likelihood of all annotations."""

    posterior: Floats
    log_likelihood: float


class Sweep(NamedTuple):
    """What an E-step and the sums over its posteriors give; the posteriors themselves never leave the engine.

    `tallies` are `Counts`, or `Tallies` of factors; `class_counts` the expected number of rows of each class.
    """

    tallies: Any
    class_counts: Floats
    log_likelihood: float


class Engine(Protocol):
    """The annotations, ready for many iterations; arrays in, arrays out.

    `leaning` is what the answers are evidence for, as `Annotations.leaning`; None where they are the classes.
    """

    leaning: Floats | None

    def vote_counts(self) -> Floats:
        """Return how often each class was given to each task, shape (n_tasks, n_classes).

        An answer that is no class counts as it leans: not at all, or on a scale in part for two classes.
        """

    def e_step(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> EStep:
        """Return P(true label | annotations) of every task, and the log-likelihood.

        Parameters
        ----------
        log_confusion : (n_workers, n_classes, n_answers)
            Log P(given | true) as [worker, true, given]; finite.
        log_prior : (n_classes,) or (n_tasks, n_classes)
            Log P(true label); finite.
        gold : (n_tasks,), optional
            Class codes of known true labels, -1 where unknown. Their posteriors are one-hot.
        """

    def messages(self, log_confusion: Floats) -> Floats:
        """Return the sum of log P(given | true) over the annotations of each task, (n_tasks, n_classes)."""

    def m_step(self, posterior: Floats) -> Floats:
        """Return the expected confusion counts as float64 [worker, true, given]."""

    def sweep(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> Sweep:
        """Return the counts that `m_step` gives for the posteriors of `e_step`, and the tasks of each class."""


def make_engine(annotations: Annotations, dtype: str, engine: str = "auto", device: str | None = None) -> Engine:
    """Return the engine that pays at this size, or the one asked for; weights are for scipy only."""
    weighted = getattr(annotations, "has_weights", False)
    if weighted and device == "cuda":
        raise ValueError("annotations with weights or probabilities are for the CPU; got device='cuda'. Leave it out.")
    if weighted or engine_for(len(annotations), dtype, engine, device) == "scipy":
        from labelonce._kernels._scipy import ScipyEngine

        return ScipyEngine(annotations, dtype)
    from labelonce._kernels._torch import TorchEngine

    return TorchEngine.of(annotations, dtype, device)


def engine_for(size: int, dtype: str, engine: str, device: str | None, *, pays_on_cuda: int = _PAYS) -> str:
    """Return "scipy" or "torch": the one asked for, or with "auto" the one that pays at this number of annotations."""
    if device not in DEVICES:
        raise ValueError(f"device must be None, 'cpu' or 'cuda'; got {device!r}.")
    if device == "cuda" and find_spec("torch") is None:
        raise ImportError("device='cuda' needs PyTorch; install it with: pip install 'labelonce[neural]'.")
    return _engine_that_pays(size, dtype, device, pays_on_cuda) if engine == "auto" else engine


def _engine_that_pays(size: int, dtype: str, device: str | None, pays_on_cuda: int) -> str:
    """Return "torch" for CUDA, and for float32 on two CPU threads or more, where there is enough to do."""
    if device == "cuda":
        return "torch"
    least = min(_PAYS, pays_on_cuda) if "torch" in sys.modules else _PAYS_LOADING
    if size < least or find_spec("torch") is None:
        return "scipy"
    import torch

    if device is None and torch.cuda.is_available():
        return "torch"
    return "torch" if dtype == "float32" and size >= _PAYS and torch.get_num_threads() > 1 else "scipy"
