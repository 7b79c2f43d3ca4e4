"""On ActiveLab's own experiment, the wall-following robot, beside the curves that its authors published.

Their protocol: 2,000 tasks in four classes, of which 1,000 start with one label; 30 workers who make the same mistakes
and are right with 0.85 of their labels; 19 rounds of 100 labels; extremely randomised trees; accuracy on 1,000 other
readings. Ours are strategies of `labelonce.routing` with four rounds of MBEM around the same trees. Their curves come
from the data folder (`wall_robot/activelab_results.json`); draws of workers and tasks are not the same as theirs.

    python experiments/routing_robot.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/routing_robot.py --table    # table alone, from results/routing_robot.json
"""

import json
import os
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import strategies
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume
from routing import Crowd, World, buy, point, robot_readings
from sklearn.ensemble import ExtraTreesClassifier

import labelonce as lo
from labelonce import routing

PATH = RESULTS / "routing_robot.json"
N_WORKERS, N_START, N_ROUNDS, N_EACH, RIGHT = 30, 1000, 19, 100, 0.85
ROUNDS = 4  # of MBEM in a refit
STRATEGIES: dict[str, routing.Strategy] = {
    "Random": routing.Random(),
    "FewestLabels": routing.FewestLabels(),
    "ModelUncertainty": strategies.ModelUncertainty(),
    "ActiveLab": routing.ActiveLab(),
    "Information": routing.Information(),
}
TRUTH = "trees trained on the truth of all tasks"
THEIRS = {
    "Random": "random",
    "FewestLabels": "fewest_labels_first",
    "ModelUncertainty": "entropy",
    "ActiveLab": "activelab",
}


def mistakes_of(n_classes: int, rng: np.random.Generator) -> Any:
    """Return the confusion that all workers have: right with `RIGHT` on average, mistakes at random."""
    right = rng.uniform(RIGHT - 0.1, RIGHT + 0.1, n_classes)
    right += RIGHT - right.mean()
    wrong = rng.dirichlet(np.ones(n_classes - 1), n_classes) * (1 - right)[:, None]
    confusion = np.diag(right)
    confusion[~np.eye(n_classes, dtype=bool)] = wrong.ravel()
    return confusion


def trial(strategy: str, seed: int) -> Trial:
    """Return the test accuracy after every round."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    rng = np.random.default_rng(seed)
    X, y = robot_readings(rng)
    order = rng.permutation(len(y))
    train, test = order[:2000], order[2000:]
    problem = World(X[train], y[train], X[test], y[test], C=1.0, start=0.0, budget=N_START + N_ROUNDS * N_EACH)
    row: Trial = {"strategy": strategy, "seed": seed}
    if strategy == TRUTH:
        best = float(
            ExtraTreesClassifier(random_state=seed).fit(problem.X, problem.y).score(problem.X_test, problem.y_test)
        )
        return row | {"accuracy": [best] * (N_ROUNDS + 1), "cpu_s": time.process_time() - started}
    crowd = Crowd(problem.y, np.tile(mistakes_of(4, rng), (N_WORKERS, 1, 1)), rng)
    trees = ExtraTreesClassifier(random_state=seed)
    learner = lo.MBEM(trees, rounds=ROUNDS, random_state=seed)
    router = routing.Router(
        np.arange(2000),
        np.arange(4),
        X=problem.X,
        learner=learner,
        strategy=STRATEGIES[strategy],
        random_state=seed,
    )
    for task, worker in crowd.at_random(N_START, rng):
        router.add(task, worker, int(crowd.label[task, worker]))
    router.refit()
    points = [point(router, problem)]
    for _ in range(N_ROUNDS):
        buy(router, crowd, N_EACH, rng)
        router.refit()
        points.append(point(router, problem))
    row |= {name: [one[name] for one in points] for name in ("accuracy", "labels")}
    return row | {"cpu_s": time.process_time() - started}


def published(method: str) -> list[float]:
    """Return the mean curve that ActiveLab's authors published for these trees."""
    curves = json.loads((Path(os.environ["LABELONCE_DATA"]) / "wall_robot" / "activelab_results.json").read_text())
    wanted = {"benchmark": "wall-robot", "model": "et", "method": method, "measure": "model_accuracy"}
    found: list[float] = next(row["mean"] for row in curves if wanted.items() <= row.items())
    return found


def table(trials: list[Trial]) -> str:
    """Return the accuracy at the start, halfway and at the end, ours and theirs."""
    rows = []
    for name in [*STRATEGIES, TRUTH]:
        own = [row["accuracy"] for row in trials if row["strategy"] == name]
        if own:
            cells = [mean_error([100 * curve[at] for curve in own]) for at in (0, len(own[0]) // 2, -1)]
            rows.append([name if name == TRUTH else f"{name}, MBEM", *cells, f"{100 * np.mean(own):.1f}", len(own)])
    for name, method in THEIRS.items():
        curve = published(method)
        cells = [f"{100 * curve[at]:.1f}" for at in (0, len(curve) // 2, -1)]
        rows.append([f"{name}, as published", *cells, f"{100 * np.mean(curve):.1f}", 5])
    return markdown(["strategy", "1,000 labels", "2,000 labels", "2,900 labels", "mean over the curve", "draws"], rows)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)))
    asked = parser.parse_args()
    points = [{"strategy": strategy, "seed": seed} for seed, strategy in product(asked.seeds, [*STRATEGIES, TRUTH])]
    main(
        asked,
        lambda options: resume(
            options, trial, points, order={"strategy": [*STRATEGIES, TRUTH]}, settings={"rounds": ROUNDS}
        ),
        table,
    )
