"""How far people agree: percent agreement, Fleiss' kappa, Krippendorff's alpha and Cohen's kappa, with intervals.

It stands here and not in `metrics`, because `check` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pyarrow as pa
from scipy.special import ndtri, stdtrit

from labelonce._messages import argument, shorten, show
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_number
from labelonce.data import _ids, _rows
from labelonce.data._agreement_pairs import pair_table
from labelonce.data._annotations import Annotations


@dataclass(frozen=True)
class Figure:
    """An estimate with the ends of its interval, NaN where the labels do not determine it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = (f"{round(end, 2) + 0.0:.2f}" for end in (self.value, self.low, self.high))  # no -0.00
        return "unknown" if math.isnan(self.value) else f"{value} ({low} to {high})"


@dataclass(frozen=True)
class Agreement:
    """What `agreement` found.

    Attributes
    ----------
    n_annotations, n_tasks, n_workers : int
        What there is to compare: labels of tasks that two or more workers labelled.
    percent : Figure
        How often two labels of one task, by two workers, are the same.
    fleiss_kappa : Figure
        Fleiss' kappa; with unequal numbers of labels per task the mean agreement of the tasks, and the shares of the
        classes among all labels.
    alpha : Figure
        Krippendorff's alpha for classes without an order (nominal).
    alpha_ordinal, alpha_interval : Figure or None
        Krippendorff's alpha where the labels are a scale: by the order of its values, and by their distances.
    classes : pyarrow.Table
        One row per label: how many there are; `agreement`, the chance that a second label is the same; and `alpha`,
        of this label against all others. Each with the ends of its interval.
    level : float
        The level of the intervals.

    Notes
    -----
    Intervals are of the linearised standard error over tasks (the infinitesimal jackknife) with Student's t; where all
    agree, they are Wilson's. They hold for more tasks by the same workers. Those of pairs are by the standard error of
    Fleiss, Cohen and Everitt.

    K. Krippendorff. Content Analysis, 4th edition. 2018. J. L. Fleiss. Measuring nominal scale agreement among many
    raters. Psychological Bulletin, 1971. J. L. Fleiss, J. Cohen and B. S. Everitt. Large sample standard errors of
    kappa and weighted kappa. Psychological Bulletin, 1969. K. L. Gwet. Large-sample variance of Fleiss generalized
    kappa. Educational and Psychological Measurement, 2021.
    """

    n_annotations: int
    n_tasks: int
    n_workers: int
    percent: Figure
    fleiss_kappa: Figure
    alpha: Figure
    alpha_ordinal: Figure | None
    alpha_interval: Figure | None
    classes: pa.Table
    level: float
    _rows: _Units

    @cached_property
    def pairs(self) -> pa.Table:
        """One row per pair of workers that share tasks, those with the most first.

        The columns are `worker`, `other`, `tasks` (that they share), `agreement`, `kappa` (Cohen's) and, where labels
        are a scale, `weighted_kappa` (quadratic weights), each with the ends of its interval.
        """
        rows = self._rows
        codes = (rows.unit, rows.worker, rows.label)
        return pair_table(*codes, len(rows.answers), rows.workers, rows.values, float(ndtri((1 + self.level) / 2)))

    def to_dict(self) -> dict[str, Any]:
        """Return all but the pairs as plain values, for JSON; None where the labels do not determine it."""
        names = ("n_annotations", "n_tasks", "n_workers", "level")
        figures = {name: one and vars(one) for name, one in vars(self).items() if isinstance(one, Figure | None)}
        found = {name: getattr(self, name) for name in names} | figures | {"classes": self.classes.to_pylist()}
        return cast(dict[str, Any], without_nan(found))


def agreement(annotations: Any, *, order: Sequence[Any] | None = None, level: float = 0.9) -> Agreement:
    """Return how far the workers agree, over the tasks that two or more of them labelled.

    Of a worker's several labels for one task the last counts. Of questions, each about one task is a task here.

    Parameters
    ----------
    annotations : Annotations or MultiLabelAnnotations
    order : sequence, optional
        All labels from the lowest to the highest, where they are a scale. Default: numbers in their order.
    level : float
        Level of the intervals, by default 0.9.

    Examples
    --------
    >>> ann = Annotations.from_matrix([[0, 0, 0], [1, 1, -1], [0, 1, 0], [1, 1, 1]])
    >>> found = agreement(ann)
    >>> f"{found.percent.value:.2f} {found.fleiss_kappa.value:.2f} {found.alpha.value:.2f}"
    '0.80 0.66 0.67'
    >>> found.pairs.select(["worker", "other", "tasks", "kappa"]).to_pylist()[0]
    {'worker': 0, 'other': 1, 'tasks': 4, 'kappa': 0.5}
    """
    check_number(level, "level", 0.5, 0.999)
    return _figures(_Units.of(annotations, order), level)


