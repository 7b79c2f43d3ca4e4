"""The public surface is complete, sorted and documented, with one version, and the wheel holds the whole package."""

import inspect
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import labelonce

ROOT = Path(__file__).parents[1]


def isort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts `__all__`."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_the_surface_is_small_and_sorted_and_has_no_other_name() -> None:
    assert labelonce.__all__ == sorted(labelonce.__all__, key=isort_key)
    assert len(labelonce.__all__) <= 40
    assert dir(labelonce) == sorted(labelonce.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Mojarity'"):
        labelonce.Mojarity  # type: ignore[attr-defined]  # noqa: B018


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


def test_the_version_is_said_once_alike_and_all_installs_every_feature() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert project["version"] == labelonce.__version__
    assert f"version: {labelonce.__version__}\n" in citation
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    inside = set(everything.removeprefix("labelonce[").removesuffix("]").split(","))
    assert inside == set(extras) - {"all", "dev", "docs"}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the files in the wheel."""
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    (wheel,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_code_pages_templates_data_and_every_licence(wheel: set[str]) -> None:
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name and ".egg-info" not in name}
    assert wanted == {name for name in wheel if ".dist-info/" not in name}
    assert {Path(name).suffix for name in wanted} >= {".html", ".js", ".css", ".parquet", ".txt", ".typed"}
    licences = {name.partition("licenses/")[2] for name in wheel if "/licenses/" in name}
    assert licences == {
        path.relative_to(ROOT).as_posix() for one in PROJECT["license-files"] for path in ROOT.glob(one)
    }
