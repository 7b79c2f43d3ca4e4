"""What a pilot leaves behind: its fit, and where it is a run folder the features it was fitted to."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelonce.data import Annotations
from labelonce.data._extra import check_whole
from labelonce.runs import RunFolder, load, read_run
from labelonce.runs._record import near
from labelonce.runs._train import read_inputs


@dataclass(frozen=True)
class Pilot:
    """What to plan with: the fit or the crowd, what to simulate with, and notes on what could not be read."""

    workers: Any
    features: Any = None
    annotations: Annotations | None = None
    notes: tuple[str, ...] = ()


def read_pilot(workers: Any, features: Any, annotations: Annotations | None, *, simulated: bool) -> Pilot:
    """Return the pilot; of a run folder the model, and its inputs if the problem is to be `simulated`."""
    from_folder = isinstance(workers, str | Path)
    of_classes = read_run(Path(workers)).outcome if from_folder else None
    fitted = workers if of_classes is None else load(RunFolder(Path(workers)).file("model.skops"))
    if not simulated:
        return Pilot(fitted)
    check_whole(annotations, "plan")
    if not from_folder or features is not None:
        return Pilot(fitted, features, annotations)
    options = read_run(Path(workers)).options
    if options.images is not None:
        return Pilot(fitted, notes=("Nothing was simulated, since networks take too long to fit so often.",))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # train has said what there is to say
            inputs = read_inputs(options.with_paths(near))
    except (OSError, ValueError) as error:
        return Pilot(fitted, notes=(f"Nothing was simulated, since the inputs of the run cannot be read: {error}",))
    return Pilot(fitted, inputs.rows.X, inputs.annotations)
