"""What a pilot leaves behind: its fit, and where it is a run folder the features it was fitted to."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import argument
from labelonce.data import Annotations, check_whole
from labelonce.runs import Options, RunFolder, load, near, read_inputs, read_run, work_in


@dataclass(frozen=True)
class Pilot:
    """What to plan with: the fit or the crowd, what to simulate with, and notes on what could not be read.

    `tasks` is the number of tasks of a run, and `pay` what each worker got for a label, None where that is not known.
    """

    workers: Any
    features: Any = None
    annotations: Annotations | None = None
    notes: tuple[str, ...] = ()
    tasks: int | None = None
    pay: dict[Any, float] | None = None

    def price(self, given: Any) -> tuple[float, list[str]]:
        """Return the price of a label, as given or the mean pay of the workers, and the notes on it."""
        if given is not None:
            return given, []
        fix = f"{argument('label_price')} sets another price."
        paid = [] if self.pay is None else [pay for pay in self.pay.values() if np.isfinite(pay) and pay > 0]
        if not paid:
            return 1.0, [f"No price is given, so one label costs 1 and the budget counts labels. {fix}"]
        mean, low, high = float(np.mean(paid)), min(paid), max(paid)
        by_worker = "" if high - low < 0.005 * mean else f" ({low:,.4g} to {high:,.4g} by worker)"
        return mean, [f"One label costs {mean:,.4g}, the mean pay per worker in the files{by_worker}. {fix}"]


def read_pilot(workers: Any, features: Any, annotations: Annotations | None, *, simulated: bool) -> Pilot:
    """Return the pilot; of a run folder the model, and its inputs if the problem is to be `simulated`."""
    if not isinstance(workers, str | Path):
        return Pilot(workers, features, annotations) if simulated else Pilot(workers)
    record = read_run(Path(workers))
    options, _ = record.options.with_paths(near), record.outcome  # of questions it is an error
    fitted = load(RunFolder(Path(workers)).file("model.skops"))
    pilot = Pilot(fitted, tasks=record.data.tasks, pay=_pay(options, record.data.annotations))
    if not simulated:
        return pilot
    check_whole(annotations, "plan")
    if features is not None:
        return replace(pilot, features=features, annotations=annotations)
    if options.images is not None:
        return replace(pilot, notes=("Nothing was simulated, since networks take too long to fit so often.",))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # train has said what there is to say
            inputs = read_inputs(options)
    except (OSError, ValueError) as error:
        return replace(pilot, notes=(f"Nothing was simulated, since the inputs of the run cannot be read: {error}",))
    return replace(pilot, features=inputs.rows.X, annotations=inputs.annotations)


def _pay(options: Options, n_annotations: int) -> dict[Any, float] | None:
    """Return what each worker was paid for a label on average, where the files of labels know it."""
    work = work_in(options.label_files, options.source, n_annotations)
    if work is None or "pay" not in work.column_names:
        return None
    means = work.group_by("worker").aggregate([("pay", "mean")])
    return dict(zip(means["worker"].to_pylist(), means["pay_mean"].to_pylist(), strict=True))
