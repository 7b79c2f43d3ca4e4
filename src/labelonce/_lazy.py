"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

Lazy = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def lazy_names(package: str, homes: Mapping[str, str], modules: Iterable[str] = ()) -> Lazy:
    """Return `__getattr__`, `__dir__` and `__all__` of a package: names by the module that has them, and `modules`.

    >>> get, _, names = lazy_names("labelonce", {"Annotations": "labelonce.data"}, ["metrics"])
    >>> get("metrics").__name__, get("Annotations").__name__, names
    ('labelonce.metrics', 'Annotations', ['Annotations', 'metrics'])
    """
    loaded = {name: f"{package}.{name}" for name in modules}
    names = sorted([*homes, *loaded], key=lambda name: (not name.isupper(), name[0].islower(), name))

    def load(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if name in loaded:
            return import_module(loaded[name])
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: names, names
