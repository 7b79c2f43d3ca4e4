"""A folder of files changes all at once, wherever it is stopped."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from labelonce.runs._folder import commit, located, settle

NAMES = ("a", "b", "c")


def fill(folder: Path, names: str, content: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(content)
    return folder


def seen(folder: Path) -> dict[str, str]:
    return {name: located(folder, name).read_text() for name in NAMES if located(folder, name).exists()}


class Stop(Exception):
    """Stands for a kill."""


def stop_at(patch: pytest.MonkeyPatch, moment: int) -> list[str]:
    """Let the moment-th change of the file system fail, and all after it, as if the process were gone."""
    calls: list[str] = []
    for name in ("replace", "rename", "unlink", "rmdir"):
        real = getattr(os, name)

        def change(*args: Any, _real: Any = real, _name: str = name, **options: Any) -> Any:
            calls.append(_name)
            if len(calls) > moment:
                raise Stop
            return _real(*args, **options)

        patch.setattr(os, name, change)
    return calls


@pytest.mark.parametrize("moment", range(12))
def test_a_commit_is_all_or_nothing_wherever_it_stops(moment: int, tmp_path: Path) -> None:
    folder, staged = fill(tmp_path / "run", "abc", "old"), fill(tmp_path / "staged", "ab", "new")
    with pytest.MonkeyPatch.context() as patch:
        calls = stop_at(patch, moment)
        with suppress(Stop):
            commit(staged, folder, NAMES)
    if "rename" not in calls[:moment]:
        assert seen(folder) == dict.fromkeys("abc", "old")
        return
    assert {name: seen(folder)[name] for name in "ab"} == {"a": "new", "b": "new"}
    settle(folder, NAMES)
    assert seen(folder) == {"a": "new", "b": "new"}
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "b"]


def test_a_whole_commit_leaves_only_the_new_files(tmp_path: Path) -> None:
    folder, staged = fill(tmp_path / "run", "abc", "old"), fill(tmp_path / "staged", "ab", "new")
    commit(staged, folder, NAMES)
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "b"]
    assert not staged.exists()
