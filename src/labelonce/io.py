"""Files of annotations in, tables out: CSV, TSV, Parquet, JSON lines, Arrow, and the formats of other tools."""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from labelonce._messages import show
from labelonce._types import GROUPINGS, MULTIPLE, TOOLS, Duplicates, Missing
from labelonce._validate import check_choice
from labelonce.data import Annotations, LeftOutWarning, _ids, check_gold, check_once, extra_names, key
from labelonce.files import (
    File,
    as_table,
    atomic_stream,
    column_names,
    give_back_memory,
    locate,
    naming,
    read_columns,
    stream_of_ids,
    write_table,
)
from labelonce.formats import (
    Fields,
    Paths,
    Relabel,
    listed,
    new_names,
    read_part,
    read_verdict_files,
    to_gold,
    together,
)
from labelonce.formats import _registry as tools
from labelonce.formats import read_work as work_in
from labelonce.workers import read_groups

__all__ = [
    "check_target",
    "detect_format",
    "read_annotations",
    "read_batches",
    "read_class_groups",
    "read_gold",
    "read_verdicts",
    "read_work",
    "write",
]


def read_annotations(
    path: Paths,
    *,
    format: str | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    classes: Any = None,
    answers: Any = None,
    duplicates: Duplicates = "error",
    missing: Missing = "error",
    relabel: Relabel | None = None,
    normalise: bool = False,
    rejected: str | None = None,
    multiple: str | None = None,
    plain: bool = False,
    progress: bool | None = None,
) -> Annotations:
    r"""Return the annotations in three columns of a file, or in the export of a labelling tool; or of several files.

    Parameters
    ----------
    path : path or sequence of paths
        Files that end in .csv, .tsv, .xlsx, .parquet, .pq, .jsonl, .ndjson, .arrow, .feather, .json or .npy; the text
        formats also with .gz or .zst behind. A pattern such as "batch_*.csv" stands for the files that match it, a
        folder for the files in it; a folder of nothing but Parquet, also in folders such as day=7, is one table.
        Addresses such as "s3://bucket/labels.parquet" are read through the file systems of pyarrow, else of fsspec.
        Several files may differ in format. Rows that are in two of them are counted once, which a
        `data.LeftOutWarning` says.
    format : {"csv", "tsv", "parquet", "jsonl", "arrow", "label-studio", "mturk", "toloka", "prodigy", "matrix"}, \
            optional
        The format where the suffix and the first line do not tell. The compression is still read off the
        suffix.
    task, worker, label : str, optional
        The names of the columns, by default task, worker and label; in a tool's export the field that holds
        the id, by default the tool's own. `label` names the question where the export holds several.
        Of several files, one without such a column may have the default one.
    classes, answers, duplicates, missing
        As in `Annotations.from_arrays`.
    relabel : mapping or path, optional
        New names of labels, None for those to be left out; or a table whose first two columns are the old names and the
        new ones, empty for those to be left out.
    normalise : bool
        Give one spelling to labels that differ only in case, blanks and punctuation, after `relabel`. A warning says
        what was merged.
    rejected : {"drop", "keep"}, optional
        Whether to keep answers that were rejected by the requester, or cancelled by the worker, in a tool's
        export. Dropped ones are counted in a `data.LeftOutWarning`, as are skipped and empty ones.
    multiple : {"error", "join", "split"}, optional
        What to do with an answer of several labels in a tool's export: raise, make every set of labels a
        class such as "cat|dog", or ask yes or no of every label, which makes tasks such as "17|cat".
    plain : bool
        Do not read the optional columns of a table: `probability` (or `probability_<class>`, one for each class),
        `weight`, `order` and `family`, see `Annotations`.
    progress : bool, optional
        Show a progress bar on stderr. Default: on a terminal, for about a million rows or more.

    Notes
    -----
    CSV and TSV do not tell numbers from strings. A column becomes integers if every value in it is
    written as Python writes an integer of 64 bits; one "007", "+1" or "1.0" keeps the whole column
    strings. An empty cell, quoted or not, is a missing value. Commas, semicolons, tabs or vertical bars
    between the cells are recognised, as are UTF-16 and, with a warning, Windows-1252. Of a workbook the first
    visible sheet is read; this needs openpyxl (`pip install 'labelonce[excel]'`). Messages count the rows of
    these files as a spreadsheet does: the header is row 1.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.csv")
    ...     _ = path.write_text("task,worker,label\n1,ann,cat\n1,bob,dog\n2,bob,dog\n")
    ...     read_annotations(path)
    Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
    """
    files = [tools.find_labels(one, format) for one in listed(path)]
    in_tools = any(file.format in TOOLS for file in files)
    check_choice(multiple or "error", "multiple", MULTIPLE)
    if (rejected or multiple) and not in_tools:
        raise ValueError(
            f"{files[0]}: rejected and multiple are for the exports of tools; got a {files[0].format} file."
        )
    reading: Any = {"several": len(files) > 1, "missing": missing, "progress": progress, "plain": plain}
    reading["tool"] = {"rejected": rejected, "multiple": multiple}
    parts = [read_part(file, Fields(task, worker, label), **reading) for file in files]
    names = None if relabel is None else new_names(relabel, [part.columns[2] for part in parts])
    declared: Any = {"classes": classes, "answers": answers, "duplicates": duplicates}
    annotations = together(parts, **declared, relabel=names, normalise=normalise)
    give_back_memory()
    return annotations


