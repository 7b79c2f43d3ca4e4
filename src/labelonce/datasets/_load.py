"""`load`: from the files of a data set to one record."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from labelonce._types import Codes, Ids
from labelonce._validate import check_choice
from labelonce.data._annotations import Duplicates
from labelonce.datasets._catalogue import CATALOGUE, MEDICAL, MEDICAL_QUESTIONS, TRUTH_INFERENCE
from labelonce.datasets._dataset import Dataset
from labelonce.datasets._files import Source, find_root

Images = npt.NDArray[np.uint8]


def names() -> list[str]:
    """Return the names that `load` knows, sorted.

    Examples
    --------
    >>> import labelonce as lo
    >>> "trec" in lo.datasets.names()
    True
    """
    return sorted(CATALOGUE)


def load(
    name: str,
    *,
    root: str | os.PathLike[str] | None = None,
    duplicates: Duplicates = "first",
    images: bool = False,
    question: str | None = None,
) -> Dataset:
    """Return a data set by name.

    Parameters
    ----------
    name : str
        One of `names()`: a folder of the data root, or a set of its folder `truth_inference`.
    root : path, optional
        The folder that holds the data sets' folders. Default: the environment variable LABELONCE_DATA,
        else `../shared/data` seen from the current directory.
    duplicates : {"first", "last", "keep", "error"}
        What becomes of a worker's second label for a task, as in `Annotations.from_arrays`. Repeats exist
        in adult_content, cifar10s, fact_eval, relevance, zencrowd_in and zencrowd_us. The default keeps the first, as
        our reference results do.
    images : bool
        Also decode the images of cifar10, cifar10n, cifar10s, cifar10h_counts, labelme or tiny_imagenet_100 (needs
        Pillow; 3 to 10 s for 60,000). An error for a set without images.
    question : str, optional
        medical_relations_multilabel only, and required there: which of its fourteen yes/no questions.
        Only "CAUSES" and "TREATS" have gold.

    Notes
    -----
    - cifar10n names rows as cifar10 does (training images 0 .. 49,999, then the test images, gold only). Its
      published worker numbers were tested and fail, so its three workers 1, 2, 3 are the columns of the release:
      exchangeable, each a mixture of everybody. Good for three labels a task and one common confusion, useless for
      judging workers.
    - Row i of cifar10s and cifar10h_counts is test image i of cifar10. Both, and cifar10n, take gold from cifar10's
      files.
    - labelme's features are stored as float16 and returned as float32.

    Examples
    --------
    >>> import labelonce as lo
    >>> lo.datasets.load("bluebird")  # doctest: +SKIP
    Dataset('bluebird', 108 tasks, 108 with gold, 2 classes; 4,212 annotations by 39 workers)
    """
    if name not in CATALOGUE:
        raise ValueError(f"name must be one of {', '.join(names())}; got {name!r}.")
    if images and name not in _IMAGES:
        raise ValueError(f"images exist for {', '.join(sorted(_IMAGES))}; got images=True for {name!r}.")
    source = Source(name, find_root(root), duplicates)
    if name == MEDICAL:
        return _load_medical(source, question)
    if question is not None:
        raise ValueError(f"question is for {MEDICAL!r} only; got {question!r} for {name!r}. Leave it out.")
    dataset = _READERS.get(name, _load_crowd)(source)
    return replace(dataset, images=_IMAGES[name](source)) if images else dataset


def _load_crowd(source: Source) -> Dataset:
    """Return a set whose files are all its own: labels, gold, and where there are any, a split."""
    prefix = f"{source.name}_" if source.name in TRUTH_INFERENCE else ""
    raw = source.table(f"{prefix}annotations.parquet")
    table = source.table(f"{prefix}gold.parquet")
    annotations = source.annotations(raw)
    n_tasks = 1 + max(int(annotations.tasks.max()), int(_column(table, "task").max()))
    return Dataset(
        name=source.name,
        gold=_by_task(table, "label", n_tasks, -1),
        classes=CATALOGUE[source.name].classes,
        annotations=annotations,
        split=_by_task(table, "split", n_tasks, "") if "split" in table.column_names else None,
        raw=raw,
    )


def _load_texts(source: Source) -> Dataset:
    dataset = _load_crowd(source)
    return replace(dataset, texts=_by_task(source.table("texts.parquet"), "text", dataset.n_tasks, ""))


def _load_labelme(source: Source) -> Dataset:
    features = source.array("features_vgg16.npz", "x").astype(np.float32)
    return replace(_load_crowd(source), features=features)


def _load_cifar100n(source: Source) -> Dataset:
    dataset = _load_crowd(source)
    coarse = _by_task(source.table("gold.parquet"), "coarse", dataset.n_tasks, -1)
    return replace(dataset, extra={"coarse": coarse})


def _load_medical(source: Source, question: str | None) -> Dataset:
    if question is None:
        raise ValueError(f"{MEDICAL!r} needs a question, one of {', '.join(MEDICAL_QUESTIONS)}; got None.")
    check_choice(question, "question", MEDICAL_QUESTIONS)
    raw, texts, gold = (source.table(f"{file}.parquet") for file in ("annotations_wide", "texts", "gold"))
    n_tasks = len(texts)
    asked = gold.filter(_column(gold, "question") == question)
    extra = {key: _by_task(texts, key, n_tasks, "") for key in ("term1", "term2")}
    extra |= {"sid": _by_task(texts, "sid", n_tasks, -1)}
    extra |= {key: _yes_no(_by_task(asked, key, n_tasks, 0)) for key in ("expert", "baseline")}
    return Dataset(
        name=source.name,
        gold=_yes_no(_by_task(asked, "test_partition", n_tasks, 0)),
        classes=CATALOGUE[source.name].classes,
        annotations=source.annotations(raw, label=question),
        texts=_by_task(texts, "text", n_tasks, ""),
        raw=raw,
        extra=extra,
    )


def _yes_no(signs: Codes) -> Codes:
    """Return class codes for 1 (yes), -1 (no) and 0 (unknown)."""
    return np.where(signs == 0, -1, signs > 0).astype(np.int32)


def _load_cifar10(source: Source) -> Dataset:
    train = [_cifar10_gold(source, file) for file in _CIFAR10_TRAIN]
    test = _cifar10_gold(source, _CIFAR10_TEST)
    split = np.repeat(["train", "test"], [sum(map(len, train)), len(test)])
    gold = np.concatenate([*train, test])
    return Dataset(name=source.name, gold=gold, classes=CATALOGUE[source.name].classes, split=split)


def _load_cifar10n(source: Source) -> Dataset:
    raw = source.table("annotations.parquet").drop_columns(["worker_as_published"])
    annotations = source.annotations(raw, worker="slot")
    images = _load_cifar10(replace(source, name="cifar10"))
    return replace(images, name=source.name, annotations=annotations, raw=raw)


def _load_cifar10s(source: Source) -> Dataset:
    raw = source.table("annotations.parquet")
    return Dataset(
        name=source.name,
        gold=_cifar10_gold(replace(source, name="cifar10"), _CIFAR10_TEST),
        classes=CATALOGUE[source.name].classes,
        annotations=source.annotations(raw),
        raw=raw,
    )


def _load_cifar10h(source: Source) -> Dataset:
    return Dataset(
        name=source.name,
        gold=_cifar10_gold(replace(source, name="cifar10"), _CIFAR10_TEST),
        classes=CATALOGUE[source.name].classes,
        extra={"counts": source.array("cifar10h_counts.npz", "counts")},
    )


def _load_tiny(source: Source) -> Dataset:
    train, test = (source.array(file, "labels").astype(np.int32) for file in _TINY)
    described = json.loads(source.path("classes.json").read_text(encoding="utf-8"))
    return Dataset(
        name=source.name,
        gold=np.concatenate([train, test]),
        classes=tuple(described["names"]),
        split=np.repeat(["train", "test"], [len(train), len(test)]),
        extra={"wnids": np.array(described["wnids"], dtype=object)},
    )


def _cifar10_gold(cifar10: Source, file: str) -> Codes:
    return cifar10.array(file, "labels").astype(np.int32)


def _all_cifar10_images(source: Source) -> Images:
    cifar10 = replace(source, name="cifar10")
    return np.concatenate([cifar10.images(file, 32) for file in (*_CIFAR10_TRAIN, _CIFAR10_TEST)])


def _test_cifar10_images(source: Source) -> Images:
    return replace(source, name="cifar10").images(_CIFAR10_TEST, 32)


def _by_task(table: pa.Table, column: str, n_tasks: int, absent: int | str) -> Ids:
    """Return a column with row i for task i, `absent` for tasks that the table does not have."""
    dtype = object if isinstance(absent, str) else np.int32
    values = np.full(n_tasks, absent, dtype=dtype)
    values[_column(table, "task")] = _column(table, column)
    return values


def _column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    return np.asarray(table.column(name).to_numpy())


_CIFAR10_TRAIN = ("cifar10_train_0.npz", "cifar10_train_1.npz")
_CIFAR10_TEST = "cifar10_test.npz"
_TINY = ("tiny100_train.npz", "tiny100_test.npz")

_READERS: dict[str, Callable[[Source], Dataset]] = {
    "amazon_isbook": _load_texts,
    "cifar10": _load_cifar10,
    "cifar100n": _load_cifar100n,
    "cifar10h_counts": _load_cifar10h,
    "cifar10n": _load_cifar10n,
    "cifar10s": _load_cifar10s,
    "labelme": _load_labelme,
    "sentiment_polarity": _load_texts,
    "tiny_imagenet_100": _load_tiny,
}

_IMAGES: dict[str, Callable[[Source], Images]] = {
    "cifar10": _all_cifar10_images,
    "cifar10h_counts": _test_cifar10_images,
    "cifar10n": _all_cifar10_images,
    "cifar10s": _test_cifar10_images,
    "labelme": lambda source: source.images("images64.npz", 64),
    "tiny_imagenet_100": lambda source: np.concatenate([source.images(file, 32) for file in _TINY]),
}
