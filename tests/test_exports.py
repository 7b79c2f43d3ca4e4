"""The public surface: complete, sorted, documented, with one version."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import labelonce

ROOT = Path(__file__).parents[1]


def isort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts `__all__`."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted() -> None:
    assert labelonce.__all__ == sorted(labelonce.__all__, key=isort_key)


def test_the_surface_is_small() -> None:
    assert len(labelonce.__all__) <= 40
    assert dir(labelonce) == sorted(labelonce.__all__)


NAMES = [pytest.param(name, marks=[pytest.mark.neural] * (name == "neural")) for name in labelonce.__all__]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_loads_and_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(labelonce, name))


MODULES = [
    "aggregation",
    pytest.param("baselines", marks=pytest.mark.neural),
    "data",
    "datasets",
    "formats",
    "io",
    "learning",
    "metrics",
    "multilabel",
    pytest.param("neural", marks=pytest.mark.neural),
    "planning",
    "report",
    "routing",
    "runs",
    "service",
    pytest.param("sharded", marks=pytest.mark.neural),
    "simulate",
    "theory",
    "workers",
]


def home(value: object) -> str:
    """The module where a value was defined; its own name for a module."""
    return str(getattr(value, "__module__", None) or getattr(value, "__name__", ""))


@pytest.mark.parametrize("module", MODULES)
def test_what_a_module_defines_in_public_is_in_its_all_and_in_the_docs(module: str) -> None:
    loaded = __import__(f"labelonce.{module}", fromlist=["*"])
    defined = {
        name
        for name in dir(loaded)
        if not name.startswith("_") and home(getattr(loaded, name)).startswith(loaded.__name__)
    }
    assert defined == set(loaded.__all__)
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    shown = set(re.findall(r"^::: labelonce\.(\S+)$", pages, flags=re.MULTILINE))
    for name in loaded.__all__:
        assert {module, name, f"{module}.{name}"} & shown, f"add ::: labelonce.{module}.{name} to docs/api.md"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Mojarity'"):
        labelonce.Mojarity  # type: ignore[attr-defined]  # noqa: B018


def test_the_version_is_said_once_alike() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert project["version"] == labelonce.__version__
    assert f"version: {labelonce.__version__}\n" in citation