def read_verdicts(
    path: Paths,
    *,
    format: str | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    classes: Any = None,
    swap: Sequence[Any] | None = None,
    duplicates: Duplicates = "keep",
    missing: Missing = "error",
) -> Annotations:
    r"""Return the verdicts of language models, in tables with any column names, for `JudgePanel`.

    A row is one verdict. The worker is model/prompt and its family the model; a log-probability becomes a
    probability. Refusals, errors and empty verdicts are answers that are no class. Pairwise judgments of FastChat are
    read as well.

    Parameters
    ----------
    path, format, missing
        As in `read_annotations`; tables only.
    task, worker, label : str, optional
        The names of the columns. Default: those that evaluation tools use, such as item, model (and prompt), answer.
        Columns such as logprob, probability, order, swapped, weight and family are found by their names.
    classes : column, optional
        The classes; any other verdict is an answer that is no class. Default: all verdicts but refusals.
    swap : pair of labels, optional
        Labels that name the place where a choice was shown, such as A and B: they trade places in all orders but
        the first, so that each names the same choice everywhere. Default: labels name the choices already.
    duplicates : {"keep", "error", "first", "last"}
        What to do with a judge's further verdicts on an item in the same order. Kept, they show how consistent it is.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> line = '{"model": "gpt", "prompt": "brief", "item": %d, "answer": "%s", "logprob": -0.1}\n'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "verdicts.jsonl")
    ...     _ = path.write_text(line % (1, "good") + line % (2, "bad") + line % (3, "refusal"))
    ...     verdicts = read_verdicts(path)
    >>> verdicts.workers, verdicts.classes, verdicts.families
    (array(['gpt/brief'], dtype=object), array(['bad', 'good'], dtype=object), array(['gpt'], dtype=object))
    """
    files = [tools.find_labels(one, format) for one in listed(path)]
    odd = next((file for file in files if file.format in TOOLS), None)
    if odd is not None:
        raise ValueError(f"{odd} must be a table of verdicts; got an export in format {odd.format!r}.")
    columns: Any = {"task": task, "worker": worker, "label": label}
    return read_verdict_files(files, classes=classes, swap=swap, duplicates=duplicates, missing=missing, **columns)