@dataclass(frozen=True)
class _Units:
    """Labels that can be compared: one per worker, of units that have two or more; sorted by unit."""

    unit: Codes
    worker: Codes
    label: Codes
    answers: Ids
    workers: Ids
    values: Floats | None

    @classmethod
    def of(cls, annotations: Any, order: Sequence[Any] | None = None) -> _Units:
        unit = getattr(annotations, "pair", annotations.task)  # of questions: task and question
        label = annotations.label if isinstance(annotations, Annotations) else annotations.answer
        last = ~np.append(_rows.repeats(unit, annotations.worker)[1:], False)
        per_unit = np.bincount(unit[last], minlength=int(unit[-1]) + 1)
        kept = last & (per_unit[unit] > 1)
        dense = (np.cumsum(per_unit > 1) - 1)[unit[kept]].astype(np.int32)
        given = annotations.answers[np.unique(label[kept])]
        values = _values(annotations.answers, given, order)
        if values is None and isinstance(annotations, Annotations) and annotations.is_scale:
            values = np.arange(len(annotations.answers), dtype=float)
        values = values if len(given) > 2 else None  # two labels have no order to speak of
        return cls(dense, annotations.worker[kept], label[kept], annotations.answers, annotations.workers, values)

    @property
    def counts(self) -> tuple[Codes, Codes, Floats]:
        """Every unit's labels, each once: unit, label, and how many there are."""
        key, n = np.unique(self.unit.astype(np.int64) * len(self.answers) + self.label, return_counts=True)
        return key // len(self.answers), key % len(self.answers), n.astype(float)


def _values(answers: Ids, given: Ids, order: Sequence[Any] | None) -> Floats | None:
    """Return the position of every answer on a scale, None if there is no scale."""
    if order is not None:
        place = _ids.lookup(answers, _ids.table_of(list(order), "order")).astype(float)
        lost = given[np.isin(given, answers[place < 0])]
        if len(lost):
            raise ValueError(
                f"order must name every label, {shorten(given)}; got none for {show(lost[0])}. Name it in "
                f"{argument('order')}"
            )
        return place
    try:
        numbers = np.array([float(one) if one in given else 0.0 for one in answers])
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


@np.errstate(divide="ignore", invalid="ignore")  # what the labels do not tell is NaN
def _figures(rows: _Units, level: float) -> Agreement:
    """Return the figures of labels that can be compared.

    Of each figure it takes the value and the influence of every unit: how the value changes with that unit's weight.
    """
    unit, label, c = rows.counts
    n_u = np.bincount(rows.unit).astype(np.float64)
    n_units, n = len(n_u), n_u.sum()
    total: Floats = np.bincount(label, c, minlength=len(rows.answers)).astype(np.float64)
    squares = np.bincount(unit, c**2, minlength=n_units)
    same, pairs = squares - n_u, n_u * (n_u - 1)  # ordered pairs of labels of a unit
    shares = total / n
    by_chance = (shares**2).sum()
    percent, mean_same = same.sum() / pairs.sum(), (same / pairs).sum() / n_units
    d_chance = 2 * (np.bincount(unit, shares[label] * c, minlength=n_units) - by_chance * n_u) / n
    d_kappa = same / pairs / n_units / (1 - by_chance) - (1 - mean_same) * d_chance / (1 - by_chance) ** 2
    d_expected = 2 * (n * n_u - np.bincount(unit, total[label] * c, minlength=n_units))
    nominal = _alpha(n_u, (n_u**2 - squares) / (n_u - 1), n**2 - (total**2).sum(), d_expected)
    scales: Any = [(None, None)] * 2 if rows.values is None else _scales(rows.values, (unit, label, c), n_u, total)
    ordinal, interval = (None if value is None else _figure(value, d, by_chance, level) for value, d in scales)
    return Agreement(
        n_annotations=int(n),
        n_tasks=n_units,
        n_workers=len(np.unique(rows.worker)),
        percent=_figure(percent, (same - percent * pairs) / pairs.sum(), 0.0, level, least=0.0),
        fleiss_kappa=_figure((mean_same - by_chance) / (1 - by_chance), d_kappa, by_chance, level),
        alpha=_figure(*nominal, by_chance, level),
        alpha_ordinal=ordinal,
        alpha_interval=interval,
        classes=_class_table(rows, (unit, label, c), n_u, total, level),
        level=level,
        _rows=rows,
    )


def _alpha(n_u: Floats, observed: Floats, expected: Any, d_expected: Floats) -> tuple[Any, Floats]:
    """Return Krippendorff's alpha, 1 - (n - 1) sum(observed) / expected, and the influence of every unit.

    `observed` has the disagreement of every unit's ordered pairs over its number of labels less one, `expected` is that
    of all ordered pairs of labels, whatever their unit, and `d_expected` how it changes with every unit.
    """
    n, total = n_u.sum(), observed.sum()
    influence = (n - 1) * total / expected**2 * d_expected - (total * n_u + (n - 1) * observed) / expected
    return 1 - (n - 1) * total / expected, influence


