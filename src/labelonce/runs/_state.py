"""Objects of labelonce as named, versioned state: plain dicts that stay valid when a class moves to another module."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import BaseEstimator

_NAME, _VERSION, _STATE = "labelonce", "version", "state"


class OtherVersion(ValueError):
    """A state with a name or a version that this release does not know."""


class States:
    """Turns objects into state and back.

    Parameters
    ----------
    homes : mapping
        The full name of every class whose objects have state, by the name that files hold.
    versions : mapping
        The version of a class's state, 1 where it is not named: raised when its attributes change their meaning.
    """

    def __init__(self, homes: Mapping[str, str], versions: Mapping[str, int]) -> None:
        self._homes, self._versions = dict(homes), dict(versions)
        self._names = {home: name for name, home in homes.items()}

    def of(self, value: Any) -> Any:
        """Return a value in which every object of labelonce is replaced by its state, at any depth."""
        return self._replaced(value, {}, self._described)

    def restored(self, value: Any) -> Any:
        """Return a value with the objects of its state."""
        return self._replaced(value, {}, self._made)

    def _described(self, value: Any, again: Callable[[Any], Any]) -> Any:
        kind = type(value)
        name = self._names.get(f"{kind.__module__}.{kind.__qualname__}")
        if name is not None:
            held = value.__getstate__() or {}
            return {_NAME: name, _VERSION: self._versions.get(name, 1), _STATE: again(held)}
        return {_NAME: "dict", _STATE: _each(value, again)} if kind is dict and _NAME in value else None

    def _made(self, value: Any, again: Callable[[Any], Any]) -> Any:
        if type(value) is not dict or _NAME not in value:
            return None
        name, state = value[_NAME], value[_STATE]
        if name == "dict":
            return _each(state, again)
        if name not in self._homes or value[_VERSION] != self._versions.get(name, 1):
            raise OtherVersion(f"{name} of version {value.get(_VERSION)}")
        module, _, kind_name = self._homes[name].rpartition(".")
        kind = getattr(importlib.import_module(module), kind_name)
        found, state = kind.__new__(kind), again(state)
        if hasattr(found, "__setstate__"):
            found.__setstate__(state)
        else:
            vars(found).update(state)
        return found

    def _replaced(self, value: Any, done: dict[int, Any], change: Callable[..., Any]) -> Any:
        """Return a value with changes wherever `change` returns one; an object that occurs twice stays one object."""

        def again(inner: Any) -> Any:
            return self._replaced(inner, done, change)

        if id(value) in done:
            return done[id(value)][1]
        found = change(value, again)
        if found is None:
            found = _each(value, again)
        done[id(value)] = (value, found)  # the value lives as long as its id is used
        return found


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a container with changed parts, and other values unchanged; estimators count as containers."""
    if type(value) in (list, tuple):
        return type(value)(map(change, value))
    if type(value) is dict:
        return {name: change(part) for name, part in value.items()}
    if not isinstance(value, BaseEstimator) or isinstance(value, type):
        return value
    parts = {name: (part, change(part)) for name, part in vars(value).items()}
    if all(new is old or _equal(new, old) for old, new in parts.values()):
        return value
    found = copy.copy(value)
    vars(found).update({name: new for name, (_, new) in parts.items()})
    return found


def _equal(one: Any, other: Any) -> bool:
    """Return whether containers hold the very same parts."""
    if type(one) is not type(other) or type(one) not in (list, tuple, dict) or len(one) != len(other):
        return one is other
    if type(one) is dict:
        return all(_equal(one[name], other[name]) for name in one)
    return all(map(_equal, one, other))
