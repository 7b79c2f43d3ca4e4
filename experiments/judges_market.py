"""What it costs to reach a stated risk with models at 0.05 a verdict and people at 10 a label.

Claim: asking the panel first, and people where the panel is least sure, is cheaper than people only, than models only
(which may never get there), and than the panel with people on random items. People are simulated: right with a
probability of 0.95, independently. LLMBar: 12 judges of 6 models in one order. Two simulated markets of 9 judges of 3
models: `independent`, 85 % right, half of the mistakes shared; `alike`, 70 % right, nine in ten mistakes shared.

    python experiments/judges_market.py
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import record
from record import Trial

import labelonce as lo
from labelonce.routing import Information, Prices, Router

VERDICT, PERSON, RIGHT, PEOPLE, BATCH = 0.05, 10.0, 0.95, 5, 20
MARKETS = ("LLMBar", "independent", "alike")
RISKS = (0.10, 0.05, 0.03)
SEEDS = 3
PATH = record.RESULTS / "judges_market.json"
WAYS = ("people only", "models only", "panel, then random people", "panel, then people where it pays")


def draw(name: str, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the truth, and every model's verdicts on all items, -1: none."""
    if name == "LLMBar":
        data = lo.datasets.load("llmbar")
        ann = data.annotations
        assert ann is not None
        chosen = [one for one in ann.workers.tolist() if one.endswith(("/Vanilla", "/Metrics"))]
        said = {}
        for one in chosen:
            rows = (ann.worker == ann.workers.tolist().index(one)) & (ann.order == 0)
            said[one] = np.full(ann.n_tasks, -1)
            said[one][ann.task[rows]] = ann.label[rows]
        return data.gold_of(ann), said
    right, shared = (0.85, 0.5) if name == "independent" else (0.70, 0.9)
    truth = rng.integers(2, size=400)
    hard = rng.random(400) < 1 - right  # where models that share their mistakes err
    said = {}
    for model in "abc":
        own = np.where(rng.random(400) < shared, hard, rng.random(400) < 1 - right)
        for prompt in "123":
            wrong = np.where(rng.random(400) < 0.8, own, rng.random(400) < 1 - right)
            said[f"{model}/{prompt}"] = np.where(wrong, 1 - truth, truth)
    return truth, said


def path_of(way: str, truth: np.ndarray, said: dict[str, np.ndarray], rng: np.random.Generator) -> Iterator[Any]:
    """Yield the money spent, the share of wrong labels, and the share that is said to be wrong, batch by batch."""
    people = [f"person {number}" for number in range(PEOPLE)]
    models = [] if way == "people only" else list(said)
    costs = dict.fromkeys(models, VERDICT) | dict.fromkeys(people, PERSON)
    families = {one: one.split("/")[0] for one in models}
    learner = lo.JudgePanel(people=people) if models else lo.OneCoin()
    options: Any = {"prices": Prices(costs=costs), "families": families, "learner": learner}
    router = Router(range(len(truth)), [0, 1], strategy=Information(trial=0), random_state=0, **options)
    for model in models:
        for task in np.flatnonzero(said[model] >= 0):
            router.add(int(task), model, int(said[model][task]))
    if not models:
        for task in rng.permutation(len(truth)):  # one label of each task first
            _ask(router, int(task), people[rng.integers(PEOPLE)], truth, rng)
    queue = rng.permutation(len(truth)).tolist()
    while True:
        router.refit()
        wrong = float((router.belief.posterior().argmax(axis=1) != truth).mean())
        yield router.spent, wrong, router.belief.mean_risk
        if way == "models only" or (wrong <= RISKS[-1] and router.belief.mean_risk <= RISKS[-1]):
            return
        for _ in range(BATCH):
            person = people[rng.integers(PEOPLE)]
            chosen: Any = router.next(person) if way != WAYS[2] else queue.pop() if queue else None
            if chosen is None:
                return
            _ask(router, int(chosen), person, truth, rng)


def _ask(router: Router, task: int, person: str, truth: np.ndarray, rng: np.random.Generator) -> None:
    if not router.has_answered(task, person):
        router.add(task, person, int(truth[task] if rng.random() < RIGHT else 1 - truth[task]))


def trial(market: str, way: str, seed: int) -> Trial:
    """Return the cost at which at most 10, 5 and 3 % of the labels are wrong, None if never, and where it says 5 %."""
    truth, said = draw(market, np.random.default_rng(seed))
    path = list(path_of(way, truth, said, np.random.default_rng(100 + seed)))
    stop = next((step for step in path if step[2] <= 0.05), None)
    costs = {f"{risk:.0%}": next((spent for spent, wrong, _ in path if wrong <= risk), None) for risk in RISKS}
    return {"first": path[0], "costs": costs, "stop": stop}


def table(trials: list[Trial]) -> str:
    """Return the mean cost of each market and way; "never" where no seed gets there."""
    head = ["market", "way", "wrong before people", *(f"{risk:.0%} wrong" for risk in RISKS), "says 5 %", "wrong there"]
    rows = []
    for (name, way), of in record.grouped(trials, "market", "way").items():
        first = "" if way == WAYS[0] else f"{np.mean([one['first'][1] for one in of]):.1%}"
        costs = [_cost([one["costs"][f"{risk:.0%}"] for one in of]) for risk in RISKS]
        stops = [one["stop"] for one in of if one["stop"]]
        wrong = f"{np.mean([one[1] for one in stops]):.1%}" if stops else ""
        rows.append([name, way, first, *costs, _cost([one["stop"] and one["stop"][0] for one in of]), wrong])
    return record.markdown(head, rows)


def _cost(costs: list[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    few = f" ({len(known)} of {len(costs)})" if len(known) < len(costs) else ""
    return f"{np.mean(known):,.0f}{few}" if known else "never"


if __name__ == "__main__":
    points = record.grid(market=MARKETS, way=WAYS, seed=range(SEEDS))
    record.experiment(__doc__, PATH, trial, lambda _: points, table, order={"market": MARKETS, "way": WAYS})
