"""How far the report's accuracy estimate is from the truth, on simulated crowds whose truth is known.

Aggregators alone: the estimate of MBEM is its own, measured in confidence.py. The doubts inside the estimate were set
on seeds 0 to 3 of these crowds; here are other seeds.

    python experiments/report_accuracy_estimate.py            # runs all, on one core
    python experiments/report_accuracy_estimate.py --table    # the table alone
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, write

import labelonce as lo
from labelonce.report._accuracy import estimated_accuracy
from labelonce.report._facts import read_facts

PATH = RESULTS / "report_accuracy_estimate.json"
SEEDS = range(10, 16)
CROWDS = [(2, 3, 2000, 50), (2, 5, 300, 50), (4, 3, 1000, 100), (4, 2, 1000, 30), (10, 5, 1000, 40), (10, 5, 5000, 40)]
AGGREGATORS = [lo.MajorityVote, lo.DawidSkene, lo.OneCoin, lo.IBCC]


def row(name: str, fitted: Any, annotations: lo.Annotations, y_true: Any) -> dict[str, Any]:
    facts = read_facts(fitted, annotations)
    accuracy = estimated_accuracy(facts)
    assert accuracy is not None
    truth = float((facts.label == y_true)[facts.labelled].mean())
    inside = accuracy.low <= truth <= accuracy.high
    found = {"true": truth, "estimate": accuracy.value, "low": accuracy.low, "high": accuracy.high}
    return {"method": name, **found, "promised": facts.promised, "inside": bool(inside)}


def run(options: argparse.Namespace) -> None:
    """Run all seeds and write them."""
    warnings.simplefilter("ignore")  # of few iterations and little overlap: part of what is measured
    start, rows = time.perf_counter(), []
    for seed in SEEDS:
        for n_classes, redundancy, n_tasks, n_workers in CROWDS:
            rng = np.random.default_rng(seed)
            y_true = rng.integers(0, n_classes, n_tasks)
            confusion = lo.simulate.dirichlet(n_workers, n_classes, rng)
            assignment = lo.simulate.assign(n_tasks, n_workers, redundancy, rng, replace=False)
            ann = lo.simulate.annotate(y_true, confusion, assignment, rng)
            rows += [row(kind.__name__, kind().fit(ann), ann, y_true) for kind in AGGREGATORS]
        print(seed, flush=True)
    write(options.out, rows, settings={"seeds": list(SEEDS)}, seconds=time.perf_counter() - start)


def table(trials: list[Trial]) -> str:
    """Return how often the truth is inside the interval, and the errors of the estimate."""
    head = ["method", "fits", "truth inside", "mean error", "largest", "mean error of the fit's own promise"]
    rows = []
    for method in dict.fromkeys(one["method"] for one in trials):
        own = [one for one in trials if one["method"] == method]
        off = [abs(one["estimate"] - one["true"]) for one in own]
        promise = np.mean([abs(one["promised"] - one["true"]) for one in own])
        inside = np.mean([one["inside"] for one in own])
        rows.append([method, len(own), f"{inside:.0%}", f"{np.mean(off):.3f}", f"{max(off):.3f}", f"{promise:.3f}"])
    return markdown(head, rows)


if __name__ == "__main__":
    main(arguments(__doc__, PATH).parse_args(), run, table)
