"""What the same quality would have cost: votes of the same workers, simulated from their confusion."""

from dataclasses import dataclass

import numpy as np

from labelonce import metrics, simulate
from labelonce._kernels import ScipyEngine, floored_log, one_coin_confusion, vote_fractions
from labelonce._types import Floats
from labelonce.report._facts import LEAN, Facts

REDUNDANCIES = (1, 2, 3, 5, 7, 9, 11, 15)
_TASKS, _WORKERS = 10_000, 1_000


@dataclass(frozen=True)
class Votes:
    """Labels per task, labels in all, and the share of right labels by plain and by weighted vote."""

    redundancy: int
    labels: int
    vote: float
    weighted: float


@dataclass(frozen=True)
class Money:
    """The expected accuracy of other numbers of labels per task, and the first that is as good as the fit."""

    rows: list[Votes]
    vote_needs: Votes | None
    weighted_needs: Votes | None
    three: Votes


def compare_redundancy(facts: Facts, accuracy: float) -> Money | None:
    """Return what simulated votes need to be right as often as `accuracy`; None where the data does not determine it.

    Tasks get classes in the shares of the posterior, workers by their share of the labels, labels by the workers'
    estimated confusion. The weighted vote knows these matrices: no aggregator of labels alone does better.
    """
    if not facts.comparable or facts.annotations.n_classes == 1:
        return None
    rng = np.random.default_rng(0)
    confusion, load = workers_by_belief(facts), facts.labels_per_worker / len(facts.annotations)
    if len(load) > _WORKERS:
        chosen = rng.choice(len(load), _WORKERS, p=load)
        confusion, load = confusion[chosen], np.full(_WORKERS, 1 / _WORKERS)
    shares = facts.belief[facts.labelled].mean(axis=0)
    n_tasks = int(facts.labelled.sum())
    rows = [_votes(confusion, load, shares / shares.sum(), r, n_tasks, rng) for r in REDUNDANCIES]
    return Money(
        rows=rows,
        vote_needs=next((row for row in rows if row.vote >= accuracy), None),
        weighted_needs=next((row for row in rows if row.weighted >= accuracy), None),
        three=next(row for row in rows if row.redundancy == 3),
    )


def workers_by_belief(facts: Facts) -> Floats:
    """Return the workers as the report shows them: those of the fit, or counted by its calibrated posterior."""
    if facts.estimate is None:
        return facts.belief_confusion
    counts, n_classes = facts.counts.counts, facts.annotations.n_classes
    leaning = counts + LEAN * one_coin_confusion(facts.skill, n_classes)
    return np.asarray(leaning / leaning.sum(axis=2, keepdims=True))


def _votes(
    confusion: Floats, load: Floats, shares: Floats, redundancy: int, n_tasks: int, rng: np.random.Generator
) -> Votes:
    true = rng.choice(len(shares), _TASKS, p=shares).astype(np.int32)
    assignment = simulate.assign(_TASKS, len(load), redundancy, rng, load=load)
    engine = ScipyEngine(simulate.annotate(true, confusion, assignment, rng), "float64")
    vote = vote_fractions(engine.vote_counts(), None)
    weighted = engine.e_step(floored_log(confusion), floored_log(shares)).posterior
    return Votes(redundancy, redundancy * n_tasks, metrics.accuracy(true, vote), metrics.accuracy(true, weighted))
