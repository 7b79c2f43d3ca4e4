"""The quick start runs as it is printed: its Python, its commands, and what they are said to answer."""

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import run

PAGE = Path(__file__).parents[1] / "docs" / "quickstart.md"
FENCE = re.compile(r"^```(python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def check_answer(said: str, shown: str) -> None:
    """Check that the answer is the one shown, where one is; `...` stands for anything, frames of tables for nothing."""
    got = re.sub("[│┃━─┏┓┗┛┡┩┳┻╇┴┬└┘]", " ", said)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert not shown or doctest.OutputChecker().check_output(shown, got, flags), f"{shown}\nis not\n{got}"


@pytest.mark.slow
def test_quickstart_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
