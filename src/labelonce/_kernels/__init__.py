"""Arrays in, arrays out: the sums over annotations that every model of workers is made of.

An annotation is one row `worker * n_classes + label` of a table whose columns are the true classes. The
E-step adds up table rows over the annotations of each task, the M-step adds up posteriors over the
annotations of each row: one sparse matrix, used forwards and transposed. Nothing outside this package
knows that layout; confusion comes in and counts go out as [worker, true, given]. Two engines do the sums:
`ScipyEngine` of the base install, and `TorchEngine` for large tables, CPU threads and CUDA.
"""

from typing import TYPE_CHECKING, Any

from labelonce._kernels._engine import DEVICES, ENGINES, Engine, EStep, Sweep, make_engine
from labelonce._kernels._posterior import (
    entropy,
    floored_log,
    log_sums,
    mean_total_variation,
    normalise,
    top_class,
    vote_fractions,
)

if TYPE_CHECKING:
    from labelonce._kernels._scipy import ScipyEngine

__all__ = [
    "DEVICES",
    "ENGINES",
    "EStep",
    "Engine",
    "ScipyEngine",
    "Sweep",
    "entropy",
    "floored_log",
    "log_sums",
    "make_engine",
    "mean_total_variation",
    "normalise",
    "top_class",
    "vote_fractions",
]


def __getattr__(name: str) -> Any:
    if name == "ScipyEngine":  # loaded when used: `_torch` needs no scipy
        from labelonce._kernels._scipy import ScipyEngine

        return ScipyEngine
    raise AttributeError(f"module 'labelonce._kernels' has no attribute {name!r}")
