"""The seam between models and engines: what an engine does, and which one does it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from labelonce._kernels._arrays import Arrays
from labelonce._types import ENGINES, Codes, Floats

if TYPE_CHECKING:
    import numpy as np

    from labelonce._kernels._candidate_evidence import Chances, Heard
    from labelonce._kernels._candidate_sums import CandidateStep
    from labelonce._kernels._candidates import Candidates
    from labelonce._kernels._factors import Factors, Mistakes, Tallies
    from labelonce.data import Annotations

DEVICES = (None, "cpu", "cuda")
_PAYS = 1_000_000  # annotations from which "auto" takes torch, if it is loaded
_PAYS_ON_CUDA = 10_000  # of annotations with candidates, whose steps are slow in numpy: on CUDA they pay much sooner
_NUMBERS = 10  # that stand for an annotation where it has candidates: the classes that `_PAYS` was measured with
_PAYS_LOADING = 10_000_000  # and from which it loads torch for that, which takes seconds


class EStep(NamedTuple):
    """What one E-step gives: posteriors (n_tasks, n_classes) and the log-likelihood of all annotations."""

    posterior: Floats
    log_likelihood: float


class Sweep(NamedTuple):
    """What an E-step and the sums over its posteriors give; the posteriors themselves never leave the engine.

    `leaning` is the engine's.
    """

    confusion_counts: Floats
    class_counts: Floats
    log_likelihood: float
    leaning: Floats | None = None


class Engine(Protocol):
    """The annotations, ready for many iterations; arrays in, arrays out.

    `leaning` is what the answers speak for, as `Annotations.leaning`; None where they are the classes.
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

    def m_step(self, posterior: Floats) -> Floats:
        """Return the expected confusion counts as float64 [worker, true, given]."""

    def sweep(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> Sweep:
        """Return the counts that `m_step` gives for the posteriors of `e_step`, and the tasks of each class."""


class Evidence(Protocol):
    """What the labels of tasks with candidates say of their workers; see `CandidateEvidence`."""

    def step(self, chances: Chances, factors: Factors, log_prior: Any) -> Heard:
        """Return what labels say now."""


class CandidateEngine(Protocol):
    """The annotations of tasks with candidates, ready for many iterations; arrays in, arrays out."""

    classes: Codes
    dtype: np.dtype[Any]
    arrays: Arrays

    def keep(self, log_prior: Floats) -> Any:
        """Return a log prior as the engine's steps take it, where many steps use it."""

    def e_step(self, factors: Factors, log_prior: Any) -> CandidateStep:
        """Return the posteriors; `log_prior` (n_tasks, width + 1) is log P(true label), last of all other classes.

        It is minus infinity where there is no candidate.
        """

    def messages(self, factors: Factors) -> Floats:
        """Return the sum of log P(label | true) over each task's labels, by candidate, (n_tasks, width + 1)."""

    def m_step(self, posterior: Candidates, weight: Floats | None = None) -> Tallies:
        """Return right and wrong labels as posteriors on these candidates see them; tasks count `weight`, or 1."""

    def sweep(self, factors: Factors, log_prior: Any) -> tuple[Tallies, float]:
        """Return what `m_step` gives for the posteriors of `e_step`, never held all at once; the log-likelihood."""

    def evidence(self) -> Evidence:
        """Return what labels say of their workers, to be heard in steps."""

    def as_candidates(self, wide: Floats) -> Candidates:
        """Return probabilities (n_tasks, width + 1) as distributions."""


def make_engine(annotations: Annotations, dtype: str, engine: str = "auto", device: str | None = None) -> Engine:
    """Return the engine asked for, or with "auto" the one that pays at this size."""
    if engine_for(len(annotations), dtype, engine, device) == "scipy":
        from labelonce._kernels._scipy import ScipyEngine

        return ScipyEngine(annotations, dtype)
    from labelonce._kernels._torch import TorchEngine

    return TorchEngine(annotations, dtype, device)


def make_candidate_engine(
    annotations: Annotations,
    classes: Codes,
    mistakes: Mistakes,
    row: Codes,
    *,
    dtype: str = "float64",
    engine: str = "auto",
    device: str | None = None,
) -> CandidateEngine:
    """Return the engine of tasks with candidates; see `CandidateSums` for what it takes."""
    numbers = len(annotations) * (classes.shape[1] + 1)
    if engine_for(numbers // _NUMBERS, dtype, engine, device, pays_on_cuda=_PAYS_ON_CUDA) == "scipy":
        from labelonce._kernels._candidate_sums import CandidateSums

        return CandidateSums(annotations, classes, mistakes, row, dtype)
    from labelonce._kernels._torch_candidates import TorchCandidateSums

    return TorchCandidateSums(annotations, classes, mistakes, row, dtype, device)


def engine_for(size: int, dtype: str, engine: str, device: str | None, *, pays_on_cuda: int = _PAYS) -> str:
    """Return "scipy" or "torch": the one asked for, or with "auto" the one that pays at this number of annotations."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}; got {engine!r}.")
    if device not in DEVICES:
        raise ValueError(f"device must be None, 'cpu' or 'cuda'; got {device!r}.")
    if engine == "auto":
        engine = _engine_that_pays(size, dtype, device, pays_on_cuda)
    if engine == "scipy" and device == "cuda":
        raise ValueError("device must be None or 'cpu' with engine='scipy'; got 'cuda'. Use engine='torch'.")
    if engine == "torch" and find_spec("torch") is None:
        raise ImportError("engine='torch' needs PyTorch; install it with: pip install 'labelonce[neural]'.")
    return engine


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
