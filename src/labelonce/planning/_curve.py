"""The curve of a plan: one row per redundancy, what each buys and how much information that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb, inf, sqrt
from typing import Any

import numpy as np
from scipy.special import entr, gammaln, xlogy

from labelonce._kernels import floored_log
from labelonce._types import Codes, Estimate, Floats, Mask
from labelonce._validate import check_int, check_number
from labelonce.planning._crowd import Crowd
from labelonce.simulate import assign

_MAX_STATES = 20_000  # of an exact sum, for the largest redundancy
_CHUNK = 2**21  # numbers held at once
MEASURES = ("gini", "mutual")
GOALS = ("model", "labels")
_WORTHWHILE = 0.01  # gain that one more label for every task must bring: judgement; `point_cost` shows what it buys
_CROWDS = 16  # draws of a crowd that is in doubt
_DRAWS = 16_000  # tasks drawn, over all crowds
_FIRST = 20  # redundancies tried before the best is known not to be among larger ones
_LAST = 160


@dataclass(frozen=True)
class Information:
    """The mean information in the labels of one task, one entry per redundancy."""

    # (n,): Share of the Gini impurity of the class prior that the labels take away: 1 is the truth itself. For two
    # classes and symmetric workers it is 1 - 2 beta of `labelonce.theory`.
    gini: Floats
    # (n,): Mutual information between the labels and the true label, as a share of the entropy of the class prior
    mutual: Floats
    label_accuracy: Floats  # (n,): Chance that the most probable class is the true one, the workers being known
    beta: Floats  # (n,): Mean posterior of the wrong classes


def information(
    crowd: Crowd, confusion: Floats, redundancies: Sequence[int], *, draws: int, rng: np.random.Generator
) -> Information:
    """Return the information in labels by the workers of a crowd, for redundancies in ascending order.

    `confusion` is that of the crowd, or a draw of it. All redundancies share their random numbers, so that the curve
    is smooth: the labels of r + 1 are those of r and one more.
    """
    prior = crowd.prior
    outcomes = _outcomes(crowd.load, confusion) if crowd.population else None
    most = redundancies[-1]
    if outcomes is not None and comb(most + len(outcomes) - 1, most) <= _MAX_STATES:
        found = np.array([_exact(outcomes, prior, redundancy) for redundancy in redundancies])
    else:
        found = _sampled(crowd, confusion, redundancies, draws, rng)
    squares, surprise, right = found.T
    before = float(prior @ prior)
    return Information(
        gini=(squares - before) / (1 - before),
        mutual=1 - surprise / float(entr(prior).sum()),
        label_accuracy=right,
        beta=1 - squares,
    )


def _moments(posterior: Floats) -> Floats:
    """Return the sum of squares, the entropy and the largest entry of posteriors (..., n_classes), stacked last."""
    return np.stack([(posterior**2).sum(-1), entr(posterior).sum(-1), posterior.max(-1)], axis=-1)


def _outcomes(load: Floats, confusion: Floats) -> Floats:
    """Return P(outcome | true) of one label, (n_outcomes, n_classes), with equivalent outcomes merged."""
    each = (load[:, None, None] * confusion).transpose(0, 2, 1).reshape(-1, confusion.shape[1])
    each = each[each.sum(axis=1) > 0]
    direction = (each / each.sum(axis=1, keepdims=True)).round(12)
    place = np.unique(direction, axis=0, return_inverse=True)[1].ravel()
    merged = np.zeros((int(place.max()) + 1, each.shape[1]))
    np.add.at(merged, place, each)
    return merged


def _exact(outcomes: Floats, prior: Floats, redundancy: int) -> Floats:
    """Return the mean of `_moments` over all sets of outcomes."""
    n = len(outcomes)
    bars = np.array(list(combinations(range(redundancy + n - 1), n - 1)), dtype=np.int64)
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), redundancy + n - 1)])
    counts = np.diff(edges, axis=1) - 1
    ways = gammaln(redundancy + 1) - gammaln(counts + 1).sum(axis=1)
    log_chance = ways[:, None] + xlogy(counts[:, :, None], outcomes[None]).sum(axis=1)
    joint = prior * np.exp(log_chance)
    chance = joint.sum(axis=1)
    posterior = joint / np.where(chance > 0, chance, 1)[:, None]
    return np.asarray(chance @ _moments(posterior))


def _sampled(
    crowd: Crowd, confusion: Floats, redundancies: Sequence[int], draws: int, rng: np.random.Generator
) -> Floats:
    """Return the mean of `_moments` over drawn tasks, (n_redundancies, 3)."""
    n_workers, n_classes, _ = confusion.shape
    most, places = redundancies[-1], np.asarray(redundancies) - 1
    cumulative, log_confusion = np.cumsum(confusion, axis=2), floored_log(confusion)
    total = np.zeros((len(redundancies), 3))
    size = max(1, min(draws, _CHUNK // (most * n_classes)))
    for start in range(0, draws, size):
        n = min(size, draws - start)
        true = rng.choice(n_classes, n, p=crowd.prior)
        worker = assign(n, n_workers, most, rng, replace=crowd.population, load=crowd.load)
        uniform = rng.random(worker.shape)
        given = (uniform[:, :, None] >= cumulative[worker, true[:, None]]).sum(axis=2)
        log_joint = log_confusion[worker, :, np.minimum(given, n_classes - 1)].cumsum(axis=1)[:, places]
        log_joint += floored_log(crowd.prior)
        posterior = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=2)[:, :, None])
        total += _moments(posterior).sum(axis=0)
    return np.asarray(total / draws)


@dataclass(frozen=True)
class Money:
    """What can be spent, and on what.

    `label_price` includes the `fee`, a share of it; `pool` is the number of tasks there are, None for no limit.
    """

    budget: float
    label_price: float
    task_price: float
    pool: int | None
    fee: float = 0.0

    def tasks(self, redundancy: int) -> float:
        """Return how many tasks can be labelled N times, as a real number."""
        most = inf if self.pool is None else self.pool
        return min(most, self.budget / (self.task_price + redundancy * self.label_price))

    def cost(self, tasks: int, redundancy: int) -> float:
        """Return what it costs to label some tasks N times."""
        return tasks * (self.task_price + redundancy * self.label_price)


@dataclass(frozen=True)
class Row:
    """What the budget buys at one redundancy.

    Attributes
    ----------
    redundancy, tasks, labels : int
        Labels per task, tasks and labels in all.
    cost : float
    information : float
        Information in the labels of one task, as a share of that in its true label.
    worth, worth_low, worth_high : float
        Number of true labels with the same information, and its 90 % range where the workers are not known exactly.
    loss : float
        Share of the largest worth that this redundancy gives away.
    label_accuracy : float
        Share of tasks whose most probable label is right, by the labels alone, with workers that are known.
    point_cost : float or None
        What one more point of `label_accuracy` costs, bought by more labels of the same tasks; None for the last row.
    bound : float or None
        Bound of Theorem 4.1 on the excess risk, divided by the smallest of the curve; for two classes only.
    accuracy : Estimate or None
        Expected accuracy of the model on new tasks, with its 90 % range; None without a simulation.
    simulated, simulated_error : float or None
        Mean accuracy of the simulated fits at this redundancy, and its standard error.

    Examples
    --------
    >>> from labelonce import planning
    >>> planning.plan(planning.assume(skill=0.8), budget=1000, overlap=0).row(2).tasks
    500
    """

    redundancy: int
    tasks: int
    labels: int
    cost: float
    information: float
    worth: float
    worth_low: float
    worth_high: float
    loss: float
    label_accuracy: float
    point_cost: float | None = None
    bound: float | None = None
    accuracy: Estimate | None = None
    simulated: float | None = None
    simulated_error: float | None = None


@dataclass(frozen=True)
class Curve:
    """The rows, the redundancy to buy for a goal, and its range over plausible crowds.

    `chosen` has the redundancy of every goal, `best` that of the goal of the plan.
    """

    rows: tuple[Row, ...]
    best: int
    likely: tuple[int, int]
    chosen: dict[str, int]

    def row(self, redundancy: int) -> Row:
        """Return the row of a redundancy."""
        return next(row for row in self.rows if row.redundancy == redundancy)


def check_money(budget: Any, label_price: Any, task_price: Any, tasks: Any, fee: Any = 0.0) -> Money:
    """Return the money; a budget that buys no task with one label is an error."""
    share = check_number(fee, "fee", 0)
    price = check_number(label_price, "label_price", 0) * (1 + share)
    if price == 0:
        raise ValueError(f"label_price must be above 0; got {label_price!r}. Labels that cost nothing need no plan.")
    of_task = check_number(task_price, "task_price", 0)
    amount = check_number(budget, "budget", 0)
    if amount < price + of_task:
        raise ValueError(f"budget must buy one task with one label, {price + of_task:g}; got {amount:g}.")
    return Money(amount, price, of_task, None if tasks is None else check_int(tasks, "tasks", 1), share)


def curve(
    crowd: Crowd, money: Money, redundancies: Sequence[int] | None, measure: str, seed: int, goal: str = "model"
) -> Curve:
    """Return the curve; without `redundancies` it is long enough that the best is not the last."""
    possible = _possible(crowd, money, redundancies)
    n = len(possible) if redundancies is not None else min(_FIRST, len(possible))
    while True:
        found = _curve(crowd, money, possible[:n], measure, seed, goal)
        if n == len(possible) or max(found.chosen.values()) <= 0.7 * possible[n - 1]:
            return found
        n = min(2 * n, len(possible))


def _possible(crowd: Crowd, money: Money, redundancies: Sequence[int] | None) -> list[int]:
    """Return the redundancies that money and workers allow, in rising order."""
    most = crowd.n_workers or _LAST
    if redundancies is None:
        asked = list(range(1, min(most, _LAST) + 1))
    else:
        asked = sorted({check_int(one, "redundancies", 1) for one in redundancies})
    allowed = [one for one in asked if one <= most and money.tasks(one) >= 1]
    if not allowed:
        raise ValueError(
            f"redundancies must have one that {money.budget:g} can pay for and {most} workers can give; got {asked}."
        )
    return allowed


def _curve(crowd: Crowd, money: Money, redundancies: Sequence[int], measure: str, seed: int, goal: str) -> Curve:
    each = _of_possible_crowds(crowd, redundancies, seed)
    gains = np.array([getattr(one, measure) for one in each])
    gain = gains.mean(axis=0)
    if gain.max() < 1e-9:
        raise ValueError(
            f"workers must tell something about the true labels; got a mean skill of {crowd.mean_skill:.3g} for "
            f"{crowd.n_classes} classes, which is guessing. Find other workers."
        )
    tasks = np.array([money.tasks(one) for one in redundancies])
    worth = tasks * gain
    best = int(worth.argmax())
    ends = np.quantile(tasks * gains, [0.05, 0.95], axis=0)
    bounds = _bounds(crowd, tasks, np.mean([one.beta for one in each], axis=0))
    rights = np.array([one.label_accuracy for one in each])
    right = rights.mean(axis=0)
    steps = np.asarray(redundancies)
    choose = partial(_chosen, redundancies=steps, tasks=tasks, pool=money.pool)
    chosen = choose(gain, right)
    of_crowds = [choose(*one)[goal] for one in zip(gains, rights, strict=True)]
    likely = np.quantile(of_crowds, [0.05, 0.95], method="nearest")
    points = _point_costs(right, steps, tasks * money.label_price)
    whole = (tasks + 1e-9).astype(int).tolist()
    rows = [
        Row(
            redundancy=redundancy,
            tasks=whole[i],
            labels=whole[i] * redundancy,
            cost=money.cost(whole[i], redundancy),
            information=float(gain[i]),
            worth=float(worth[i]),
            worth_low=float(ends[0, i]),
            worth_high=float(ends[1, i]),
            loss=float(1 - worth[i] / worth[best]),
            label_accuracy=float(right[i]),
            point_cost=points[i],
            bound=None if bounds is None else float(bounds[i]),
        )
        for i, redundancy in enumerate(redundancies)
    ]
    return Curve(tuple(rows), chosen[goal], (int(likely[0]), int(likely[1])), chosen)


def _chosen(gain: Floats, right: Floats, *, redundancies: Codes, tasks: Floats, pool: int | None) -> dict[str, int]:
    """Return the redundancy to buy for every goal."""
    worth = tasks * gain
    every = np.ones(len(tasks), dtype=bool)
    places = {
        "model": _enough(worth / worth.max(), redundancies, tasks == pool),
        "labels": _enough(right, redundancies, every),
    }
    return {goal: int(redundancies[place]) for goal, place in places.items()}


def _enough(value: Floats, redundancies: Codes, cheaper: Mask) -> int:
    """Return the first place after which another label gains too little, up to the best place and among `cheaper` ones.

    Rows that are not cheaper cost as much as the best one, so nothing is saved by taking them.
    """
    best = int(value.argmax())
    for i in np.flatnonzero(cheaper[:best]).tolist():
        if (_slopes(value, redundancies, i)[: best - i] < _WORTHWHILE).all():
            return i
    return best


def _slopes(value: Floats, redundancies: Codes, i: int) -> Floats:
    """Return what each label per task beyond place i gains, up to every later place."""
    return np.asarray((value[i + 1 :] - value[i]) / (redundancies[i + 1 :] - redundancies[i]))


def _point_costs(right: Floats, redundancies: Codes, label_costs: Floats) -> list[float | None]:
    """Return what one more point of right labels costs from every redundancy on; None where more labels bring none."""
    best = [float(_slopes(right, redundancies, i).max(initial=0)) for i in range(len(right))]
    return [float(cost) / (100 * one) if one > 1e-6 else None for cost, one in zip(label_costs, best, strict=True)]


def _of_possible_crowds(crowd: Crowd, redundancies: Sequence[int], seed: int) -> list[Information]:
    """Return the information of every plausible crowd, all with the same random numbers."""
    n = 1 if crowd.is_certain else _CROWDS
    doubt = np.random.default_rng([seed, 1])
    return [
        information(crowd, crowd.draw(doubt), redundancies, draws=_DRAWS // n, rng=np.random.default_rng([seed, 2]))
        for _ in range(n)
    ]


def _bounds(crowd: Crowd, tasks: Floats, beta: Floats) -> Floats | None:
    """Return 1 / ((1 - 2 beta) sqrt(n)) of Theorem 4.1, relative to the smallest; None for more than two classes."""
    if crowd.n_classes != 2:
        return None
    signal = np.maximum(1 - 2 * beta, 0)
    factor = np.array([1 / (one * sqrt(n)) if one > 0 else inf for one, n in zip(signal, tasks, strict=True)])
    return np.asarray(factor / factor.min())
