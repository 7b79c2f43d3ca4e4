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


def test_guide_says_that_every_range_held_the_truth_only_if_it_did_and_likelihood_is_flat() -> None:
    held = all(script.holds(row) for row in TRIALS if row["part"] == "overlap")
    assert ("On the left, every range held the truth" in GUIDE.read_text()) == held
    rows = [row for row in TRIALS if row["part"] == "power"]
    best = max(row["log_likelihood"] for row in rows)
    flat = [100 * row["right"] for row in rows if row["log_likelihood"] > best - 0.001]
    assert max(flat) - min(flat) > 10


def test_guide_says_where_known_labels_help() -> None:
    def error(world: str, known: int) -> float:
        return float(np.mean([script.off(row) for row in script.of(TRIALS, "gold", known, world)]))

    assert "off by less than 5 points\nwithout them, and by less than 4 with 200; 20 are too few" in GUIDE.read_text()
    far = [world for world in script.WORLDS if error(world, 0) > 5]
    assert far == ["weak table, 30 poor workers"]
    assert error(far[0], 200) < error(far[0], 0) / 4
    assert max(error(world, 200) for world in script.WORLDS) < 4
    assert any(error(world, 20) > error(world, 0) + 1 for world in script.WORLDS)


def test_second_label_is_by_another_worker() -> None:
    _, _, annotations, _ = script.labelled("tumours, 3 workers", 0, 0.1)
    pairs = list(zip(annotations.task.tolist(), annotations.worker.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) > annotations.n_tasks
