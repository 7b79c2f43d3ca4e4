"""The CIFAR-10 experiment on 60 tiny images: every kind of trial, what a row says of itself, and failures."""

import argparse
import json
import os
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import labelonce as lo

neural = pytest.importorskip("labelonce.neural")
EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SHORT: dict[str, Any] = {"batch_size": 32, "epochs": 1, "epochs_by_round": (1,), "min_steps": 0, "lr": 0.1}
NARROW = SHORT | {"module_fn": partial(neural.fast_net, widths=(2, 2, 2))}
POINT = {"seed": 0, "crowd": "hammer-spammer", "net": "fast", "quality": 0.5, "redundancy": 1, "n_tasks": 60}
pytestmark = pytest.mark.filterwarnings(
    "ignore::labelonce.DoubtWarning", "ignore::labelonce.aggregation.RedundancyWarning"
)


@pytest.fixture(scope="module")
def script() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXPERIMENTS))
        yield import_module("cifar10_figure1")


@pytest.fixture
def figure(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the experiment with one epoch of narrow networks."""
    monkeypatch.setattr(script, "NETS", dict.fromkeys(script.NETS, NARROW))
    monkeypatch.setattr(script, "ROUNDS", dict.fromkeys(script.ROUNDS, 2))
    monkeypatch.setattr(script, "RECORD", {name: NARROW[name] for name in ("module_fn", "batch_size", "epochs", "lr")})
    base = {"learner": NARROW | {"n_models": 1}, "mbem": {"rounds": 2}}
    monkeypatch.setattr(script, "BASE", dict.fromkeys(script.BASE, base))
    return script


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of decoded images, as `load` leaves it."""
    folder = tmp_path_factory.mktemp("cache")
    rng = np.random.default_rng(0)
    for name, n in (("x", 60), ("xt", 20)):
        np.save(folder / f"{name}.npy", rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8))
    for name, n in (("y", 60), ("yt", 20)):
        np.save(folder / f"{name}.npy", np.arange(n) % 10)
    human = np.arange(60)[:, None] % 10 + np.array([0, 0, 1])
    np.save(folder / "human.npy", human % 10)  # the third one is always wrong
    return folder


@pytest.fixture
def data(script: Any, cache: Path) -> Any:
    return script.load(cache)


def options_of(script: Any, cache: Path, out: Path, **other: Any) -> argparse.Namespace:
    """Return the command line's options for one process."""
    asked: dict[str, Any] = {"part": ["truth"], "seeds": [0], "crowds": ["hammer-spammer"], "qualities": [0.5]}
    asked |= {"redundancies": [1], "variants": list(script.VARIANTS), "net": "fast", "again": None, "tasks": 60}
    return argparse.Namespace(**asked | {"processes": 1, "seconds": 1e9, "cache": cache, "out": out} | other)


def test_a_trial_draws_what_it_says(figure: Any, data: Any) -> None:
    X, y, ann, confusion = figure.draw(POINT | {"n_tasks": 30, "redundancy": 3}, data)
    assert_array_equal(X, data["x"][:30])
    assert_array_equal(y, data["y"][:30])
    assert_array_equal(np.bincount(ann.task), np.full(30, 3))
    assert confusion.shape == (100, 10, 10)
    again = figure.draw(POINT | {"n_tasks": 30, "redundancy": 3}, data)[2]
    assert_array_equal(again.label, ann.label)


@pytest.mark.parametrize("crowd", ["hammer-spammer", "class-wise"])
def test_a_point_of_the_figure_has_every_method(crowd: str, figure: Any, data: Any) -> None:
    row = figure.run_trial(POINT | {"crowd": crowd}, data)
    assert set(row["accuracy"]) == set(figure.METHODS)
    assert set(row["seconds"]) == set(figure.METHODS) - {"truth"}
    assert all(0 <= accuracy <= 1 for accuracy in row["accuracy"].values())
    assert row["mbem"]["rounds"] == 2
    assert row["accuracy"]["MV"] == row["accuracy"]["weighted MV"] == row["accuracy"]["EM"]  # one label per task
    assert "kept" not in row


