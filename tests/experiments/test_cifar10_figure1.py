"""The CIFAR-10 experiment on 60 tiny images: every method at a point, the points of the curves, and the tables."""

import argparse
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

neural = pytest.importorskip("labelonce.neural")
NARROW: dict[str, Any] = {"module_fn": partial(neural.fast_net, widths=(2, 2, 2)), "batch_size": 32, "epochs": 1}
NARROW |= {"epochs_by_round": (1,), "min_steps": 0, "lr": 0.1}
POINT = {"net": "fast", "crowd": "class-wise", "quality": 0.5, "redundancy": 1, "n_tasks": 60, "seed": 0}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the experiment with one epoch of narrow networks."""
    script = import_module("cifar10_figure1")
    monkeypatch.setattr(script, "NETS", dict.fromkeys(script.NETS, NARROW))
    monkeypatch.setattr(script, "ROUNDS", dict.fromkeys(script.ROUNDS, 2))
    return script


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a folder of decoded images, as `data_sets.mapped` leaves it."""
    rng = np.random.default_rng(0)
    for name, n in (("x", 60), ("xt", 20)):
        np.save(tmp_path / f"cifar10_{name}.npy", rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8))
    for name, n in (("y", 60), ("yt", 20)):
        np.save(tmp_path / f"cifar10_{name}.npy", np.arange(n) % 10)
    return tmp_path


def options_of(**asked: Any) -> argparse.Namespace:
    base = {"part": ["a", "b", "c"], "seeds": [0], "qualities": [0.2, 0.5], "redundancies": [1, 3], "net": "fast"}
    return argparse.Namespace(**base | {"tasks": 60} | asked)


def test_every_method_has_an_accuracy_and_a_cell_of_the_table(figure: Any, cache: Path) -> None:
    rows = [figure.trial(cache, **POINT, method=method) for method in figure.METHODS]
    assert all(0 <= row["accuracy"] <= 1 for row in rows)
    assert len(rows[-1]["rounds"]) == 2
    cells = figure.table(rows).splitlines()[2].strip("| ").split(" | ")
    assert cells[:6] == ["fast", "class-wise", "0.5", "1", "60", "1"]
    assert "" not in cells


def test_a_trial_draws_what_it_says(figure: Any, cache: Path) -> None:
    X, _, ann, confusion = figure.draw(
        POINT | {"n_tasks": 30, "redundancy": 3}, figure.data_sets.mapped(cache, "cifar10")
    )
    assert len(X) == 30
    assert np.bincount(ann.task).tolist() == [3] * 30
    assert confusion.shape == (100, 10, 10)


def test_curves_share_their_points_and_the_vote_stands_for_its_kin_at_one_label(figure: Any) -> None:
    found = list(figure.points(options_of()))
    places = {(one["quality"], one["redundancy"], one["n_tasks"]) for one in found}
    assert places == {(0.2, 1, 60), (0.5, 1, 60), (0.2, 3, 60), (0.2, 3, 20)}
    assert len(found) == 2 * (2 * 6 + 2 * 9)


def test_the_figure_is_drawn(figure: Any, tmp_path: Path) -> None:
    rows = [POINT | {"method": "MV", "accuracy": 0.6}, POINT | {"method": "MV", "accuracy": 0.7, "quality": 0.2}]
    figure.plot(rows, tmp_path / "images" / "figure.png")
    assert (tmp_path / "images" / "figure.png").read_bytes()[:4] == b"\x89PNG"
    import_module("matplotlib.pyplot").close("all")
