"""Every option of MBEM switched off alone: digits and real crowds, one label per task.

One penalty per set and four rounds, so that a row shows the option and not the luck of a choice; the last row leaves
the number of rounds open, as the default does. Digits: 1,297 tasks, 50 workers of which 20 % are good, both kinds of
crowd. Real crowds as in real_crowds.py.

    python experiments/ablation.py            # about 7 CPU minutes; goes on where it was stopped
    python experiments/ablation.py --table    # results/ablation.md from results/ablation.json
"""

import argparse
import json
import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import curves
import numpy as np
import real_crowds
from joblib import Parallel, delayed

import labelonce as lo

PATH = Path(__file__).parent / "results" / "ablation.json"
SEEDS = {"hammer-spammer": 5, "class-wise": 5, "labelme": 3, "amazon_isbook": 3, "sentiment_polarity": 3}
PENALTY = {"hammer-spammer": 1.0, "class-wise": 1.0, "labelme": 0.01, "amazon_isbook": 1.0, "sentiment_polarity": 10.0}
BASE, UNBALANCED = "four rounds", "predictions' class balance left alone"
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    UNBALANCED: {},
    "weighting none": {"weighting": "none"},
    "posterior prior": {"posterior": "prior"},
    "predictions in-sample": {"predictions": "in_sample"},
    "predictions out-of-fold": {"predictions": "out_of_fold"},
    "counts hard": {"counts": "hard"},
    "counts soft": {"counts": "soft"},
    "workers by plain counting": {"worker_model": lo.workers.Counted()},
    "workers with one coin": {"worker_model": lo.workers.OneCoin()},
    "prior from picks": {"prior": "picks"},
    "prior learned": {"prior": "learned"},
    "two rounds": {"rounds": 2},
    "six rounds": {"rounds": 6},
    "rounds chosen": {"rounds": "auto"},
}


def draw(name: str, seed: int) -> tuple[Any, ...]:
    """Return training features, annotations, test features and true labels."""
    if name in curves.CROWDS:
        point = {"crowd": name, "quality": 0.2, "redundancy": 1, "n_tasks": curves.PROBLEMS["digits"].n_train}
        X, _, X_test, y_test, ann, _ = curves.draw("digits", point, seed)
    else:
        X, _, X_test, y_test, ann = real_crowds.draw(name, 1, seed)
    return X, ann, X_test, y_test


def left_alone() -> AbstractContextManager[Any]:
    """Keep MBEM from shifting the class balance of predictions."""
    return patch.multiple("labelonce.learning._calibration", _SHIFT=0.0, _PULLS=(0.0,))


def trial(name: str, seed: int) -> dict[str, Any]:
    """Return the test accuracy of every variant."""
    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    started = time.process_time()
    X, ann, X_test, y_test = draw(name, seed)
    learner = lo.SoftmaxRegression(C=PENALTY[name])
    fixed = {"rounds": 4, "tol": 0.0}
    accuracy = {}
    for variant, options in VARIANTS.items():
        with left_alone() if variant == UNBALANCED else nullcontext():
            fit = lo.MBEM(learner, **(fixed | options)).fit(X, ann)
        accuracy[variant] = float((fit.predict(X_test) == y_test).mean())
    return {"name": name, "seed": seed, "accuracy": accuracy, "cpu_s": time.process_time() - started}


def run() -> None:
    """Run what is not in the file yet, two trials at a time."""
    done = json.loads(PATH.read_text())["trials"] if PATH.exists() else []
    seen = {(row["name"], row["seed"]) for row in done}
    todo = [(name, seed) for seed in range(5) for name, n in SEEDS.items() if seed < n and (name, seed) not in seen]
    versions = {name: version(name) for name in ("labelonce", "numpy", "scipy", "scikit-learn")}
    for row in Parallel(n_jobs=2, return_as="generator_unordered")(delayed(trial)(*one) for one in todo):
        done.append(row)
        done.sort(key=lambda row: (list(SEEDS).index(row["name"]), row["seed"]))
        PATH.write_text(json.dumps({"versions": versions, "device": "cpu", "trials": done}, indent=1) + "\n")
        print(row["name"], row["seed"], row["accuracy"], flush=True)


def table() -> None:
    """Write the accuracy of four rounds and what every variant adds to it, paired over the seeds."""
    trials = json.loads(PATH.read_text())["trials"]
    names = list(dict.fromkeys(row["name"] for row in trials))
    shown = {name: f"digits, {name}" if name in curves.CROWDS else name for name in names}
    head = ["option", *(f"{shown[name]} ({sum(row['name'] == name for row in trials)})" for name in names)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for variant in VARIANTS:
        cells = [variant]
        for name in names:
            rows = [row["accuracy"] for row in trials if row["name"] == name]
            own = 100 * np.array([row[variant] for row in rows])
            values = own if variant == BASE else own - 100 * np.array([row[BASE] for row in rows])
            sign = "" if variant == BASE else "+"
            cells.append(f"{values.mean():{sign}.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}")
        lines.append("| " + " | ".join(cells) + " |")
    PATH.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    PATH.parent.mkdir(exist_ok=True)
    (table if parser.parse_args().table else run)()
