"""Kill `labelonce train` by SIGKILL before its n-th change of the file system, then resume; print what was found.

    python kill_and_resume.py LABELS FEATURES FOLDER

For every n until a run is not killed any more: a process trains into a copy of an earlier run (of one round) and dies;
what the folder then holds is read, and a second process resumes. Every run is a forked process that starts with all
imported, and its estimator is a small one, so that this takes seconds.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from labelonce.learning import MBEM, SoftmaxRegression
from labelonce.runs import Options, RunFolder, _train, read_run, resume, train
from labelonce.workers import Counted

CHANGES = ("replace", "rename", "unlink", "rmdir", "mkdir")


def in_a_process(work: Callable[[], object]) -> int:
    """Return how a process that does the work ended: 0, or minus the signal that killed it."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die_at(moment: int) -> None:
    """Kill this process before its moment-th change of the file system."""
    count = 0
    for name in CHANGES:
        real = getattr(os, name)

        def change(*args: Any, _real: Any = real, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return _real(*args, **options)

        setattr(os, name, change)


def train_until(moment: int, options: Options, run: Path) -> None:
    """Train, and die at the moment."""
    die_at(moment)
    train(options, run)


def small_estimator(options: Options, inputs: object) -> MBEM:  # noqa: ARG001
    """Return an estimator that leaves one choice open."""
    learners = [SoftmaxRegression(C=C) for C in (0.1, 1.0)]
    fixed: dict[str, Any] = {"worker_model": Counted()}
    return MBEM(learners, rounds=options.rounds, random_state=options.seed, **fixed)


def main(labels: str, features: str, folder: Path) -> None:
    """Print a line of JSON for every moment."""
    _train._estimator = small_estimator
    new, old, run = (folder / name for name in ("new", "old", "run"))
    options = Options(labels, features, rounds=2)
    train(options, new)  # in this process: what it loads and makes ready, the others find
    in_a_process(lambda: train(Options(labels, features, rounds=1), old))
    for moment in range(1, 200):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(old, run)
        killed = in_a_process(partial(train_until, moment, options, run))
        line: dict[str, Any] = {"moment": moment, "killed": killed, "rounds": read_run(run).options.rounds}
        source = old if line["rounds"] == 1 else new
        line["intact"] = all(
            RunFolder(run).file(name).read_bytes() == (source / name).read_bytes()
            for name in ("labels.parquet", "workers.parquet")
        )
        line["begun"] = RunFolder(run).unfinished() is not None
        line["ended"] = in_a_process(lambda: resume(run) if line["begun"] else train(options, run))  # noqa: B023
        line["same"] = [
            (run / name).read_bytes() == (new / name).read_bytes() for name in ("labels.parquet", "workers.parquet")
        ]
        line["files"] = sorted(path.name for path in run.iterdir())
        print(json.dumps(line), flush=True)  # noqa: T201
        if killed == 0:
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
