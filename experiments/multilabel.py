"""Several labels at once: yeast, emotions, CAL500 and the layout of the paper's MS-COCO experiment, simulated workers.

    python experiments/multilabel.py                    # all, resumed from the results file
    python experiments/multilabel.py --sets emotions    # one set

Seven tenths of the tasks are for training, standardised features, and everything is measured on the rest: mean average
precision, micro and macro F1 at one half, in percent. Of 20 workers a share (`quality`) are hammers, who are always
right; the others answer yes or no with even chances. Hammers are either hammers for all labels, or drawn for each
label again. One worker answers all questions about a task. "Raw" is `SigmoidRegression` on the answers with C by
cross-validation on the answers, "truth" the same on true labels; "one per label" is an `MBEM` for each label, "paper"
its published form, "shared" is `MultiLabelMBEM`, which is not told which crowd it is.

"layout" is that of the paper's MS-COCO experiment: 80 labels of which a task has about three, 40 workers who miss and
invent labels at rates of their own, a budget of 1,000 judgements that is spent on 1,000 tasks once, or on fewer tasks
three, five or nine times, and all 1,000 tasks judged nine times. Features are Gaussian with one direction per label.

With so many labels as in CAL500 and in the layout, "one per label" does not choose its penalty but has C = 0.01.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
import pyarrow.parquet as pq
from record import RESULTS, Trial, experiment, grouped, markdown, mean_error, save, several

import labelonce as lo
from labelonce.multilabel import SigmoidRegression, f1_score, mean_average_precision

PATH = RESULTS / "multilabel.json"
SETS = ("emotions", "yeast", "cal500", "layout")
QUALITIES = (0.2, 0.3, 0.5)
CROWDS = ("all labels", "per label")
N_WORKERS = 20
PENALTIES = (0.001, 0.01, 0.1, 1.0)
BUDGET, REDUNDANCIES = 1_000, (1, 3, 5, 9)
MANY = ("cal500", "layout")  # sets with so many labels that one MBEM per label cannot afford a choice
KEYS = ("set", "crowd", "quality")
METHODS = ("raw", "majority vote", "EM", "paper", "one per label", "shared", "truth")
Floats = Any


def load(name: str, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return features and labels to train on, and to test on."""
    table = pq.read_table(data_sets.folder() / name / "data.parquet")
    names = table.column_names
    features = [one for one in names if one.startswith("Att") or (one[0] == "f" and one[1:].isdigit())]
    X = np.stack([table.column(one).to_numpy() for one in features], axis=1).astype(float)
    y = np.stack([table.column(one).to_numpy() for one in names if one not in features], axis=1).astype(int)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: int(0.7 * len(X))], order[int(0.7 * len(X)) :]
    X = (X - X[train].mean(axis=0)) / (X[train].std(axis=0) + 1e-9)
    return X[train], y[train], X[test], y[test]


def hammers(y_true: Floats, crowd: str, quality: float, seed: int) -> lo.MultiLabelAnnotations:
    """Return one judgement per task by hammers and spammers."""
    rng = np.random.default_rng([seed, 7])
    n_tasks, n_questions = y_true.shape
    n_hammers = round(quality * N_WORKERS)
    chosen = [rng.permutation(N_WORKERS) < n_hammers for _ in range(n_questions)]
    is_hammer = np.stack(chosen if crowd == "per label" else [chosen[0]] * n_questions, axis=1)
    worker = rng.integers(N_WORKERS, size=n_tasks)
    answer = np.where(is_hammer[worker], y_true, rng.integers(2, size=y_true.shape))
    return annotations(np.arange(n_tasks), worker, answer)


def annotations(task: Floats, worker: Floats, answer: Floats) -> lo.MultiLabelAnnotations:
    """Return judgements: a row of answers for each task and worker."""
    n_questions = answer.shape[1]
    question = np.tile(np.arange(n_questions), len(task))
    columns = np.repeat(task, n_questions), question, np.repeat(worker, n_questions), answer.ravel()
    return lo.MultiLabelAnnotations.from_arrays(*columns, questions=np.arange(n_questions), answers=[0, 1])


