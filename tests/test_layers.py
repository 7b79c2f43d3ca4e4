"""Imports point downwards only, and heavy libraries stay out of `import labelonce`."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import labelonce

PACKAGE = Path(labelonce.__file__).parent
RANK = {
    "_types": 0,
    "_blas": 0,
    "_processes": 1,
    "_confusion": 1,
    "_packed": 1,
    "_sklearn": 1,
    "_ids": 1,
    "_spelling": 1,
    "_validate": 2,
    "_rows": 3,
    "_files": 2,
    "_quotes": 3,
    "_tables": 3,
    "_readers": 4,
    "_annotations": 4,
    "_kernels": 5,
    "formats": 5,
    "io": 6,
    "_held_out": 5,
    "simulate": 5,
    "metrics": 5,
    "datasets": 5,
    "workers": 6,
    "aggregation": 7,
    "_check": 8,
    "sharded": 8,
    "learning": 8,
    "neural": 9,
    "planning": 9,
    "runs": 10,
    "report": 9,
    "cli": 11,
}
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


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", ["import labelonce", "from labelonce.cli import main"])
def test_heavy_libraries_are_not_loaded(statement: str) -> None:
    assert loaded_after(statement) & set(HEAVY) == set()


def test_help_loads_neither_numpy_nor_scikit_learn() -> None:
    assert loaded_after("from labelonce.cli import main") & {"numpy", "sklearn", "scipy", "pyarrow"} == set()
