"""A thousand classes on one core: what an EM iteration and a whole MBEM take, in CPU seconds and memory.

1,000 workers, the paper's class-wise workers of quality 0.2 in groups of 10 classes, 1 and 3 labels per task. EM is on
labels alone, 1.2 million tasks. MBEM has 1 million tasks with 64 Gaussian features (around a centre per group and a
mean per class), three rounds, `GroupedSoftmax`. Training is the CPU time of its fits; vote is the model of the first
round, truth the same learner on true labels. The last rows are of Pl@ntNet's size: 11,000 classes, 100,000 workers.
Every row is a process of its own on one thread; memory is its peak, all included; an iteration is the cheapest of 20,
since other work on the machine only adds to it, with the median of the 20 next to it: the first ones also learn the
population of workers anew.

    python benchmarks/many_classes.py
    python benchmarks/many_classes.py --jobs mbem-1 plantnet      # some rows again
    python benchmarks/many_classes.py --jobs card-1 card-3 --out benchmarks/results/many_classes-gpu.json  # on a GPU
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

from one_core import ONE_THREAD, RESULTS

os.environ |= ONE_THREAD

import numpy as np
from measure import peak_mb
from record import read, tabulated, write, write_text

import labelonce as lo
from labelonce._kernels import label_slots, make_slot_evidence
from labelonce.learning import GroupedSoftmax

N_CLASSES, N_WORKERS, N_FEATURES, QUALITY = 1000, 1000, 64, 0.2
GROUPS = np.arange(N_CLASSES) // 10
NOISE = 2.42  # of the features: true labels then give a top-1 of about 0.675
ITERATIONS = 20
ROUNDS = 3


def crowd(y: Any, redundancy: int) -> tuple[lo.Annotations, Any]:
    """Return the annotations of tasks, and the workers."""
    workers = lo.simulate.grouped_class_wise_hammer_spammer(N_WORKERS, GROUPS, QUALITY, rng=0)
    return lo.simulate.annotate(y, workers, lo.simulate.assign(len(y), N_WORKERS, redundancy, rng=0), rng=0), workers


def em(redundancy: int, n_tasks: int = 1_200_000, device: str = "cpu") -> dict[str, Any]:
    """Return what an iteration takes on labels alone, and how often the posterior is right in the end.

    Of it `sums_s` are the sums over labels, the rest is the population of workers, which is on the CPU always. On a GPU
    the seconds are those of the clock.
    """
    y = np.random.default_rng(0).integers(0, N_CLASSES, n_tasks, dtype=np.int32)
    ann, _ = crowd(y, redundancy)
    model = lo.workers.Grouped(GROUPS, rows="position")
    pattern = model.prepare(ann)
    assert pattern is not None
    engine = "scipy" if device == "cpu" else "torch"
    slots = label_slots(ann, pattern)
    sums = make_slot_evidence(ann, slots, pattern, dtype="float32", engine=engine, device=device, draws=True)
    clock = time.process_time if device == "cpu" else time.perf_counter
    kept = sums.log_prior(np.full(N_CLASSES, 1 / N_CLASSES))
    model.fit_tallies(jittered(sums.tallies(sums.beliefs(np.exp(sums.fetch(kept))))))
    seconds = []
    for _ in range(ITERATIONS):
        started = clock()
        swept = sums.sweep(model.factors_, kept)
        summed = clock()
        model.fit_tallies(swept.tallies)
        seconds.append((clock() - started, summed - started))
    right = float((sums.e_step(model.factors_, kept).beliefs.argmax() == y).mean())
    spent, sums_s = min(seconds)
    return {"cpu_s": spent, "median_s": sorted(seconds)[ITERATIONS // 2][0], "sums_s": sums_s, "accuracy": right}


def jittered(tallies: Any) -> Any:
    """Return right and wrong labels as if every worker were right on 30 % of the tasks, a little more or less."""
    from labelonce._kernels import Tallies

    total = tallies.right + tallies.wrong
    share = np.random.default_rng(1).uniform(0.28, 0.32, total.shape)
    return Tallies(share * total, (1 - share) * total, tallies.mistakes, tallies.others, tallies.unknown)


class Timed(GroupedSoftmax):
    """The learner, with the CPU time of all its fits."""

    spent: ClassVar[list[float]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, and note how long it took."""
        started = time.process_time()
        super().fit(X, y, sample_weight)
        self.spent.append(time.process_time() - started)
        return self


def features(n_tasks: int) -> tuple[Any, Any]:
    """Return features and true labels, made in blocks."""
    rng = np.random.default_rng(0)
    mean = (rng.normal(size=(100, N_FEATURES))[GROUPS] + rng.normal(size=(N_CLASSES, N_FEATURES))).astype(np.float32)
    y = rng.integers(0, N_CLASSES, n_tasks, dtype=np.int32)
    X = np.empty((n_tasks, N_FEATURES), dtype=np.float32)
    for start in range(0, n_tasks, 50_000):
        rows = slice(start, start + 50_000)
        X[rows] = rng.standard_normal(X[rows].shape, dtype=np.float32)
        X[rows] *= NOISE
        X[rows] += mean[y[rows]]
    return X, y


