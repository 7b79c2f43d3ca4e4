"""The Tiny ImageNet experiment on 400 tiny images: every method at a point, and the table of the results."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

neural = pytest.importorskip("labelonce.neural")
NARROW = {"module_fn": partial(neural.fast_net, widths=(2, 2, 2)), "n_models": 1, "epochs": 1, "epochs_by_round": (1,)}
NARROW |= {"batch_size": 64, "lr": 0.1}


@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the experiment with one epoch of a narrow network."""
    script = import_module("tiny_imagenet_figure2")
    for name, value in {"N_TRAIN": 400, "N_WORKERS": 20, "ROUNDS": 2, "LEARNER": NARROW}.items():
        monkeypatch.setattr(script, name, value)
    return script


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a folder of decoded images, as `data_sets.mapped` leaves it."""
    rng = np.random.default_rng(0)
    for name, n in (("x", 400), ("xt", 50)):
        np.save(tmp_path / f"tiny_imagenet_100_{name}.npy", rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8))
    for name, n in (("y", 400), ("yt", 50)):
        np.save(tmp_path / f"tiny_imagenet_100_{name}.npy", np.arange(n) % 100)
    return tmp_path


def test_every_method_has_both_accuracies(figure: Any, cache: Path) -> None:
    point = {"seed": 0, "crowd": "class-wise", "quality": 0.6, "redundancy": 2}
    rows = [figure.trial(cache, **point, method=method) for method in figure.METHODS]
    assert all(0 <= row["top1"] <= row["top5"] <= 100 for row in rows)
    assert {row["method"]: row["n_groups"] for row in rows if "n_groups" in row}["groups given"] == 10
    table = figure.table(rows)
    assert table.count("class-wise") == 2
    assert f"{rows[0]['top1']:.1f}" in table


def test_at_one_label_the_vote_stands_for_its_kin_and_one_truth_for_all(figure: Any) -> None:
    base = {"seed": 0, "quality": 0.2, "redundancy": 1, "top1": 50.0}
    trials = [base | {"crowd": "hammer-spammer", "method": name} for name in ("MV", "truth")]
    at = {"crowd": "hammer-spammer", "quality": 0.2, "redundancy": 1}
    assert figure.values(trials, "top1", method="EM", **at) == [50.0]
    assert figure.values(trials, "top1", method="truth", **at | {"crowd": "class-wise"}) == [50.0]
