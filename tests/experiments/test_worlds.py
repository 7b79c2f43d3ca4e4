"""The worlds are drawn as they say: halves, seeds, data that may be absent."""

import os
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import worlds


def small(world: Any) -> Any:
    return replace(world, n_tasks=min(world.n_tasks, 150)) if hasattr(world, "n_tasks") else world


def check_draw(world: Any) -> None:
    crowd = small(world).draw(0)
    assert crowd.X.shape[0] == len(crowd.y) == crowd.annotations.n_tasks
    assert crowd.X_test.shape[0] == len(crowd.y_test) > 0
    assert crowd.y.max() < crowd.annotations.n_classes
    assert np.array_equal(crowd.annotations.tasks, np.arange(len(crowd.y)))


def test_every_made_up_world_can_be_drawn() -> None:
    for world in worlds.WORLDS.values():
        if not worlds.needs_data(world):
            check_draw(world)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("LABELONCE_DATA" not in os.environ, reason="needs the data sets")
def test_every_world_of_the_data_folder_can_be_drawn() -> None:
    for world in worlds.WORLDS.values():
        if worlds.needs_data(world):
            check_draw(world)


def test_a_seed_draws_the_same_world_and_half_are_kept_for_the_report() -> None:
    first, second, other = (small(worlds.WORLDS["rings, mixed"]).draw(seed) for seed in (1, 1, 2))
    assert np.array_equal(first.annotations.label, second.annotations.label)
    assert not np.array_equal(first.y, other.y)
    halves = Counter(world.half for world in worlds.WORLDS.values())
    assert len(worlds.WORLDS) >= 63
    assert min(halves.values()) >= 33


def test_a_trial_says_what_was_given_and_returned() -> None:
    row = worlds.trial("60 wines, one label", 0)
    assert {"given", "vote", "returned", "confidence", "range", "warned", "accuracy", "test"} <= set(row)
    assert set(row["test"]) >= {"vote", "soft vote", "Dawid-Skene", "truth"}
    assert "60 wines, one label" in worlds.table([row])


@pytest.mark.parametrize(("returned", "harm"), [(0.80, True), (0.896, False)])
def test_a_draw_is_harmed_a_point_below_the_better_of_given_and_vote(returned: float, harm: bool) -> None:
    assert worlds.harmed({"given": 0.8, "vote": 0.9, "returned": returned}) is harm
