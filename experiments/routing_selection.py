"""Whether a model suffers from the choice of its training tasks: calibration and class balance, routed against random.

Labels of digits and of LabelMe's photographs are bought as in routing.py, at random or by `Information`. The same
labels are then fitted in four ways: as they are; with every task weighted by how much rarer such tasks are among those
labelled than among all (a logistic regression that tells the two apart by their features); sharpened as
`Router.predict_proba` does, by the tasks that it had labelled at random; and with the class shares that explain the
predictions of all tasks best. Measured on test tasks: accuracy, expected calibration error, how much higher the mean
confidence is than the accuracy, and the distance of the class shares of the picks from the true ones.

    python experiments/routing_selection.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/routing_selection.py --table    # table alone, from results/routing_selection.json
"""

import time
import warnings
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume
from routing import RANDOM_SHARE, ROUNDS, STRATEGIES, World, draw, quality, router_of, spend
from sklearn.linear_model import LogisticRegression

import labelonce as lo
from labelonce import routing

PATH = RESULTS / "routing_selection.json"
WAYS = ("as it is", "weighted", "sharpened", "class shares")
MEASURES = ("accuracy", "calibration", "too_sure", "balance")
_MOST = 5.0  # times that a task may count more or less than usual


def trial(world: str, crowd: str, strategy: str, seed: int) -> Trial:
    """Return what each way of fitting the labels that a strategy bought is worth."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    rng = np.random.default_rng(seed)
    problem, workers = draw(world, crowd, rng)
    router = router_of(problem, replace(STRATEGIES[strategy], random_share=RANDOM_SHARE), seed)
    spend(router, problem, workers, rng)
    row: Trial = {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
    row |= {way: measures(chances, problem.y_test) for way, chances in fits_of(router, problem).items()}
    row["exponent"] = router.exponent
    return row | {"cpu_s": time.process_time() - started}


def fits_of(router: routing.Router, problem: World) -> dict[str, Any]:
    """Return the chances of the test tasks by every way of fitting."""
    model: Any = router.model_
    labelled = np.flatnonzero(router.state.n_labels > 0)
    X, targets, weight = problem.X[labelled], model.posterior_[labelled], certainty(model.posterior_[labelled])
    learner = lo.SoftmaxRegression(C=problem.C)
    plain = learner.fit(X, targets, weight).predict_proba(problem.X_test)
    found = {"as it is": plain}
    rarer = rarity(problem.X, labelled)
    found["weighted"] = lo.SoftmaxRegression(C=problem.C).fit(X, targets, weight * rarer).predict_proba(problem.X_test)
    found["sharpened"] = router.predict_proba(problem.X_test)
    shares = plain_shares(lo.SoftmaxRegression(C=problem.C).fit(X, targets, weight).predict_proba(problem.X))
    assumed = weight @ targets / weight.sum()
    found["class shares"] = plain * (shares / np.maximum(assumed, 1e-9))
    found["class shares"] /= found["class shares"].sum(axis=1, keepdims=True)
    return found


def certainty(posterior: Any) -> Any:
    """Return how much a task counts: 1 - H(posterior) / log K, as in MBEM."""
    entropy = -(posterior * np.log(np.maximum(posterior, 1e-12))).sum(axis=1)
    return np.maximum(1 - entropy / np.log(posterior.shape[1]), 1e-6)


def rarity(X: Any, labelled: Any) -> Any:
    """Return by how much rarer tasks such as each labelled one are among the labelled ones than among all."""
    if len(labelled) == len(X):
        return np.ones(len(labelled))
    both = np.concatenate([X, X[labelled]])
    chosen = np.concatenate([np.zeros(len(X)), np.ones(len(labelled))])
    odds = LogisticRegression(max_iter=500).fit(both, chosen).decision_function(X[labelled])
    ratio = np.exp(-odds) * len(labelled) / len(X)
    return np.clip(ratio / ratio.mean(), 1 / _MOST, _MOST)


def plain_shares(chances: Any) -> Any:
    """Return the mean chances of the classes among all tasks."""
    return chances.mean(axis=0)


def measures(chances: Any, y: Any) -> dict[str, float]:
    """Return what chances of test tasks are worth."""
    found = quality(chances, y)
    return found | {"too_sure": float(chances.max(axis=1).mean()) - found["accuracy"]}


def table(trials: list[Trial]) -> str:
    """Return one line per world, strategy and way of fitting."""
    settings = list(dict.fromkeys((row["world"], row["crowd"], row["strategy"]) for row in trials))
    lines = []
    for setting, way in product(settings, WAYS):
        own = [row[way] for row in trials if (row["world"], row["crowd"], row["strategy"]) == setting]
        lines.append([*setting, way, *(mean_error([100 * one[name] for one in own]) for name in MEASURES), len(own)])
    head = ["world", "crowd", "bought by", "fit", "accuracy", "calibration error", "confidence above accuracy"]
    return markdown([*head, "class balance error", "draws"], lines)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--worlds", nargs="+", default=["digits", "labelme"])
    parser.add_argument("--crowds", nargs="+", default=["class-wise", "identical"])
    parser.add_argument("--strategies", nargs="+", default=["Random", "Information"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[10, 11, 12, 13, 14])
    asked = parser.parse_args()
    points = [
        {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
        for seed, world, crowd, strategy in product(asked.seeds, asked.worlds, asked.crowds, asked.strategies)
    ]
    order = {"strategy": list(STRATEGIES)}
    main(asked, lambda options: resume(options, trial, points, order=order, settings={"rounds": ROUNDS}), table)
