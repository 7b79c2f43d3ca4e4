"""MBEM's default on real crowds with features, beside training on the votes.

All labels of a task, and one random label per task (five draws). Linear models on VGG features (LabelMe) and on TF-IDF
(film reviews, product reviews). Penalties: MBEM chooses by held-out annotations; every other method uses the one that
five-fold cross-validation on the majority vote prefers. Gold is used for the test accuracy alone.

    python experiments/real_crowds.py            # about 15 CPU minutes; goes on where it was stopped
    python experiments/real_crowds.py --table    # results/real_crowds.md from results/real_crowds.json
"""

import argparse
import json
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hindsight
import numpy as np
from joblib import Parallel, delayed
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import labelonce as lo

PATH = Path(__file__).parent / "results" / "real_crowds.json"
PENALTIES = {"labelme": (0.001, 0.01, 0.1)}
TEXT_PENALTIES = (0.1, 1.0, 10.0)
METHODS = ["truth", "MV", "weighted MV", "DawidSkene, then train", "OneCoin, then train", "MBEM paper", "MBEM"]


def draw(name: str, redundancy: int | None, seed: int) -> tuple[Any, ...]:
    """Return features and gold of the labelled tasks, of the test tasks, and the annotations."""
    data = lo.datasets.load(name)
    assert data.annotations is not None
    assert data.split is not None
    ann = data.annotations
    train, test = ann.tasks, np.flatnonzero(data.split == "test")
    if redundancy is not None:
        ann = ann.sample(redundancy=redundancy, random_state=seed)
    if data.features is not None:
        scaler = StandardScaler().fit(data.features[train])
        X, X_test = (scaler.transform(data.features[rows]).astype(np.float64) for rows in (train, test))
    else:
        assert data.texts is not None
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2)).fit(data.texts[train])
        X, X_test = words.transform(data.texts[train]), words.transform(data.texts[test])
    return X, data.gold[train], X_test, data.gold[test], ann


def trial(name: str, redundancy: int | None, seed: int) -> dict[str, Any]:
    """Return the test accuracy of every method."""
    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    started = time.process_time()
    X, y, X_test, y_test, ann = draw(name, redundancy, seed)
    learners = [lo.SoftmaxRegression(C=C) for C in PENALTIES.get(name, TEXT_PENALTIES)]
    vote = lo.MajorityVote().fit(ann).labels_
    grid = {"C": [learner.C for learner in learners]}
    best = lo.SoftmaxRegression(**GridSearchCV(lo.SoftmaxRegression(), grid, cv=5).fit(X, vote).best_params_)
    mbem = lo.MBEM(learners).fit(X, ann)
    models = {
        "truth": lo.SoftmaxRegression(C=best.C).fit(X, y),
        "MV": lo.TrainOnAggregate(lo.MajorityVote(), best).fit(X, ann),
        "weighted MV": lo.TrainOnAggregate(lo.MajorityVote(), best, targets="soft").fit(X, ann),
        "DawidSkene, then train": lo.TrainOnAggregate(lo.DawidSkene(), best, targets="soft").fit(X, ann),
        "OneCoin, then train": lo.TrainOnAggregate(lo.OneCoin(), best, targets="soft").fit(X, ann),
        "MBEM paper": lo.MBEM.paper(best).fit(X, ann),
        "MBEM": mbem,
    }
    accuracy = {method: float((models[method].predict(X_test) == y_test).mean()) for method in METHODS}
    chosen = {key: mbem.recipe_[key] for key in ("predictions", "posterior", "rounds")}
    chosen["C"] = mbem.recipe_["learner"].C
    about: dict[str, Any] = {"name": name, "redundancy": redundancy or "all", "seed": seed}
    about |= {"C of the others": best.C, "chosen": chosen}
    kept = ("held_out_scores", "near_best")
    about["tried"] = [{"C": choice["learner"].C} | {key: choice[key] for key in kept} for choice in mbem.choices_]
    about["recipes"] = hindsight.recipes(X, ann, X_test, y_test, learners)
    return about | {"accuracy": accuracy, "cpu_s": time.process_time() - started}


def run() -> None:
    """Run what is not in the file yet, two trials at a time."""
    done = json.loads(PATH.read_text())["trials"] if PATH.exists() else []
    seen = {(row["name"], row["redundancy"], row["seed"]) for row in done}
    names = ("sentiment_polarity", "labelme", "amazon_isbook")
    todo = [
        (name, redundancy, seed)
        for seed in range(5)
        for name in names
        for redundancy in ((None, 1) if seed == 0 else (1,))
    ]
    todo = [one for one in todo if (one[0], one[1] or "all", one[2]) not in seen]
    versions = {name: version(name) for name in ("labelonce", "numpy", "scipy", "scikit-learn")}
    for row in Parallel(n_jobs=2, return_as="generator_unordered")(delayed(trial)(*one) for one in todo):
        done.append(row)
        done.sort(key=lambda row: (row["name"], str(row["redundancy"]), row["seed"]))
        PATH.write_text(json.dumps({"versions": versions, "device": "cpu", "trials": done}, indent=1) + "\n")
        print(row["name"], row["redundancy"], row["seed"], row["accuracy"], row["chosen"], flush=True)


def table() -> None:
    """Write mean and standard error of every method."""
    trials = json.loads(PATH.read_text())["trials"]
    head = ["data set", "labels per task", *METHODS]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for key in dict.fromkeys((row["name"], row["redundancy"]) for row in trials):
        cells = [str(part) for part in key]
        for method in METHODS:
            values = [100 * row["accuracy"][method] for row in trials if (row["name"], row["redundancy"]) == key]
            error = f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.1f}" if len(values) > 1 else ""
            cells.append(f"{np.mean(values):.1f}{error}")
        lines.append("| " + " | ".join(cells) + " |")
    PATH.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    PATH.parent.mkdir(exist_ok=True)
    (table if parser.parse_args().table else run)()
