"""Every example, the tutorial and the quick start run as they are printed."""

import doctest
import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch, run

TUTORIAL = Path(__file__).parents[1] / "examples" / "tutorial.ipynb"
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 80


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # of a fit to noise, which it shows
def test_every_cell_of_the_tutorial_runs(capsys: Capture) -> None:
    cells = json.loads(TUTORIAL.read_text())["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for number, source in enumerate(code):
        exec(compile(source, f"{TUTORIAL.name}, code cell {number}", "exec"), names)
    assert len(code) >= 8
    assert "right" in capsys.readouterr().out


def test_the_tutorial_is_kept_without_outputs() -> None:
    cells = json.loads(TUTORIAL.read_text())["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")


PAGE = Path(__file__).parents[1] / "docs" / "quickstart.md"
FENCE = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def check_answer(said: str, shown: str) -> None:
    """Check that the answer is the one shown, where one is; `...` stands for anything, frames of tables for nothing."""
    got = re.sub("[│┃━─┏┓┗┛┡┩┳┻╇┴┬└┘]", " ", said)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert not shown or doctest.OutputChecker().check_output(shown, got, flags), f"{shown}\nis not\n{got}"


@pytest.mark.slow
def test_quickstart_runs_as_printed(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    commands, printed = [], ""
    for kind, body in FENCE.findall(PAGE.read_text()):
        if kind == "python":
            exec(compile(body, PAGE.name, "exec"), names)
            printed = capsys.readouterr().out
        elif kind == "text" and printed:
            check_answer(printed, body)
            printed = ""
        elif kind == "console":
            for entry in re.split(r"^\$ labelonce ", body, flags=re.MULTILINE)[1:]:
                command, answer = entry.split("\n", 1)
                assert run(*shlex.split(command)) == 0
                commands.append(shlex.split(command)[0])
                check_answer(capsys.readouterr().out, answer)
    assert commands == ["check", "train", "show", "review", "predict", "simulate", "compare", "aggregate"]
    assert (tmp_path / "run" / "report.html").exists()
