"""Cohen's kappa of every pair of workers that share tasks, by one sparse product."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from labelonce._types import Codes, Floats, Ids
from labelonce.data import _ids
from labelonce.data._memory import check_memory

_Wide = npt.NDArray[np.int64]
_Three = tuple[Floats, Floats, Floats]


def pair_table(
    unit: Codes, worker: Codes, label: Codes, n_labels: int, workers: Ids, values: Floats | None, z: float
) -> pa.Table:
    """Return one row per pair of workers, those that share most tasks first, with intervals of `z` standard errors."""
    first, second, one, other, n = _cells(unit, worker, label, n_labels)
    new = np.ones(len(first), dtype=bool)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    start, pair = np.flatnonzero(new), np.cumsum(new) - 1
    n_tasks: Any = np.add.reduceat(n, start) if len(n) else n
    share = n / n_tasks[pair]
    columns: dict[str, Any] = {
        "worker": _ids.decode(first[start].astype(np.int32), workers),
        "other": _ids.decode(second[start].astype(np.int32), workers),
        "tasks": n_tasks.astype(np.int64),
    }
    agreed: Any = np.bincount(pair, share * (one == other), minlength=len(start))
    margins = _Margins(pair, one, share, n_labels), _Margins(pair, other, share, n_labels)
    chance = margins[0].dot(margins[1])
    expected = margins[1].at(pair, one) + margins[0].at(pair, other)
    weights: dict[str, _Three] = {"kappa": ((one == other).astype(float), chance, expected)}
    if values is not None:
        weights["weighted_kappa"] = _quadratic(values, pair, one, other, share)
    with np.errstate(divide="ignore", invalid="ignore"):
        perfect = (n_tasks / (n_tasks + z**2) - chance) / (1 - chance)
    figures = {name: _kappa(pair, share, n_tasks, some, perfect, z) for name, some in weights.items()}
    for name, (value, low, high) in ({"agreement": _wilson(agreed, n_tasks, z)} | figures).items():
        columns |= {name: value, f"{name}_low": low, f"{name}_high": high}
    table = pa.table(columns)
    return table.take(pa.array(np.argsort(-n_tasks, kind="stable")))


def _cells(unit: Codes, worker: Codes, label: Codes, n_labels: int) -> tuple[_Wide, _Wide, _Wide, _Wide, Floats]:
    """Return the cells of all pairs' tables that are not empty: two workers, their labels, and how many tasks.

    Workers with their labels are the columns of a sparse matrix of units, whose product with itself has the cells.
    """
    per_unit = np.bincount(unit).astype(float)
    said, column = np.unique(worker.astype(np.int64) * n_labels + label, return_inverse=True)
    n_cells = min(float((per_unit**2).sum()), float(len(said)) ** 2)
    check_memory(16 * n_cells, "the tables of all pairs of workers", "Select fewer tasks or workers.")
    shape = (len(per_unit), len(said))
    given = sparse.csr_array((np.ones(len(unit)), (unit, column)), shape=shape)
    cells = (given.T.tocsr() @ given).tocoo()
    first, second = said[cells.row] // n_labels, said[cells.col] // n_labels
    kept = first < second
    first, second = first[kept], second[kept]
    order = np.lexsort((second, first))
    one, other = (said[place[kept]][order] % n_labels for place in (cells.row, cells.col))
    return first[order], second[order], one, other, cells.data[kept][order]


class _Margins:
    """How often one worker of every pair gave every label, for the labels that it gave."""

    def __init__(self, pair: _Wide, label: _Wide, share: Floats, n_labels: int) -> None:
        self.n_labels, self.n_pairs = n_labels, int(pair[-1]) + 1 if len(pair) else 0
        self.key, place = np.unique(pair * n_labels + label, return_inverse=True)
        self.share = np.bincount(place, share)

    def at(self, pair: _Wide, label: _Wide) -> Floats:
        """Return the share of a label in a pair, 0 where it was not given."""
        wanted = pair * self.n_labels + label
        place = np.minimum(np.searchsorted(self.key, wanted), max(len(self.key) - 1, 0))
        return np.where(self.key[place] == wanted, self.share[place], 0.0)

    def dot(self, other: _Margins) -> Floats:
        """Return for every pair the chance that two labels drawn from both margins are the same."""
        both = self.share * other.at(self.key // self.n_labels, self.key % self.n_labels)
        return np.asarray(np.bincount(self.key // self.n_labels, both, minlength=self.n_pairs), dtype=np.float64)


def _quadratic(values: Floats, pair: _Wide, one: _Wide, other: _Wide, share: Floats) -> _Three:
    """Return the quadratic weight of every cell, the mean weight by chance, and the sum of the cells' mean weights."""
    spread = float(np.ptp(values)) ** 2
    x, y = values[one], values[other]
    means = [np.bincount(pair, share * v) for v in (x, y)]
    squares = [np.bincount(pair, share * v**2) for v in (x, y)]
    chance = 1 - (squares[0] + squares[1] - 2 * means[0] * means[1]) / spread
    of_one = 1 - (x**2 - 2 * x * means[1][pair] + squares[1][pair]) / spread
    of_other = 1 - (y**2 - 2 * y * means[0][pair] + squares[0][pair]) / spread
    return 1 - (x - y) ** 2 / spread, chance, of_one + of_other


def _kappa(pair: _Wide, share: Floats, n_tasks: Floats, weights: _Three, perfect: Floats, z: float) -> _Three:
    """Return kappa with its interval, by the variance of Fleiss, Cohen and Everitt (1969); NaN where chance is sure.

    Where a pair always agrees, that variance is 0: the lower end is then `perfect`, by Wilson's interval.
    """
    weight, chance, sums = weights
    agreed: Any = np.bincount(pair, share * weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = np.where(1 - chance > 1e-12, (agreed - chance) / (1 - chance), np.nan)
        spread = np.bincount(pair, share * (weight - sums * (1 - kappa[pair])) ** 2)
        variance = (spread - (kappa - chance * (1 - kappa)) ** 2) / (n_tasks * (1 - chance) ** 2)
        half = z * np.sqrt(np.maximum(variance, 0.0))
    low = np.where(agreed > 1 - 1e-12, perfect, np.maximum(kappa - half, -1.0))
    return kappa, low, np.minimum(kappa + half, 1.0)


def _wilson(share: Floats, n: Floats, z: float) -> _Three:
    """Return shares with the ends of Wilson's intervals."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return share, np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
