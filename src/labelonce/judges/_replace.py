"""May a judge replace a person? The alternative annotator test."""

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import beta, false_discovery_control, t

from labelonce._types import Floats, Ids
from labelonce._validate import check_int, check_number
from labelonce.data import Annotations
from labelonce.judges._votes import Votes, families_of, people_of

_NAMES = ("winning_rate", "passes", "advantage", "low", "high", "people", "tasks")


def alternative_annotator_test(
    annotations: Annotations, *, people: Any = None, epsilon: float = 0.15, level: float = 0.05, min_tasks: int = 30
) -> pa.Table:
    """Return for every judge whether it may replace a person: one row per judge, best first.

    Each person is left out in turn. On the tasks that this person and others labelled, the judge wins where it agrees
    with the others at least as much as the person does. The person is beaten if the judge's share of wins is not
    below the person's by `epsilon` or more: a paired t-test, with the false discovery rate of all persons under
    `level` (Benjamini and Yekutieli). A judge that beats half of the persons passes.

    Columns: judge, winning_rate (of persons beaten), passes, advantage (mean share of tasks where the judge does as
    well as a person), low, high (its 90 % interval), people, tasks.

    Parameters
    ----------
    annotations : Annotations
    people : ids of workers or families, optional
        As in `JudgePanel`.
    epsilon : float
        What a person costs more than a judge: .2 for experts, .15 for trained workers, .1 for crowds.
    level : float
    min_tasks : int
        Persons with fewer tasks are left out.

    References
    ----------
    N. Calderon, R. Reichart and R. Dror, "The Alternative Annotator Test for LLM-as-a-Judge: How to Statistically
    Justify Replacing Human Annotators with LLMs", ACL 2025.
    """
    check_number(epsilon, "epsilon", 0.0, 1.0)
    check_number(level, "level", 0.0, 1.0)
    check_int(min_tasks, "min_tasks", 2)
    person = people_of(annotations, families_of(annotations), people)
    if person.sum() < 3:
        raise ValueError(
            f"people must be at least 3 of the workers, who are compared with each other; got {int(person.sum())}. "
            "Name them by people=..."
        )
    votes = Votes.of(annotations)
    votes_of = [np.flatnonzero(votes.worker == worker) for worker in range(votes.shape[1])]
    by_worker = [(votes.task[rows], votes.amount[rows].toarray()) for rows in votes_of]
    whole = np.zeros((votes.shape[0], votes.shape[2]))
    persons = np.flatnonzero(person)
    for worker in persons:
        task, said = by_worker[worker]
        whole[task] += said
    judges = np.flatnonzero(~person)
    rows = [_row(by_worker, judge, persons, whole, (epsilon, level), min_tasks) for judge in judges]
    table = {name: [row[place] for row in rows] for place, name in enumerate(_NAMES)}
    order = np.lexsort([-np.nan_to_num(np.array(table[name], dtype=float)) for name in ("advantage", "winning_rate")])
    columns = {"judge": pa.array(annotations.workers[judges[order]])}
    return pa.table(columns | {name: pa.array([values[i] for i in order]) for name, values in table.items()})


def _row(by_worker: Any, judge: Any, persons: Ids, whole: Floats, limits: tuple[float, float], least: int) -> Any:
    """Return the columns of one judge."""
    chances, shares, n_tasks = [], [], 0
    own, said = by_worker[judge]
    for person in persons:
        task, theirs = by_worker[person]
        both, at_judge, at_person = np.intersect1d(own, task, return_indices=True)
        others = whole[both] - theirs[at_person]
        enough = others.sum(axis=1) > 0.5
        if enough.sum() < least:
            continue
        rest = others[enough]
        judged, given = said[at_judge][enough], theirs[at_person][enough]
        score = (judged * rest).sum(axis=1), (given * rest).sum(axis=1)
        wins, losses = (score[0] >= score[1] - 1e-12).astype(float), (score[1] >= score[0] - 1e-12).astype(float)
        chances.append(_p_value(losses - wins, limits[0]))
        shares.append(float(wins.mean()))
        n_tasks += int(enough.sum())
    if not shares:
        return (None, None, None, None, None, 0, 0)
    beaten = (false_discovery_control(chances, method="by") <= limits[1]).mean()
    mean = float(np.mean(shares))
    low, high = (float(beta.ppf(end, mean * n_tasks + 0.5, (1 - mean) * n_tasks + 0.5)) for end in (0.05, 0.95))
    return (float(beaten), bool(beaten >= 0.5), mean, low, high, len(shares), n_tasks)


def _p_value(gap: Floats, epsilon: float) -> float:
    """Return the probability of so small a mean gap if the person were ahead by epsilon."""
    deviation = gap.std(ddof=1) / np.sqrt(len(gap))
    if deviation < 1e-12:
        return float(gap.mean() >= epsilon)
    return float(t.cdf((gap.mean() - epsilon) / deviation, len(gap) - 1))
