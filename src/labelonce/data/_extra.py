"""What annotations may say besides their label: a probability, a weight, an order, and the family of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import argument, at_command_line, row, shorten, show
from labelonce._types import Codes, Floats, Ids
from labelonce.data import _ids

EXTRA = ("probability", "weight", "order", "family")
SPREAD = "probability_"  # and a class: the name of a column of a distribution
_SEPARATORS = "/:@|"  # between the model and the prompt in a worker's id
_SUM = 1e-3  # how far from 1 the probabilities of a distribution may add up to, by rounding


@dataclass(frozen=True, eq=False)
class Extra:
    """The optional columns of annotations, each None where there is no such column; see `Annotations`."""

    probability: Floats | None = None
    weight: Floats | None = None
    order: Codes | None = None
    orders: Ids | None = None
    family: Codes | None = None
    families: Ids | None = None

    def __post_init__(self) -> None:
        for name in self._given():
            array = np.array(getattr(self, name))
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def _given(self) -> list[str]:
        return [name for name, value in vars(self).items() if value is not None]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Extra):
            return NotImplemented
        return all(_same(own, its) for own, its in zip(astuple(self), astuple(other), strict=True))

    __hash__ = None  # type: ignore[assignment]

    @property
    def has_weights(self) -> bool:
        return self.probability is not None or self.weight is not None

    def take(self, rows: Any) -> Extra:
        if not self._given():
            return self
        of_rows = [name for name in self._given() if name in ("probability", "weight", "order")]
        return replace(self, **{name: getattr(self, name)[rows] for name in of_rows})

    def without(self, names: Sequence[str]) -> Extra:
        odd = [name for name in names if name not in EXTRA]
        if odd:
            raise ValueError(f"names must be among {', '.join(EXTRA)}; got {show(odd[0])}.")
        gone = {*(names or EXTRA)}
        gone |= {table for one, table in (("order", "orders"), ("family", "families")) if one in gone}
        return replace(self, **dict.fromkeys(gone))

    def with_classes(self, code: Codes, n_classes: int) -> Extra:
        """Return the columns where class k is now class code[k], -1: none; what is left is a distribution again."""
        if self.probability is None:
            return self
        kept = code >= 0
        moved = np.zeros((len(self.probability), n_classes))
        np.add.at(moved.T, code[kept], self.probability.T[kept])
        total = moved.sum(axis=1, keepdims=True)
        return replace(self, probability=np.divide(moved, total, out=np.full_like(moved, np.nan), where=total > 0))


NONE = Extra()


class ExtraColumns:
    """What `Annotations` say besides their labels, see there."""

    extra: Extra
    worker: Codes
    label: Codes
    workers: Ids
    classes: Ids

    @property
    def probability(self) -> Floats | None:
        """P(class) as each annotation states it, (n_annotations, n_classes), or None."""
        return self.extra.probability

    @property
    def weight(self) -> Floats | None:
        """How often each annotation counts, or None: once."""
        return self.extra.weight

    @property
    def order(self) -> Codes | None:
        """Code of how each annotation's choices were shown, or None."""
        return self.extra.order

    @property
    def orders(self) -> Ids | None:
        """The ids behind `order`."""
        return self.extra.orders

    @property
    def family(self) -> Codes | None:
        """Code of the family of each worker, or None."""
        return self.extra.family

    @property
    def families(self) -> Ids | None:
        """The names behind `family`."""
        return self.extra.families

    @property
    def has_weights(self) -> bool:
        """Whether there are weights or probabilities, so that annotations do not count as one whole label each."""
        return self.extra.has_weights

    def parts(self, *, above_chance: bool = False) -> tuple[Codes, Codes, Floats]:
        """Return the annotations as whole labels with amounts: the row of each, its answer code, how much it counts.

        A distribution counts its share for each class, times the weight; `above_chance`, what it has above an even
        one, so that 1 counts as a whole label and an even distribution as none.

        >>> from labelonce import Annotations
        >>> row, label, amount = Annotations.from_arrays([1, 2], [1, 1], ["no", "yes"], probability=[1, 0.8]).parts()
        >>> row, label, amount.round(2)
        (array([0, 1, 1], dtype=int32), array([0, 0, 1], dtype=int32), array([1. , 0.2, 0.8]))
        """
        n, extra = len(self.label), self.extra
        weight = np.ones(n) if extra.weight is None else np.asarray(extra.weight)
        if extra.probability is None:
            return np.arange(n, dtype=np.int32), self.label, weight
        stated = ~np.isnan(extra.probability[:, 0])
        row, label = np.nonzero(np.where(stated[:, None], extra.probability, 0.0))
        even = 1 / extra.probability.shape[1] if above_chance else 0.0
        amount = np.maximum(extra.probability[row, label] - even, 0.0) / (1 - even) * weight[row]
        whole = np.flatnonzero(~stated)
        order = np.argsort(np.concatenate([row, whole]), kind="stable")
        pairs = ((row, whole), (label, self.label[whole]), (amount, weight[whole]))
        rows, labels, amounts = (np.concatenate(pair)[order] for pair in pairs)
        return rows.astype(np.int32), labels.astype(np.int32), amounts

    def without(self, *names: str) -> Self:
        """Return the annotations without the optional columns of these names; without a name, without all of them."""
        return self._with(self.extra.without(names))

    def with_families(self, family: Any) -> Self:
        """Return the annotations with families: a mapping of worker ids, or one entry per worker."""
        given = family if isinstance(family, Mapping) else dict(zip(self.workers.tolist(), family, strict=True))
        found = extra_of({"family": given}, self.worker, self.label, self.workers, self.classes)
        return self._with(replace(self.extra, family=found.family, families=found.families))

    def name_families(self) -> Codes | None:
        """Return a code of each worker's family by name, as in model/prompt; None where names have no such pattern."""
        return name_families(self.workers)

    def _extra_columns(self) -> dict[str, pa.Array]:
        """Return the optional columns that there are, as a table holds them."""
        extra, found = self.extra, dict[str, pa.Array]()
        if extra.probability is not None and len(self.classes) == 2:
            voted = self.label < len(self.classes)
            own = np.full(len(self.label), np.nan)
            own[voted] = extra.probability[voted, self.label[voted]]
            found["probability"] = pa.array(own, mask=np.isnan(own))
        elif extra.probability is not None:
            for name, column in zip(self.classes.tolist(), extra.probability.T, strict=True):
                found[f"{SPREAD}{name}"] = pa.array(column, mask=np.isnan(column))
        if extra.weight is not None:
            found["weight"] = pa.array(extra.weight)
        if extra.order is not None and extra.orders is not None:
            absent = extra.order < 0
            orders = _ids.decode(np.where(absent, 0, extra.order), extra.orders)
            found["order"] = pc.if_else(pa.array(absent), None, orders)
        if extra.family is not None and extra.families is not None:
            found["family"] = _ids.decode(extra.family[self.worker], extra.families)
        return found

    def _with(self, extra: Extra) -> Self:
        changed: Any = self
        made: Self = replace(changed, extra=extra)
        return made


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f" and other.dtype.kind == "f"))


