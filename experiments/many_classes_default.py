"""Which workers suit many classes: what the default of MBEM takes, beside what it could have taken.

Simulated crowds with one worker per 150 labels, 30 % of whom are good, and with one or three labels per task. Mistakes
stay in groups of ten ("hammers": good at all classes or none; "class-wise": at some places of every group), go to any
class, or to three classes of each, drawn at random, so that there are no groups. Classes are points in 20 dimensions
and tasks normal around them; CIFAR-100N is a draw of its real labels with such features. Shown is the share of right
labels of `MBEM(SoftmaxRegression(C=0.1), rounds=3)` with each worker model; "found" is `Grouped("auto")`, "commonest"
`Grouped()`, "given" knows the groups. The default is `Full` or "found"; its thresholds were chosen on the seed of
`--tune` and, the least number of labels per class, in view of the table, which is of another.

    python experiments/many_classes_default.py            # one core; needs cifar100n of datasets.md; resumes
    python experiments/many_classes_default.py --tune     # the tuning seed, into many_classes_default_tune.json
    python experiments/many_classes_default.py --table    # the table alone
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from cifar100n_workers import crowd as cifar100n
from record import RESULTS, Trial, arguments, main, markdown, resume

import labelonce as lo
from labelonce import workers
from labelonce._kernels import Factors, Mistakes
from labelonce.learning._many_classes import uses_candidates

PATH = RESULTS / "many_classes_default.json"
TUNE, REPORT = 0, 1
SIZES = ((60, 30), (60, 100), (100, 100), (100, 200), (200, 50))  # classes, and labels of each
KINDS = {
    "hammers": "hammers in groups",
    "class-wise": "class-wise in groups",
    "three": "each class taken for three",
    "anywhere": "mistakes anywhere",
    "cifar100n": "CIFAR-100N, real labels",
}
MODELS: dict[str, Any] = {
    "Full": lambda _: workers.Full(),
    "OneCoin": lambda _: workers.OneCoin(),
    "commonest": lambda _: workers.Grouped(),
    "found": lambda _: workers.Grouped("auto"),
    "given": workers.Grouped,
}


def crowd(kind: str, classes: int, per_class: int, redundancy: int, seed: int) -> tuple[Any, Any, lo.Annotations, Any]:
    """Return features, true classes, annotations and the groups, if there are any."""
    rng = np.random.default_rng([seed, classes, per_class])
    n = classes * per_class
    y, ann, groups = draw_labels(kind, classes, n, max(30, n // 150), redundancy, rng)
    X = rng.normal(size=(classes, 20))[y] + rng.normal(size=(len(y), 20))
    return X, y, ann, groups if kind in ("hammers", "class-wise", "cifar100n") else None


def draw_labels(
    kind: str, classes: int, n: int, n_workers: int, redundancy: int, rng: np.random.Generator
) -> tuple[Any, lo.Annotations, Any]:
    """Return true classes, `n` annotations and the groups of classes: CIFAR-100N's own, else tens."""
    if kind == "cifar100n":
        labels, y, groups = cifar100n()
        some = np.isin(np.arange(len(y)), rng.permutation(len(y))[:n])
        return y[some], labels.select(some), groups
    groups = np.arange(classes) // 10
    y = rng.integers(0, classes, n // redundancy)
    crew = workers_of(kind, groups, n_workers, rng)
    return y, lo.simulate.annotate(y, crew, lo.simulate.assign(len(y), n_workers, redundancy, rng), rng), groups


def workers_of(kind: str, groups: Any, n_workers: int, rng: np.random.Generator) -> Factors:
    """Return workers whose mistakes stay in groups, go to three classes each, or anywhere."""
    if kind == "class-wise":
        return lo.simulate.grouped_class_wise_hammer_spammer(n_workers, groups, 0.3, rng)
    among = np.zeros_like(groups) if kind == "anywhere" else groups
    crew = lo.simulate.grouped_hammer_spammer(n_workers, among, 0.3, rng)
    if kind != "three":
        return crew
    n = len(groups)
    others = np.stack([rng.permutation(np.delete(np.arange(n), one))[:3] for one in range(n)])
    pairs = Mistakes.of(np.repeat(np.arange(n), 3), others.ravel(), n)
    right = np.where(crew.right == 1.0, 0.95, 0.25)
    return Factors(right, crew.row, pairs, np.full(len(pairs), 0.8 / 3 + 0.2 / (n - 1)), np.full(n, 0.2 / (n - 1)))


def trial(kind: str, classes: int, per_class: int, redundancy: int, seed: int) -> Trial:
    """Return the share of right labels by every worker model, and which of them is the default."""
    X, y, ann, groups = crowd(kind, classes, per_class, redundancy, seed)
    votes = lo.MajorityVote().fit(ann).posterior_
    right = {"vote": float((votes.argmax(axis=1) == y).mean())}
    started = time.process_time()
    for name, model in MODELS.items():
        if name == "given" and groups is None:
            continue
        learner = lo.SoftmaxRegression(C=0.1, tol=1e-3)
        clf = lo.MBEM(learner, worker_model=model(groups), rounds=3, folds=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lo.DoubtWarning)
            clf.fit(X, ann)
        right[name] = float((clf.posterior_.argmax(axis=1) == y).mean())
    found: Trial = {"kind": kind, "classes": classes, "per_class": per_class, "redundancy": redundancy, "seed": seed}
    found |= {"right": right, "default": "found" if uses_candidates(None, ann) else "Full"}
    return found | {"per_row": len(ann) / (ann.n_workers * classes), "cpu_s": round(time.process_time() - started, 1)}


def points(seed: int) -> list[Trial]:
    """Return the crowds of a seed."""
    found: list[Trial] = []
    for kind in KINDS:
        for classes, per_class in SIZES:
            one = {"kind": kind, "classes": classes, "per_class": per_class}
            if kind != "cifar100n":
                found += [one | {"redundancy": redundancy, "seed": seed} for redundancy in (1, 3)]
            elif (classes, per_class) == (100, 100):
                found.append(one | {"redundancy": 1, "seed": seed})
    return found


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    resume(options, trial, points(TUNE if options.tune else REPORT), order={"kind": list(KINDS)})


def table(trials: list[Trial]) -> str:
    """Return the share of right labels, %, and below how much the default and each choice lose to the best one."""
    head = ["crowd", "classes", "labels per class", "per task", "vote", *MODELS, "default", "is"]
    rows = []
    for one in trials:
        right = {name: f"{100 * value:.1f}" for name, value in one["right"].items()}
        shown = [right.get(name, "") for name in ("vote", *MODELS)]
        where = [one[key] for key in ("classes", "per_class", "redundancy")]
        rows.append([KINDS[one["kind"]], *where, *shown, right[one["default"]], one["default"]])
    choices = [name for name in MODELS if name != "given"]
    lost = {name: [losses(one, name, choices) for one in trials] for name in ("default", *choices)}
    shown = [f"{name} {100 * np.mean(values):.1f} ({100 * max(values):.1f})" for name, values in lost.items()]
    return markdown(head, rows) + f"\nPoints below the best choice, mean (most): {', '.join(shown)}.\n"


def losses(one: Trial, name: str, choices: list[str]) -> float:
    """Return how far below the best choice a choice is in a trial."""
    best = max(one["right"][choice] for choice in choices)
    return float(best - one["right"][one["default"] if name == "default" else name])


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--tune", action="store_true", help="the tuning seeds, into a results file of their own")
    options = parser.parse_args()
    if options.tune and options.out == PATH:
        options.out = PATH.with_name("many_classes_default_tune.json")
    main(options, run, table)
