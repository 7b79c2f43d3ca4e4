"""The data sets of the experiments, read from the folder that LABELONCE_DATA names; laid out as docs/datasets.md says.

Three crowds come with the package (`labelonce.datasets`); nobody else may pass the other ones on.
"""

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from labelonce import datasets
from labelonce._types import Codes, Floats, Ids
from labelonce.datasets._load import annotations_of, by_task

Images = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(datasets.Dataset):
    """A data set with what models see: row i of `split`, `features`, `texts` and `images` is task i.

    `split` is "train", "valid" or "test", None where none is published; `images` are RGB bytes, only if asked for.
    `extra` has one row per task, but for `wnids`: `counts` (cifar10h_counts: how many people chose each class),
    `coarse` (cifar100n: the superclass), `sid`, `term1`, `term2`, `expert`, `baseline` (medical_relations_multilabel),
    `wnids` (tiny_imagenet_100: one WordNet id per class).
    """

    split: Ids | None = None
    features: Floats | None = None
    texts: Ids | None = None
    images: Images | None = None
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_TRAIN = ("cifar10/cifar10_train_0.npz", "cifar10/cifar10_train_1.npz")
CIFAR10_TEST = "cifar10/cifar10_test.npz"
TINY = ("tiny_imagenet_100/tiny100_train.npz", "tiny_imagenet_100/tiny100_test.npz")
MEDICAL = "medical_relations_multilabel"

_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
_DOGS = """
Border_collie Eskimo_dog German_shepherd Pekinese Staffordshire_bullterrier Yorkshire_terrier basenji cairn
golden_retriever miniature_poodle
"""
_LABELME = "highway insidecity tallbuilding street forest coast mountain opencountry"

CROWDS: dict[str, tuple[str, ...]] = {  # in folders of their own, with their classes
    "amazon_isbook": ("not a book", "book"),
    "cifar100n": tuple(_CIFAR100.split()),
    "labelme": tuple(_LABELME.split()),
    "reuters_crowd_labels": tuple("01234567"),
    "sentiment_polarity": ("negative", "positive"),
    "stanford_dogs_crowd": tuple(_DOGS.split()),
}
TRUTH_INFERENCE = dict.fromkeys(  # with the number of classes, whose meaning nobody wrote down
    ("bluebird", "product", "sentiment_amt_500", "sentiment_tweets_1000", "trec", "zencrowd_in", "zencrowd_us"), 2
)
TRUTH_INFERENCE |= dict.fromkeys(("adult_content", "dog", "face_sentiment", "relevance"), 4) | {"fact_eval": 3}


def names() -> list[str]:
    """Return the names that `load` knows, sorted."""
    return sorted([*CROWDS, *TRUTH_INFERENCE, *_OTHERS, MEDICAL])


def load(name: str, *, duplicates: str = "first", images: bool = False, question: str = "") -> Dataset:
    """Return a data set by name.

    `duplicates` is what becomes of a worker's second label for a task (adult_content, cifar10s, fact_eval, relevance,
    zencrowd_in and zencrowd_us have some); our reference results keep the first. `images` decodes those of the CIFAR-10
    sets, labelme and tiny_imagenet_100. `question` is one of the 14 of medical_relations_multilabel; gold exists for
    "CAUSES" and "TREATS" alone.

    cifar10n names rows as cifar10 does (training images 0 .. 49,999, then the test images, gold only). Its published
    worker numbers were tested and fail, so its three workers 1, 2, 3 are the columns of the release: exchangeable, each
    a mixture of everybody. Row i of cifar10s and cifar10h_counts is test image i of cifar10.
    """
    if name == MEDICAL:
        return _medical(question, duplicates)
    found = _crowd(name, duplicates) if name in CROWDS or name in TRUTH_INFERENCE else _OTHERS[name](duplicates)
    return replace(found, images=_images(name)) if images else found


def folder() -> Path:
    return Path(os.environ["LABELONCE_DATA"]).resolve()


def mapped(cache: Path, name: str) -> dict[str, npt.NDArray[Any]]:
    """Return 50,000 images with their classes and those of the test, as files in memory, decoded into a folder once."""
    paths = {part: cache / f"{name}_{part}.npy" for part in ("x", "y", "xt", "yt")}
    if not all(path.exists() for path in paths.values()):
        cache.mkdir(parents=True, exist_ok=True)
        data = load(name, images=True)
        assert data.images is not None
        whole = (data.images[:50_000], data.gold[:50_000], data.images[50_000:], data.gold[50_000:])
        for path, array in zip(paths.values(), whole, strict=True):
            np.save(path, np.asarray(array))
    return {part: np.load(path, mmap_mode="r") for part, path in paths.items()}


def _table(file: str) -> pa.Table:
    return pq.read_table(folder() / f"{file}.parquet")


def _array(file: str, key: str) -> npt.NDArray[Any]:
    with np.load(folder() / file, allow_pickle=False) as arrays:
        return np.asarray(arrays[key])


