"""Groups of classes found in the labels are the true ones, also where one label in twenty bridges two groups.

Crowds of 200 workers whose mistakes stay within groups; a share of all labels is replaced by any class at all. With
one label per task a model's prediction is the second answer, right as often as stated and otherwise any class. Shown is
the adjusted Rand index between the groups found and the true ones: 1 for equal partitions, 0 for chance. "Without
pruning" joins all classes that meet on a task.

    python experiments/found_groups.py            # one core; writes results and table
    python experiments/found_groups.py --table    # the table alone, from results/found_groups.json
"""

import argparse
import time
from typing import Any

import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, resume
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

import labelonce as lo
from labelonce.workers import find_groups

PATH = RESULTS / "found_groups.json"
BRIDGES, SEEDS = (0.0, 0.01, 0.05), (0, 1, 2, 3, 4)
N_WORKERS = 200
SETTINGS: dict[str, dict[str, Any]] = {
    "100 classes in tens, hammers and spammers, 2 labels": {
        "groups": np.arange(100) // 10,
        "crowd": "grouped_hammer_spammer",
        "quality": 0.2,
        "redundancy": 2,
        "tasks": 20_000,
    },
    "100 classes in tens, class-wise workers, 3 labels": {
        "groups": np.arange(100) // 10,
        "crowd": "grouped_class_wise_hammer_spammer",
        "quality": 0.6,
        "redundancy": 3,
        "tasks": 20_000,
    },
    "100 classes in tens, 1 label and a model 60 % right": {
        "groups": np.arange(100) // 10,
        "crowd": "grouped_hammer_spammer",
        "quality": 0.2,
        "redundancy": 1,
        "tasks": 20_000,
        "model": 0.6,
    },
    "60 classes in tens, 1 label and a model 45 % right": {
        "groups": np.arange(60) % 6,
        "crowd": "grouped_class_wise_hammer_spammer",
        "quality": 0.6,
        "redundancy": 1,
        "tasks": 60_000,
        "model": 0.45,
    },
    "60 classes in groups of 2 to 25, 2 labels": {
        "groups": np.repeat(np.arange(6), [2, 3, 5, 10, 15, 25]),
        "crowd": "grouped_hammer_spammer",
        "quality": 0.5,
        "redundancy": 2,
        "tasks": 30_000,
    },
    "1,000 classes in tens, 2 labels": {
        "groups": np.arange(1000) // 10,
        "crowd": "grouped_class_wise_hammer_spammer",
        "quality": 0.2,
        "redundancy": 2,
        "tasks": 150_000,
    },
}


def crowd(setting: str, bridges: float, seed: int) -> tuple[lo.Annotations, Any]:
    """Return labels of which a share is of any class, and the predictions of a model or None."""
    how, rng = SETTINGS[setting], np.random.default_rng(seed)
    n_classes, n_tasks = len(how["groups"]), how["tasks"]
    y_true = rng.integers(0, n_classes, n_tasks).astype(np.int32)
    workers = getattr(lo.simulate, how["crowd"])(N_WORKERS, how["groups"], how["quality"], rng)
    ann = lo.simulate.annotate(y_true, workers, lo.simulate.assign(n_tasks, N_WORKERS, how["redundancy"], rng), rng)
    anything = rng.integers(0, n_classes, len(ann)).astype(np.int32)
    label = np.where(rng.random(len(ann)) < bridges, anything, ann.label)
    ann = lo.Annotations(ann.task, ann.worker, label, ann.tasks, ann.workers, ann.classes)
    if "model" not in how:
        return ann, None
    return ann, np.where(rng.random(n_tasks) < how["model"], y_true, rng.integers(0, n_classes, n_tasks))


def joined(ann: lo.Annotations, predictions: Any) -> Any:
    """Return the groups if all classes are joined that meet on a task."""
    task, label = ann.task, ann.label
    if predictions is not None:
        task, label = np.concatenate([task, np.arange(ann.n_tasks)]), np.concatenate([label, predictions])
    seen = sparse.csr_array((np.ones(len(task)), (task, label)), shape=(ann.n_tasks, ann.n_classes))
    return connected_components(seen.T @ seen, directed=False)[1]


def trial(setting: str, bridges: float, seed: int) -> Trial:
    """Return how well the groups of one crowd are found."""
    ann, predictions = crowd(setting, bridges, seed)
    started = time.process_time()
    found = find_groups(ann, predictions)
    cpu = time.process_time() - started
    truth = SETTINGS[setting]["groups"]
    return {
        "setting": setting,
        "bridges": bridges,
        "seed": seed,
        "rand": float(adjusted_rand_score(truth, found.group)),
        "without_pruning": float(adjusted_rand_score(truth, joined(ann, predictions))),
        "groups": found.n_groups,
        "cpu_s": cpu,
    }


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    points = [
        {"setting": setting, "bridges": bridges, "seed": seed}
        for setting in SETTINGS
        for bridges in BRIDGES
        for seed in SEEDS
    ]
    resume(options, trial, points, order={"setting": list(SETTINGS)}, settings={"workers": N_WORKERS})


def table(trials: list[Trial]) -> str:
    """Return the worst adjusted Rand index over the seeds, and that without pruning."""
    head = ["crowd", *(f"{share:.0%} bridging labels" for share in BRIDGES), "without pruning, 1 %", "CPU seconds"]
    rows = []
    for setting in SETTINGS:
        own = [row for row in trials if row["setting"] == setting]
        by_share = [[row for row in own if row["bridges"] == share] for share in BRIDGES]
        worst = [f"{min(row['rand'] for row in part):.3f}" for part in by_share]
        loose = f"{max(row['without_pruning'] for row in by_share[1]):.3f}"
        rows.append([setting, *worst, loose, f"{max(row['cpu_s'] for row in own):.2f}"])
    return markdown(head, rows)


if __name__ == "__main__":
    main(arguments(__doc__, PATH).parse_args(), run, table)
