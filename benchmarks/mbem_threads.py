"""Threads that do not fight: MBEM with the threads that libraries start by default, compared with one thread.

Each row is a learner on a crowd, fitted in processes of their own, one after the other: "unlimited" without labelonce's
limit of the threads (`learning/_threads.py`), "limited" with it, and "one thread" with OMP_NUM_THREADS=1. In the first
two nothing is set. Seconds are the least of the repeats: other work on the machine only adds to a run.

    python benchmarks/mbem_threads.py    # two cores or more, best on an otherwise idle machine
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from one_core import ONE_THREAD, RESULTS, keep
from record import Trial, markdown
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import labelonce as lo
from labelonce.learning import _choice, _mbem

MODES = ("unlimited", "limited", "one thread")
Crowd = tuple[Any, lo.Annotations]


def digits() -> Crowd:
    """Return scikit-learn's digits, each labelled once by one of 50 workers, as in the demo."""
    X, y = load_digits(return_X_y=True)
    return labelled(X[:1297] / 16, y[:1297], np.random.default_rng(0))


def gaussians(n_tasks: int, n_features: int) -> Crowd:
    """Return tasks of five classes around their means."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, n_tasks)
    X = rng.normal(size=(n_tasks, n_features)) + (0.5 * rng.normal(size=(5, n_features)))[y]
    return labelled(X, y, rng)


def labelled(X: Any, y: Any, rng: np.random.Generator) -> Crowd:
    """Return features with one label per task, of whose workers one in five is good."""
    confusion = lo.simulate.hammer_spammer(50, int(y.max()) + 1, 0.2, rng, exact=True)
    return X, lo.simulate.annotate(y, confusion, lo.simulate.assign(len(y), 50, 1, rng), rng)


def boosting() -> Any:
    """Return a small ensemble."""
    return HistGradientBoostingClassifier(max_iter=20, random_state=0)


WORK: dict[str, tuple[Callable[[], Crowd], Callable[[], lo.MBEM]]] = {
    "quick start: digits, MBEM()": (digits, lo.MBEM),
    "digits, LogisticRegression": (digits, lambda: lo.MBEM(LogisticRegression(max_iter=1000))),
    "digits, HistGradientBoosting": (digits, lambda: lo.MBEM(boosting())),
    "digits, RandomForest with n_jobs=-1": (digits, lambda: lo.MBEM(RandomForestClassifier(n_jobs=-1, random_state=0))),
}
TREES = "HistGradientBoosting"
LARGE: list[tuple[int, int, str, Any]] = [(20_000, 50, TREES, boosting), (100_000, 50, TREES, boosting)]
LARGE += [(100_000, 200, "SoftmaxRegression", lo.SoftmaxRegression)]
WORK |= {
    f"{n:,} x {width}, one fit of {name}": (partial(gaussians, n, width), partial(lo.MBEM, make(), rounds=1, folds=1))
    for n, width, name, make in LARGE
}


def measure(name: str, mode: str) -> Trial:
    """Return wall and CPU seconds of one fit in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key not in ONE_THREAD}
    environment |= ONE_THREAD if mode == "one thread" else {}
    command = [sys.executable, __file__, "--work", name, "--mode", mode]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def work(name: str, mode: str) -> Trial:
    """Do one fit here, and return its seconds."""
    warnings.simplefilter("ignore")
    if mode == "unlimited":
        for module in (_choice, _mbem):
            vars(module)["sharing_threads"] = lambda *_: nullcontext()
    make_crowd, make = WORK[name]
    X, ann = make_crowd()
    clf, wall, cpu = make(), time.perf_counter(), time.process_time()
    clf.fit(X, ann)
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "fits": clf.n_fits_}


def table(rows: list[Trial]) -> str:
    """Return one row per piece of work: seconds of each mode, and those of the first two as multiples of one thread."""
    head = ["work", "fits", *(f"{mode}, wall s" for mode in MODES), *(f"{mode}, CPU s" for mode in MODES)]
    head += [f"wall of {mode} / one thread" for mode in MODES[:2]]
    lines = []
    for row in rows:
        least = {mode: row[mode] for mode in MODES}
        line = [row["work"], row["fits"]]
        line += [f"{least[mode][kind]:.2f}" for kind in ("wall_s", "cpu_s") for mode in MODES]
        ratios = (least[mode]["wall_s"] / least["one thread"]["wall_s"] for mode in MODES[:2])
        lines.append([*line, *(f"{ratio:.2f}" for ratio in ratios)])
    return markdown(head, lines)


def main() -> None:
    """Measure all work in all modes, in turn, and write the results and their table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work", choices=list(WORK), help="do one fit in this process and print its seconds")
    parser.add_argument("--mode", choices=MODES)
    parser.add_argument("--output", type=Path, default=RESULTS / "mbem_threads.json")
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(options.work, options.mode)))
        return
    started, rows = time.perf_counter(), []
    for name in WORK:
        runs: dict[str, list[Trial]] = {mode: [] for mode in MODES}
        for _ in range(options.repeats):
            for mode in MODES:
                runs[mode].append(measure(name, mode))
        row: Trial = {"work": name, "fits": runs["limited"][0]["fits"]}
        row |= {
            mode: {kind: min(one[kind] for one in found) for kind in ("wall_s", "cpu_s")}
            for mode, found in runs.items()
        }
        rows.append(row)
        print(row, flush=True)
    settings = {"repeats": options.repeats, "cores": os.cpu_count()}
    keep(options.output, rows, table, started, settings)


if __name__ == "__main__":
    main()