def layout(seed: int, redundancy: int, *, fixed: bool = True) -> tuple[Floats, Any, Floats, Floats, Floats]:
    """Return features, judgements, true labels, and features and labels to test on, in the layout of MS-COCO."""
    rng = np.random.default_rng([seed, 11])
    n_questions, n_features, n_workers = 80, 60, 40
    share = np.clip(rng.dirichlet(np.full(n_questions, 0.8)) * 3.0, 0.003, 0.5)
    direction = rng.normal(size=(n_questions, n_features))

    def draw(n: int) -> tuple[Floats, Floats]:
        y = rng.random((n, n_questions)) < share
        return y @ direction * 0.8 + rng.normal(size=(n, n_features)) * 2.0, y.astype(int)

    X, y = draw(BUDGET)
    X_test, y_test = draw(2_000)
    misses, invents = rng.beta(3, 5, size=n_workers), rng.beta(1, 60, size=n_workers)
    who = np.argsort(rng.random((BUDGET, n_workers)), axis=1)[:, :9]
    n_tasks = BUDGET // redundancy if fixed else BUDGET
    task, worker = np.repeat(np.arange(n_tasks), redundancy), who[:n_tasks, :redundancy].ravel()
    chance = np.where(y[task], 1 - misses[worker][:, None], invents[worker][:, None])
    answer = (rng.random(chance.shape) < chance).astype(int)
    return X[:n_tasks], annotations(task, worker, answer), y[:n_tasks], X_test, y_test


def by_cross_validation(X: Floats, targets: Floats) -> SigmoidRegression:
    """Return a regression on answers with C by five folds of these answers."""
    fold = np.random.default_rng(0).permutation(len(X)) % 5

    def loss(C: float) -> float:
        total = 0.0
        for one in range(5):
            model = SigmoidRegression(C=C).fit(X[fold != one], targets[fold != one])
            chance, wanted = np.clip(model.predict_proba(X[fold == one]), 1e-9, 1 - 1e-9), targets[fold == one]
            total -= float((wanted * np.log(chance) + (1 - wanted) * np.log1p(-chance)).sum())
        return total

    return SigmoidRegression(C=min(PENALTIES, key=loss)).fit(X, targets)


def candidates(X: Floats, ann: lo.MultiLabelAnnotations, y: Floats, *, many: bool) -> dict[str, Callable[[], Any]]:
    """Return what is compared, by name; "majority vote" and "EM" need several judgements of a task."""
    votes = lo.MultiLabelVote().fit(ann)
    learners: Any = [lo.SoftmaxRegression(C=C) for C in PENALTIES[1 : 2 if many else 3]]
    apart: dict[str, Any] = {"rounds": 5, "worker_model": lo.workers.Full()}

    def on(labels: Floats) -> SigmoidRegression:
        return by_cross_validation(X, labels.astype(float))

    return {
        "raw": lambda: on(votes.posterior_),
        "majority vote": lambda: on(votes.labels_),
        "EM": lambda: on(lo.MultiLabelDawidSkene(sharing="none").fit(ann).labels_),
        "paper": lambda: lo.MultiLabelMBEM.paper(lo.SoftmaxRegression(C=on(votes.posterior_).C)).fit(X, ann),
        "one per label": lambda: lo.MultiLabelMBEM(learners, **apart).fit(X, ann),
        "shared": lambda: lo.MultiLabelMBEM().fit(X, ann),
        "truth": lambda: on(y),
    }


