"""Groups of nodes that are joined more within than between: communities of a graph, with the resolution learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from labelonce._rules import RULES
from labelonce._types import Codes

_STEPS = 10  # of learning it at most
_PASSES = 30  # over all nodes at most


def communities(weights: Any) -> Codes:
    """Return the community of every node of a graph, by the symmetric matrix of its weights, zero on the diagonal.

    Weights are counts, more frequent within communities than between them by one factor for all: the degree-corrected
    planted partition. Its most likely partition is that of largest modularity at a resolution that follows from the two
    rates (M. E. J. Newman, "Equivalence between modularity optimization and maximum likelihood methods for community
    detection", Physical Review E, 2016), so that partition and resolution are found in turn, the partition by moving
    nodes and then whole communities (V. D. Blondel, J.-L. Guillaume, R. Lambiotte and E. Lefebvre, "Fast unfolding of
    communities in large networks", Journal of Statistical Mechanics, 2008). At resolution 0 it is the connected
    components. Of several starts the one wins that needs fewest nats to tell partition and weights.

    Examples
    --------
    Two triangles that a weak bridge joins:

    >>> graph = np.kron(np.eye(2), 20 * (1 - np.eye(3)))
    >>> graph[0, 3] = graph[3, 0] = 2
    >>> communities(graph)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    graph = sparse.csr_array(weights, dtype=np.float64)
    if graph.nnz == 0:
        return np.arange(graph.shape[0], dtype=np.int32)
    return min((_learned(graph, start) for start in RULES.community_resolutions), key=lambda found: found[0])[1]


def _learned(graph: Any, resolution: float) -> tuple[float, Codes]:
    """Return a partition and its cost, after the resolution was learned from a start."""
    for _ in range(_STEPS):
        partition = _partition(graph, resolution)
        cost, found = _cost_and_resolution(graph, partition)
        if abs(found - resolution) < 1e-3:
            break
        resolution = found
    return cost, partition


def _cost_and_resolution(graph: Any, partition: Codes) -> tuple[float, float]:
    """Return minus the log-likelihood plus the nats that tell the partition, and the resolution of its rates."""
    degree, total = graph.sum(axis=1), float(graph.sum())
    row, column = graph.nonzero()
    inside = float(graph.data[partition[row] == partition[column]].sum())
    by_chance = float((np.bincount(partition, degree) ** 2).sum()) / total
    rates = inside / by_chance, (total - inside) / max(total - by_chance, 1e-9)
    likelihood = sum(
        amount * np.log(rate) for amount, rate in zip((inside, total - inside), rates, strict=True) if amount > 0
    )
    cost = len(partition) * np.log(partition.max() + 1) - likelihood / 2
    if rates[1] <= 0 or rates[0] <= rates[1]:
        return float(cost), 0.0
    return float(cost), float((rates[0] - rates[1]) / np.log(rates[0] / rates[1]))


def _partition(graph: Any, resolution: float) -> Codes:
    """Return the partition that moves lead to, of nodes and of communities in turn."""
    if resolution == 0:
        return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)
    whole, part = np.arange(graph.shape[0]), graph
    while True:
        moved = _moved(part, np.arange(part.shape[0]), resolution)
        if moved.max() + 1 == part.shape[0]:
            return np.asarray(_moved(graph, whole, resolution), dtype=np.int32)
        whole = moved[whole]
        joined = sparse.csr_array((np.ones(len(moved)), (moved, np.arange(len(moved)))))
        part = sparse.csr_array(joined @ part @ joined.T)


def _moved(graph: Any, partition: Any, resolution: float) -> Any:
    """Return a partition after nodes have moved, one by one, to where modularity rises most, until none does."""
    degree = graph.sum(axis=1)
    total, found = float(degree.sum()), partition.copy()
    held = np.bincount(found, degree, graph.shape[0])
    order = np.random.default_rng(0).permutation(graph.shape[0])
    for _ in range(_PASSES):
        settled = True
        for node in order:
            near = slice(graph.indptr[node], graph.indptr[node + 1])
            others = graph.indices[near] != node
            place, inverse = np.unique(np.append(found[graph.indices[near][others]], found[node]), return_inverse=True)
            links = np.bincount(inverse[:-1], graph.data[near][others], len(place))
            held[found[node]] -= degree[node]
            gain = links - resolution * degree[node] * held[place] / total
            best = int(gain.argmax())
            if gain[best] > gain[inverse[-1]] + 1e-12 * total:
                found[node], settled = place[best], False
            held[found[node]] += degree[node]
        if settled:
            break
    return np.unique(found, return_inverse=True)[1]
