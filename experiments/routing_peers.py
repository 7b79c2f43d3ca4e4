"""The choices of cleanlab's ActiveLab and of scikit-activeml's multi-annotator strategies, beside those of `routing`.

The published packages choose what is labelled next in worlds of routing.py, batch by batch, with a logistic regression
on majority votes as their model; MBEM is fitted to what was bought, as it is for everybody, so that only choices
differ; in four rounds, not in eight as in routing.py. ActiveLab gets predictions that did not see the task, and its
batch is the tasks with the lowest scores, each labelled by whoever arrives. `SingleAnnotatorWrapper` takes the least
confident predictions, and workers at random. `IntervalEstimationThreshold` chooses the workers too: all who may be
among the best label the least confident task that has no label. Our own strategies choose in the same draws.

    make routing-peers                                                # sets up the environment, then runs the next line
    .venv-routing-peers/bin/python experiments/routing_peers.py           # resumes where it was stopped
    .venv-routing-peers/bin/python experiments/routing_peers.py --table   # table alone, from results/routing_peers.json
"""

import time
import warnings
from importlib.metadata import version
from itertools import product
from typing import Any

import numpy as np
from record import RESULTS, Trial, arguments, main, resume
from routing import SHOWN, STRATEGIES, Buying, Crowd, details, draw, router_of, spend
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from labelonce import routing

PATH = RESULTS / "routing_peers.json"
ROUNDS = 4  # of MBEM in a refit


def labels_of(router: routing.Router, n_workers: int) -> Any:
    """Return the labels bought so far, (n_tasks, n_workers), NaN where there is none."""
    task, worker, label = router.answers
    found = np.full((router.state.n_tasks, n_workers), np.nan)
    found[task, worker] = label
    return found


def learner() -> LogisticRegression:
    """Return the model of the packages."""
    return LogisticRegression(max_iter=500)


def votes_of(labels: Any, n_classes: int) -> Any:
    """Return how often each class was given to each task."""
    return np.stack([(labels == one).sum(axis=1) for one in range(n_classes)], axis=1)


def give(router: routing.Router, crowd: Crowd, task: int, rng: np.random.Generator, labels: Any) -> None:
    """Buy a label of a task from whoever arrives and has not labelled it."""
    free = np.flatnonzero(np.isnan(labels[task]))
    worker = int(rng.choice(free))
    labels[task, worker] = crowd.label[task, worker]
    router.add(task, worker, int(crowd.label[task, worker]))


def by_active_lab(router: routing.Router, crowd: Crowd, n: int, rng: np.random.Generator) -> None:
    """Buy what cleanlab's ActiveLab asks for."""
    from cleanlab.multiannotator import get_active_learning_scores

    labels = labels_of(router, len(crowd.load))
    votes = votes_of(labels, router.state.n_classes)
    some, X = votes.sum(axis=1) > 0, router.state.X
    consensus = votes[some].argmax(axis=1)
    unseen = cross_val_predict(learner(), X[some], consensus, cv=5, method="predict_proba")
    rest = learner().fit(X[some], consensus).predict_proba(X[~some])
    given = labels[some][:, ~np.isnan(labels).all(axis=0)]
    scores = np.empty(len(labels))
    scores[some], scores[~some] = get_active_learning_scores(given, unseen, rest)
    for task in np.argsort(scores, kind="stable")[:n]:
        give(router, crowd, int(task), rng, labels)


def by_wrapper(router: routing.Router, crowd: Crowd, n: int, rng: np.random.Generator) -> None:
    """Buy what scikit-activeml's uncertainty sampling asks for, wrapped for several workers."""
    from skactiveml.pool import UncertaintySampling
    from skactiveml.pool.multiannotator import SingleAnnotatorWrapper

    seed = int(rng.integers(2**31))
    strategy = SingleAnnotatorWrapper(UncertaintySampling(random_state=seed), random_state=seed)
    labels = labels_of(router, len(crowd.load))
    options = {"clf": fitted(router, labels), "fit_clf": False}
    for task, worker in strategy.query(router.state.X, labels, batch_size=n, **options):
        router.add(int(task), int(worker), int(crowd.label[task, worker]))


def by_interval_estimation(router: routing.Router, crowd: Crowd, n: int, rng: np.random.Generator) -> None:
    """Buy what scikit-activeml's interval estimation asks for, a task at a time."""
    from skactiveml.pool.multiannotator import IntervalEstimationThreshold

    strategy = IntervalEstimationThreshold(random_state=int(rng.integers(2**31)))
    labels = labels_of(router, len(crowd.load))
    model = fitted(router, labels)
    while n > 0:
        for task, worker in strategy.query(router.state.X, labels, model, fit_clf=False)[:n]:
            labels[task, worker] = crowd.label[task, worker]
            router.add(int(task), int(worker), int(crowd.label[task, worker]))
            n -= 1


def fitted(router: routing.Router, labels: Any) -> Any:
    """Return scikit-activeml's classifier, fitted to majority votes."""
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.utils import majority_vote

    classes = list(range(router.state.n_classes))
    return SklearnClassifier(learner(), classes=classes).fit(router.state.X, majority_vote(labels, classes=classes))


PEERS: dict[str, Buying] = {
    "cleanlab ActiveLab": by_active_lab,
    "scikit-activeml SingleAnnotatorWrapper": by_wrapper,
    "scikit-activeml IntervalEstimationThreshold, may decline": by_interval_estimation,
}


def trial(world: str, crowd: str, strategy: str, seed: int) -> Trial:
    """Return what the choices of a package, or of a strategy of ours, are worth after every batch."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    rng = np.random.default_rng(seed)
    problem, workers = draw(world, crowd, rng)
    router = router_of(problem, STRATEGIES.get(strategy, STRATEGIES["Random"]), seed, rounds=ROUNDS)
    points = spend(router, problem, workers, rng, PEERS.get(strategy))
    row: Trial = {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
    row |= {name: [one[name] for one in points] for name in points[0]}
    return row | {"final": points[-1]["accuracy"], "cpu_s": time.process_time() - started}


def versions() -> dict[str, str]:
    """Return the versions of the packages."""
    return {package: version(package) for package in ("cleanlab", "scikit-activeml")}


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--worlds", nargs="+", default=["digits"])
    parser.add_argument("--crowds", nargs="+", default=["class-wise", "identical"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[10, 11, 12])
    parser.add_argument("--strategies", nargs="+", default=[*SHOWN, *PEERS])
    asked = parser.parse_args()
    points = [
        {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
        for seed, world, crowd, strategy in product(asked.seeds, asked.worlds, asked.crowds, asked.strategies)
    ]
    main(asked, lambda options: resume(options, trial, points, settings={"rounds": ROUNDS} | versions()), details)