def test_doing_a_method_again_keeps_the_others_and_says_who_made_them(figure: Any, data: Any) -> None:
    old = dict.fromkeys(figure.METHODS, -1.0)
    before = POINT | {"accuracy": old, "seconds": old, "mbem": {"rounds": 7}, "source": "old", "at_once": 3}
    row = figure.run_trial(POINT | {"again": ["MV"], "before": before}, data)
    assert {method for method, value in row["accuracy"].items() if value != -1.0} == {"MV"}
    assert {method for method, value in row["seconds"].items() if value != -1.0} == {"MV"}
    assert row["mbem"] == {"rounds": 7}
    others = [method for method in figure.METHODS if method != "MV"]
    assert row["kept"] == [{"methods": others, "source": "old", "at_once": 3}]


def test_rounds_of_the_default_and_of_a_variant(figure: Any, data: Any) -> None:
    for part, variant in (("default", ""), ("ablation", figure.UNBALANCED), ("ablation", "hard counts")):
        row = figure.run_rounds(POINT | {"part": part, "variant": variant}, data)
        assert len(row["rounds"]) == 2
        assert 0 <= row["rounds"][0]["seconds"] <= row["rounds"][1]["seconds"]
        assert row["confusion_error"] >= 0


def test_the_variant_without_class_balance_is_told_apart(
    figure: Any, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[str] = []
    real = figure.left_alone

    def left_alone() -> Any:
        entered.append("yes")
        return real()

    monkeypatch.setattr(figure, "left_alone", left_alone)
    figure.run_rounds(POINT | {"part": "ablation", "variant": "hard counts"}, data)
    assert not entered
    figure.run_rounds(POINT | {"part": "ablation", "variant": figure.UNBALANCED}, data)
    assert entered == ["yes"]


def test_human_labels_are_one_of_three_at_random(figure: Any, data: Any) -> None:
    row = figure.run_human({"part": "human", "net": "resnet18", "n_tasks": 60, "seed": 0}, data)
    assert set(row["accuracy"]) == set(row["seconds"]) == {"plain", "cutout", "mixup", "MBEM"}
    assert row["noise"] == np.mean(np.random.default_rng(0).integers(0, 3, 60) == 2)


def test_true_labels_are_learned_and_timed(figure: Any, data: Any) -> None:
    row = figure.run_truth({"part": "truth", "net": "fast", "n_tasks": 60, "seed": 0}, data)
    model = neural.TorchLearner(**figure.RECORD, random_state=0).fit(data["x"], data["y"])
    assert row["accuracy"] == {"truth": np.mean(model.predict(data["xt"]) == data["yt"])}
    assert row["seconds"]["truth"] > 0


def test_points_share_what_the_truth_gives_but_not_with_other_settings(
    figure: Any, data: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> set[Path]:
        return set(cache.glob("truth-*.json"))

    first = figure.truth("fast", 5, 60, data)
    seen = files()
    assert figure.truth("fast", 5, 60, data) == first
    assert files() == seen
    for change in ({"lr": 0.2}, {"module_fn": partial(neural.fast_net, widths=(2, 2, 4))}):
        monkeypatch.setattr(figure, "NETS", {"fast": NARROW | change})
        figure.truth("fast", 5, 60, data)
    monkeypatch.setattr(figure, "source", lambda _: "other code")
    figure.truth("fast", 5, 60, data)
    assert len(files() - seen) == 3


def test_the_same_targets_are_trained_on_once(figure: Any, data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trainings: list[int] = []
    real = neural.TorchLearner.fit

    def fit(self: Any, *args: Any) -> Any:
        trainings.append(1)
        return real(self, *args)

    monkeypatch.setattr(neural.TorchLearner, "fit", fit)
    figure.Once.trained.clear()
    X, y = data["x"], np.asarray(data["y"])
    first = figure.Once(**NARROW, random_state=0).fit(X, y)
    assert_array_equal(
        first.predict_proba(X), real(neural.TorchLearner(**NARROW, random_state=0), X, y).predict_proba(X)
    )
    for targets, weight in ((y, None), (np.eye(10)[y], None), (y, np.ones(60))):
        same = figure.Once(**NARROW, random_state=0).fit(X, targets, weight)
        assert_array_equal(same.predict_proba(X), first.predict_proba(X))
    assert len(trainings) == 1
    figure.Once(**NARROW, random_state=0).fit(X, (y + 1) % 10)
    figure.Once(**NARROW, random_state=0).fit(X, y, np.arange(60.0))
    figure.Once(**NARROW, random_state=1).fit(X, y)
    assert len(trainings) == 4


def test_settings_are_those_of_the_script_as_json(script: Any) -> None:
    found = json.loads(json.dumps(script.settings_of({"net": "fast", "seed": 3})))
    assert found["learner"]["module_fn"] == "fast_net(widths=(64, 128, 256))"
    assert (found["learner"]["epochs"], found["learner"]["epochs_by_round"], found["learner"]["pad"]) == (8, [4, 6], 2)
    assert (found["mbem"]["rounds"], found["mbem"]["random_state"]) == (9, 3)
    assert found["baselines"] == {"epochs_by_round": []}
    variant = {"part": "ablation", "variant": "workers counted, not shrunk", "net": "fast", "seed": 0}
    found = script.settings_of(variant)
    assert (found["learner"]["module_fn"], found["learner"]["epochs"], found["learner"]["cutout"]) == (
        "fast_net",
        16,
        12,
    )
    assert (found["mbem"]["worker_model"], found["mbem"]["rounds"]) == ("Counted()", 6)
    found = script.settings_of({"part": "human", "net": "resnet18", "seed": 0})
    assert (found["learner"]["module_fn"], found["methods"]["plain"]) == ("resnet18", {"cutout": 0})
    found = script.settings_of({"part": "truth", "seed": 2})
    assert (found["learner"]["label_smoothing"], found["learner"]["random_state"]) == (0.2, 2)


def test_every_row_of_the_results_says_its_settings(script: Any) -> None:
    rows = script.read(script.PATH)
    assert rows
    for row in rows:
        assert set(script.settings_of(row)) == set(row["settings"])
        assert row["settings"]["learner"]["module_fn"].startswith("fast_net" if row["net"] == "fast" else row["net"])
        assert " at 0x" not in json.dumps(row)


def test_the_source_changes_with_the_code(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, file = tmp_path / "labelonce", tmp_path / "experiment.py"
    (package / "sub").mkdir(parents=True)
    for path in (package / "__init__.py", package / "sub" / "a.py", file):
        path.write_text("x = 1\n")
    monkeypatch.setattr(lo, "__file__", str(package / "__init__.py"))

    def source() -> str:
        script.source.cache_clear()
        found: str = script.source(file)
        return found

    seen = [source()]
    assert source() == seen[0]
    (package / "sub" / "a.py").write_text("x = 2\n")
    seen.append(source())
    (package / "sub" / "a.py").rename(package / "sub" / "b.py")
    seen.append(source())
    file.write_text("x = 2\n")
    seen.append(source())
    script.source.cache_clear()
    assert len(set(seen)) == 4
    assert all(len(one) == 12 and int(one, 16) >= 0 for one in seen)


def test_trials_are_those_asked_for_each_once(script: Any, cache: Path) -> None:
    asked = options_of(script, cache, cache / "none.json", part=["abc"], qualities=[0.2, 0.5], redundancies=[1, 3])
    found = {(trial["quality"], trial["redundancy"], trial["n_tasks"]) for trial in script.trials(asked)}
    assert found == {(0.2, 1, 60), (0.5, 1, 60), (0.2, 3, 60), (0.2, 3, 20)}
    assert len(script.trials(asked)) == 4
    asked = options_of(script, cache, cache / "none.json", part=["default", "ablation", "human", "truth"])
    assert len(script.trials(asked)) == 1 + len(script.VARIANTS) + 1 + 1


@pytest.mark.parametrize(
    ("variant", "epochs"),
    [("", 6 + 4 * 12 + 16), ("two networks", 2 * 70), ("12 epochs in every round", 6 * 12), ("mixup", 70)],
)
def test_epochs_of_a_variant(variant: str, epochs: int, script: Any) -> None:
    assert script.epochs_of(variant) == epochs


def test_a_failing_trial_ends_the_experiment_and_keeps_what_was_done(script: Any, cache: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    options = options_of(script, cache, out, tasks=10, part=["truth", "ablation"], variants=["no such variant"])
    with pytest.raises(
        SystemExit, match=r"1 of 1 processes failed with exit codes \[1\].*out.json, and the same"
    ) as ended:
        script.run(options)
    assert isinstance(ended.value.code, str)  # which Python prints, and ends with 1
    (row,) = script.read(out)
    assert row["part"] == "truth"
    assert row["settings"] == json.loads(json.dumps(script.settings_of(row)))
    assert (row["source"], row["at_once"], row["device"]) == (
        script.source(script.CODE),
        1,
        script.environment()["device"],
    )


def test_what_came_before_a_process_was_killed_is_kept(script: Any) -> None:
    context = script.multiprocessing.get_context("spawn")
    done = context.Queue()
    done.put({"row": 1})
    process = context.Process(target=os._exit, args=(9,))
    process.start()
    assert list(script.results([process], done)) == [{"row": 1}]
    assert process.exitcode == 9


def test_again_opens_what_is_done_and_only_that_method(
    figure: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure.torch.backends.cudnn, "benchmark", figure.torch.backends.cudnn.benchmark)
    old = dict.fromkeys(figure.METHODS, -1.0)
    rows = [POINT | {"part": "figure", "accuracy": old, "seconds": old, "at_once": 3}]
    asked = options_of(figure, cache, tmp_path / "out.json", part=["a"])
    assert list(figure.open_trials(asked, rows)) == []
    todo: Queue[Any] = Queue()
    done: Queue[Any] = Queue()
    asked.again = ["weighted MV"]
    for trial in [*figure.open_trials(asked, rows), None]:
        todo.put(trial)
    figure.work(todo, done, cache, time.time() + 600, 1)
    row = done.get_nowait()
    assert figure.key_of(row) == figure.key_of(rows[0])
    assert [method for method in figure.METHODS if row["accuracy"][method] != -1.0] == ["weighted MV"]
    assert row["settings"]["learner"]["module_fn"] == "fast_net(widths=(2, 2, 2))"
    assert (row["at_once"], row["source"], row["kept"][0]["at_once"]) == (1, figure.source(figure.CODE), 3)


def test_merging_takes_the_later_row(script: Any, tmp_path: Path) -> None:
    for name, accuracies in (("one", {0: 0.1, 1: 0.2}), ("other", {1: 0.3, 2: 0.4})):
        rows = [{"part": "truth", "seed": seed, "accuracy": {"truth": found}} for seed, found in accuracies.items()]
        script.write(tmp_path / f"{name}.json", rows)
    script.main(["--out", str(tmp_path / "one.json"), "--merge", str(tmp_path / "other.json")])
    merged = script.read(tmp_path / "one.json")
    assert [(row["seed"], row["accuracy"]["truth"]) for row in merged] == [(0, 0.1), (1, 0.3), (2, 0.4)]


def test_tables_and_figure_are_made_from_the_results_alone(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out.json").write_text(script.PATH.read_text())
    monkeypatch.setattr(script, "IMAGE", tmp_path / "figure.png")
    script.main(["--out", str(tmp_path / "out.json"), "--table"])
    assert (tmp_path / "out.md").read_text() == script.PATH.with_suffix(".md").read_text()
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize("option", ["--variants", "--again", "--net", "--crowds"])
def test_what_is_not_there_is_refused(
    option: str, script: Any, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        script.main([option, "none", "--cache", str(cache), "--out", str(tmp_path / "out.json"), "--seconds", "0"])
    assert ended.value.code == 2
    assert "invalid choice: 'none'" in capsys.readouterr().err
