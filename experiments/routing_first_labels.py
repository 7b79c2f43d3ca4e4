"""Whether a choice is worse than none while little is known: `Information` beside `FewestLabels`, the first labels.

The worlds of routing.py, everybody is served, but only the first quarter of the budget, where model and workers are
hardly known. Draws differ much more there than strategies do, so there are many of them, and strategies are compared
in the same draws. `trial` is how many labels of a worker go to random tasks with the fewest labels before it is asked
what tells most, 5 by default; 8 was tried on draws 20 to 65.

    python experiments/routing_first_labels.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/routing_first_labels.py --table    # table alone, from results/routing_first_labels.json
"""

import time
import warnings
from itertools import product

import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume
from routing import ROUNDS, STRATEGIES, Rule, draw, router_of, spend

from labelonce import routing

PATH = RESULTS / "routing_first_labels.json"
N_BATCHES = 4
SETTINGS = (("digits", "class-wise"), ("labelme", "hammer-spammer"), ("labelme", "real"))
RULES = {
    "FewestLabels": STRATEGIES["FewestLabels"],
    "Information": STRATEGIES["Information"],
    "Information, trial=8": Rule(routing.Information(trial=8)),
}


def trial(world: str, crowd: str, strategy: str, seed: int) -> Trial:
    """Return the test accuracy after every batch."""
    warnings.simplefilter("ignore")
    started, rng = time.process_time(), np.random.default_rng(seed)
    problem, workers = draw(world, crowd, rng)
    router = router_of(problem, RULES[strategy], seed)
    points = spend(router, problem, workers, rng, batches=N_BATCHES)
    row: Trial = {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
    row |= {"spent": [one["spent"] / problem.budget for one in points]}
    row |= {"accuracy": [one["accuracy"] for one in points]}
    return row | {"cpu_s": time.process_time() - started}


def table(trials: list[Trial]) -> str:
    """Return the accuracies, and how far they are from those of `FewestLabels` in the same draws."""
    rows = []
    for (world, crowd), strategy in product(SETTINGS, RULES):
        own = {
            row["seed"]: row
            for row in trials
            if (row["world"], row["crowd"], row["strategy"]) == (world, crowd, strategy)
        }
        if strategy == "FewestLabels":
            first = own
        if own:
            cells = [_cell(own, first, at) for at in range(1, N_BATCHES + 1)]
            rows.append([f"{world}, {crowd}", strategy, *cells, len(own)])
    shares = [f"{100 * share:.0f} % of the budget" for share in trials[0]["spent"][1:]]
    return markdown(["world, crowd", "strategy", *shares, "draws"], rows)


def _cell(own: dict[int, Trial], first: dict[int, Trial], at: int) -> str:
    mean = 100 * np.mean([row["accuracy"][at] for row in own.values()])
    apart = [100 * (own[seed]["accuracy"][at] - first[seed]["accuracy"][at]) for seed in own if seed in first]
    return f"{mean:.1f}" if own is first else f"{mean:.1f} ({mean_error(apart, sign='+')})"


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(66, 96)))
    asked = parser.parse_args()
    points = [
        {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
        for seed, (world, crowd), strategy in product(asked.seeds, SETTINGS, RULES)
    ]
    order = {"strategy": list(RULES)}
    main(asked, lambda options: resume(options, trial, points, order=order, settings={"rounds": ROUNDS}), table)
