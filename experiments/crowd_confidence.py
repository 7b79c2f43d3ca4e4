"""How sure aggregators may be on real crowds: what the posterior says, what `confidence_` says, and what is right.

Seventeen crowds of people, without gold and with 150 gold labels (or a fifth of those there are); `right` and both
confidences are of the tasks whose truth is known and was not given. The prior of the correlation of errors,
`correlated_errors` of the rules, was chosen on every second crowd, "choose"; the others are "report".

    python experiments/crowd_confidence.py
    python experiments/crowd_confidence.py --table   # the table again
"""

from statistics import fmean
from typing import Any

import data_sets
import numpy as np
from aggregators_on_real_crowds import NAMES
from record import RESULTS, Trial, experiment, grid, markdown

import labelonce as lo

PATH = RESULTS / "crowd_confidence.json"
SAYS = ("posterior_says", "confidence_says")
METHODS: dict[str, Any] = {"DawidSkene": lo.DawidSkene, "OneCoin": lo.OneCoin}


def trial(name: str, method: str, gold: int) -> Trial:
    """Return what one aggregator says on one crowd, and what is right."""
    data: Any = data_sets.load(name)
    annotations, truth = data.annotations, data.gold_of(data.annotations)
    known = np.flatnonzero(truth >= 0)
    rng = np.random.default_rng(0)
    given = rng.choice(known, min(gold, len(known) // 5), replace=False)
    rest = np.setdiff1d(known, given)
    codes = {annotations.tasks[task]: annotations.classes[truth[task]] for task in given}
    fitted = METHODS[method]().fit(annotations, gold=codes or None)
    right = float((fitted.labels_[rest] == annotations.classes[truth[rest]]).mean())
    accuracy = fitted.estimated_accuracy_
    says = float(np.asarray(fitted.posterior_)[rest].max(axis=1).mean())
    found = {"right": right, "low": accuracy.low, "high": accuracy.high, "posterior_says": says}
    return found | {"confidence_says": float(fitted.confidence_[rest].mean())}


def table(trials: list[Trial]) -> str:
    """Return one row per crowd for Dawid-Skene, and the means of all methods by half."""
    head = ["crowd", "right", "posterior says", "confidence says", "range"]
    head += ["with gold: right", "posterior", "confidence"]
    rows = []
    for name in NAMES:
        plain, gold = (t for t in trials if (t["name"], t["method"]) == (name, "DawidSkene"))
        cells = [[f"{one[key]:.3f}" for key in ("right", *SAYS)] for one in (plain, gold)]
        rows.append([name, *cells[0], f"{plain['low']:.2f} to {plain['high']:.2f}", *cells[1]])
    means: list[list[Any]] = []
    for method in METHODS:
        for number in (0, 150):
            for half, names in (("choose", NAMES[::2]), ("report", NAMES[1::2])):
                own = [t for t in trials if t["name"] in names and t["method"] == method and t["gold"] == number]
                off = [f"{fmean(abs(t[key] - t['right']) for t in own) * 100:.1f}" for key in SAYS]
                inside = fmean(t["low"] <= t["right"] <= t["high"] for t in own) * 100
                means.append([method, number, half, *off, f"{inside:.0f} %"])
    second = ["method", "gold", "half", "posterior off, points", "confidence off, points", "range holds the truth"]
    return f"Dawid-Skene:\n\n{markdown(head, rows)}\nHow far off, on average:\n\n{markdown(second, means)}"


if __name__ == "__main__":
    points = grid(name=NAMES, method=METHODS, gold=(0, 150))
    experiment(__doc__, PATH, trial, lambda _: points, table, order={"name": NAMES, "method": list(METHODS)})
