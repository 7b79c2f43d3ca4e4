"""The experiment on images, on a few tiny ones: every set and method has its figures."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import Patch

import labelonce as lo

pytest.importorskip("labelonce.neural")
NARROW: dict[str, Any] = {"width": 2, "early": {"widths": [2, 2, 2]}, "epochs_by_round": [1], "batch_size": 64}
USUAL = {
    "set": "cifar10",
    "crowd": "class-wise",
    "quality": 0.5,
    "redundancy": 1,
    "tasks": 300,
    "epochs": 2,
    "seed": 100,
}


@pytest.fixture
def images(monkeypatch: Patch) -> Any:
    """Return the experiment, in which 300 images are not few."""
    script = import_module("images")
    monkeypatch.setattr(script, "SMALL", 1)
    return script


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a folder of decoded images, as `load` leaves it."""
    rng = np.random.default_rng(0)
    for source, n_classes in (("cifar10", 10), ("tiny_imagenet_100", 100)):
        for name, n in (("", 300), ("t", 40)):
            np.save(tmp_path / f"{source}_x{name}.npy", rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8))
            np.save(tmp_path / f"{source}_y{name}.npy", np.arange(n) % n_classes)
    task = np.repeat(np.arange(300), 3)
    np.save(
        tmp_path / "cifar10n.npy", np.stack([task, np.tile(np.arange(3), 300), (task + task // 7 % 2) % 10], axis=1)
    )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "crowd", "method"),
    [
        ("cifar10", "class-wise", "ours"),
        ("cifar10n", "worst", "ours"),
        ("tiny", "class-wise", "groups given"),
        ("tiny", "class-wise", "oracle"),
    ],
)
def test_every_method_has_its_figures(images: Any, cache: Path, name: str, crowd: str, method: str) -> None:
    options = json.dumps({"learner": NARROW} | ({"rounds": 3} if method in images.OURS else {}))
    row = images.trial(cache, **USUAL | {"set": name, "crowd": crowd, "method": method, "options": options})
    assert 0 <= row["accuracy"] <= 1
    assert row["spent"]["networks"] <= row["seconds"] + 0.2
    assert len(row.get("curve", [1, 2, 3])) == 3
    assert f"{100 * row['accuracy']:.1f}" in images.table([row | {"seed": 1}])
    assert f"{100 * row['accuracy']:.1f}" not in images.table([row])  # a seed for tuning


@pytest.mark.parametrize(("name", "method"), [("cifar10", "ours"), ("tiny", "groups given")])
def test_other_judges_are_asked(images: Any, cache: Path, name: str, method: str) -> None:
    options = json.dumps({"learner": NARROW, "rounds": 3, "shown": images.WAYS})
    row = images.trial(cache, **USUAL | {"set": name, "method": method, "options": options})
    assert list(row["shown"]) == images.WAYS
    assert "three parts" in images.table([row])


def test_labels_are_kept_with_the_ids_of_their_images(images: Any, cache: Path, monkeypatch: Patch) -> None:
    ann = lo.Annotations.from_arrays([3, 22], [0, 1], [1, 2], classes=range(10))
    monkeypatch.setattr(images.data_sets, "load", lambda _: SimpleNamespace(annotations=ann))
    assert images.load(cache, "cifar10s")["labels"].tolist() == [[3, 0, 1], [22, 1, 2]]


def test_human_labels_are_the_first_the_commonest_or_a_wrong_one(images: Any) -> None:
    y = np.array([0, 1, 2])
    label = np.array([[1, 0, 0], [1, 1, 1], [0, 3, 3]])
    rng = np.random.default_rng(0)
    found = [images._human(label, y, {"crowd": crowd}, rng).tolist() for crowd in ("random-1", "aggregate", "worst")]
    assert found[:2] == [[1, 1, 0], [0, 1, 3]]
    assert found[2][:2] == [1, 1]
    assert found[2][2] in (0, 3)


def test_few_images_get_the_network_that_users_get(images: Any, monkeypatch: Patch) -> None:
    monkeypatch.setattr(images, "SMALL", 5_000)
    point = USUAL | {"tasks": 500}
    assert images.network(point, {}).min_steps == 500
    assert images.network(point | {"set": "cifar10s", "tasks": 50_000}, {}).min_steps == 960
