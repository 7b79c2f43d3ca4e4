"""`labelonce aggregate`."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.csv

from labelonce._annotations import Annotations
from labelonce.aggregation import (
    EBCC,
    IBCC,
    Aggregator,
    DataProgramming,
    DawidSkene,
    MajorityVote,
    MinimaxEntropy,
    MultidimensionalWisdom,
    OneCoin,
    SpectralDawidSkene,
)
from labelonce.cli._print import stderr, warnings_as_notes
from labelonce.io import write

AGGREGATORS: dict[str, type[Aggregator]] = {
    "majority-vote": MajorityVote,
    "dawid-skene": DawidSkene,
    "one-coin": OneCoin,
    "ibcc": IBCC,
    "ebcc": EBCC,
    "spectral-dawid-skene": SpectralDawidSkene,
    "minimax-entropy": MinimaxEntropy,
    "multidimensional-wisdom": MultidimensionalWisdom,
    "data-programming": DataProgramming,
}


def run_aggregate(
    annotations: Annotations, method: str, seed: int, *, output: Path | None, workers: Path | None
) -> None:
    """Fit the method and write its labels and workers."""
    model = AGGREGATORS[method]().set_params(random_state=seed)
    with warnings_as_notes():
        model.fit(annotations)
    if output is None:
        pyarrow.csv.write_csv(model.to_frame(), sys.stdout.buffer)
    else:
        write(model, output)
    if workers is not None:
        write(model.workers_to_frame(), workers)
    confidence = float(model.posterior_.max(axis=1).mean())
    stderr.print(f"{annotations!r}", markup=False)
    stderr.print(f"{method}: mean confidence {confidence:.3f}, {model.n_iter_} iterations", markup=False)
