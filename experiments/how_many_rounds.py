"""How many rounds MBEM should try at most: the same choice without gold among four to ten, with softmax regression.

Simulated workers on digits and on LabelMe's photographs, one label per task of film reviews and of is-it-a-book,
LabelMe's real crowd, and small made-up sets (200 tasks of 10 features with 30 workers, 384 of 64 with 83, who share
mistakes). The contenders are the four penalties of `leaderboard.py`. The trials on held-out tasks are run once, and the
choice is made after 4, 6, 8 and 10 rounds, and after the first of 6 to 10 that does not make held-out labels more
likely; the model is then fitted to all tasks. Beside them the average over both penalties that ran on. Rules were
looked for on draws from 20 on; the others tell what they are worth.

    python experiments/how_many_rounds.py            # ten minutes of CPU time; needs the data of datasets.md; resumes
    python experiments/how_many_rounds.py --table    # the table alone, from results/how_many_rounds.json
"""

import warnings
from itertools import islice
from statistics import fmean
from typing import Any

import leaderboard
import numpy as np
import quality_and_redundancy as simulated
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume
from sklearn.datasets import make_classification

import labelonce as lo
from labelonce.learning._average import average_models
from labelonce.learning._features import given_learners
from labelonce.learning._rounds import run_rounds
from labelonce.learning._schedule import open_contenders
from labelonce.learning._selection import HEATS, Choice, choice_so_far, finalists, held_out_parts
from labelonce.learning._trials import Trials

PATH = RESULTS / "how_many_rounds.json"
SEEDS = (20, 0)
FIRST = 20  # of the draws to look at
LIMITS, LEAST, MOST = (4, 6, 8, 10), 6, 10
RULES = {
    "4": "at most 4",
    "8": "at most 8",
    "10": "at most 10",
    "while the likelihood rises": "6 to 10, while the likelihood rises",
    "8, both": "at most 8, both penalties averaged",
}
MADE_UP = {"200 made-up tasks": (200, 10, 3, 30), "384 made-up tasks": (384, 64, 5, 83)}
CELLS: list[tuple[str, Any]] = [
    *(("labelme", r) for r in (1, "all")),
    *((f"{name}, {crowd}", r) for name in ("digits", "labelme") for crowd in simulated.CROWDS for r in (1, 3)),
    *((name, 1) for name in ("sentiment_polarity", "amazon_isbook")),
    *((name, r) for name in MADE_UP for r in (1, 3, 10)),
]


def made_up(name: str, redundancy: int, seed: int) -> tuple[Any, ...]:
    """Return features of labelled and of test tasks, the truth of these, and labels by workers who share mistakes."""
    n_tasks, n_features, n_classes, n_workers = MADE_UP[name]
    shape: dict[str, Any] = {"n_features": n_features, "n_classes": n_classes, "n_informative": 8, "n_redundant": 0}
    X, y = make_classification(n_tasks + 2000, **shape, n_clusters_per_class=1, random_state=seed)
    rng = np.random.default_rng(seed)
    shared = 0.5 * np.eye(n_classes) + 0.5 * rng.dirichlet(np.full(n_classes, 0.5), n_classes)
    confusion = np.stack([[rng.dirichlet(8 * row + 0.05) for row in shared] for _ in range(n_workers)])
    assignment = lo.simulate.assign(n_tasks, n_workers, redundancy, rng)
    ann = lo.simulate.annotate(y[:n_tasks], confusion, assignment, rng)
    X /= X[:n_tasks].std(axis=0)
    return X[:n_tasks], X[n_tasks:], y[n_tasks:], ann


def draw(data: str, redundancy: Any, seed: int) -> tuple[Any, ...]:
    """Return features of labelled and of test tasks, the truth of these, and the annotations."""
    if data in MADE_UP:
        return made_up(data, redundancy, seed)
    X, _, X_test, y_test, ann = leaderboard.draw(data, redundancy, seed)
    return X.astype(np.float32), X_test.astype(np.float32), y_test, ann


