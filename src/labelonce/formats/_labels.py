"""The labels in one file or several, of any formats, as the three columns of annotations."""

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import rows_called, show
from labelonce._types import TOOLS, Codes, Mask
from labelonce._validate import check_columns
from labelonce.data import (
    NAMES,
    REPEATED,
    Annotations,
    LeftOutWarning,
    Renaming,
    _ids,
    annotations_of,
    encode_stated,
    extra_names,
    kept_rows,
    present_rows,
    renamed_column,
    renaming,
)
from labelonce.files import (
    SUFFIXES,
    ColumnError,
    File,
    column_names,
    locate,
    naming,
    places_of,
    read_columns,
    read_table,
    row_in,
    split_codec,
)
from labelonce.formats import _registry as tools
from labelonce.formats._answers import Fields, integers_if_all, votes_and_gold, warn_left_out
from labelonce.formats._shape import advice_on_repeats, advised

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Relabel = Mapping[Any, Any] | str | os.PathLike[str]


def listed(path: Any) -> list[str | os.PathLike[str]]:
    """Return the files that one path or several stand for, see `places_of`; none at all is an error."""
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    paths = [place for one in given for place in _tables_in(one)]
    if not paths:
        raise ValueError("path must name at least one file; got none.")
    return paths


def _tables_in(path: Any) -> list[Any]:
    places = places_of(path)
    odd = [one for one in places if one is not path and split_codec(one)[0] not in SUFFIXES]
    if odd:
        raise ValueError(
            f"{path}: Is a directory. Name a file in it, or a pattern such as {path}/*.csv: it also holds "
            f"{odd[0]}, which is no table."
            if os.path.isdir(path)
            else f"{path} must match tables only; got {odd[0]}. Give a narrower pattern."
        )
    return places


def new_names(relabel: Relabel, given: Sequence[Any] | None = None) -> Mapping[Any, Any]:
    """Return new names of labels: a mapping as it is, or the first two columns of a table, None for an empty new name.

    The header is also a row, unless the columns of labels `given` are known and none has what stands first in it.
    """
    if isinstance(relabel, Mapping):
        return relabel
    file = locate(relabel)
    with naming(file):
        table = read_table(file)
        if table.num_columns < 2:
            raise ValueError(f"the table must have two columns, labels and new names; got {table.column_names}.")
        rows = list(zip(*(table.column(place).to_pylist() for place in (0, 1)), strict=True))
        if given is None or any(table.column_names[0] in map(str, _ids.encode(one, "label")[1]) for one in given):
            rows.insert(0, tuple(table.column_names[:2]))
        twice = next((old for old, times in Counter(old for old, _ in rows).items() if times > 1), None)
        if twice is not None:
            raise ValueError(f"a label must have one new name; got {show(twice)} in several rows. Keep one of them.")
        renamed = {old: new for old, new in rows if old not in (None, "")}
        named = {old: str(new) for old, new in renamed.items() if new not in (None, "")}
        return dict.fromkeys(renamed) | dict(zip(named, integers_if_all(list(named.values())), strict=True))


