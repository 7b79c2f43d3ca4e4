"""Run the command line as a person does: in a process of its own, or in this one where that is enough."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, AnyStr

import pytest

from labelonce import cli

Run = subprocess.CompletedProcess[str]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def labelonce_cli(*arguments: str | Path) -> Run:
    command = [sys.executable, "-c", "from labelonce.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run_in_process(arguments: Iterable[object]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["labelonce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return int(stopped.value.code or 0)


def run(*arguments: object) -> int:
    return run_in_process(arguments)


def refused(capture: pytest.CaptureFixture[AnyStr], *arguments: object) -> AnyStr:
    """Return what a command that must refuse says on standard error."""
    assert run(*arguments) == 2
    return capture.readouterr().err


def output_of(capture: pytest.CaptureFixture[AnyStr], *arguments: object) -> AnyStr:
    """Return what a command that must succeed prints."""
    assert run(*arguments) == 0
    return capture.readouterr().out


def json_of(capture: pytest.CaptureFixture[AnyStr], *arguments: object) -> Any:
    """Return the JSON object that a command prints."""
    return json.loads(output_of(capture, *arguments, "--json"))
