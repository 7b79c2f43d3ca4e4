"""How many labels routing saves: a shift of twenty workers through the HTTP service, and the same in the library.

Digits, 300 tasks; twenty workers of mixed quality: eight are right in 0.9 of cases, six in 0.6, six guess. They arrive
in random order, ask for a task and answer it; all are fitted again after every 60 labels, up to 360. "http": over
`labelonce serve`, with its refits in processes of their own. "library": a `Router` with the same learner. Accuracy is
that of the labels found for all tasks. Saved is the share of labels not needed to reach the final accuracy of random
assignment, from curves smoothed over three neighbours. Both ways fit from nothing every time.

    python experiments/service_shift.py
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # where the served project is

import numpy as np
import pyarrow as pa
from record import RESULTS, Trial, experiment, grid, grouped, markdown, mean_error, several
from routing import smooth
from service_projects import Client, serving
from sklearn.datasets import load_digits

import labelonce as lo
from labelonce import routing
from labelonce.service import Project

PATH = RESULTS / "service_shift.json"
N_TASKS, N_LABELS, BATCH = 300, 360, 60
SKILLS = [0.9] * 8 + [0.6] * 6 + [0.1] * 6
CLASSES = [str(one) for one in range(10)]
RISK = 0.05
STRATEGIES = ("Random", "Information")


class Library:
    """A router as a program would use it."""

    def __init__(self, X: Any, strategy: str, seed: int) -> None:
        rule = routing.Random() if strategy == "Random" else routing.Information(risk=RISK)
        self.X, self.learner = X, lo.MBEM(random_state=seed)
        self.router = routing.Router(range(len(X)), CLASSES, strategy=rule, random_state=seed)

    def next(self, worker: int) -> int | None:
        """Return the task of a worker."""
        found = self.router.next(f"w{worker}")
        return None if found is None else int(found)

    def add(self, task: int, worker: int, label: str) -> None:
        """Give an answer."""
        self.router.add(task, f"w{worker}", label)

    def fit(self) -> Any:
        """Fit everything and return the labels found."""
        answers = self.router.answers
        annotations = lo.Annotations.from_arrays(*answers, classes=CLASSES).align(range(len(self.X)))
        model = self.learner.fit(self.X, annotations)
        workers = annotations.workers.tolist()
        self.router.adopt(routing.Fit(model.posterior_, model.confusion_, workers, answers, model.predictions_))
        return self.router.belief.posterior().argmax(axis=1)


class Http:
    """The same over HTTP."""

    def __init__(self, project: Project, http: Any) -> None:
        tokens = project.add_workers([f"w{worker}" for worker in range(len(SKILLS))])
        self.workers = [Client(http, token) for token in tokens.values()]
        self.admin = Client(http, project.add_admin())

    def next(self, worker: int) -> int | None:
        """Return the task of a worker."""
        found = self.workers[worker].get("/api/next").json()["task"]
        return None if found is None else int(found)

    def add(self, task: int, worker: int, label: str) -> None:
        """Give an answer."""
        assert self.workers[worker].label(str(task), label).json()["new"]

    def fit(self) -> Any:
        """Fit everything and return the labels found."""
        before = self.admin.get("/api/progress").json()["fit"]
        self.admin.post("/api/refit")
        while (now := self.admin.get("/api/progress").json())["fit"] == before:
            assert now["trouble"] is None, now["trouble"]
            time.sleep(0.1)
        rows = self.admin.get(f"/api/labels?limit={N_TASKS}").json()["rows"]
        return np.array([int(row["label"]) for row in rows])


def trial(way: str, strategy: str, seed: int) -> Trial:
    """Return the accuracy of the labels found after every batch."""
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))[:N_TASKS]
    X, y = X[order], y[order]
    right = rng.random((N_TASKS, len(SKILLS))) < np.array(SKILLS)
    wrong = (y[:, None] + rng.integers(1, 10, size=right.shape)) % 10
    labels = np.where(right, y[:, None], wrong)  # each pair of task and worker always alike
    if way == "library":
        accuracy = shift(Library(X, strategy, seed), labels, y, rng)
    else:
        with tempfile.TemporaryDirectory() as folder:
            columns = {"task": np.arange(N_TASKS)} | {f"p{i}": X[:, i] for i in range(X.shape[1])}
            lo.write(pa.table(columns), Path(folder) / "tasks.parquet")
            settings: Any = {"strategy": strategy, "settled_risk": RISK, "seed": seed, "refit_every": 10**6}
            settings |= {"requests_per_second": 1e6}
            project = Project.make(Path(folder) / "project", Path(folder) / "tasks.parquet", CLASSES, **settings)
            with serving(project) as http:
                accuracy = shift(Http(project, http), labels, y, rng)
    return {"accuracy": accuracy}


def shift(system: Library | Http, labels: Any, y: Any, rng: np.random.Generator) -> list[float]:
    """Let workers arrive at random until all labels are bought."""
    found = []
    for _ in range(N_LABELS // BATCH):
        bought = 0
        while bought < BATCH:
            worker = int(rng.integers(len(SKILLS)))
            task = system.next(worker)
            if task is not None:
                system.add(task, worker, str(labels[task, worker]))
                bought += 1
        found.append(float(np.mean(system.fit() == y)))
    return found


def saved(trials: list[Trial], way: str) -> list[float]:
    """Return the share of labels saved, in percent, for every seed that both strategies have."""
    shares = []
    for (_, seed), rows in grouped(trials, "way", "seed").items():
        curves = {row["strategy"]: smooth(row["accuracy"]) for row in rows if row["way"] == way}
        if len(curves) == len(STRATEGIES):
            there = np.flatnonzero(curves["Information"] >= curves["Random"][-1])
            shares.append((seed, 100 * (1 - BATCH * (there[0] + 1) / N_LABELS) if len(there) else 0.0))
    return [share for _, share in sorted(shares)]


def table(trials: list[Trial]) -> str:
    """Return a row for each way."""
    found, rows = grouped(trials, "way", "strategy"), []
    for way in ("http", "library"):
        final = ([100 * row["accuracy"][-1] for row in found.get((way, one), [])] for one in STRATEGIES)
        rows.append([way, *map(mean_error, final), mean_error(saved(trials, way))])
    head = ["way", "random, final accuracy, %", "routed, final accuracy, %"]
    return markdown([*head, "labels saved until random's final accuracy, %"], rows)


def points(options: argparse.Namespace) -> list[Trial]:
    return grid(way=("library", "http"), strategy=STRATEGIES, seed=options.seeds)


if __name__ == "__main__":
    experiment(__doc__, PATH, trial, points, table, seeds=several(range(3), type=int))
