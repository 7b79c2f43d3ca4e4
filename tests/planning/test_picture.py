"""The picture of a plan."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from labelonce import planning


@pytest.fixture
def found() -> planning.Plan:
    return planning.plan(planning.assume(skill=0.8), budget=100)


def test_a_plan_is_drawn_as_svg_and_png_and_another_suffix_is_an_error(found: planning.Plan, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("plan.svg", "plan.png"):
        found.plot(tmp_path / name)
    assert b"<svg" in (tmp_path / "plan.svg").read_bytes()
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"got 'plan\.doc'"):
        found.plot(tmp_path / "plan.doc")


def test_without_matplotlib_the_error_says_how_to_install_it(
    found: planning.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        found.plot(tmp_path / "plan.svg")
