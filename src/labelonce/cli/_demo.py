"""`labelonce demo`: a simulated crowd labels scikit-learn's digits once each; MBEM learns from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from labelonce import simulate
from labelonce._annotations import Annotations
from labelonce._types import Codes, Floats
from labelonce.aggregation import DawidSkene, MajorityVote
from labelonce.cli._print import stderr, stdout, table, warnings_as_notes
from labelonce.learning import MBEM, OracleConfusion, SoftmaxRegression, TrainOnAggregate

N_TRAIN, N_WORKERS, QUALITY = 1297, 50, 0.2


def run_demo(seed: int) -> None:
    """Print what each method learns from one label per task, and the workers that MBEM found."""
    digits = load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits.target))
    X, y = digits.data[order] / 16, digits.target[order]
    confusion = simulate.hammer_spammer(N_WORKERS, 10, QUALITY, rng, exact=True)
    ann = simulate.annotate(y[:N_TRAIN], confusion, simulate.assign(N_TRAIN, N_WORKERS, 1, rng), rng)
    stdout.print(
        f"{N_TRAIN:,} handwritten digits, each labelled once by one of {N_WORKERS} workers. "
        f"{round(QUALITY * N_WORKERS)} of them are always right, the others guess: "
        f"{np.mean(ann.label == y[ann.task]):.0%} of the labels are right.\n"
    )
    test = (X[N_TRAIN:], y[N_TRAIN:])
    with warnings_as_notes():
        clf = MBEM(SoftmaxRegression(), callbacks=[_progress]).fit(X[:N_TRAIN], ann)
        stdout.print(_method_table(X[:N_TRAIN], ann, confusion, clf, test))
        _print_workers(ann, clf, confusion)


def _progress(entry: dict[str, Any]) -> None:
    stderr.print(f"round {entry['round']}: the model agrees with {entry['agreement']:.0%} of the labels", markup=False)


def _method_table(X: Any, ann: Annotations, confusion: Floats, clf: MBEM, test: tuple[Any, Codes]) -> object:
    learner = SoftmaxRegression()
    models = {
        "majority vote, then train": TrainOnAggregate(MajorityVote(), learner).fit(X, ann),
        "Dawid-Skene (EM), then train": TrainOnAggregate(DawidSkene(), learner, targets="soft").fit(X, ann),
        "MBEM as in the paper": MBEM.paper(learner).fit(X, ann),
        "oracle: true confusion matrices": OracleConfusion(confusion, learner).fit(X, ann),
        "MBEM, our default": clf,
    }
    rows = [[name, f"{100 * model.score(*test):.1f}"] for name, model in models.items()]
    return table("Right on 500 unseen digits, %", ["method", "accuracy"], rows)


def _print_workers(ann: Annotations, clf: MBEM, confusion: Floats) -> None:
    low, high = clf.worker_model_.skill_interval(clf.prior_)
    truth = confusion[:, np.arange(10), np.arange(10)].mean(axis=1)
    labels = np.bincount(ann.worker, minlength=N_WORKERS)
    best_first = np.argsort(-clf.skill_, kind="stable")
    rows = [
        [f"worker {w}", labels[w], f"{clf.skill_[w]:.2f}", f"{low[w]:.2f} to {high[w]:.2f}", f"{truth[w]:.2f}"]
        for w in (*best_first[:5], *best_first[-5:])
    ]
    columns = ["worker", "labels", "skill found", "90 % interval", "true skill"]
    stdout.print(table("The best and the worst workers, as MBEM found them", columns, rows))
    n_good = round(QUALITY * N_WORKERS)
    found = int((truth[best_first[:n_good]] == 1).sum())
    stdout.print(f"{found} of its {n_good} best workers are really always right.")
