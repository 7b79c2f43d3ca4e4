"""What a limit of 15 fits costs: MBEM with a random forest and with boosted trees, beside the choice without a limit.

The limited fit has folds of quarters instead of fifths, and averages the folds' models over the few rounds that 15 fits
afford; the other one tries out rounds on held-out tasks as with cheap learners, in some 130 fits. Both on the same
crowds, test accuracy on tasks that no fit saw: scikit-learn's digits at one label per task by two kinds of workers, and
made-up features at two. Folds and rounds of the limited fit were chosen on seeds 10 to 13.

    python experiments/fifteen_fits.py            # about an hour of CPU time; resumes where it was stopped
    python experiments/fifteen_fits.py --table    # the table alone, from results/fifteen_fits.json
"""

import time
import warnings
from typing import Any

import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier

import labelonce as lo
from labelonce.learning import BoostedTrees, RepeatedRows

PATH = RESULTS / "fifteen_fits.json"
SEEDS = range(6)
TITLES = {
    "digits": "digits, hammers and spammers, one label per task",
    "class-wise": "digits, class-wise spammers, one label per task",
    "made-up": "made-up features, workers of all kinds, two labels per task",
}


class FreeForest(RepeatedRows):
    """A forest whose fits are not limited."""

    def is_cheap(self, X: Any, n_classes: int) -> bool:  # noqa: ARG002  # whatever they are
        """Return that no fit needs to be saved."""
        return True


class FreeTrees(BoostedTrees):
    """Boosted trees whose fits are not limited."""

    def is_cheap(self, X: Any, n_classes: int) -> bool:  # noqa: ARG002  # whatever they are
        """Return that no fit needs to be saved."""
        return True


def learner(name: str, *, limited: bool) -> Any:
    """Return a learner whose fits are limited or not."""
    if name == "forest":
        forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
        return RepeatedRows(forest) if limited else FreeForest(forest)
    return (BoostedTrees if limited else FreeTrees)(n_estimators=30)


def crowd(name: str, seed: int) -> tuple[Any, lo.Annotations, Any, Any]:
    """Return features, annotations, and features and classes of test tasks."""
    rng = np.random.default_rng(seed)
    if name == "made-up":
        X, y = make_classification(2500, 20, n_informative=8, n_classes=4, random_state=seed)
        confusion, redundancy, n_train = lo.simulate.dirichlet(40, 4, rng), 2, 1500
    else:
        X, y = load_digits(return_X_y=True)
        crowds = lo.simulate.class_wise_hammer_spammer if name == "class-wise" else lo.simulate.hammer_spammer
        confusion, redundancy, n_train = crowds(50, 10, 0.3, rng), 1, 1297
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    assignment = lo.simulate.assign(n_train, len(confusion), redundancy, rng)
    ann = lo.simulate.annotate(y[:n_train], confusion, assignment, rng)
    return X[:n_train], ann, X[n_train:], y[n_train:]


def trial(name: str, learner_name: str, seed: int) -> Trial:
    """Return test accuracy, fits and CPU seconds with and without the limit."""
    X, ann, X_test, y_test = crowd(name, seed)
    row: Trial = {"name": name, "learner_name": learner_name, "seed": seed}
    for kind, limited in (("limited", True), ("free", False)):
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = lo.MBEM(learner(learner_name, limited=limited), folds=1).fit(X, ann)
        row[kind] = {"accuracy": float((clf.predict(X_test) == y_test).mean()), "fits": clf.n_fits_}
        row[kind]["cpu_s"] = round(time.process_time() - started, 1)
    return row


def table(trials: list[Trial]) -> str:
    """Return one row per set and learner, and the mean cost of the limit."""
    head = ["set", "learner", "fits", "fits without a limit", "accuracy", "without a limit", "cost of the limit"]
    rows, costs = [], []
    for name, made in dict.fromkeys((one["name"], one["learner_name"]) for one in trials):
        of = [one for one in trials if (one["name"], one["learner_name"]) == (name, made)]
        cost = [100 * (one["free"]["accuracy"] - one["limited"]["accuracy"]) for one in of]
        costs += cost
        fits = [f"{np.mean([one[kind]['fits'] for one in of]):.0f}" for kind in ("limited", "free")]
        right = [mean_error([100 * one[kind]["accuracy"] for one in of]) for kind in ("limited", "free")]
        rows.append([TITLES[name], made, *fits, *right, mean_error(cost, sign="+")])
    return markdown(head, rows) + f"| mean of all | | | | | | {mean_error(costs, sign='+')} |\n"


def points() -> list[Trial]:
    """Return every set with every learner and seed."""
    return [
        {"name": name, "learner_name": made, "seed": seed}
        for name in TITLES
        for made in ("forest", "boosted trees")
        for seed in SEEDS
    ]


if __name__ == "__main__":
    order: dict[str, list[Any]] = {"name": list(TITLES), "learner_name": ["forest", "boosted trees"]}
    main(arguments(__doc__, PATH).parse_args(), lambda options: resume(options, trial, points(), order=order), table)
