"""How far people agree: percent agreement, Fleiss' kappa, Krippendorff's alpha and Cohen's kappa, with intervals.

It stands here and not in `metrics`, because `check` shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
    """An estimate with the ends of its interval, NaN where the labels do not tell."""

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
        """Return all but the pairs as plain values, for JSON; None where the labels do not tell."""
        figures = ("percent", "fleiss_kappa", "alpha", "alpha_ordinal", "alpha_interval")
        found: dict[str, Any] = {
            name: getattr(self, name) for name in ("n_annotations", "n_tasks", "n_workers", "level")
        }
        for name in figures:
            one = getattr(self, name)
            found[name] = None if one is None else {end: _plain(getattr(one, end)) for end in ("value", "low", "high")}
        rows = self.classes.to_pylist()
        found["classes"] = [{name: _plain(value) for name, value in row.items()} for row in rows]
        return found


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
    return of_units(_Units.of(annotations, order), level)


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
    """Return where on a scale every answer stands, None where it is none."""
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


def of_units(rows: _Units, level: float) -> Agreement:
    """Return the figures of labels that can be compared."""
    n_classes = len(rows.answers)
    unit, label, c = rows.counts
    n_u = np.bincount(rows.unit).astype(float)
    n_units, n = len(n_u), float(len(rows.unit))
    total: Floats = np.bincount(label, c, minlength=n_classes).astype(np.float64)
    squares = np.bincount(unit, c**2, minlength=n_units)
    same, pairs = squares - n_u, n_u * (n_u - 1)  # ordered pairs of labels of a unit

    def interval(value: float, influence: Floats, chance: float = 0.0, least: float = -1.0) -> Figure:
        return _figure(value, influence, chance, level, least)

    shares = total / max(n, 1.0)
    by_chance = float((shares**2).sum())
    percent = _ratio(same.sum(), pairs.sum())
    mean_same = _ratio((same / pairs).sum(), n_units)
    kappa = _ratio(mean_same - by_chance, 1 - by_chance)
    d_chance = 2 * (np.bincount(unit, shares[label] * c, minlength=n_units) - by_chance * n_u) / max(n, 1.0)
    d_kappa = _over(same / pairs, n_units * (1 - by_chance)) - _over((1 - mean_same) * d_chance, (1 - by_chance) ** 2)
    nominal = _Alpha(n_u, (n_u**2 - squares) / (n_u - 1), n**2 - float((total**2).sum()))
    d_nominal = nominal.influence(2 * (n * n_u - np.bincount(unit, total[label] * c, minlength=n_units)))
    scales = {} if rows.values is None else _scales(rows.values, unit, label, c, n_u, total)
    return Agreement(
        n_annotations=int(n),
        n_tasks=n_units,
        n_workers=len(np.unique(rows.worker)),
        percent=interval(percent, _over(same - percent * pairs, pairs.sum()), least=0.0),
        fleiss_kappa=interval(kappa, d_kappa, by_chance),
        alpha=interval(nominal.value, d_nominal, by_chance),
        alpha_ordinal=interval(*scales["ordinal"], by_chance) if scales else None,
        alpha_interval=interval(*scales["interval"], by_chance) if scales else None,
        classes=_class_table(rows, (unit, label, c), n_u, total, level),
        level=level,
        _rows=rows,
    )


@dataclass(frozen=True)
class _Alpha:
    """Krippendorff's alpha, 1 - (n - 1) sum(observed) / expected, and what each unit adds to it.

    `observed` has the disagreement of every unit's ordered pairs over its number of labels less one, `expected` is that
    of all ordered pairs of labels, whatever their unit.
    """

    n_u: Floats
    observed: Floats
    expected: float

    @property
    def n(self) -> float:
        return float(self.n_u.sum())

    @property
    def value(self) -> float:
        return 1 - _ratio((self.n - 1) * float(self.observed.sum()), self.expected)

    @property
    def per_expected(self) -> float:
        """How alpha changes with what is expected."""
        return _ratio((self.n - 1) * float(self.observed.sum()), self.expected**2)

    def influence(self, d_expected: Floats) -> Floats:
        """Return how alpha changes with every unit, given how `expected` does."""
        direct = self.observed.sum() * self.n_u + (self.n - 1) * self.observed
        return self.per_expected * d_expected - _over(direct, self.expected)


def _scales(
    values: Floats, unit: Codes, label: Codes, c: Floats, n_u: Floats, total: Floats
) -> dict[str, tuple[float, Floats]]:
    """Return alpha by the distances on a scale and by its order, where a value is its mean rank among all labels.

    Ranks change with the units, too: that is the last term of the second influence.
    """
    _, place = np.unique(values, return_inverse=True)
    n_at = np.bincount(place, total)
    ranks = (np.cumsum(n_at) - n_at / 2)[place]
    found = {}
    for name, v in (("interval", values), ("ordinal", ranks)):
        mean = float((total * v).sum() / total.sum())
        w = v - mean  # for the digits
        first = np.bincount(unit, c * w[label], minlength=len(n_u))
        second = np.bincount(unit, c * w[label] ** 2, minlength=len(n_u))
        n, all_first, all_second = n_u.sum(), float((total * w).sum()), float((total * w**2).sum())
        alpha = _Alpha(n_u, 2 * (n_u * second - first**2) / (n_u - 1), 2 * (n * all_second - all_first**2))
        influence = alpha.influence(2 * (n * second + all_second * n_u - 2 * all_first * first))
        if name == "ordinal":
            d_observed = np.bincount(label, 4 * c * (n_u[unit] * w[label] - first[unit]) / (n_u[unit] - 1), len(total))
            d_expected = 4 * total * (n * w - all_first)
            slope = alpha.per_expected * d_expected - _over((n - 1) * d_observed, alpha.expected)
            at = np.bincount(place, slope)
            above = (at.sum() - np.cumsum(at) + at / 2)[place]
            influence = influence + np.bincount(unit, c * above[label], minlength=len(n_u))
        found[name] = (alpha.value, influence)
    return found


def _class_table(
    rows: _Units, counts: tuple[Codes, Codes, Floats], n_u: Floats, total: Floats, level: float
) -> pa.Table:
    """Return agreement and alpha for every label that was given, of it against all others."""
    unit, label, c = counts
    size, n, n_units = n_u[unit], float(n_u.sum()), len(n_u)

    def per_label(weight: Floats) -> Floats:
        return np.asarray(np.bincount(label, weight, minlength=len(total)), dtype=np.float64)

    n_again, n_chances = per_label(c * (c - 1)), per_label(c * (size - 1))
    again = _over(n_again, n_chances)
    d_again = (c * (c - 1) - again[label] * c * (size - 1)) / n_chances[label]
    observed = 2 * c * (size - c) / (size - 1)
    a, b = per_label(observed), 2 * total * (n - total)
    alpha, slope = 1 - _over((n - 1) * a, b), _over((n - 1) * a, b**2)
    of_size = 2 * slope * total - _over(a, b)  # alpha changes by this with every label of a unit, whichever it is
    own = (2 * slope * (n - 2 * total))[label] * c - _over((n - 1) * observed, b[label])
    mean = (of_size * n + per_label(own)) / n_units
    d_alpha = (
        of_size**2 * float((n_u**2).sum()) + per_label(own * (own + 2 * of_size[label] * size)) - n_units * mean**2
    )
    given = np.flatnonzero(total)
    columns: dict[str, Any] = {
        "label": _ids.decode(given.astype(np.int32), rows.answers),
        "count": total[given].astype(int),
    }
    for name, value, squares, least in (
        ("agreement", again, per_label(d_again**2), 0.0),
        ("alpha", alpha, d_alpha, -1.0),
    ):
        low, high = _ends(value, squares, n_units, level, least)
        columns |= {name: value[given], f"{name}_low": low[given], f"{name}_high": high[given]}
    return pa.table(columns)


def _figure(value: float, influence: Floats, chance: float, level: float, least: float = -1.0) -> Figure:
    squares = np.array([((influence - influence.mean()) ** 2).sum()]) if len(influence) else np.zeros(1)
    low, high = _ends(np.array([value]), squares, len(influence), level, least, chance)
    return Figure(float(value), float(low[0]), float(high[0]))


def _ends(
    value: Floats, squares: Floats, n_units: int, level: float, least: float, chance: float | Floats = 0.0
) -> tuple[Floats, Floats]:
    """Return the ends of intervals from the sums of squared influences, NaN with a single unit.

    Where all agree, no influence is left: then the lower end is that of Wilson's interval, corrected for chance.
    """
    if n_units < 2:
        return np.full(len(value), np.nan), np.full(len(value), np.nan)
    half = stdtrit(n_units - 1, (1 + level) / 2) * np.sqrt(np.maximum(squares, 0) * n_units / (n_units - 1))
    perfect = value > 1 - 1e-12
    wilson = n_units / (n_units + ndtri((1 + level) / 2) ** 2)
    low = np.where(perfect, _over(wilson - chance, 1 - np.asarray(chance)), value - half)
    return np.maximum(low, least), np.where(perfect, 1.0, np.minimum(value + half, 1.0))


def _ratio(above: float, below: float) -> float:
    return float(above / below) if below else math.nan


def _over(above: Any, below: Any) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.divide(above, below, out=np.full(np.broadcast(above, below).shape, np.nan), where=np.asarray(below) != 0)
        )


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