def read_gold(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    task: str | None = None,
    label: str | None = None,
    multiple: str | None = None,
    relabel: Relabel | None = None,
    normalise: bool = False,
    annotations: Annotations | None = None,
) -> dict[Any, Any]:
    r"""Return the known true labels in a file by task, for the `gold` of an aggregator.

    Parameters
    ----------
    path, format, task, label, multiple
        As in `read_annotations`. Toloka's control tasks and Label Studio's ground truths are gold; any table
        may hold it in columns task and label.
    relabel, normalise
        As in `read_annotations`; the spellings that stand are those of the annotations.
    annotations : Annotations, optional
        Those that the gold is for: a task or a class that they do not have is an error that names the file. Ids that
        are text there are text here, too.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "gold.csv")
    ...     _ = path.write_text("task,label\n1,cat\n2,dog\n")
    ...     read_gold(path)
    {1: 'cat', 2: 'dog'}
    """
    file = tools.find_labels(path, format, hint=False)
    with naming(file):
        if file.format in TOOLS:
            check_choice(multiple or "error", "multiple", MULTIPLE)
            gold = to_gold(tools.read(file, Fields(task, None, label)), multiple=multiple or "error")
        else:
            columns = read_columns(file, {"task": task or "task", "label": label or "label"})
            pairs = zip(columns, ("task", "label"), strict=True)
            tasks, labels = (_ids.column_of(column, name).tolist() for column, name in pairs)
            check_once(tasks)
            gold = dict(zip(tasks, labels, strict=True))
        if relabel is not None:
            new = {str(old): name for old, name in new_names(relabel).items()}
            gold = {one: name for one, label in gold.items() if (name := new.get(str(label), label)) is not None}
        if annotations is not None:
            gold = _as_given(gold, annotations, normalise=normalise)
            check_gold(gold, annotations)
        return gold


def read_work(
    path: Paths, *, format: str | None = None, task: str | None = None, worker: str | None = None
) -> pa.Table | None:
    """Return how long each label took, what was paid for it, and when it was given; None where no file knows it.

    The table has the columns task and worker as text, and those of seconds, pay and time (seconds since 1970) that a
    file knows. The columns of MTurk, Toloka, Label Studio and of labelonce's service are recognised; in other tables
    they are called seconds, pay and time. For `labelonce.write_report`.
    """
    return work_in([tools.find_labels(one, format) for one in listed(path)], task=task, worker=worker)


def _as_given(gold: dict[Any, Any], annotations: Annotations, *, normalise: bool) -> dict[Any, Any]:
    """Return gold with ids as text where those of the annotations are, and if asked to, with their spellings."""
    if annotations.tasks.dtype == object:
        gold = {str(task): label for task, label in gold.items()}
    if annotations.classes.dtype == object:
        gold = {task: str(label) for task, label in gold.items()}
    spelled = {key(str(name)): name for name in annotations.classes.tolist()} if normalise else {}
    return {task: spelled.get(key(str(label)), label) for task, label in gold.items()}


def read_class_groups(path: str | os.PathLike[str], annotations: Annotations) -> Any:
    r"""Return the pairs of a class and its group in a file, for `workers.Grouped`.

    Parameters
    ----------
    path : path
        A table with the columns class and group. The words "auto" and "taxonomy", which need no file, are returned as
        they are.
    annotations : Annotations
        Those that the groups are for. Classes that nobody gave are left out, with a warning; a class in two groups and
        one in none are errors that name the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> ann = Annotations.from_arrays([1, 2], ["ann", "bob"], ["beagle", "tabby"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "groups.csv")
    ...     _ = path.write_text("class,group\nbeagle,dog\ntabby,cat\n")
    ...     read_class_groups(path, ann)
    [('beagle', 'dog'), ('tabby', 'cat')]
    """
    if path in GROUPINGS:
        if path == "taxonomy":
            read_groups(path, annotations.classes)  # which says so where the classes are no paths
        return path
    file = locate(path)
    with naming(file):
        columns = read_columns(file, {"class": "class", "group": "group"})
        given, names = (_ids.column_of(column, name) for column, name in zip(columns, ("class", "group"), strict=True))
        _ids.check_same_kind(given, "class", annotations.classes)
        known = _ids.lookup(given, annotations.classes) >= 0
        pairs = list(zip(given[known].tolist(), names[known].tolist(), strict=True))
        read_groups(pairs, annotations.classes)
    if not known.all():
        left_out = int((~known).sum())
        sentence = f"{path}: {left_out:,} of {len(known):,} classes are left out, because nobody gave them, such as "
        warnings.warn(LeftOutWarning(f"{sentence}{show(given[~known][0])}.", {"never given": left_out}), stacklevel=2)
    return pairs


