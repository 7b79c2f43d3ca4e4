"""Fitted objects in a file without pickle: `save` and `load`. Ours are named, versioned state."""

import copy
import importlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator as AnyEstimator

import labelonce
from labelonce import aggregation, baselines, embed, learning, multilabel, workers
from labelonce._kernels import Beliefs, Factors, Matrices, Mistakes, Pattern
from labelonce._lazy import homes_in
from labelonce._messages import shorten
from labelonce._sklearn import BaseEstimator, ClassifierBase, check_is_fitted
from labelonce._types import Estimate
from labelonce.aggregation import Aggregator
from labelonce.data import PackedStrings
from labelonce.files import atomic_write, check_unpacked, with_path
from labelonce.judges import JudgePanel, Law, Pairs, Panel, Shown, Votes
from labelonce.learning import FeaturesClassifier, Learner, SoftmaxModel, Verdict
from labelonce.learning._calibration import Calibration
from labelonce.learning._choice import Plan
from labelonce.learning._features import Features
from labelonce.learning._rounds import Fitting, Round
from labelonce.multilabel import MultiLabelAggregator, SharedWorkers
from labelonce.workers import Groups

_NAME, _VERSION, _STATE = "labelonce", "version", "state"
_FORMAT = 2
_VERSIONS = {"workers.OneCoin": 2, "workers.Counted": 2}  # of classes whose attributes have changed their meaning
_OTHER_RELEASE = f"must hold what labelonce.save wrote in format {_FORMAT}: fit and save again with this release"
# skops takes them, but libsvm reads where the numbers in the file tell it to.
_UNCHECKED = {f"sklearn.svm._classes.{name}" for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")}
_LEARNERS = (Learner, SoftmaxModel)
_KINDS = (Aggregator, FeaturesClassifier, MultiLabelAggregator, *_LEARNERS)
_PARTS = (
    *(Beliefs, Factors, Matrices, Mistakes, Pattern, Groups, PackedStrings, Features),
    *(Plan, Fitting, Round, Calibration, Verdict, Estimate, SharedWorkers),
    *(JudgePanel, Law, Panel, Shown, Pairs, Votes),
)
_NETWORKS = (  # by name: their modules load torch
    "labelonce.neural._learner.TorchLearner",
    "labelonce.neural._sigmoid_heads.SigmoidHeads",
    "labelonce.baselines._networks._doctor_net.HeadsLearner",
)


class OtherVersion(ValueError):
    """A state with a name or a version that this release does not know."""


class States:
    """Turns objects into state and back.

    `homes` has the full name of every class whose objects have state, by the name that files hold; `versions` that of
    the state, 1 where it is not named: raised when the attributes of a class change their meaning.
    """

    def __init__(self, homes: Mapping[str, str], versions: Mapping[str, int]) -> None:
        self._homes, self._versions = dict(homes), dict(versions)
        self._names = {home: name for name, home in homes.items()}

    def of(self, value: Any) -> Any:
        """Return a value in which every object of labelonce is replaced by its state, at any depth."""
        return self._replaced(value, {}, self._described)

    def restored(self, value: Any) -> Any:
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
    if not isinstance(value, AnyEstimator) or isinstance(value, type):
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


def save(fitted: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier or aggregator to a file that appears whole or not at all.

    Parameters
    ----------
    fitted : MBEM, TrainOnAggregate, another classifier or learner of labelonce, or an aggregator
        `callbacks` are left out: code is never saved. The learner may be any of ours or of scikit-learn's, a
        `neural.TorchLearner` of one of our networks included; one of somebody else's must be named to `load`.
    path : path
        By custom it ends in .skops: the format is that of `skops.io`, arrays and JSON in a zip archive.

    Examples
    --------
    >>> import pathlib, tempfile, labelonce as lo
    >>> model = lo.DawidSkene().fit(lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.skops")
    ...     lo.save(model, path)
    ...     lo.load(path).labels_
    array([0, 1, 0, 1])
    """
    if not isinstance(fitted, _KINDS):
        got = type(fitted).__name__
        raise TypeError(
            f"fitted must be an aggregator or a classifier of labelonce; got {got}. Save an MBEM or TrainOnAggregate "
            "with it inside."
        )
    rounds = isinstance(fitted, learning.MBEM)  # after any of them, before there is a posterior to show
    check_is_fitted(fitted, "classes_" if isinstance(fitted, _LEARNERS) else "model_" if rounds else "posterior_")
    atomic_write(Path(path), dumped(fitted))


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Return what `save` wrote. No code in the file is run, whoever wrote it.

    Only the types of labelonce, scikit-learn's estimators and arrays are made; a file that names anything else is
    refused before anything is made.

    Parameters
    ----------
    path : path
    trusted : sequence of str
        Further types that the file may hold, by their full names, such as "sklearn.tree._tree.Tree" for a forest or
        "sklearn.svm._classes.SVC". Name them only if you made the file yourself: scikit-learn does not check the inside
        of a tree or a support vector machine, and a forged one ends the process.
    """
    from skops.io import get_untrusted_types, loads
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise with_path(error, Path(path), "open") from error
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise ValueError(f"{path} must be a file that labelonce.save wrote; got {content[:20]!r} at its start.")
    check_unpacked(Path(path), io.BytesIO(content))
    try:
        unchecked = _types_in(content) & _UNCHECKED - set(trusted)
        state = loads(content, trusted=list(trusted)) if not unchecked else {"format": 0}
        fitted = _unpacked(_states().restored(state["fitted"])) if state["format"] == _FORMAT else None
    except UntrustedTypesFoundException as error:
        unknown = set(get_untrusted_types(data=content)) - set(trusted)
        raise ValueError(f"{path} {_refusal(sorted(unknown))}") from error
    except OtherVersion as error:
        raise ValueError(f"{path} {_OTHER_RELEASE}; got {error}.") from error
    except ImportError as error:
        raise ValueError(f"{path} needs a library that is not here: {error}") from error
    except Exception as error:  # a broken or forged file may fail in any way
        got = type(error).__name__
        raise ValueError(f"{path} must be a whole file that labelonce.save wrote; got {got}.") from error
    if unchecked:
        raise ValueError(f"{path} {_refusal(sorted(unchecked))}")
    if not isinstance(fitted, _KINDS):
        got = f"format {state['format']}" if state["format"] != _FORMAT else type(fitted).__name__
        raise ValueError(f"{path} {_OTHER_RELEASE}; got {got}.")
    return fitted


def dumped(fitted: Any) -> bytes:
    from skops.io import dumps

    state = {"labelonce": labelonce.__version__, "format": _FORMAT, "fitted": _states().of(_packed(fitted))}
    return bytes(dumps(state))


def _refusal(unknown: list[str]) -> str:
    if any(name.startswith("labelonce.") for name in unknown):
        return f"{_OTHER_RELEASE}; got format 1."
    return (
        f"must hold only types of labelonce and scikit-learn; got {shorten(unknown)}. Nothing was loaded. If you made "
        f"the file yourself, name them: labelonce.load(path, trusted={unknown!r})."
    )


def _states() -> States:
    """Return the functions that turn objects of these types, and no others, into named state and back."""
    return States({_name_in_file(home): home for home in _our_types()}, _VERSIONS)


def _name_in_file(home: str) -> str:
    """Return the name of a class in files: its public name."""
    module, _, name = home.rpartition(".")
    return f"workers.{name}" if module.startswith("labelonce.workers.") else name


def _types_in(content: bytes) -> set[str]:
    """Return the full names of all types that a file names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        found, waiting = set(), [json.loads(archive.read("schema.json"))]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found.add(f"{one.get('__module__')}.{one.get('__class__')}")
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []
    return found


def _our_types() -> Iterator[str]:
    """Yield the full names of the types of labelonce that a file may contain."""
    for kind in _PARTS:
        yield f"{kind.__module__}.{kind.__qualname__}"
    for module in (aggregation, embed, learning, multilabel, workers):
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, BaseEstimator | ClassifierBase):
                yield f"{value.__module__}.{value.__qualname__}"
    yield from (f"{home}.{name}" for name, home in homes_in(baselines.__name__).items() if name != "AssignmentWarning")
    yield from _NETWORKS


def _packed(fitted: Any) -> Any:
    """Return a shallow copy without callbacks, with its model once and its arrays of strings packed."""
    shallow = copy.copy(fitted)
    for name, value in vars(fitted).items():
        if name == "callbacks":
            setattr(shallow, name, ())
        elif isinstance(value, np.ndarray) and value.dtype == object and all(isinstance(one, str) for one in value):
            setattr(shallow, name, PackedStrings.of(value))
        elif isinstance(value, Aggregator):
            setattr(shallow, name, _packed(value))
        elif name == "_fitted_on":  # annotations, from which `partial_fit` would continue
            del shallow._fitted_on
    if "model_" in vars(shallow) and _last_model(fitted) is fitted.model_:
        del shallow.model_  # once is enough
    return shallow


def _unpacked(fitted: Any) -> Any:
    for name, value in vars(fitted).items():
        if isinstance(value, PackedStrings):
            setattr(fitted, name, value.unpack())
        elif isinstance(value, Aggregator):
            _unpacked(value)
    if "model_" not in vars(fitted) and _last_model(fitted) is not None:
        fitted.model_ = _last_model(fitted)
    return fitted


def _last_model(fitted: Any) -> Any:
    """Return the model of the last round of an `MBEM`, None of anything else."""
    return getattr(getattr(fitted, "_last", None), "model", None)
