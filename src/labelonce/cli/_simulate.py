"""`labelonce simulate`."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce import simulate
from labelonce._validate import check_int
from labelonce.cli._options import Crowd
from labelonce.cli._print import print_status
from labelonce.cli._source import check_outputs
from labelonce.io import write

CROWDS: dict[Crowd, Any] = {
    "hammer-spammer": simulate.hammer_spammer,
    "class-wise": simulate.class_wise_hammer_spammer,
    "adversarial": simulate.adversarial,
}


def run_simulate(
    sizes: tuple[int, int, int, int], crowd: Crowd, quality: float, seed: int, *, output: Path, gold: Path | None
) -> None:
    """Draw a crowd and its labels, and write them; `sizes`: tasks, workers, classes, redundancy."""
    check_outputs([], output=(output, None), gold=(gold, None))
    n_tasks, n_workers, n_classes, redundancy = sizes
    rng = np.random.default_rng(check_int(seed, "seed", 0))
    confusion = CROWDS[crowd](n_workers, n_classes, quality, rng)
    assignment = simulate.assign(n_tasks, n_workers, redundancy, rng, replace=False)
    y_true = rng.integers(0, n_classes, n_tasks)
    annotations = simulate.annotate(y_true, confusion, assignment, rng)
    write(annotations, output)
    if gold is not None:
        write(pa.table({"task": annotations.tasks, "label": y_true}), gold)
    print_status(f"{annotations!r} -> {output}")
