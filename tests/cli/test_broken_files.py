"""Every broken file: one sentence, an honest exit code, nothing written."""

import re
from pathlib import Path

import pytest
from broken_files import BROKEN, GOOD, BrokenFile
from commands import refused, run


def expect_one_sentence(broken: BrokenFile, error: str) -> None:
    assert re.search(broken.says, error), error
    assert error.startswith("labelonce: ")
    assert error.count("\n") == 1
    assert len(error) < 600
    assert "Traceback" not in error
    assert "=..." not in error
    assert error.rstrip("\n").isprintable()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_aggregate(broken: BrokenFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    target.mkdir()
    path = broken.made_in(source)
    assert run("aggregate", path, "-o", target / "clean.csv", "--workers", target / "workers.csv") == broken.aggregate
    error = capsys.readouterr().err
    if broken.aggregate == 2:
        expect_one_sentence(broken, error)
        assert list(target.iterdir()) == []
    else:
        assert re.search(broken.says, error)
        assert len(list(target.iterdir())) == 2


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_check(broken: BrokenFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = broken.made_in(tmp_path)
    assert run("check", path) == broken.check
    shown = capsys.readouterr()
    if broken.check == 2:
        expect_one_sentence(broken, shown.err)
        assert shown.out == ""
    else:
        assert re.search(broken.says, shown.out)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_train(broken: BrokenFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, features, target = broken.made_in(tmp_path), tmp_path / "features.csv", tmp_path / "out"
    features.write_text("task,x,y\n" + "".join(f"{task},{task % 3},{task % 2}\n" for task in range(40)))
    arguments = ("train", path, "--features", features, "--rounds", "1", "-o", target / "run")
    assert run(*arguments) == broken.train
    error = capsys.readouterr().err
    if broken.train == 2:
        expect_one_sentence(broken, error)
        assert not target.exists()
    else:
        assert (target / "run" / "model.skops").exists()


@pytest.mark.parametrize("broken", [one for one in BROKEN if one.aggregate == 2], ids=lambda broken: broken.name)
def test_compare(broken: BrokenFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = broken.made_in(tmp_path)
    expect_one_sentence(broken, refused(capsys, "compare", path, "-o", tmp_path / "methods.csv"))
    assert list(tmp_path.iterdir()) == [path]


def test_the_good_file_is_good_and_nothing_is_written_where_a_target_cannot_be(tmp_path: Path) -> None:
    assert len(BROKEN) >= 20
    assert len({broken.name for broken in BROKEN}) == len(BROKEN)
    (tmp_path / "labels.csv").write_text(GOOD)
    assert run("check", tmp_path / "labels.csv") == 0
    (tmp_path / "labels.csv").write_text(GOOD)
    for workers in ("workers.xls", "nowhere/workers.csv"):
        output = ("-o", tmp_path / "clean.csv", "--workers", tmp_path / workers)
        assert run("aggregate", tmp_path / "labels.csv", *output) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]