def extra_of(given: Mapping[str, Any], worker: Codes, label: Codes, workers: Ids, classes: Ids) -> Extra:
    """Return the optional columns of rows in any order, checked; `given` holds them by name, None where not given."""
    n, found = len(label), {name: value for name, value in given.items() if value is not None}
    parts: dict[str, Any] = {}
    if "probability" in found:
        parts["probability"] = _distribution(found["probability"], label, len(classes))
    if "weight" in found:
        weight = floats(found["weight"], "weight", n)
        parts["weight"] = np.where(np.isnan(weight), 1.0, weight)
        _check_range(parts["weight"], "weight", np.inf)
    if "order" in found:
        parts["order"], parts["orders"] = encode_stated(_length(found["order"], "order", n), "order")
    if "family" in found:
        parts["family"], parts["families"] = _families(found["family"], worker, workers)
    return Extra(**parts)


def extra_names(present: Sequence[Any]) -> list[Any]:
    """Return the names of the columns that are optional ones, a distribution as one for each class."""
    spread = [name for name in present if isinstance(name, str) and name.startswith(SPREAD) and name != SPREAD]
    return [name for name in EXTRA if list(present).count(name) == 1] + ([] if "probability" in present else spread)


def kept_rows(columns: Mapping[str, Any], kept: Codes | None) -> dict[str, Any]:
    """Return the columns that are given, with the rows that are kept; None: all."""
    given = {name: column for name, column in columns.items() if column is not None}
    if kept is None:
        return given
    some = pa.array(kept)
    for name, column in given.items():
        if not isinstance(column, Mapping):
            given[name] = np.asarray(column)[kept] if np.ndim(column) == 2 else _ids.as_arrow(column, name).take(some)
    return given


