"""Simulated crowds: populations of workers, who labels what, and the labels they give.

A population is a confusion array of shape (n_workers, n_classes, n_classes): `confusion[worker, true, given]`
is float64 and its rows sum to 1. For many classes it is factors instead (`grouped_hammer_spammer`), of which no such
array is ever made. `rng` is a generator, a seed, or None for fresh entropy. One seed may serve a
whole simulation: every function makes its own stream of it, so that its draws do not depend on another's.

Examples
--------
>>> from labelonce import simulate
>>> confusion = simulate.hammer_spammer(n_workers=50, n_classes=3, quality=0.2, rng=0)
>>> assignment = simulate.assign(n_tasks=6, n_workers=50, redundancy=2, rng=0)
>>> simulate.annotate([0, 1, 2, 0, 1, 2], confusion, assignment, rng=0)
Annotations(12 annotations: 6 tasks x 50 workers, 3 classes, redundancy 2)
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from labelonce._kernels import Factors, one_coin_confusion
from labelonce._types import Codes, Floats, Mask
from labelonce._validate import RandomState, check_codes, check_distribution, check_int, check_number, check_rng
from labelonce.data import Annotations, _ids

__all__ = [
    "adversarial",
    "annotate",
    "assign",
    "class_wise_hammer_spammer",
    "dirichlet",
    "grouped_class_wise_hammer_spammer",
    "grouped_hammer_spammer",
    "hammer_spammer",
    "one_coin",
    "zipf_load",
]

_Draw = Callable[[Floats, tuple[int, ...], np.random.Generator], Codes]

_CHUNK = 2**18  # numbers drawn at once: stays in the cache, and the memory does not grow with the input


def hammer_spammer(n_workers: int, n_classes: int, quality: float, rng: RandomState, *, exact: bool = False) -> Floats:
    """Return the confusion of workers who are always right (hammers) or guess uniformly (spammers).

    Parameters
    ----------
    quality : float in [0, 1]
        Chance of each worker to be a hammer (the paper's gamma, section 5).
    exact : bool
        Make exactly `round(quality * n_workers)` workers hammers, at random places.

    Examples
    --------
    >>> hammer_spammer(2, 2, quality=0.5, rng=0, exact=True)
    array([[[1. , 0. ],
            [0. , 1. ]],
    <BLANKLINE>
           [[0.5, 0.5],
            [0.5, 0.5]]])
    """
    hammer = _hammers((check_int(n_workers, "n_workers", 1),), quality, _stream(rng, "hammer_spammer"), exact)
    return _hammer_rows(hammer[:, None], n_classes)


def class_wise_hammer_spammer(n_workers: int, n_classes: int, quality: float, rng: RandomState) -> Floats:
    """Return the confusion of workers who are a hammer for some true classes and a spammer for the others.

    `quality` is the chance to be a hammer, for every worker and class apart (the paper, section 5).

    Examples
    --------
    >>> class_wise_hammer_spammer(1, 3, quality=0.5, rng=1).round(2)
    array([[[1.  , 0.  , 0.  ],
            [0.33, 0.33, 0.33],
            [0.  , 0.  , 1.  ]]])
    """
    shape = (check_int(n_workers, "n_workers", 1), check_int(n_classes, "n_classes", 2))
    return _hammer_rows(_hammers(shape, quality, _stream(rng, "class_wise_hammer_spammer")), n_classes)


def grouped_hammer_spammer(
    n_workers: int, groups: Any, quality: float, rng: RandomState, *, exact: bool = False
) -> Factors:
    """Return hammers and spammers whose guesses stay among the classes of the true class's group.

    The paper's ImageNet workers (section 5): groups of 10 among 1,000 classes; a hammer is always right, a spammer
    gives any class of the group with equal chance, the true one included.

    Parameters
    ----------
    groups : int array of shape (n_classes,)
        The group of each class.
    quality, exact
        As in `hammer_spammer`.

    Returns
    -------
    Factors
        For `annotate`; `confusion(worker)` is the confusion of one worker.

    Examples
    --------
    >>> workers = grouped_hammer_spammer(1000, np.arange(1000) // 10, quality=0.2, rng=0)
    >>> workers.shape, workers.right.shape
    ((1000, 1000, 1000), (1000, 1))
    >>> grouped_hammer_spammer(1, [0, 0, 1, 1], quality=0.0, rng=0).confusion(0)
    array([[0.5, 0.5, 0. , 0. ],
           [0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0.5, 0.5]])
    """
    shape = (check_int(n_workers, "n_workers", 1),)
    hammer = _hammers(shape, quality, _stream(rng, "grouped_hammer_spammer"), exact)
    group = _check_class_groups(groups)
    return _hammer_factors(hammer[:, None], np.zeros_like(group), group)


def grouped_class_wise_hammer_spammer(n_workers: int, groups: Any, quality: float, rng: RandomState) -> Factors:
    """Return workers who are a hammer at some positions within a group, and spammers within the group at the others.

    The paper's class-wise ImageNet workers: a worker has one matrix of positions x positions, the same for every
    group. The position of a class is its place among the classes of its group, in their order. The rest is as in
    `grouped_hammer_spammer`.

    Examples
    --------
    >>> grouped_class_wise_hammer_spammer(1, [0, 0, 1, 1], quality=0.5, rng=0).confusion(0)
    array([[0.5, 0.5, 0. , 0. ],
           [0. , 1. , 0. , 0. ],
           [0. , 0. , 0.5, 0.5],
           [0. , 0. , 0. , 1. ]])
    """
    group = _check_class_groups(groups)
    order = np.argsort(group, kind="stable")
    position = np.empty_like(group)
    position[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    shape = (check_int(n_workers, "n_workers", 1), int(position.max()) + 1)
    hammer = _hammers(shape, quality, _stream(rng, "grouped_class_wise_hammer_spammer"))
    return _hammer_factors(hammer, position, group)


def one_coin(accuracy: Any, n_classes: int) -> Floats:
    """Return the confusion of workers who are right with probability `accuracy`, of shape (n_workers,).

    A wrong label is uniform over the other classes.

    Examples
    --------
    >>> one_coin([0.8], n_classes=3)
    array([[[0.8, 0.1, 0.1],
            [0.1, 0.8, 0.1],
            [0.1, 0.1, 0.8]]])
    """
    right = np.asarray(accuracy, dtype=np.float64)
    check_int(n_classes, "n_classes", 2)
    if right.ndim != 1 or len(right) == 0:
        raise ValueError(f"accuracy must have one entry per worker, shape (n_workers,); got shape {right.shape}.")
    _reject(~((right >= 0) & (right <= 1)), right, "accuracy must be in [0, 1]")
    return one_coin_confusion(right, n_classes)


def dirichlet(
    n_workers: int, n_classes: int, rng: RandomState, *, diagonal: float = 4.0, off_diagonal: float = 0.5
) -> Floats:
    """Return the confusion of workers whose rows are drawn from Dirichlet distributions.

    Parameters
    ----------
    diagonal, off_diagonal : float in [0.001, 1e9]
        Concentration of the true class, and of each other class. The mean skill is
        `diagonal / (diagonal + (n_classes - 1) * off_diagonal)`: by default 0.89 for 2 classes and 0.47
        for 10. Larger numbers make the workers more alike.

    Examples
    --------
    >>> dirichlet(1, 2, rng=0, diagonal=20, off_diagonal=5).round(2)
    array([[[0.83, 0.17],
            [0.16, 0.84]]])
    """
    shape = (check_int(n_workers, "n_workers", 1), check_int(n_classes, "n_classes", 2))
    concentration = np.full((n_classes, n_classes), check_number(off_diagonal, "off_diagonal", 1e-3, 1e9))
    np.fill_diagonal(concentration, check_number(diagonal, "diagonal", 1e-3, 1e9))
    generator = _stream(rng, "dirichlet")
    confusion = np.empty((*shape, n_classes))
    for true in range(n_classes):
        confusion[:, true] = generator.dirichlet(concentration[true], n_workers)
    return confusion


def adversarial(n_workers: int, n_classes: int, quality: float, rng: RandomState) -> Floats:
    """Return the confusion of hammers, with probability `quality`, and of workers who are always wrong.

    An adversary shifts every true class by the same random number of classes, so that its labels tell
    as much as a hammer's to who knows the shift.

    Examples
    --------
    >>> adversarial(1, 3, quality=0.0, rng=0)
    array([[[0., 0., 1.],
            [1., 0., 0.],
            [0., 1., 0.]]])
    """
    shape = (check_int(n_workers, "n_workers", 1),)
    generator = _stream(rng, "adversarial")
    hammer = _hammers(shape, quality, generator)
    shift = np.where(hammer, 0, generator.integers(1, check_int(n_classes, "n_classes", 2), size=shape))
    true = np.arange(n_classes)
    given = (true + shift[:, None]) % n_classes
    return np.asarray(given[:, :, None] == true, dtype=np.float64)


def zipf_load(n_workers: int, exponent: float = 1.0) -> Floats:
    """Return weights proportional to 1 / rank**exponent that sum to 1, shape (n_workers,), for `assign`.

    Real crowds are like this: few workers do most of the work. Worker 0 does the most.

    Examples
    --------
    >>> zipf_load(3).round(3)
    array([0.545, 0.273, 0.182])
    """
    rank = np.arange(1.0, check_int(n_workers, "n_workers", 1) + 1)
    weight = rank ** -check_number(exponent, "exponent", 0)
    return cast(Floats, weight / weight.sum())


def assign(
    n_tasks: int, n_workers: int, redundancy: int, rng: RandomState, *, replace: bool = True, load: Any = None
) -> Codes:
    """Return the workers of every task, int32 of shape (n_tasks, redundancy).

    Parameters
    ----------
    replace : bool
        True draws with replacement, as in the paper, so that one worker may label a task twice. False
        draws distinct workers for a task, one after the other among those left.
    load : array of shape (n_workers,), optional
        Relative chances of the workers to be drawn, such as `zipf_load`. Default: equal.

    Examples
    --------
    >>> assign(3, n_workers=5, redundancy=2, rng=0, replace=False)
    array([[1, 4],
           [1, 0],
           [0, 3]], dtype=int32)
    """
    weight = _check_load(load, check_int(n_workers, "n_workers", 1))
    shape = (check_int(n_tasks, "n_tasks", 1), check_int(redundancy, "redundancy", 1))
    available = int(np.count_nonzero(weight))
    if not replace and redundancy > available:
        raise ValueError(
            f"redundancy must be at most the {available} workers who can be drawn; got {redundancy}. "
            "Lower it, or allow a worker to label a task twice with replace=True."
        )
    draw = _with_replacement if replace else _distinct_draw(weight, redundancy)
    width = n_workers if draw is _distinct_by_keys else redundancy
    generator = _stream(rng, "assign")
    assignment = np.empty(shape, dtype=np.int32)
    for part in _parts(n_tasks, width):
        assignment[part] = draw(weight, assignment[part].shape, generator)
    return assignment


def annotate(
    y_true: Any,
    confusion: Any,
    assignment: Any,
    rng: RandomState,
    *,
    groups: Any = None,
    correlation: float = 0.0,
    answers: Any = None,
) -> Annotations:
    """Return one annotation for every entry of `assignment`, its label drawn from the worker's confusion.

    Tasks, workers and classes are numbered from 0, and all are declared, used or not. A worker assigned
    twice to a task gives two labels.

    Parameters
    ----------
    y_true : int array of shape (n_tasks,)
        Class codes.
    confusion : array of shape (n_workers, n_classes, n_answers), or Factors
        A label of probability 0 is never drawn. The first answers are the classes, unless `answers` says otherwise.
    assignment : int array of shape (n_tasks, redundancy)
        Workers of every task, as from `assign`.
    groups : int array of shape (n_workers,), optional
        Workers of one group err together; a worker on its own has a group of its own.
    correlation : float in [0, 1]
        Chance of an annotation to use the random number that the group shares for the task, instead of
        its own. Each worker's confusion stays as given. At 1, members with equal confusion agree always.
    answers : column, optional
        The answers that the columns of `confusion` stand for: strings for a scale. Default: 0, 1, 2, ...

    Examples
    --------
    >>> confusion = one_coin([0.5, 0.5], n_classes=2)
    >>> ann = annotate([0, 1, 0, 1], confusion, [[0, 1]] * 4, rng=0, groups=[0, 0], correlation=1.0)
    >>> ann.to_matrix(dense=True)
    array([[0, 0],
           [0, 0],
           [1, 1],
           [1, 1]], dtype=int32)
    """
    draw = _drawer(confusion)
    n_workers, n_classes, n_answers = confusion.shape if hasattr(confusion, "shape") else np.shape(confusion)
    said = np.arange(n_answers) if answers is None else _ids.table_of(answers, "answers")
    if len(said) != n_answers:
        raise ValueError(f"answers must name the {n_answers} columns of confusion; got {len(said)}.")
    true = check_codes(y_true, "y_true", n_classes)
    worker = np.sort(_check_assignment(assignment, len(true), n_workers), axis=1)  # the order of Annotations
    share = check_number(correlation, "correlation", 0, 1)
    group = _check_groups(groups, n_workers, share)
    generator = _stream(rng, "annotate")
    label = np.empty_like(worker)
    for part in _parts(*worker.shape):
        uniform = _uniforms(worker[part], group, share, generator)
        label[part] = draw(worker[part], np.broadcast_to(true[part, None], uniform.shape), uniform)
    task = np.repeat(np.arange(len(true), dtype=np.int32), worker.shape[1])
    columns = (task, worker.ravel(), label.ravel())
    for column in columns:
        column.flags.writeable = False  # or Annotations would copy it
    return Annotations(*columns, np.arange(len(true)), np.arange(n_workers), np.arange(n_classes), said)


def _stream(rng: RandomState, name: str) -> np.random.Generator:
    """Return the generator itself, or a seed's stream for the function `name`.

    The same uniform numbers in `assign` and in `annotate` would tie a task's labels to its workers.
    """
    generator = check_rng(rng)
    if rng is None or generator is rng:
        return generator
    return np.random.default_rng([cast(int, rng), *name.encode()])


def _parts(n_tasks: int, width: int) -> Iterator[slice]:
    """Yield slices of tasks that hold about `_CHUNK` numbers when every task has `width`."""
    step = max(1, _CHUNK // max(1, width))
    return (slice(start, start + step) for start in range(0, n_tasks, step))


def _hammers(shape: tuple[int, ...], quality: float, rng: np.random.Generator, exact: bool = False) -> Mask:
    share = check_number(quality, "quality", 0, 1)
    if exact:
        return rng.permutation(shape[0]) < round(share * shape[0])
    return rng.random(shape) < share


def _hammer_rows(hammer: Mask, n_classes: int) -> Floats:
    check_int(n_classes, "n_classes", 2)
    return np.where(hammer[:, :, None], np.eye(n_classes), np.full((n_classes, n_classes), 1 / n_classes))


def _with_replacement(weight: Floats, shape: tuple[int, ...], rng: np.random.Generator) -> Codes:
    if (weight == weight[0]).all():
        return rng.integers(len(weight), size=shape, dtype=np.int32)
    cumulative = np.cumsum(weight)
    cumulative /= cumulative[-1]  # exactly 1 from the last positive weight on: a weight of 0 is never drawn
    return np.searchsorted(cumulative, rng.random(shape), side="right").astype(np.int32)


def _distinct_by_redrawing(weight: Floats, shape: tuple[int, ...], rng: np.random.Generator) -> Codes:
    """Draw the columns in turn, each again where it repeats an earlier one."""
    workers = np.empty(shape, dtype=np.int32)
    for column in range(shape[1]):
        again = np.arange(shape[0])
        while len(again):
            drawn = _with_replacement(weight, again.shape, rng)
            workers[again, column] = drawn
            again = again[(workers[again, :column] == drawn[:, None]).any(axis=1)]
    return workers


def _distinct_draw(weight: Floats, redundancy: int) -> _Draw:
    """Return the faster of two ways to draw distinct workers, one after the other among those left."""
    heaviest = np.sort(weight)[len(weight) - redundancy + 1 :]
    mostly_new = heaviest.sum() <= 0.5 * weight.sum()  # half of the draws at least, whoever came before
    return _distinct_by_redrawing if redundancy**2 <= len(weight) and mostly_new else _distinct_by_keys


def _distinct_by_keys(weight: Floats, shape: tuple[int, ...], rng: np.random.Generator) -> Codes:
    """Take the largest of log(weight) + Gumbel noise, in order; costs n_workers per task, whatever the weights."""
    available = np.flatnonzero(weight)
    key = -np.log(weight[available]) - rng.gumbel(size=(shape[0], len(available)))
    first = np.argpartition(key, shape[1] - 1, axis=1)[:, : shape[1]]
    order = np.argsort(np.take_along_axis(key, first, axis=1), axis=1)
    return available[np.take_along_axis(first, order, axis=1)].astype(np.int32)


def _uniforms(worker: Codes, group: Codes | None, correlation: float, rng: np.random.Generator) -> Floats:
    """Return a uniform number for every annotation of some tasks; members of a group may share theirs."""
    own = rng.random(worker.shape)
    if group is None:
        return own
    key = np.arange(len(worker))[:, None] * (int(group.max()) + 1) + group[worker]
    distinct, place = np.unique(key, return_inverse=True)
    shared = rng.random(len(distinct))[place.reshape(key.shape)]
    return np.where(rng.random(worker.shape) < correlation, shared, own)


def _hammer_factors(hammer: Mask, column: Codes, group: Codes) -> Factors:
    """Return workers who are hammers, [worker, column of the true class], or guess within the group."""
    size = np.bincount(group)[group]
    kinds, row = np.unique(np.stack([column, size]), axis=1, return_inverse=True)
    right = np.where(hammer[:, kinds[0]], 1.0, 1 / kinds[1])
    return Factors.inside(right, row.ravel().astype(np.int32), group)


def _drawer(confusion: Any) -> Callable[[Codes, Codes, Floats], Any]:
    """Return what draws a label for arrays of workers, true classes and uniform numbers of one shape."""
    if hasattr(confusion, "draw"):  # factors
        return confusion.draw  # type: ignore[no-any-return]
    table = _cumulative(confusion)
    n_classes = table.shape[1]
    return lambda worker, true, uniform: _invert(table, worker.astype(np.int64) * n_classes + true, uniform)


def _cumulative(confusion: Any) -> Floats:
    """Return the cumulative sums of the rows, exactly 1 from the last possible label on."""
    shape = np.shape(confusion)
    if len(shape) != 3 or shape[1] > shape[2] or 0 in shape:
        raise ValueError(
            f"confusion must have shape (n_workers, n_classes, n_answers), at least as many answers; got {shape}."
        )
    table = np.cumsum(check_distribution(confusion, "confusion", shape), axis=2)
    table /= table[:, :, -1:].copy()
    return table


def _invert(table: Floats, row: npt.NDArray[np.int64], uniform: Floats) -> npt.NDArray[np.int64]:
    """Return how many entries of each row of `table` are at most `uniform`, by bisection."""
    n_classes, flat = table.shape[-1], table.ravel()
    start, label = row * n_classes, np.zeros_like(row)
    step = 1 << (n_classes - 1).bit_length()
    while step := step >> 1:
        probe = np.minimum(label + step, n_classes)  # the last entry is 1, above every uniform number
        label += step * (flat[start + probe - 1] <= uniform)
    return label


def _check_assignment(assignment: Any, n_tasks: int, n_workers: int) -> Codes:
    array = np.asarray(assignment)
    if array.ndim != 2 or len(array) != n_tasks:
        raise ValueError(
            f"assignment must have shape (n_tasks, redundancy) with {n_tasks} tasks as y_true; got {array.shape}."
        )
    return check_codes(array.ravel(), "assignment.ravel()", n_workers).reshape(array.shape)


def _check_groups(groups: Any, n_workers: int, correlation: float) -> Codes | None:
    if groups is None:
        if correlation > 0:
            raise ValueError(f"correlation must be 0 without groups; got {correlation}. Give groups=...")
        return None
    is_right = np.shape(groups) == (n_workers,) and np.asarray(groups).dtype.kind in "iub"
    return _group_codes(groups, f"worker, shape ({n_workers},)", is_right)


def _check_class_groups(groups: Any) -> Codes:
    is_right = np.ndim(groups) == 1 and np.asarray(groups).dtype.kind in "iu" and len(groups) > 1
    return _group_codes(groups, "class, shape (n_classes,)", is_right)


def _group_codes(groups: Any, what: str, is_right: bool) -> Codes:
    array = np.asarray(groups)
    if not is_right:
        raise ValueError(f"groups must have one integer per {what}; got {array.dtype} of shape {array.shape}.")
    return np.unique(array, return_inverse=True)[1].astype(np.int32)


def _check_load(load: Any, n_workers: int) -> Floats:
    if load is None:
        return np.ones(n_workers)
    weight = np.asarray(load, dtype=np.float64)
    if weight.shape != (n_workers,):
        raise ValueError(f"load must have one weight per worker, shape ({n_workers},); got shape {weight.shape}.")
    _reject(~np.isfinite(weight) | (weight < 0), weight, "load must be finite and at least 0")
    if not weight.any():
        raise ValueError(f"load must be positive for a worker at least; got 0 for all {n_workers}.")
    return cast(Floats, weight / weight.max())


def _reject(bad: Mask, values: Floats, rule: str) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(f"{rule}; got {values[first]} at worker {first} ({int(bad.sum())} in total).")
