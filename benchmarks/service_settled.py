"""How many settled tasks are right: three worlds of experiments/draws.py, labelled through a project at 5 % risk.

Ten workers arrive at random, take the task that the service hands out, and label it; all is fitted again after every
100 labels, by the service's own fit, until nothing is left or there are two labels per task. "Settled" are the tasks
that get no more labels: by the calibrated belief, after at least one label, and after two while the fit has doubts.
Digits with mixed workers; a table with weak features and workers who are right in 0.8 of cases; a checkerboard, which
no default model can learn, with workers of three kinds.

    python benchmarks/service_settled.py
    python benchmarks/service_settled.py --tasks 150 --seeds 0
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where record.py and draws.py lie

import numpy as np
import pyarrow as pa
from draws import checkerboard, digits, made_up
from one_core import RESULTS, keep
from record import grouped, markdown

import labelonce as lo
from labelonce.service import Project
from labelonce.service import _fit as fits
from labelonce.service._live import Live
from labelonce.service._store import Answer

RISK, BATCH = 0.05, 100
WORLDS: dict[str, tuple[Any, list[float]]] = {
    "digits, mixed workers": (digits, [0.9] * 4 + [0.6] * 3 + [0.1] * 3),
    "weak table, all .8": (lambda rng: made_up(rng, n=3000, n_classes=3, separation=0.4), [0.8] * 10),
    "checkerboard, three kinds": (checkerboard, [0.95] * 3 + [0.8] * 4 + [0.5] * 3),
}


def believe(live: Live, project: Project) -> None:
    """Fit all answers and believe it."""
    if fits.main(project.folder) == 0 and (found := fits.newest(project)) is not None:
        done = False
        while not done:
            job = live.adoption(found)
            job.compute()
            done = job.finish()
        live.found = found


def shift(name: str, seed: int, n_tasks: int, folder: Path) -> list[dict[str, Any]]:
    """Return labels, settled tasks and right ones among them after every fit, the last one at the end."""
    problem, skills = WORLDS[name]
    rng = np.random.default_rng(seed)
    X, y = problem(rng)
    order = rng.permutation(len(y))[:n_tasks]
    X, y, classes = X[order], y[order], [str(one) for one in range(int(y.max()) + 1)]
    columns = {"task": np.arange(n_tasks)} | {f"x{place}": X[:, place] for place in range(X.shape[1])}
    lo.write(pa.table(columns), folder / "tasks.parquet")
    project = Project.make(folder / "project", folder / "tasks.parquet", classes, settled_risk=RISK, seed=seed)
    live, store, rows, stuck = Live(project, [], None), project.store(), [], 0
    while stuck < 2 * len(skills) and live.n_labels < 2 * n_tasks:
        worker = int(rng.integers(len(skills)))
        task = live.next(f"w{worker}")
        stuck = stuck + 1 if task is None else 0
        if task is not None:
            truth = y[int(task)]
            said = truth if rng.random() < skills[worker] else (truth + rng.integers(1, len(classes))) % len(classes)
            (written,) = store.write([Answer(f"w{worker}", f"{task} {live.n_labels}", task, classes[said])])
            assert written.row is not None
            live.take(written.row)
            if live.n_labels % BATCH:
                continue
            believe(live, project)
            table = live.labels_table()
            settled = np.asarray(table["settled"])
            right = np.array(table["label"].to_pylist()) == np.array(classes)[y]
            unseen = settled & (np.asarray(table["labels"]) == 0)
            rows.append(
                {"world": name, "seed": seed, "labels": live.n_labels, "tasks": n_tasks, "settled": int(settled.sum())}
                | {"right": int(right[settled].sum()), "unseen": int(unseen.sum()), "all_right": float(right.mean())}
                | {"doubts": bool(live.found and live.found.about["doubts"])}
            )
            print(rows[-1], flush=True)
    store.close()
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Return a row for each world: over all fits, and at the end."""
    lines = []
    for (name,), mine in grouped(rows, "world").items():
        last = [max(fits, key=lambda row: row["labels"]) for fits in grouped(mine, "seed").values()]
        n_tasks, settled = sum(row["tasks"] for row in last), sum(row["settled"] for row in last)
        worst = min((row["right"] / row["settled"] for row in mine if row["settled"] >= 50), default=1.0)
        lines.append(
            {"world": name, "labels per task at the end": f"{sum(row['labels'] for row in last) / n_tasks:.2f}"}
            | {"settled at the end": f"{settled} of {n_tasks}", "of these right": share(last)}
            | {"settled after any fit, right": share(mine), "the worst fit with 50 or more settled": f"{worst:.1%}"}
            | {"settled without a label": sum(row["unseen"] for row in mine)}
            | {"fits with doubts": f"{sum(row['doubts'] for row in mine)} of {len(mine)}"}
        )
    return markdown(list(lines[0]), [list(line.values()) for line in lines])


def share(rows: list[dict[str, Any]]) -> str:
    """Return how many of the settled tasks are right."""
    settled = sum(row["settled"] for row in rows)
    return f"{sum(row['right'] for row in rows) / settled:.1%}" if settled else ""


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--out", type=Path, default=RESULTS / "service_settled.json")
    options = parser.parse_args()
    started, rows = time.perf_counter(), list[dict[str, Any]]()
    for seed in options.seeds:
        for name in WORLDS:
            with tempfile.TemporaryDirectory() as folder:
                rows += shift(name, seed, options.tasks, Path(folder))
            settings = {"tasks": options.tasks, "risk": RISK, "batch": BATCH, "cores": os.cpu_count()}
            keep(options.out, rows, table, started, settings)


if __name__ == "__main__":
    main()