@dataclass
class Part:
    """The labels of one file: its columns, their names, and the row numbers if rows were left out.

    `extra` are the optional columns that it has, by name.
    """

    file: File
    columns: list[Any]
    names: tuple[str, ...]
    rows: Codes | None = None
    gold: dict[Any, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


def read_part(
    file: File, fields: Fields, *, several: bool, missing: str, tool: dict[str, Any], progress: Any, plain: bool = False
) -> Part:
    """Return the task, worker and label of every annotation in a file, one of `several` or not.

    `tool` has the options for the export of a tool, whether rejected answers count and what several labels mean;
    `plain`: the optional columns are not read.
    """
    with naming(file):
        if file.format in TOOLS:
            found = tools.read(file, fields, tool["rejected"])
            rows, gold = votes_and_gold(found, tool["multiple"] or "error")
            warn_left_out(found, len(rows), str(file.path))
            names = tuple(name or role for name, role in zip(fields, NAMES, strict=False))
            return Part(file, [list(column) for column in zip(*rows, strict=True)], names, gold=gold)
        wanted = _column_roles(file, dict(zip(NAMES, fields, strict=False)), several=several)
        more = [] if plain else [name for name in _optional(file) if name not in wanted.values()]
        roles = wanted | dict(zip(more, more, strict=True))
        try:
            columns = dict(zip(roles, read_columns(file, roles, progress), strict=True))
        except ColumnError as error:
            raise ValueError(advised(file, wanted, str(error))) from error
        extra = {name: columns.pop(name) for name in more}
        check_columns(**columns)
        found_columns, kept = present_rows(missing, str(file.path), **columns)
        return Part(file, found_columns, tuple(wanted.values()), kept, extra=kept_rows(extra, kept))


def _optional(file: File) -> list[str]:
    """Return the names of the optional columns of a table; none if its start cannot be read; the error comes later."""
    try:
        return extra_names(column_names(file))
    except (ValueError, pa.ArrowException):
        return []


def _column_roles(file: File, wanted: Mapping[str, str | None], *, several: bool) -> dict[str, str]:
    """Return the names of the columns that play roles; of several files, one without a name may have the usual one."""
    present = column_names(file) if several else []
    found = {}
    for role, name in wanted.items():
        usual = name is not None and name not in present and role in present
        if usual:
            warnings.warn(f"{file.path} has no column {name!r}; its column {role!r} is read.", stacklevel=3)
        found[role] = role if usual else name or role
    return found


def together(
    parts: Sequence[Part], *, classes: Any, answers: Any, duplicates: Any, relabel: Any, normalise: bool
) -> Annotations:
    """Return the labels of all parts as annotations, as `Annotations.from_arrays` does.

    Rows that are also in an earlier file are counted once. Tasks and classes that only the gold of an export has are
    there too, without annotations.
    """
    rows = Rows(parts)
    with rows.named():
        columns = [joined(parts, place, role) for place, role in enumerate(NAMES)]
        gold = {task: label for part in parts for task, label in part.gold.items()}
        more = list(dict.fromkeys(name for part in parts for name in part.extra))
        columns += [_joined_extra(parts, name) for name in more]
        rename = renaming(relabel, columns[2], classes if answers is None else answers, normalise=normalise)
        if rename is not None:
            columns = rows.renamed(columns, 2, rename)
            gold = {task: new for task, label in gold.items() if (new := rename(label)) is not None}
        if len(parts) > 1:
            order = columns[3 + more.index("order")] if "order" in more else None
            columns = rows.keep(columns, rows.counted_once(columns[:3], order))
        kinds = [str if _ids.holds_text(columns[place]) else (lambda one: one) for place in (0, 2)]
        gold = {kinds[0](task): kinds[1](label) for task, label in gold.items()}
        if gold and classes is None and answers is None:
            seen = _ids.encode(columns[2], "label")[1].tolist()
            classes = None if set(gold.values()) <= set(seen) else sorted({*seen, *gold.values()})
        declared = {"classes": classes, "answers": answers, "duplicates": duplicates}
        try:
            extra = dict(zip(more, columns[3:], strict=True))
            annotations = annotations_of(*columns[:3], **declared, names=_called(parts), extra=extra)
        except ValueError as error:
            if not str(error).startswith(REPEATED):
                raise
            advice = next(filter(None, (advice_on_repeats(part.file, *part.names) for part in parts)), "")
            raise ValueError(f"{error} {advice}".strip()) from error
        unseen = set(gold) - set(annotations.tasks.tolist()) if gold else ()
        if unseen:
            annotations = annotations.align([*annotations.tasks.tolist(), *(one for one in gold if one in unseen)])
        return annotations


def _called(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return what the columns are called in the first file where they have names of their own."""
    names = zip(*(part.names for part in parts), strict=True)
    return tuple(next((one for one in given if one != role), role) for role, given in zip(NAMES, names, strict=True))


def joined(parts: Sequence[Part], place: int, role: str) -> pa.Array:
    """Return a column of several files as one: as text if some have numbers and some text, with a warning."""
    columns = [(str(part.file), part.columns[place]) for part in parts]
    arrays = [_ids.as_arrow(column, role) for _, column in columns]
    if len(arrays) == 1:
        return arrays[0]
    text = [_ids.holds_text(array) for array in arrays]
    if not any(text):
        return pa.chunked_array([_ids.plain(array).cast(pa.int64()) for array in arrays]).combine_chunks()
    if not all(text):
        numbers, texts = (columns[text.index(one)][0] for one in (False, True))
        warnings.warn(
            f"{role} ids are numbers in {numbers} and text in {texts}: they are matched as text, 7 with '7'.",
            stacklevel=4,
        )
    kind = pa.dictionary(pa.int32(), pa.large_string())
    chunks = [_ids.plain(array).cast(pa.large_string()).dictionary_encode().cast(kind) for array in arrays]
    return pa.chunked_array(chunks).unify_dictionaries().combine_chunks()


def _joined_extra(parts: Sequence[Part], name: str) -> pa.Array:
    """Return an optional column of several files as one, missing where a file does not have it."""
    chunks = []
    for part in parts:
        column = part.extra.get(name, pa.nulls(len(part.columns[0])))
        chunks.append(column if len(parts) == 1 else _ids.plain(column).cast(pa.string()))
    return pa.chunked_array(chunks).combine_chunks()


class Rows:
    """The rows of each part that are kept, None: all."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = parts
        self.start = np.cumsum([0, *(len(one.columns[0]) for one in parts)])
        self.left: Any = None

    def keep(self, columns: list[Any], kept: Mask) -> list[Any]:
        if kept.all():
            return columns
        self.left = np.flatnonzero(kept) if self.left is None else self.left[kept]
        return [column.filter(pa.array(kept)) for column in columns]

    def renamed(self, columns: list[Any], place: int, rename: Renaming) -> list[Any]:
        """Return the columns with one under other names, without the rows that get none, with a warning."""
        column = renamed_column(columns[place], rename)
        if column.null_count:
            sentence = f"{column.null_count:,} of {len(column):,} annotations are left out, because their label has no"
            counts = {"without a new label": column.null_count}
            warnings.warn(LeftOutWarning(f"{sentence} new name.", counts), stacklevel=4)
        return self.keep([*columns[:place], column, *columns[place + 1 :]], np.asarray(column.is_valid()))

    def counted_once(self, columns: list[Any], order: Any = None) -> Mask:
        """Return which rows are not in an earlier file too, and warn of those that are."""
        row = np.arange(len(columns[0])) if self.left is None else self.left
        part = np.searchsorted(self.start, row, side="right") - 1
        key = np.zeros(len(row), dtype=np.int64) if order is None else encode_stated(order, "order")[0].astype(np.int64)
        for column in columns:
            codes, ids = _ids.encode(column, "row")
            key = key * len(ids) + codes
        _, first, which = np.unique(key, return_index=True, return_inverse=True)  # rows are in the order of the files
        again: Mask = part > part[first[which]]
        for number in np.unique(part[again]).tolist():
            n, total = int((part[again] == number).sum()), int((part == number).sum())
            sentence = f"{self.parts[number].file}: {n:,} of its {total:,} annotations are in an earlier file too, and "
            warnings.warn(LeftOutWarning(f"{sentence}counted once.", {"in an earlier file too": n}), stacklevel=4)
        return ~again

    @contextmanager
    def named(self) -> Iterator[None]:
        """Put the names of the files in front of errors, which count the rows of the files."""
        if len(self.parts) == 1:
            with naming(self.parts[0].file), rows_called(self.called):
                yield
            return
        try:
            with rows_called(self.called):
                yield
        except (ValueError, TypeError) as error:
            files = ", ".join(str(one.file) for one in self.parts)
            raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{files}: {error}") from error

    def called(self, number: int) -> str:
        row = number if self.left is None else self.left[number]
        part = int(np.searchsorted(self.start, row, side="right")) - 1
        file, rows, place = self.parts[part].file, self.parts[part].rows, int(row - self.start[part])
        place = place if rows is None else int(rows[place])
        name = f"annotation {place + 1}" if file.format in TOOLS else row_in(file)(place)
        return f"{name} of {file}" if len(self.parts) > 1 else name
