"""Whether it pays to ask what is nearly settled, to learn about the worker: `Information(about_workers=...)`.

Simulated tasks of four classes without features, twenty workers who arrive at random and are all served; `DawidSkene`
is fitted after every sixty labels. Accuracy is that of the believed labels, after one, two and three labels for the
average task. Hammer-spammers (quality 0.4) and class-wise ones (0.5). The default was chosen on draws 20 to 27.

    python experiments/routing_about_workers.py
    python experiments/routing_about_workers.py --table    # table alone, from results/routing_about_workers.json
"""

import time
import warnings
from itertools import product

import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume

import labelonce as lo
from labelonce import routing

PATH = RESULTS / "routing_about_workers.json"
N_TASKS, N_CLASSES, N_WORKERS, N_EACH, BETWEEN_REFITS = 300, 4, 20, 3, 60
STRATEGIES: dict[str, routing.Strategy] = {
    "Random": routing.Random(),
    "FewestLabels": routing.FewestLabels(),
    "Information": routing.Information(),
    "Information, about_workers=30": routing.Information(about_workers=30),
}
CROWDS = {"hammer-spammer": 0.4, "class-wise": 0.5}


def trial(crowd: str, strategy: str, seed: int) -> Trial:
    """Return the accuracy of the believed labels after every label per task."""
    warnings.simplefilter("ignore")
    started, rng = time.process_time(), np.random.default_rng(seed)
    y = rng.integers(N_CLASSES, size=N_TASKS)
    if crowd == "class-wise":
        confusion = lo.simulate.class_wise_hammer_spammer(N_WORKERS, N_CLASSES, CROWDS[crowd], rng)
    else:
        confusion = lo.simulate.hammer_spammer(N_WORKERS, N_CLASSES, CROWDS[crowd], rng, exact=True)
    router = routing.Router(np.arange(N_TASKS), np.arange(N_CLASSES), strategy=STRATEGIES[strategy], random_state=seed)
    accuracy = []
    for turn in range(1, N_EACH * N_TASKS + 1):
        worker = int(rng.integers(N_WORKERS))
        task = int(router.next(worker))
        router.add(task, worker, int(rng.choice(N_CLASSES, p=confusion[worker, y[task]])))
        if turn % BETWEEN_REFITS == 0:
            router.refit()
        if turn % N_TASKS == 0:
            accuracy.append(float((router.belief.posterior().argmax(axis=1) == y).mean()))
    row: Trial = {"crowd": crowd, "strategy": strategy, "seed": seed, "accuracy": accuracy}
    return row | {"cpu_s": time.process_time() - started}


def table(trials: list[Trial]) -> str:
    """Return the accuracies of all strategies."""
    rows = []
    for crowd, strategy in product(CROWDS, STRATEGIES):
        own = [row["accuracy"] for row in trials if (row["crowd"], row["strategy"]) == (crowd, strategy)]
        cells = [mean_error([100 * accuracy[at] for accuracy in own]) for at in range(N_EACH)]
        rows.append([crowd, strategy, *cells, len(own)])
    return markdown(["crowd", "strategy", *(f"{n} per task" for n in range(1, N_EACH + 1)), "draws"], rows)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(30, 40)))
    asked = parser.parse_args()
    points = [
        {"crowd": crowd, "strategy": strategy, "seed": seed}
        for seed, crowd, strategy in product(asked.seeds, CROWDS, STRATEGIES)
    ]
    main(asked, lambda options: resume(options, trial, points, order={"strategy": list(STRATEGIES)}), table)