def trial(data: str, redundancy: Any, seed: int) -> Trial:
    """Return the test accuracy of every rule, and what was chosen."""
    warnings.simplefilter("ignore")
    X, X_test, y_test, ann = draw(data, redundancy, seed)
    options = lo.MBEM(random_state=seed)
    learners = given_learners([lo.SoftmaxRegression(C=C) for C in leaderboard.PENALTIES])
    contenders, _ = open_contenders(options, learners, X, ann, None, seed, None)
    chosen, running = choices(contenders, ann, options.holdout, seed)
    models = {
        number: [this.model for this in islice(run_rounds(X, ann, contenders[number].recipe, **all_tasks(seed)), MOST)]
        for number in sorted({*running, *(best.number for best in chosen.values())})
    }

    def accuracy(near: dict[int, tuple[int, ...]]) -> float:
        """Return that of the mean over learners of the averages over their rounds."""
        averages = [average_models([models[one][place - 1] for place in near[one]]) for one in near]
        said = np.mean([model.predict_proba(X_test) for model in averages], axis=0)
        return float((said.argmax(axis=1) == y_test).mean())

    found = {rule: accuracy({best.number: best.averaged}) for rule, best in chosen.items()}
    best = chosen["8"]
    marks = {number: np.flatnonzero(best.table[number]["near_best"]) for number in {*running, best.number}}
    found["8, both"] = accuracy({number: tuple(1 + near) for number, near in marks.items() if len(near)})
    used = {rule: {"C": leaderboard.PENALTIES[one.number], "averaged": one.averaged} for rule, one in chosen.items()}
    return {"data": data, "redundancy": redundancy, "seed": seed, "accuracy": found, "chosen": used}


def all_tasks(seed: int) -> dict[str, Any]:
    """Return the options of a run on all tasks."""
    return {"gold": None, "seed": seed, "last": MOST}


def choices(contenders: Any, ann: lo.Annotations, share: float, seed: int) -> tuple[dict[str, Choice], list[int]]:
    """Return the choice by every rule from the same trials, and the two contenders that ran on."""
    trials = Trials(contenders, held_out_parts(ann, share, seed), None, max_rounds=MOST, seed=seed)
    chosen: dict[str, Choice] = {}
    running, rising = list(range(len(contenders))), True
    for number in range(1, MOST + 1):
        for one in running:
            trials.run_round(one)
        if number == HEATS:
            running = finalists(trials)
        best = choice_so_far(contenders, trials, trials.done())
        if number in LIMITS:
            chosen[str(number)] = best
        if number >= LEAST and rising:
            chosen["while the likelihood rises"] = best
            rising = int(np.nanmax(trials.scores, axis=0)[:number].argmax()) == number - 1
    return chosen, running


def table(trials: list[Trial]) -> str:
    """Return the accuracy with six rounds at most, and what other rules gain, in both kinds of draws."""
    parts = {"looked at": [row for row in trials if row["seed"] >= FIRST]}
    parts["others"] = [row for row in trials if row["seed"] < FIRST]
    head = ["draws", "set", "labels per task", "number", "at most 6 rounds", *RULES.values()]
    return markdown(head, [row for part, found in parts.items() for row in lines(part, found)])


def lines(part: str, trials: list[Trial]) -> list[list[Any]]:
    """Return one row per set, and their mean."""
    cells: dict[tuple[Any, Any], list[dict[str, float]]] = {}
    for row in trials:
        cells.setdefault((row["data"], row["redundancy"]), []).append(row["accuracy"])
    rows, gains = [], []
    for cell, found in cells.items():
        gains.append([fmean(100 * (row[rule] - row["6"]) for row in found) for rule in RULES])
        before = mean_error([100 * row["6"] for row in found])
        rows.append([part, *cell, len(found), before, *(f"{gain:+.1f}" for gain in gains[-1])])
    if gains:
        rows.append([part, "mean", "", "", "", *(f"{gain:+.2f}" for gain in np.mean(gains, axis=0))])
    return rows


if __name__ == "__main__":
    points = [{"data": data, "redundancy": r, "seed": seed} for seed in SEEDS for data, r in CELLS]
    main(arguments(__doc__, PATH).parse_args(), lambda options: resume(options, trial, points), table)