def read_batches(
    path: str | os.PathLike[str], *, task: str = "task", worker: str = "worker", label: str = "label"
) -> Iterator[pa.RecordBatch]:
    """Yield the columns task, worker and label of a table in batches, for files larger than memory.

    A table is a file as in `read_annotations`, or a folder of Parquet files, here or at an address.
    """
    file = tools.find_labels(path)
    if file.format in TOOLS:
        raise ValueError(f"{file} must be a table to be read in batches; got an export in format {file.format!r}.")
    with naming(file):
        if more := extra_names(column_names(file)):
            said = f"{file}: the columns {', '.join(more)} are not read in batches: every annotation counts as one"
            warnings.warn(f"{said} whole label.", stacklevel=2)
        yield from stream_of_ids(file, {"task": task, "worker": worker, "label": label})


def write(source: Any, path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> None:
    """Write a table to a file that appears whole or not at all.

    Parameters
    ----------
    source : Annotations, fitted object or pyarrow.Table
        A table, or anything whose `to_frame()` is one.
    path, format
        As in `read_annotations`, but not .npy. An earlier file of that name is replaced. "label-studio" makes
        predictions with scores of a fitted object's labels, "prodigy" choices to review, "toloka" control tasks; these,
        "mturk" and "matrix" hold annotations as well.
    **options
        For "label-studio": `like`, the path of the export that the annotations came from, so that every task
        keeps its data and its id and the answers go to the same control; `control`, the path of an export with
        answers to that control, where `like` has none; `task`, `label` and `multiple` as they were read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> ann = Annotations.from_arrays(["a", "b"], ["ann", "bob"], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.jsonl")
    ...     write(ann, path)
    ...     print(path.read_text().splitlines()[0])
    ...     read_annotations(path) == ann
    {"task": "a", "worker": "ann", "label": 0}
    True
    """
    file = _target(path, format)
    table = as_table(source, file)
    with naming(file, may="write"), atomic_stream(file) as sink:
        if file.format in TOOLS:
            tools.write(table, sink, file.format, **_write_options(**options))
        elif options:
            raise TypeError(f"{', '.join(options)} must be left out; got format {file.format!r}.")
        else:
            write_table(table, sink, file.format)


def _write_options(
    like: str | os.PathLike[str] | None = None,
    control: str | os.PathLike[str] | None = None,
    task: str | None = None,
    label: str | None = None,
    multiple: Any = None,
) -> dict[str, Any]:
    """Return the options of a tool's writer, those that were given."""
    options = {
        "like": None if like is None else locate(like, "label-studio"),
        "control": None if control is None else locate(control, "label-studio"),
        "fields": Fields(task, None, label) if task or label else None,
        "multiple": multiple,
    }
    return {name: value for name, value in options.items() if value is not None}


def detect_format(path: str | os.PathLike[str], *, format: str | None = None, reading: bool = True) -> str:
    """Return the name of the format that a file is read in, or with `reading` False written in."""
    return (tools.find_labels if reading else _target)(path, format).format


def check_target(path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Raise the errors of `write` in advance, before the results are computed."""
    file = _target(path, format)
    if not file.path.parent.is_dir():
        raise FileNotFoundError(f"{path}: {file.path.parent} must be a folder; got none. Make it first.")


def _target(path: str | os.PathLike[str], format: str | None) -> File:
    file = locate(path, format)
    if file.codec == "xlsx":
        raise ValueError(f"{path}: workbooks are read, and not written. Write .csv, which spreadsheet programs open.")
    tools.check_target(file)
    return file
