"""Aggregators and strategies of other packages, found by their entry points and loaded when they are used."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

AGGREGATORS, STRATEGIES = "labelonce.aggregators", "labelonce.strategies"


@cache
def plugins(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def load_plugin(point: EntryPoint, base: type) -> Any:
    """Return the class that an entry point names; one that cannot be loaded, or of another kind, is an error."""
    package = point.dist.name if point.dist else "an unknown package"
    try:
        kind = point.load()
    except Exception as error:  # a stranger's module may fail in any way
        got = f"{type(error).__name__}: {error}"
        raise ImportError(f"{point.value} of {package} must be loaded as {point.name!r}; got {got}.") from error
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise TypeError(f"{point.value} of {package} must be a subclass of {base.__name__}; got {kind!r}.")
    return kind