def trial(set: str, crowd: str, quality: float, method: str, seed: int) -> Trial:
    if set == "layout":
        X, ann, y, X_test, y_test = layout(seed, int(quality), fixed=crowd == "fixed budget")
    else:
        X, y, X_test, y_test = load(set, seed)
        ann = hammers(y, crowd, quality, seed)
    started = time.perf_counter()
    found = candidates(X, ann, y, many=set in MANY)[method]()
    seconds = time.perf_counter() - started
    chance = found.predict_proba(X_test)
    given = (chance > 0.5).astype(int)
    row: Trial = {"mAP": mean_average_precision(y_test, chance), "seconds": round(seconds, 2)}
    row |= {name: f1_score(y_test, given, average=name) for name in ("micro", "macro")}
    if method == "shared":
        row |= {name: found.recipe_[name] for name in ("predictions", "averaged")} | {"rounds": found.n_rounds_}
    return row


def points(options: argparse.Namespace) -> Iterator[Trial]:
    for name in options.sets:
        crowds = [(crowd, quality) for crowd in CROWDS for quality in QUALITIES]
        if name == "layout":
            crowds = [*[("fixed budget", float(r)) for r in REDUNDANCIES], ("nine judgements", 9.0)]
        for seed, (crowd, quality) in product(range(options.seeds), crowds):
            several = name == "layout" and quality > 1
            left_out = {"raw"} if several else {"majority vote", "EM"}
            if name != "layout" and (crowd, quality) != crowds[0]:
                left_out.add("truth")  # which does not depend on the crowd
            for method in METHODS:
                if method in options.methods and method not in left_out:
                    yield {"set": name, "crowd": crowd, "quality": quality, "method": method, "seed": seed}


def table(trials: list[Trial]) -> str:
    """Return one table per figure: mean over seeds in percent, and how far shared is from one per label."""
    text, names = [], [name for name in METHODS if any(row["method"] == name for row in trials)]
    for figure, name in (("mAP", "Mean average precision"), ("micro", "Micro F1"), ("macro", "Macro F1")):
        rows = []
        for key in grouped(trials, *KEYS):
            found = {method: by_seed(trials, key, method, figure) for method in names}
            shared, apart = found.get("shared", {}), found.get("one per label", {})
            gain = mean_error([shared[seed] - apart[seed] for seed in shared if seed in apart], sign="+")
            rows.append([*key, *(mean_error(list(found[method].values())) for method in names), gain])
        head = ["set", "crowd", "quality or redundancy", *names, "shared - one per label"]
        text.append(f"{name}\n\n" + markdown(head, rows))
    return "\n".join(text)


def by_seed(trials: list[Trial], key: tuple[Any, ...], method: str, figure: str) -> dict[int, float]:
    """Return a method's figure in percent by seed; the truth of a set does not depend on the crowd."""
    same = KEYS[:1] if method == "truth" and key[0] != "layout" else KEYS
    own = grouped(trials, *same, "method").get((*key[: len(same)], method), [])
    return {row["seed"]: 100 * row[figure] for row in own}


def draw(trials: list[Trial], path: Path) -> None:
    """Draw the layout's mean average precision and micro F1 against judgements per task, the total fixed."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, (key, name) in zip(axes, (("mAP", "mean average precision"), ("micro", "micro F1")), strict=True):
        for method in METHODS:
            at = {r: by_seed(trials, ("layout", "fixed budget", float(r)), method, key) for r in REDUNDANCIES}
            means = {r: np.mean(list(found.values())) for r, found in at.items() if found}
            if means:
                style = ":" if method == "truth" else "-"
                axis.plot(list(means), list(means.values()), marker="o", linestyle=style, label=method)
        axis.set(xlabel="judgements per task, total fixed", ylabel=name, xticks=REDUNDANCIES)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    kept: dict[str, Any] = {"draw": draw, "image": "multilabel_layout.png"}
    kept |= {"settings": {"workers": N_WORKERS, "budget": BUDGET}, "seeds": {"type": int, "default": 5}}
    asked: dict[str, Any] = {"sets": several(SETS, choices=SETS), "methods": several(METHODS, choices=METHODS)}
    experiment(__doc__, PATH, trial, points, table, **kept, **asked)
