"""Communities of a graph: found where they are, and not where there are none."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from labelonce._types import Floats
from labelonce.workers._communities import communities


def planted(group: Any, inside: float, between: float, seed: int = 0) -> Floats:
    """Return counts of meetings: of each node so many within its group, and so many with all others."""
    rng = np.random.default_rng(seed)
    size = np.bincount(group)[group]
    rate = np.where(group[:, None] == group, inside / (size - 1), between / (len(group) - size))
    upper = np.triu(rng.poisson(rate), 1)
    return np.asarray(upper + upper.T, dtype=np.float64)


@pytest.mark.parametrize("between", [0.0, 10.0, 30.0])
def test_planted_groups_of_different_sizes_are_found(between: float) -> None:
    group = np.repeat(np.arange(8), [3, 5, 8, 10, 10, 12, 15, 20])
    assert adjusted_rand_score(group, communities(planted(group, 100.0, between))) > 0.99


def test_a_few_strong_bridges_do_not_join_groups() -> None:
    group = np.arange(60) // 6
    graph = planted(group, 50.0, 10.0)
    for one in range(0, 54, 6):
        graph[one, one + 6] = graph[one + 6, one] = 30.0
    assert adjusted_rand_score(group, communities(graph)) == 1


def test_a_graph_without_bridges_has_its_components() -> None:
    graph = np.zeros((7, 7))
    for one, two in ((0, 1), (1, 2), (4, 5)):
        graph[one, two] = graph[two, one] = 5.0
    assert_array_equal(communities(graph), [0, 0, 0, 1, 2, 2, 3])
    assert_array_equal(communities(np.zeros((3, 3))), [0, 1, 2])


def test_names_of_nodes_do_not_matter() -> None:
    group = np.arange(40) // 5
    graph, order = planted(group, 50.0, 30.0), np.random.default_rng(1).permutation(40)
    found = communities(graph)
    assert adjusted_rand_score(communities(graph[np.ix_(order, order)]), found[order]) == 1
