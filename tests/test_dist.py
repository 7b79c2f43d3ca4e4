"""The wheel holds the whole package, and the metadata say how to install it."""

import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the files in the wheel."""
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    (wheel,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_holds_code_pages_templates_and_shipped_data(names: set[str]) -> None:
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name and ".egg-info" not in name}
    assert wanted == {name for name in names if ".dist-info/" not in name}
    assert {Path(name).suffix for name in wanted} >= {".html", ".js", ".css", ".parquet", ".txt", ".typed"}


def test_the_wheel_holds_every_licence(names: set[str]) -> None:
    licences = {name.partition("licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == {
        path.relative_to(ROOT).as_posix() for one in PROJECT["license-files"] for path in ROOT.glob(one)
    }


def test_all_installs_every_feature() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    inside = set(everything.removeprefix("labelonce[").removesuffix("]").split(","))
    assert inside == set(extras) - {"all", "dev", "docs"}
