"""The JSON files of a run: whatever is wrong in them is one sentence that names the file and what to do."""

import copy
import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from commands import Capture, Patch, output_of, refused
from commands import run as labelonce

import labelonce as lo
from labelonce import runs, simulate
from labelonce.runs import Options, RunFolder, RunRecord, _train, train
from labelonce.runs._folder import write_record
from labelonce.runs._record import Job, JsonRecord, WarningsRecord, read_record
from labelonce.workers import Counted

KINDS: list[Any] = [None, True, -1, 0.5, "", "auto", [], [[]], {}, {"no": {"such": "key"}}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with labels, features, known labels, a finished run and one that was stopped after a round."""
    made = tmp_path_factory.mktemp("record")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    confusion = simulate.hammer_spammer(6, 3, 0.5, rng, exact=True)
    lo.write(simulate.annotate(X.argmax(axis=1), confusion, simulate.assign(80, 6, 1, rng), rng), made / "labels.csv")
    columns = {"task": np.arange(80)} | {f"x{place}": X[:, place] for place in range(3)}
    lo.write(pa.table(columns | {"more": [""] * 80}), made / "features.csv")
    (made / "gold.csv").write_text("task,label\n3,1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        patch.setattr(_train, "_estimator", small_estimator)
        options = Options("labels.csv", "features.csv", gold="gold.csv", ignore=("more",), rounds=2)
        train(options, made / "run")
        with pytest.raises(KeyboardInterrupt):
            train(options, made / "stopped", progress=stop_after_a_round)
    return made


def small_estimator(options: Options, inputs: object) -> lo.MBEM:  # noqa: ARG001
    fixed: dict[str, Any] = {"worker_model": Counted()}
    return lo.MBEM(lo.SoftmaxRegression(), rounds=options.rounds, random_state=0, **fixed)


def stop_after_a_round(stage: str, done: int, _: int) -> None:
    if (stage, done) == ("round", 1):
        raise KeyboardInterrupt


@pytest.fixture(scope="module", autouse=True)
def parsed_once() -> Iterator[None]:
    """Let Typer build its parser once for all commands here: it takes most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


def places(content: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every key and every entry of a list."""
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in entries:
        yield (key,)
        yield from ((key, *rest) for rest in places(value))


def damaged(content: Any, place: tuple[Any, ...], *values: Any) -> Any:
    """Return a copy with the entry at a place replaced, or without a value removed."""
    whole = inner = copy.deepcopy(content)
    for key in place[:-1]:
        inner = inner[key]
    if values:
        inner[place[-1]] = values[0]
    else:
        del inner[place[-1]]
    return whole


def damages(content: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the content with each key removed and with each value of a type that it never has."""
    for place in places(content):
        value: Any = content
        for key in place:
            value = value[key]
        free = place[:1] == ("versions",) or place[:-1] == ("result", "classes")  # any name, any number of classes
        if isinstance(place[-1], str) and not (free and len(place) > 1):
            yield place, damaged(content, place)
        yield place, damaged(content, place, 7.5 if isinstance(value, dict) else {"no": {"such": "key"}})


COMMANDS = {
    "show": ("run/run.json", ["show", "run"]),
    "predict": ("run/run.json", ["predict", "run", "features.csv"]),
    "resume a finished run": ("run/run.json", ["train", "--resume", "-o", "run"]),
    "resume a stopped run": ("stopped/.work/job.json", ["train", "--resume", "-o", "stopped"]),
    "resume with warnings": ("stopped/.work/warnings.json", ["train", "--resume", "-o", "stopped"]),
}


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_damage_is_one_sentence_with_the_file_and_the_fix(
    command: str, folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    name, arguments = COMMANDS[command]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    content = json.loads(Path(name).read_text())
    tries = list(damages(content))
    assert len(tries) >= 2 * len(content)
    for place, broken in tries:
        Path(name).write_text(json.dumps(broken))
        capsys.readouterr()
        assert labelonce(*arguments) == 2, place
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 1, place
        assert told[0].startswith(f"labelonce: {name} must be "), place
        assert told[0].endswith((" again in another folder.", "Train again without resuming.")), place


@pytest.mark.parametrize("text", ["", "7", "\xff", "[" * 100_000, '{"format": 2}'])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_what_is_no_record_is_one_sentence_too(
    command: str, text: str, folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    name, arguments = COMMANDS[command]
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(text.encode("latin-1"))
    told = refused(capsys, *arguments)
    assert f"labelonce: {name} must be the JSON that labelonce wrote" in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("kind", "name"),
    [(RunRecord, "run/run.json"), (Job, "stopped/.work/job.json"), (WarningsRecord, "stopped/.work/warnings.json")],
)
def test_a_value_of_any_type_anywhere_is_a_record_or_an_error_that_names_the_file(
    kind: type[JsonRecord], name: str, folder: Path, tmp_path: Path
) -> None:
    content = json.loads((folder / name).read_text())
    path = tmp_path / "file.json"
    refused = 0
    for place in places(content):
        for value in KINDS:
            path.write_text(json.dumps(damaged(content, place, value)))
            try:
                record = read_record(kind, path, "Fix it.")
            except ValueError as error:
                assert str(error).startswith(f"{path} must be ")  # noqa: PT017 - both ends are allowed
                assert str(error).endswith(". Fix it.")  # noqa: PT017
                refused += 1
            else:
                assert isinstance(record, kind)
    assert refused >= 5 * len(list(places(content)))


def test_a_record_comes_back_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    record = runs.read_run(folder / "run")
    write_record(tmp_path / "run.json", record)
    assert read_record(RunRecord, tmp_path / "run.json", "") == record
    assert (tmp_path / "run.json").read_bytes() == (folder / "run" / "run.json").read_bytes()


@pytest.mark.parametrize("name", ["job.json", "warnings.json", "checkpoint.skops"])
def test_a_run_can_start_over_where_its_work_is_damaged(
    name: str, folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    Path("stopped", ".work", name).write_text("{}")
    assert f"{name} must " in (told := refused(capsys, "train", "--resume", "-o", "stopped"))
    assert told.endswith(" Train again without resuming.\n")
    arguments = ["train", "labels.csv", "--features", "features.csv", "--ignore", "more", "--rounds", "1"]
    assert labelonce(*arguments, "-o", "stopped") == 0
    assert not RunFolder(Path("stopped")).is_unfinished


def test_a_run_resumes_from_another_working_directory(
    folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    run, elsewhere = tmp_path / "stopped", tmp_path / "elsewhere"
    shutil.copytree(folder / "stopped", run)
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert labelonce("train", "--resume", "--features", folder / "features.csv", "-o", "../stopped") == 0
    assert f" from {folder / 'labels.csv'}, seed 0" in capsys.readouterr().out
    assert (run / "labels.parquet").read_bytes() == (folder / "run" / "labels.parquet").read_bytes()


def test_paths_are_shown_from_the_working_directory(folder: Path, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.chdir(folder)
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["inputs"]["labels"]["path"] == record["options"]["labels"] == str(folder / "labels.csv")
    assert " from labels.csv, seed 0" in output_of(capsys, "show", "run")
    if (folder / "run" / "report.html").exists():
        assert str(folder) not in (folder / "run" / "report.html").read_text()