def _crowd(name: str, duplicates: str) -> Dataset:
    """Return a set whose files are labels, gold, and where there are any, texts or features."""
    at = f"truth_inference/{name}_" if name in TRUTH_INFERENCE else f"{name}/"
    classes = CROWDS.get(name) or tuple(map(str, range(TRUTH_INFERENCE[name])))
    raw, gold = _table(f"{at}annotations"), _table(f"{at}gold")
    annotations = annotations_of(raw, len(classes), duplicates=duplicates)
    n_tasks = 1 + max(int(annotations.tasks.max()), int(gold["task"].to_numpy().max()))
    data = Dataset(name, by_task(gold, "label", n_tasks, -1), classes, annotations, raw)
    if "split" in gold.column_names:
        data = replace(data, split=by_task(gold, "split", n_tasks, ""))
    if name in ("amazon_isbook", "sentiment_polarity"):
        return replace(data, texts=by_task(_table(f"{at}texts"), "text", n_tasks, ""))
    if name == "labelme":
        return replace(data, features=_array("labelme/features_vgg16.npz", "x").astype(np.float32))
    return replace(data, extra={"coarse": by_task(gold, "coarse", n_tasks, -1)}) if name == "cifar100n" else data


def _medical(question: str, duplicates: str) -> Dataset:
    raw, gold, texts = (_table(f"{MEDICAL}/{part}") for part in ("annotations_wide", "gold", "texts"))
    n_tasks = len(texts)
    asked = gold.filter(gold["question"].to_numpy() == question)
    extra = {key: by_task(texts, key, n_tasks, "") for key in ("term1", "term2")}
    extra |= {"sid": by_task(texts, "sid", n_tasks, -1)}
    extra |= {key: _yes_no(by_task(asked, key, n_tasks, 0)) for key in ("expert", "baseline")}
    annotations = annotations_of(raw, 2, label=question, duplicates=duplicates)
    known, said = _yes_no(by_task(asked, "test_partition", n_tasks, 0)), by_task(texts, "text", n_tasks, "")
    return Dataset(MEDICAL, known, ("no", "yes"), annotations, raw, texts=said, extra=extra)


def _yes_no(signs: Codes) -> Codes:
    """Return class codes for 1 (yes), -1 (no) and 0 (unknown)."""
    return np.where(signs == 0, -1, signs > 0).astype(np.int32)


def _cifar10(_: str) -> Dataset:
    train, test = [_gold(file) for file in CIFAR10_TRAIN], _gold(CIFAR10_TEST)
    split = np.repeat(["train", "test"], [sum(map(len, train)), len(test)])
    return Dataset("cifar10", np.concatenate([*train, test]), CIFAR10, split=split)


def _cifar10n(duplicates: str) -> Dataset:
    raw = _table("cifar10n/annotations").drop_columns(["worker_as_published"])
    annotations = annotations_of(raw, 10, worker="slot", duplicates=duplicates)
    return replace(_cifar10(duplicates), name="cifar10n", annotations=annotations, raw=raw)


def _cifar10s(duplicates: str) -> Dataset:
    raw = _table("cifar10s/annotations")
    return Dataset("cifar10s", _gold(CIFAR10_TEST), CIFAR10, annotations_of(raw, 10, duplicates=duplicates), raw)


def _cifar10h(_: str) -> Dataset:
    counts = _array("cifar10h_counts/cifar10h_counts.npz", "counts")
    return Dataset("cifar10h_counts", _gold(CIFAR10_TEST), CIFAR10, extra={"counts": counts})


def _tiny(_: str) -> Dataset:
    train, test = map(_gold, TINY)
    described = json.loads((folder() / "tiny_imagenet_100/classes.json").read_text(encoding="utf-8"))
    gold, split = np.concatenate([train, test]), np.repeat(["train", "test"], [len(train), len(test)])
    extra = {"wnids": np.array(described["wnids"], dtype=object)}
    return Dataset("tiny_imagenet_100", gold, tuple(described["names"]), split=split, extra=extra)


def _gold(file: str) -> Codes:
    return _array(file, "labels").astype(np.int32)


def _images(name: str) -> Images:
    if name == "labelme":
        return _decoded("labelme/images64.npz", 64)
    files = {"tiny_imagenet_100": TINY, "cifar10": (*CIFAR10_TRAIN, CIFAR10_TEST)}
    return np.concatenate([_decoded(file, 32) for file in files.get(name.removesuffix("n"), (CIFAR10_TEST,))])


def _decoded(file: str, size: int) -> Images:
    """Return the square images of an npz file of WebP tiles, shape (n_images, size, size, 3)."""
    from PIL import Image

    webp, tiles = _array(file, "webp"), []
    for start, stop in pairwise(_array(file, "offsets")):
        with Image.open(io.BytesIO(webp[start:stop].tobytes())) as picture:
            tile = np.asarray(picture.convert("RGB"))
        height, width = tile.shape[0] // size, tile.shape[1] // size
        tiles.append(tile.reshape(height, size, width, size, 3).swapaxes(1, 2).reshape(-1, size, size, 3))
    return np.concatenate(tiles)


_OTHERS: dict[str, Callable[[str], Dataset]] = {
    "cifar10": _cifar10,
    "cifar10h_counts": _cifar10h,
    "cifar10n": _cifar10n,
    "cifar10s": _cifar10s,
    "tiny_imagenet_100": _tiny,
}