def _scales(
    values: Floats, counts: tuple[Codes, Codes, Floats], n_u: Floats, total: Floats
) -> list[tuple[Any, Floats]]:
    """Return alpha by the order of a scale, where a value is its mean rank among all labels, and by its distances.

    Ranks change with the units, too: that is the last term of the first influence.
    """
    unit, label, c = counts
    _, place = np.unique(values, return_inverse=True)
    n_at, n = np.bincount(place, total), n_u.sum()
    found: list[tuple[Any, Floats]] = []
    for v in ((np.cumsum(n_at) - n_at / 2)[place], values):
        w = v - (total * v).sum() / n  # for the digits
        first = np.bincount(unit, c * w[label], minlength=len(n_u))
        second = np.bincount(unit, c * w[label] ** 2, minlength=len(n_u))
        all_first, all_second = (total * w).sum(), (total * w**2).sum()
        observed, expected = 2 * (n_u * second - first**2) / (n_u - 1), 2 * (n * all_second - all_first**2)
        d_expected = 2 * (n * second + all_second * n_u - 2 * all_first * first)
        alpha, influence = _alpha(n_u, observed, expected, d_expected)
        if not found:
            by_rank = np.bincount(label, 4 * c * (n_u[unit] * w[label] - first[unit]) / (n_u[unit] - 1), len(total))
            slope = (1 - alpha) / expected * 4 * total * (n * w - all_first) - (n - 1) * by_rank / expected
            at = np.bincount(place, slope)
            above = (at.sum() - np.cumsum(at) + at / 2)[place]
            influence = influence + np.bincount(unit, c * above[label], minlength=len(n_u))
        found.append((alpha, influence))
    return found


def _class_table(
    rows: _Units, counts: tuple[Codes, Codes, Floats], n_u: Floats, total: Floats, level: float
) -> pa.Table:
    """Return agreement and alpha of every label that was given, against all others."""
    unit, label, c = counts
    size, n, n_units = n_u[unit], n_u.sum(), len(n_u)

    def per_label(weight: Floats) -> Floats:
        return np.asarray(np.bincount(label, weight, minlength=len(total)), dtype=np.float64)

    n_chances = per_label(c * (size - 1))
    again = per_label(c * (c - 1)) / n_chances
    d_again = (c * (c - 1) - again[label] * c * (size - 1)) / n_chances[label]
    observed = 2 * c * (size - c) / (size - 1)
    a, b = per_label(observed), 2 * total * (n - total)
    slope = (n - 1) * a / b**2
    of_size = 2 * slope * total - a / b  # alpha changes by this with every label of a unit, whichever it is
    own = (2 * slope * (n - 2 * total))[label] * c - (n - 1) * observed / b[label]
    mean = (of_size * n + per_label(own)) / n_units
    d_alpha = of_size**2 * (n_u**2).sum() + per_label(own * (own + 2 * of_size[label] * size)) - n_units * mean**2
    given = np.flatnonzero(total)
    columns: dict[str, Any] = {"label": _ids.decode(given.astype(np.int32), rows.answers)}
    columns["count"] = total[given].astype(np.int64)
    alpha = 1 - (n - 1) * a / b
    with_it = np.bincount(label, minlength=len(total))  # units: on these alone its agreement rests
    figures = (("agreement", again, per_label(d_again**2), 0, with_it), ("alpha", alpha, d_alpha, -1, n_units))
    for name, value, d, least, among in figures:
        low, high = _ends(value, d, n_units, level, least, among=among)
        columns |= {name: value[given], f"{name}_low": low[given], f"{name}_high": high[given]}
    return pa.table(columns)


def _figure(value: Any, influence: Floats, chance: Any, level: float, least: float = -1.0) -> Figure:
    squares = ((influence - influence.sum() / max(len(influence), 1)) ** 2).sum()
    low, high = _ends(np.array([value]), np.array([squares]), len(influence), level, least, chance)
    return Figure(float(value), float(low[0]), float(high[0]))


def _ends(
    value: Floats, squares: Floats, n_units: int, level: float, least: float, chance: Any = 0.0, among: Any = None
) -> tuple[Floats, Floats]:
    """Return the ends of intervals from the sums of squared influences, NaN with a single unit.

    Where all agree, or none, no influence is left: then the other end is that of Wilson's interval, corrected for
    chance. `among` is the number of units that each value rests on, by default all of them.
    """
    if n_units < 2:
        return np.full(len(value), np.nan), np.full(len(value), np.nan)
    half = stdtrit(n_units - 1, (1 + level) / 2) * np.sqrt(np.maximum(squares, 0) * n_units / (n_units - 1))
    perfect, none = value > 1 - 1e-12, (value < 1e-12) & (least == 0)
    squared = ndtri((1 + level) / 2) ** 2
    wilson = squared / ((n_units if among is None else among) + squared)
    low = np.where(perfect, (1 - wilson - chance) / (1 - chance), value - half)
    high = np.where(none, wilson, np.minimum(value + half, 1.0))
    return np.maximum(low, least), np.where(perfect, 1.0, high)


def without_nan(found: Any) -> Any:
    """Return plain values with None for NaN, which JSON does not know."""
    if isinstance(found, dict):
        return {name: without_nan(value) for name, value in found.items()}
    if isinstance(found, list):
        return [without_nan(value) for value in found]
    return None if found != found else found
