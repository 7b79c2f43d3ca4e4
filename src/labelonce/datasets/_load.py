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

from labelonce._types import Codes, Duplicates, Ids
from labelonce._validate import check_choice
from labelonce.datasets._catalogue import CATALOGUE, CIFAR10_TEST, CIFAR10_TRAIN, MEDICAL, QUESTIONS, TINY, VIDEO
from labelonce.datasets._dataset import Dataset
from labelonce.datasets._files import Source, find_root

Images = npt.NDArray[np.uint8]


def names(*, shipped: bool = False) -> list[str]:
    """Return the names that `load` knows, sorted; with `shipped` only those that come with the package.

    Examples
    --------
    >>> import labelonce as lo
    >>> "trec" in lo.datasets.names()
    True
    >>> lo.datasets.names(shipped=True)
    ['bluebird', 'crowdtruth_video', 'pandalm']
    """
    return sorted(name for name, entry in CATALOGUE.items() if entry.shipped or not shipped)


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
        One of `names()`. "bluebird", "crowdtruth_video" and "pandalm" come with the package; the others are read
        from a data folder that you prepare, laid out as docs/datasets.md says.
    root : path, optional
        The data folder. Default: the package for the three sets that come with it, else the environment variable
        LABELONCE_DATA.
    duplicates : {"first", "last", "keep", "error"}
        What becomes of a worker's second label for a task, as in `Annotations.from_arrays`. Repeats exist
        in adult_content, cifar10s, fact_eval, relevance, zencrowd_in and zencrowd_us. The default keeps the first, as
        our reference results do.
    images : bool
        Also decode the images of cifar10, cifar10n, cifar10s, cifar10h_counts, labelme or tiny_imagenet_100 (needs
        Pillow; 3 to 10 s for 60,000). An error for a set without images.
    question : str, optional
        medical_relations_multilabel and crowdtruth_video only, and required there: which of their fourteen and 27
        yes/no questions. Gold exists for "CAUSES" and "TREATS" of the former alone.

    Notes
    -----
    - cifar10n names rows as cifar10 does (training images 0 .. 49,999, then the test images, gold only). Its
      published worker numbers were tested and fail, so its three workers 1, 2, 3 are the columns of the release:
      exchangeable, each a mixture of everybody. Good for three labels per task and one common confusion, useless for
      judging workers.
    - Row i of cifar10s and cifar10h_counts is test image i of cifar10. Both, and cifar10n, take gold from cifar10's
      files.
    - labelme's features are stored as float16 and returned as float32.
    - pandalm's workers are three people and two language models, which say which of two answers is better; 25 verdicts
      of "gpt35" that name neither are left out. It has no gold: 879 of 999 pairs are unanimous among the people, since
      its authors removed those with large disagreement.

    Examples
    --------
    >>> import labelonce as lo
    >>> lo.datasets.load("bluebird")
    Dataset('bluebird', 108 tasks, 108 with gold, 2 classes; 4,212 annotations by 39 workers)
    """
    if name not in CATALOGUE:
        raise ValueError(f"name must be one of {', '.join(names())}; got {name!r}.")
    if images and name not in _IMAGES:
        raise ValueError(f"images exist for {', '.join(sorted(_IMAGES))}; got images=True for {name!r}.")
    if name in QUESTIONS:
        question = _check_question(name, question)
    elif question is not None:
        raise ValueError(
            f"question is for {MEDICAL!r} and {VIDEO!r} only; got {question!r} for {name!r}. Leave it out."
        )
    source = Source(name, find_root(name, root), duplicates)
    if question is not None:
        return _load_medical(source, question) if name == MEDICAL else _load_video(source, question)
    dataset = _READERS.get(name, _load_crowd)(source)
    return replace(dataset, images=_IMAGES[name](source)) if images else dataset


def _check_question(name: str, question: str | None) -> str:
    if question is None:
        raise ValueError(f"{name!r} needs a question, one of {', '.join(QUESTIONS[name])}; got None.")
    check_choice(question, "question", QUESTIONS[name])
    return question


def _load_crowd(source: Source) -> Dataset:
    """Return a set whose files are labels, gold, and where there are any, others."""
    raw, table = (source.table(file) for file in CATALOGUE[source.name].files[:2])
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
    return replace(dataset, texts=_by_task(source.table(f"{source.name}/texts.parquet"), "text", dataset.n_tasks, ""))


def _load_labelme(source: Source) -> Dataset:
    features = source.array("labelme/features_vgg16.npz", "x").astype(np.float32)
    return replace(_load_crowd(source), features=features)


def _load_cifar100n(source: Source) -> Dataset:
    dataset = _load_crowd(source)
    coarse = _by_task(source.table("cifar100n/gold.parquet"), "coarse", dataset.n_tasks, -1)
    return replace(dataset, extra={"coarse": coarse})


def _load_video(source: Source, question: str) -> Dataset:
    raw = source.table(f"{VIDEO}/annotations_wide.parquet")
    annotations = source.annotations(raw, label=question)
    unknown = np.full(1 + int(annotations.tasks.max()), -1, dtype=np.int32)
    return Dataset(name=VIDEO, gold=unknown, classes=CATALOGUE[VIDEO].classes, annotations=annotations, raw=raw)


def _load_pandalm(source: Source) -> Dataset:
    """Return the verdicts in long form; one that is none of the three classes is no label."""
    raw = source.table("pandalm/verdicts.parquet")
    codes = {"0": 0, "1": 1, "2": 2, "Tie": 0}
    rows = [
        (task, worker, codes[str(verdict)])
        for worker in ("annotator1", "annotator2", "annotator3", "gpt35", "pandalm7b")
        for task, verdict in zip(raw["idx"].to_pylist(), raw[worker].to_pylist(), strict=True)
        if str(verdict) in codes
    ]
    long = pa.table(dict(zip(("task", "worker", "label"), map(list, zip(*rows, strict=True)), strict=True)))
    unknown = np.full(len(raw), -1, dtype=np.int32)
    classes = CATALOGUE["pandalm"].classes
    return Dataset(name="pandalm", gold=unknown, classes=classes, annotations=source.annotations(long), raw=raw)


def _load_medical(source: Source, question: str) -> Dataset:
    raw, gold, texts = (source.table(file) for file in CATALOGUE[MEDICAL].files)
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
    train = [_cifar10_gold(source, file) for file in CIFAR10_TRAIN]
    test = _cifar10_gold(source, CIFAR10_TEST[0])
    split = np.repeat(["train", "test"], [sum(map(len, train)), len(test)])
    gold = np.concatenate([*train, test])
    return Dataset(name=source.name, gold=gold, classes=CATALOGUE[source.name].classes, split=split)


def _load_cifar10n(source: Source) -> Dataset:
    raw = source.table("cifar10n/annotations.parquet").drop_columns(["worker_as_published"])
    annotations = source.annotations(raw, worker="slot")
    return replace(_load_cifar10(source), annotations=annotations, raw=raw)


def _load_cifar10s(source: Source) -> Dataset:
    raw = source.table("cifar10s/annotations.parquet")
    return Dataset(
        name=source.name,
        gold=_cifar10_gold(source, CIFAR10_TEST[0]),
        classes=CATALOGUE[source.name].classes,
        annotations=source.annotations(raw),
        raw=raw,
    )


def _load_cifar10h(source: Source) -> Dataset:
    return Dataset(
        name=source.name,
        gold=_cifar10_gold(source, CIFAR10_TEST[0]),
        classes=CATALOGUE[source.name].classes,
        extra={"counts": source.array("cifar10h_counts/cifar10h_counts.npz", "counts")},
    )


def _load_tiny(source: Source) -> Dataset:
    train, test = (source.array(file, "labels").astype(np.int32) for file in TINY)
    described = json.loads(source.path("tiny_imagenet_100/classes.json").read_text(encoding="utf-8"))
    return Dataset(
        name=source.name,
        gold=np.concatenate([train, test]),
        classes=tuple(described["names"]),
        split=np.repeat(["train", "test"], [len(train), len(test)]),
        extra={"wnids": np.array(described["wnids"], dtype=object)},
    )


def _cifar10_gold(source: Source, file: str) -> Codes:
    return source.array(file, "labels").astype(np.int32)


def _all_cifar10_images(source: Source) -> Images:
    return np.concatenate([source.images(file, 32) for file in (*CIFAR10_TRAIN, *CIFAR10_TEST)])


def _test_cifar10_images(source: Source) -> Images:
    return source.images(CIFAR10_TEST[0], 32)


def _by_task(table: pa.Table, column: str, n_tasks: int, absent: int | str) -> Ids:
    """Return a column with row i for task i, `absent` for tasks that the table does not have."""
    dtype = object if isinstance(absent, str) else np.int32
    values = np.full(n_tasks, absent, dtype=dtype)
    values[_column(table, "task")] = _column(table, column)
    return values


def _column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    return np.asarray(table.column(name).to_numpy())


_READERS: dict[str, Callable[[Source], Dataset]] = {
    "amazon_isbook": _load_texts,
    "cifar10": _load_cifar10,
    "cifar100n": _load_cifar100n,
    "cifar10h_counts": _load_cifar10h,
    "cifar10n": _load_cifar10n,
    "cifar10s": _load_cifar10s,
    "labelme": _load_labelme,
    "pandalm": _load_pandalm,
    "sentiment_polarity": _load_texts,
    "tiny_imagenet_100": _load_tiny,
}

_IMAGES: dict[str, Callable[[Source], Images]] = {
    "cifar10": _all_cifar10_images,
    "cifar10h_counts": _test_cifar10_images,
    "cifar10n": _all_cifar10_images,
    "cifar10s": _test_cifar10_images,
    "labelme": lambda source: source.images("labelme/images64.npz", 64),
    "tiny_imagenet_100": lambda source: np.concatenate([source.images(file, 32) for file in TINY]),
}
