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
    *,
    output: Path,
    gold: Path | None,
    tasks: int,
    workers: int,
    classes: int,
    redundancy: int,
    crowd: Crowd,
    quality: float,
    seed: int,
) -> None:
    """Draw a crowd and its labels, and write them."""
    check_outputs([], output=(output, None), gold=(gold, None))
    rng = np.random.default_rng(check_int(seed, "seed", 0))
    confusion = CROWDS[crowd](workers, classes, quality, rng)
    assignment = simulate.assign(tasks, workers, redundancy, rng, replace=False)
    y_true = rng.integers(0, classes, tasks)
    annotations = simulate.annotate(y_true, confusion, assignment, rng)
    write(annotations, output)
    if gold is not None:
        write(pa.table({"task": annotations.tasks, "label": y_true}), gold)
    print_status(f"{annotations!r} -> {output}")