def joined_distribution(extra: Mapping[str, Any], label: Any, known: Any, classes: Any) -> tuple[dict[str, Any], Any]:
    """Return the optional columns with those of a distribution as one table, and the classes, which they name too."""
    columns = {name.removeprefix(SPREAD): column for name, column in extra.items() if name.startswith(SPREAD)}
    others = {name: column for name, column in extra.items() if not name.startswith(SPREAD)}
    if not columns:
        return others, classes
    if known is None:
        seen = _ids.encode(label, "label")[1]
        numbers = seen.dtype != object and all(name.lstrip("-").isdigit() for name in columns)
        classes = sorted({*seen.tolist(), *(int(name) if numbers else name for name in columns)})
    names = [str(one) for one in _ids.table_of(classes, "classes").tolist()]
    odd = sorted({*names} ^ {*columns})
    if odd:
        raise ValueError(
            f"there must be one column {SPREAD}<class> for each class, {shorten(names)}; got {shorten(list(columns))}. "
            f"Add {SPREAD}{odd[0]} or rename it, or do not read these columns, with plain=True."
        )
    n = len(next(iter(columns.values())))
    others["probability"] = np.stack([floats(columns[name], SPREAD + name, n) for name in names], axis=1)
    return others, classes


def floats(values: Any, name: str, n: int) -> Floats:
    """Return a column of numbers as float64, NaN where one is missing; texts of numbers are numbers."""
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(np.asarray(values).tolist())
    array = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    try:
        numbers = np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if _ids.is_text(array.type) and pc.all(pc.match_substring_regex(array, r"^\d+,\d+$")).as_py():
            return floats(pc.replace_substring(array, ",", "."), name, n)
        place, odd = next((place, one) for place, one in enumerate(array.to_pylist()) if not _is_number(one))
        fix = f"If it says something else, leave it out with {_plain()}, or rename it."
        raise ValueError(f"{name} must be numbers; got {show(odd)} at {row(place)}. {fix}") from error
    return np.asarray(_length(numbers, name, n))


def _length(values: Any, name: str, n: int) -> Any:
    if len(values) != n:
        raise ValueError(f"{name} must have one entry per annotation, {n}; got {len(values)}.")
    return values


def _check_range(values: Floats, name: str, most: float) -> None:
    odd = np.flatnonzero(~((values >= 0) & (values <= most) & np.isfinite(values)) & ~np.isnan(values))
    if len(odd):
        limits = "at least 0 and finite" if most == np.inf else f"from 0 to {most:g}"
        raise ValueError(
            f"{name} must be {limits}; got {values.flat[odd[0]]:g} at {row(odd[0])} ({len(odd):,} in total). "
            f"If it says something else, leave it out with {_plain()}, or rename it."
        )


def _plain() -> str:
    return argument("plain") if at_command_line() else "plain=True"


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


