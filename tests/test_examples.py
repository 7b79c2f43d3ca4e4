"""Every example and the tutorial run as they stand."""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

TUTORIAL = Path(__file__).parents[1] / "examples" / "tutorial.ipynb"
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_says_something(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 80


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # of a fit to noise, which it shows
def test_every_cell_of_the_tutorial_runs(capsys: pytest.CaptureFixture[str]) -> None:
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
