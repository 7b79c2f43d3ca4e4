"""The verdicts of a panel, one per judge and task, and how far every pair of judges agrees."""

import re
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Ids, Mask
from labelonce.data import Annotations

PERSONS = {"person", "people", "human", "humans", "expert", "experts", "annotator", "crowd", "rater", "user", "turker"}
_AT_ONCE = 1 << 20  # numbers of pairs that are worked on at once


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of judges with common tasks, each once: their agreement beyond chance, and on how many tasks."""

    one: Codes
    other: Codes
    n: Floats
    kappa: Floats

    def select(self, kept: Mask) -> Self:
        """Return some of the pairs."""
        return replace(self, one=self.one[kept], other=self.other[kept], n=self.n[kept], kappa=self.kappa[kept])

    def both_ways(self) -> tuple[Codes, Codes, Floats, Floats]:
        """Return a judge, another, their common tasks and their agreement: every pair twice, from either side."""
        one, other = np.append(self.one, self.other), np.append(self.other, self.one)
        return one, other, np.tile(self.n, 2), np.tile(self.kappa, 2)

    def matrix(self, n_workers: int) -> Floats:
        """Return the agreement as a symmetric matrix, NaN without common tasks."""
        full = np.full((n_workers, n_workers), np.nan)
        full[self.one, self.other] = full[self.other, self.one] = self.kappa
        return full


@dataclass(frozen=True, eq=False)
class Votes:
    """What every judge said of every task: one row per pair, spread over the classes where it said several."""

    task: Codes  # (n_votes,)
    worker: Codes  # (n_votes,)
    amount: Any  # csr_array (n_votes, n_classes): The share of the judge's answers to this task that were this class
    repeated: Floats  # (n_votes,): How often two of its answers to the task are the same; NaN where there is one
    # (n_votes,): How much the vote counts: its weight. Stated probabilities are ranked within the judge, since models
    # mean different things by them: the surest verdict counts nearly twice, the least sure one hardly.
    strength: Floats
    shape: tuple[int, int, int]  # tasks, workers, classes

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields, for files: a sparse array as its parts."""
        one = self.amount
        parts = {"data": one.data, "indices": one.indices, "indptr": one.indptr, "shape": one.shape}
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"amount": parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = state["amount"]
        amount = sparse.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])
        vars(self).update(state | {"amount": amount})

    @classmethod
    def of(cls, annotations: Annotations) -> Self:
        """Return the votes among the answers: those that are no class are none."""
        kept = np.flatnonzero(annotations.label < annotations.n_classes)
        task, worker, label = annotations.task[kept], annotations.worker[kept], annotations.label[kept]
        shape = (annotations.n_tasks, annotations.n_workers, annotations.n_classes)
        key, place = np.unique(task.astype(np.int64) * shape[1] + worker, return_inverse=True)
        said = sparse.csr_array((np.ones(len(kept)), (place, label)), shape=(len(key), shape[2]))
        number = np.bincount(place, minlength=len(key))
        squares = np.asarray(said.multiply(said).sum(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            repeated = np.where(number > 1, (squares / number - 1) / (number - 1), np.nan)
        strength = np.bincount(place, _strength(annotations)[kept], minlength=len(key)) / np.maximum(number, 1)
        amount = sparse.diags_array(1 / np.maximum(number, 1)) @ said
        codes = (key // shape[1]).astype(np.int32), (key % shape[1]).astype(np.int32)
        return cls(*codes, amount, repeated, strength, shape)

    @cached_property
    def n_votes(self) -> Floats:
        """The number of tasks of every judge."""
        return np.bincount(self.worker, minlength=self.shape[1]).astype(np.float64)

    @cached_property
    def shares(self) -> Floats:
        """How often every judge says every class, pulled to the panel's by a few votes."""
        to_worker = sparse.csr_array((np.ones(len(self.worker)), (self.worker, np.arange(len(self.worker)))))
        counts = np.zeros((self.shape[1], self.shape[2]))
        counts[: to_worker.shape[0]] = (to_worker @ self.amount).toarray()
        whole = counts.sum(axis=0) + 1
        whole /= whole.sum()
        pull = RULES.panel_shares_pull
        return np.asarray((counts + pull * whole) / (self.n_votes + pull)[:, None])

    @cached_property
    def consistency(self) -> Floats:
        """How often each judge repeats its own answer to a task; NaN where it never answered twice."""
        twice = ~np.isnan(self.repeated)
        n = np.bincount(self.worker[twice], minlength=self.shape[1])
        same = np.bincount(self.worker[twice], self.repeated[twice], minlength=self.shape[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(same / n)

    def rights(self, gold: Codes) -> tuple[Codes, Floats]:
        """Return the rows of the votes on tasks with gold, and how far each of them is right."""
        rows = np.flatnonzero(gold[self.task] >= 0).astype(np.int32)
        return rows, np.asarray(self.amount[rows, gold[self.task[rows]]]).ravel()

    def pairs(self, fewest: int = 1) -> Pairs:
        """Return how far pairs of judges with `fewest` common tasks agree beyond chance.

        Of very many votes this is counted on a draw of the tasks.
        """
        per_task = np.bincount(self.task, minlength=self.shape[0]).astype(np.float64)
        chosen = np.ones(self.shape[0], dtype=bool)
        if (work := (per_task**2).sum()) > RULES.panel_pairs:
            chosen = np.random.default_rng(0).random(self.shape[0]) < RULES.panel_pairs / work
        rows = np.flatnonzero(chosen[self.task])
        task, worker, entries = self.task[rows], self.worker[rows], self.amount[rows].tocoo()
        cell = task[entries.row].astype(np.int64) * self.shape[2] + entries.col
        _, cell = np.unique(cell, return_inverse=True)
        said = sparse.csr_array((entries.data, (cell, worker[entries.row])), shape=(len(entries.data), self.shape[1]))
        seen = sparse.csr_array((np.ones(len(task)), (task, worker)), shape=self.shape[:2])
        both = sparse.triu((seen.T @ seen).tocsr(), k=1).tocoo()  # votes on common tasks
        kept = both.data >= fewest
        one, other, n = both.row[kept], both.col[kept], both.data[kept]
        same: Floats = np.zeros(len(n))
        chance = same
        if len(n):
            same = np.asarray(sparse.csr_array((said.T @ said).tocsr())[one, other]).ravel()
            chance = self._agree_by_chance(one, other)
        return Pairs(one, other, n, (same - n * chance) / np.maximum(n * (1 - chance), 1e-9))

    def _agree_by_chance(self, one: Codes, other: Codes) -> Floats:
        """Return how often two judges would say the same by their shares of classes, some pairs at a time."""
        step = max(1, _AT_ONCE // self.shape[2])
        parts = (slice(start, start + step) for start in range(0, len(one), step))
        found = [np.einsum("pk,pk->p", self.shares[one[part]], self.shares[other[part]]) for part in parts]
        return np.concatenate(found)


def _strength(annotations: Annotations) -> Floats:
    """Return how much every annotation counts, 1 on average for each judge but for the weights."""
    weight = np.ones(len(annotations)) if annotations.weight is None else np.asarray(annotations.weight)
    if annotations.probability is None:
        return weight
    at = np.minimum(annotations.label, annotations.n_classes - 1)
    stated = np.asarray(annotations.probability)[np.arange(len(annotations)), at]
    rows = np.flatnonzero(~np.isnan(stated))
    worker, sure = annotations.worker[rows], stated[rows]
    levels, level = np.unique(np.stack([worker, sure]), axis=1, return_inverse=True)
    level = level.ravel()  # numpy 2.0 keeps an axis
    n_worker, n_level = np.bincount(worker, minlength=annotations.n_workers), np.bincount(level)
    below = np.cumsum(n_level) - n_level - (np.cumsum(n_worker) - n_worker)[levels[0].astype(np.int64)]
    rank = (below + n_level / 2)[level] / n_worker[worker]
    return np.asarray(weight * np.bincount(rows, 2 * rank - 1, minlength=len(weight)) + weight)


def families_of(annotations: Annotations, given: Any = None) -> Ids:
    """Return the family of every worker: as given, as the annotations say, or each its own."""
    workers = annotations.workers.tolist()
    codes, names = annotations.family, annotations.families
    if given is not None:
        found = [given.get(worker, worker) for worker in workers]
    elif codes is not None and names is not None:
        found = [names[code] if code >= 0 else worker for code, worker in zip(codes, workers, strict=True)]
    elif (named := annotations.name_families()) is not None:
        heads = {code: _head(str(worker)) for code, worker in zip(named.tolist(), workers, strict=True)}
        found = [heads[code] for code in named.tolist()]
    else:
        found = workers
    return np.array([str(one) for one in found], dtype=object)


def people_of(annotations: Annotations, families: Ids, given: Any = None) -> Mask:
    """Return who is a person: those given, or those whose family or id begins with a word for persons."""
    named = zip(annotations.workers.tolist(), families, strict=True)
    if given is not None:
        wanted = {given} if isinstance(given, str) else set(given)
        return np.array([not wanted.isdisjoint(names) for names in named], dtype=bool)
    return np.array([any(_word(str(name)) in PERSONS for name in names) for names in named], dtype=bool)


def _head(name: str) -> str:
    return re.split(r"[/:@|]", name, maxsplit=1)[0]


def _word(name: str) -> str:
    return re.split(r"[/:@|_\- \d]", name, maxsplit=1)[0].lower()
