"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

Lazy = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def lazy_names(package: str) -> Lazy:
    """Return `__getattr__`, `__dir__` and `__all__` of a package: what it imports under `if TYPE_CHECKING:`.

    Names under a second `if TYPE_CHECKING:` are for other rooms of the library: they load, and are not in `__all__`.

    >>> get, _, names = lazy_names("labelonce")
    >>> get("metrics").__name__, get("Annotations").__name__, names[-1]
    ('labelonce.metrics', 'Annotations', 'write_report')
    """
    homes, (public, *_) = homes_in(package), _blocks_in(package)
    names = sorted(public, key=lambda name: (not name.isupper(), name[0].islower(), name))

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(homes[name]), name)

    return load, lambda: names, names


def homes_in(package: str) -> dict[str, str]:
    """Return the module of every name that a package imports under `if TYPE_CHECKING:`."""
    return {name: home for block in _blocks_in(package) for name, home in block.items()}


def _blocks_in(package: str) -> list[dict[str, str]]:
    """Return the names and their modules of each `if TYPE_CHECKING:`."""
    loader: Any = getattr(sys.modules[package].__spec__, "loader", None)  # which also reads out of a zip archive
    blocks = [node.body for node in ast.parse(loader.get_source(package)).body if isinstance(node, ast.If)]
    imports = [[node for node in block if isinstance(node, ast.ImportFrom)] for block in blocks]
    return [{alias.name: str(node.module) for node in block for alias in node.names} for block in imports]