def mbem(redundancy: int, n_tasks: int = 1_000_000, *, known: bool = False) -> dict[str, Any]:
    """Return what a whole fit takes, and the top-1 accuracy of its models on new tasks."""
    X, y = features(n_tasks + 20_000)
    X, y, new, truth = X[:n_tasks], y[:n_tasks], X[n_tasks:], y[n_tasks:]
    ann, workers = crowd(y, redundancy)
    model = lo.workers.Known(workers) if known else lo.workers.Grouped(GROUPS, rows="position")
    options: dict[str, Any] = {"C": 1.0, "tol": 1e-4, "warm_start": True}
    clf = lo.MBEM(Timed(GROUPS, **options), rounds=ROUNDS, worker_model=model, folds=1)
    cpu, tops = 0.0, []
    started = time.process_time()
    for stage in clf.stages(X, ann):
        cpu += time.process_time() - started
        if stage.history_:
            tops.append(float((stage.model_.predict(new) == truth).mean()))
        started = time.process_time()
    cpu += time.process_time() - started
    peak, training = peak_mb(), sum(Timed.spent)
    posterior = float((clf.labels_ == y).mean())
    best = float((GroupedSoftmax(GROUPS, C=1.0, tol=1e-4).fit(X, y).predict(new) == truth).mean())
    found = {"cpu_s": cpu, "training_s": training, "accuracy": posterior, "top1": tops[-1], "vote": tops[0]}
    return found | {"truth": best, "tops": tops, "peak_mb": peak}


def plantnet(n_tasks: int = 1_000_000) -> dict[str, Any]:
    """Return what one-coin workers take at Pl@ntNet's size."""
    n_classes, n_workers = 11_000, 100_000
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n_tasks, dtype=np.int32)
    workers = lo.simulate.grouped_hammer_spammer(n_workers, np.arange(n_classes) // 10, 0.5, rng=0)
    ann = lo.simulate.annotate(y, workers, lo.simulate.assign(n_tasks, n_workers, 3, rng=0), rng=0)
    started = time.process_time()
    model = lo.OneCoin().fit(ann)
    return {"cpu_s": time.process_time() - started, "accuracy": float((model.labels_ == y).mean())}


JOBS: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "em-1": ("EM iteration, 1.2M tasks, 1 label", lambda: em(1)),
    "em-3": ("EM iteration, 1.2M tasks, 3 labels", lambda: em(3)),
    "card-1": ("EM iteration on a GPU, 1.2M tasks, 1 label", lambda: em(1, device="cuda")),
    "card-3": ("EM iteration on a GPU, 1.2M tasks, 3 labels", lambda: em(3, device="cuda")),
    "mbem-1": ("MBEM, 1M tasks, 1 label", lambda: mbem(1)),
    "mbem-3": ("MBEM, 1M tasks, 3 labels", lambda: mbem(3)),
    "known-1": ("MBEM with the true workers, 1 label", lambda: mbem(1, known=True)),
    "plantnet": ("OneCoin, 1M tasks, 3 labels, 11,000 classes, 100,000 workers", plantnet),
}


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"": "{what}", "CPU s (on a GPU: s)": "{cpu_s:.3g}", "median": "{median_s:.3g}"}
    columns |= {
        "of it sums over labels": "{sums_s:.3f}",
        "of it training": "{training_s:.1f}",
        "peak GB": "{peak_gb:.2f}",
    }
    columns |= {"posterior right": "{accuracy:.3f}", "top-1 of the vote": "{vote:.3f}", "top-1": "{top1:.3f}"}
    columns["top-1 of the truth"] = "{truth:.3f}"
    return tabulated([row | {"peak_gb": row["peak_mb"] / 1024} for row in rows], columns)


def main() -> None:
    """Run every row in a process of its own, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    on_cpu = [name for name in JOBS if not name.startswith("card")]
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=on_cpu)
    parser.add_argument("--out", type=Path, default=RESULTS / "many_classes.json")
    parser.add_argument("--one", choices=JOBS, help="run one row in this process and print it")
    parser.add_argument("--table", action="store_true", help="run nothing, make the table of the results")
    options = parser.parse_args()
    if options.one:
        what, job = JOBS[options.one]
        found = {"job": options.one, "what": what} | job()
        print(json.dumps({"peak_mb": peak_mb()} | found))
        return
    path, started = options.out, time.perf_counter()
    for name in [] if options.table else options.jobs:
        command = [sys.executable, __file__, "--one", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        print(row, flush=True)
        rows = [one for one in read(path) if one["job"] != name] + [row]
        rows.sort(key=lambda one: list(JOBS).index(one["job"]))
        write(path, rows, seconds=time.perf_counter() - started)
    write_text(path.with_suffix(".md"), table(read(path)))


if __name__ == "__main__":
    main()
