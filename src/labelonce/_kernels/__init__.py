"""Arrays in, arrays out: the sums over annotations that every model of workers is made of.

An annotation is one row `worker * n_answers + label` of a table whose columns are the true classes. The
E-step adds up table rows over the annotations of each task, the M-step adds up posteriors over the
annotations of each row: one sparse matrix, used forwards and transposed. Nothing outside this package
knows that layout; confusion comes in and counts go out as [worker, true, given]. Two engines do the sums:
`ScipyEngine` of the base install, and `TorchEngine` for large tables, CPU threads and CUDA. `CandidateSums` and
`TorchCandidateSums` are the two where tasks have candidates, `BlockSums` does the sums of blocks that are streamed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelonce._kernels._arrays import NUMPY, Arrays
from labelonce._kernels._blas import blas_threads
from labelonce._kernels._confusion import one_coin_confusion
from labelonce._kernels._engine import (
    DEVICES,
    CandidateEngine,
    Engine,
    EStep,
    Sweep,
    make_candidate_engine,
    make_engine,
)
from labelonce._kernels._posterior import (
    entropy,
    floored_log,
    label_probabilities,
    log_sums,
    mean_total_variation,
    normalise,
    posterior_of,
    top_class,
    vote_fractions,
)
from labelonce._kernels._shared import SharedEngine, total

if TYPE_CHECKING:
    from labelonce._kernels._blocks import BLOCK_SIZE, Block, BlockSums
    from labelonce._kernels._candidate_evidence import CandidateEvidence, Chances, Heard
    from labelonce._kernels._candidate_sums import CandidateSums
    from labelonce._kernels._candidates import Candidates, as_dense, candidate_classes, join_candidates
    from labelonce._kernels._cells import LabelCells
    from labelonce._kernels._factors import ConfusionOnRequest, Factors, Mistakes, Tallies
    from labelonce._kernels._scipy import ScipyEngine
    from labelonce._kernels._sums import AnnotationSums

__all__ = [
    "BLOCK_SIZE",
    "DEVICES",
    "NUMPY",
    "AnnotationSums",
    "Arrays",
    "Block",
    "BlockSums",
    "CandidateEngine",
    "CandidateEvidence",
    "CandidateSums",
    "Candidates",
    "Chances",
    "ConfusionOnRequest",
    "EStep",
    "Engine",
    "Factors",
    "Heard",
    "LabelCells",
    "Mistakes",
    "ScipyEngine",
    "SharedEngine",
    "Sweep",
    "Tallies",
    "as_dense",
    "blas_threads",
    "candidate_classes",
    "entropy",
    "floored_log",
    "join_candidates",
    "label_probabilities",
    "log_sums",
    "make_candidate_engine",
    "make_engine",
    "mean_total_variation",
    "normalise",
    "one_coin_confusion",
    "posterior_of",
    "top_class",
    "total",
    "vote_fractions",
]

_HOME = {  # loaded when used: the torch engine needs no scipy, the base install has no torch
    "ScipyEngine": "_scipy",
    "AnnotationSums": "_sums",
    "CandidateEvidence": "_candidate_evidence",
    "CandidateSums": "_candidate_sums",
    "Chances": "_candidate_evidence",
    "Heard": "_candidate_evidence",
    "Candidates": "_candidates",
    "as_dense": "_candidates",
    "candidate_classes": "_candidates",
    "join_candidates": "_candidates",
    "BLOCK_SIZE": "_blocks",
    "Block": "_blocks",
    "BlockSums": "_blocks",
    "ConfusionOnRequest": "_factors",
    "Factors": "_factors",
    "LabelCells": "_cells",
    "Mistakes": "_factors",
    "Tallies": "_factors",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"labelonce._kernels.{_HOME[name]}"), name)
    raise AttributeError(f"module 'labelonce._kernels' has no attribute {name!r}")