def _distribution(values: Any, label: Codes, n_classes: int) -> Floats:
    """Return P(class) of every annotation, NaN where it states none: as given, or of its label, the rest even."""
    if np.ndim(values) < 2:
        own = floats(values, "probability", len(label))
        _check_range(own, "probability", 1.0)
        rest = (1 - own) / max(n_classes - 1, 1)
        spread = np.repeat(rest[:, None], n_classes, axis=1)
        voted = label < n_classes
        spread[voted, label[voted]] = own[voted]
        spread[~voted] = np.nan
        return spread
    table = np.array(values, dtype=np.float64)
    if table.shape != (len(label), n_classes):
        raise ValueError(
            f"probability must have shape ({len(label)}, {n_classes}), a column per class; got {table.shape}."
        )
    _check_range(table.ravel(), "probability", 1.0)
    table[np.isnan(table).any(axis=1)] = np.nan
    total = table.sum(axis=1, keepdims=True)
    odd = np.flatnonzero(np.abs(total[:, 0] - 1) > _SUM)
    if len(odd):
        raise ValueError(
            f"the probabilities of an annotation must add up to 1; got {total[odd[0], 0]:.4g} at {row(odd[0])} "
            f"({len(odd):,} in total). Divide them by their sum, or leave classes without one empty."
        )
    return np.asarray(table / total)


def _families(given: Any, worker: Codes, workers: Ids) -> tuple[Codes, Ids]:
    """Return the family of every worker, from a mapping of ids or one entry per annotation; a worker may be alone."""
    names: list[Any] = [None] * len(workers)
    if isinstance(given, Mapping):
        names = [given.get(one) for one in workers.tolist()]
    else:
        codes, table = encode_stated(_length(given, "family", len(worker)), "family")
        of_worker = np.full(len(workers), -1, dtype=np.int32)
        of_worker[worker[codes >= 0]] = codes[codes >= 0]
        odd = np.flatnonzero((codes >= 0) & (of_worker[worker] != codes))
        if len(odd):
            who = worker[odd[0]]
            both = f"{show(table[codes[odd[0]]])} and {show(table[of_worker[who]])}"
            raise ValueError(f"a worker must have one family; got {both} for worker {show(workers[who])}.")
        names = [None if code < 0 else table[code] for code in of_worker.tolist()]
    pairs = zip(names, workers.tolist(), strict=True)
    return _ids.encode([str(own if _ids.is_missing(name) else name) for name, own in pairs], "family")


def encode_stated(values: Any, name: str) -> tuple[Codes, Ids]:
    """Return the code of each id, -1 where there is none, and the ids."""
    column = _ids.as_arrow(values, name)
    absent = _ids.missing_in(column)
    if absent is None:
        return _ids.encode(column, name)
    codes = np.full(len(column), -1, dtype=np.int32)
    stated = column.filter(pa.array(~absent))
    codes[~absent], table = _ids.encode(stated, name) if len(stated) else (codes[:0], np.empty(0, dtype=np.int64))
    return codes, table


def name_families(workers: Ids) -> Codes | None:
    """Return the family of each worker by what its id has before a separator, as in model/prompt; None: no pattern."""
    if workers.dtype != object or len(workers) < 2:
        return None
    for separator in _SEPARATORS:
        parts = [name.partition(separator) for name in workers.tolist()]
        families = [first for first, _, rest in parts if first and rest]
        if 1 <= len(set(families)) < len(families) and len(families) > len(workers) / 2:
            names = [first if rest else first + sign for first, sign, rest in parts]
            return _ids.encode(names, "family")[0]
    return None


def check_whole(annotations: Any, name: str) -> None:
    """Raise where annotations carry weights or probabilities, for what counts every annotation as one whole label."""
    extra = getattr(annotations, "extra", NONE)
    if extra.has_weights:
        got = " and ".join(one for one in ("probability", "weight") if getattr(extra, one) is not None)
        plain = argument("plain") if at_command_line() else "annotations.without()"
        raise ValueError(
            f"{name} counts every annotation as one whole label; got annotations with {got}. Use JudgePanel, "
            f"DawidSkene, IBCC, OneCoin or MajorityVote, or leave them out with {plain}."
        )
