"""Imports point downwards only, heavy libraries stay out of `import labelonce`, constants have one value."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import labelonce

PACKAGE = Path(labelonce.__file__).parent
ROOT = PACKAGE.parent.parent
LAYERS = [
    ["_lazy", "_types", "_messages", "_sklearn", "_rules"],
    ["_validate"],
    ["data"],
    ["files", "_kernels"],
    ["formats", "simulate", "metrics", "datasets", "theory", "workers"],
    ["io", "aggregation"],
    ["judges"],
    ["learning", "sharded"],
    ["neural", "embed"],
    ["baselines"],
    ["routing"],
    ["multilabel"],
    ["report"],
    ["runs"],
    ["planning"],
    ["service"],
    ["cli"],
    ["__main__"],
]
# Imports from private modules of other rooms. A room offers what others may use in its `__init__`, if need be under
# `if TYPE_CHECKING:`; these numbers only fall.
PRIVATE_IMPORTS = {
    "learning": 12,
    "runs": 12,
    "multilabel": 7,
    "report": 6,
    "aggregation": 4,
    "baselines": 4,
    "embed": 4,
    "formats": 4,
    "neural": 3,
    "routing": 3,
    "sharded": 3,
    "cli": 2,
    "io": 2,
    "datasets": 1,
    "service": 1,
    "judges": 2,
    "simulate": 1,
    "workers": 1,
}
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
HEAVY = ["torch", "pandas", "matplotlib", "fastapi", "polars"]


def component(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_components(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "labelonce":
            modules = [f"labelonce.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        yield from (name.split(".")[1] for name in modules if name.startswith("labelonce."))


SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_to_lower_layers(path: Path) -> None:
    own = component(path)
    others = {name for name in imported_components(path) if name != "__version__"} - {own}
    assert {name for name in others if RANK[name] >= RANK[own]} == set()


def private_imports(path: Path) -> Iterator[str]:
    """Yield the private modules of other rooms that are imported, as often as they are."""
    rooms = {folder.parent.name for folder in PACKAGE.glob("*/__init__.py")} - {component(path)}
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom) and node.module]
    for module, node in ((str(node.module).split("."), node) for node in nodes):
        if module[0] == "labelonce" and module[1:] and module[1] in rooms:
            modules = {one.stem for one in (PACKAGE / module[1]).glob("_*.py")}
            if any(part.startswith("_") for part in module[2:]) or any(one.name in modules for one in node.names):
                yield ".".join(module)


def test_imports_from_private_modules_of_other_rooms_only_fall() -> None:
    found = dict.fromkeys(RANK, 0)
    for path in SOURCES:
        found[component(path)] += sum(1 for _ in private_imports(path))
    assert {room: n for room, n in found.items() if n > PRIVATE_IMPORTS.get(room, 0)} == {}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_binds_each_of_its_constants_once(path: Path) -> None:
    body = ast.parse(path.read_text()).body
    targets = [one for node in body if isinstance(node, ast.Assign) for one in node.targets]
    targets += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    names = [one for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    bound = [one.id for one in names if isinstance(one.ctx, ast.Store)]
    assert {name for name in bound if bound.count(name) > 1} == set()


def test_the_map_the_page_and_the_folders_of_the_tests_are_those_of_the_package() -> None:
    folders = {path.parent for path in Path(__file__).parent.glob("*/test_*.py")}
    mirrored = {folder.name for folder in folders} - {"experiments"}  # which mirrors the scripts next to the package
    assert {name for name in mirrored if not (PACKAGE / name).is_dir()} == set()
    chart = (ROOT / "CONTRIBUTING.md").read_text().split("```\n_lazy")[1].split("```")[0]
    drawn = [sorted(layer.split(", ")) for layer in " ".join(f"_lazy{chart}".split()).split(" < ")]
    assert drawn == [sorted(layer) for layer in LAYERS[:-1]]
    page = (ROOT / "docs" / "how-it-works.md").read_text().split("## Where what lives")[1]
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {name for name in rooms if f"`{name}/`" not in page} == set()


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", ["import labelonce.datasets", "from labelonce.cli import main"])
def test_heavy_libraries_are_not_loaded(statement: str) -> None:
    assert loaded_after(statement) & set(HEAVY) == set()


def test_help_loads_neither_numpy_nor_scikit_learn() -> None:
    assert loaded_after("from labelonce.cli import main") & {"numpy", "sklearn", "scipy", "pyarrow"} == set()
