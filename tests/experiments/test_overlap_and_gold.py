"""What the guide on one label per task says of the measured ranges is what was measured."""

from pathlib import Path

import numpy as np
import overlap_and_gold as script
from record import RESULTS, read

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "what-one-label-can-tell.md"
TRIALS = read(RESULTS / "overlap_and_gold.json")


def test_every_point_was_measured() -> None:
    keys = ("part", "world", "draw", "amount")
    assert sorted(tuple(row[key] for key in keys) for row in TRIALS) == sorted(
        tuple(point[key] for key in keys) for point in script.points()
    )


def test_guide_says_that_every_range_with_second_labels_held_the_truth_only_if_it_did() -> None:
    held = all(script.holds(row) for row in TRIALS if row["part"] == "overlap")
    assert ("On the left, every range held the truth" in GUIDE.read_text()) == held


def test_guide_says_where_known_labels_help_and_where_they_do_not() -> None:
    def error(world: str, known: int) -> float:
        return float(np.mean([script.off(row) for row in script.of(TRIALS, "gold", known, world)]))

    worse = [world for world in script.WORLDS if error(world, 200) > error(world, 0) + 1]
    better = [world for world in script.WORLDS if error(world, 200) < error(world, 0) - 1]
    assert (worse, better) == (["XOR, 20 workers"], ["weak table, 30 poor workers"])


def test_likelihood_is_flat_where_the_labels_get_worse() -> None:
    rows = [row for row in TRIALS if row["part"] == "power"]
    best = max(row["log_likelihood"] for row in rows)
    flat = [100 * row["right"] for row in rows if row["log_likelihood"] > best - 0.001]
    assert max(flat) - min(flat) > 10


def test_second_label_is_by_another_worker() -> None:
    _, _, annotations, _ = script.labelled("tumours, 3 workers", 0, 0.1)
    pairs = list(zip(annotations.task.tolist(), annotations.worker.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) > annotations.n_tasks
