"""The data sets of the experiments are what the notes next to them say."""

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
from data_sets import CROWDS, MEDICAL, TRUTH_INFERENCE, Dataset, load, names

import labelonce as lo

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text()
data = pytest.mark.data


class Facts(NamedTuple):
    """What the README of a set says, measured on the files with every repeated row kept."""

    tasks: int
    annotations: int
    workers: int
    classes: int
    gold: int
    one_label: float
    majority: float
    repeats: int


FACTS = {
    "amazon_isbook": Facts(1000, 4907, 263, 2, 1000, 0.9462, 0.9635, 0),
    "cifar100n": Facts(50000, 50000, 519, 100, 50000, 0.598, 0.598, 0),
    "cifar10n": Facts(50000, 150000, 3, 10, 50000, 0.8233, 0.9118, 0),
    "cifar10s": Facts(1000, 6225, 248, 10, 1000, 0.8434, 0.9295, 25),
    "labelme": Facts(1000, 2547, 59, 8, 1000, 0.7405, 0.766, 0),
    "reuters_crowd_labels": Facts(1786, 5410, 38, 8, 1786, 0.5861, 0.6439, 0),
    "sentiment_polarity": Facts(4999, 27746, 203, 2, 4999, 0.7895, 0.8859, 0),
    "stanford_dogs_crowd": Facts(249, 7470, 30, 10, 249, 0.8924, 0.9699, 0),
    "bluebird": Facts(108, 4212, 39, 2, 108, 0.6356, 0.7593, 0),
    "dog": Facts(807, 8070, 109, 4, 807, 0.6964, 0.8222, 0),
    "trec": Facts(19033, 88385, 762, 2, 2275, 0.6121, 0.6514, 0),
    "sentiment_amt_500": Facts(500, 10000, 143, 2, 500, 0.8935, 0.943, 0),
    "zencrowd_in": Facts(2040, 11205, 25, 2, 2040, 0.6784, 0.7409, 710),
    "zencrowd_us": Facts(2040, 12190, 74, 2, 2040, 0.7702, 0.8613, 1035),
    "product": Facts(8315, 24945, 176, 2, 8315, 0.8163, 0.8966, 0),
    "sentiment_tweets_1000": Facts(1000, 20000, 85, 2, 1000, 0.6865, 0.9335, 0),
    "face_sentiment": Facts(584, 5242, 27, 4, 584, 0.5862, 0.6367, 0),
    "relevance": Facts(20232, 98453, 766, 4, 4460, 0.4387, 0.5411, 1570),
    "adult_content": Facts(11040, 92721, 825, 4, 333, 0.6811, 0.7598, 2922),
    "fact_eval": Facts(42624, 216725, 57, 3, 576, 0.8926, 0.9019, 1810),
}
WITHOUT_WORKERS = {"cifar10", "cifar10h_counts", "tiny_imagenet_100"}


def crowd(dataset: Dataset) -> lo.Annotations:
    assert dataset.annotations is not None
    return dataset.annotations


def array(values: Any) -> Any:
    assert values is not None
    return values


def one_label_accuracy(dataset: Dataset) -> float:
    ann = crowd(dataset)
    gold = dataset.gold_of(ann)[ann.task]
    return float(np.mean(ann.label[gold >= 0] == gold[gold >= 0]))


def majority_accuracy(dataset: Dataset) -> float:
    """Return the share of tasks whose most frequent label is right; a tie counts as its share."""
    ann = crowd(dataset)
    counts = np.zeros((ann.n_tasks, ann.n_classes), dtype=int)
    np.add.at(counts, (ann.task, ann.label), 1)
    top = counts == counts.max(axis=1, keepdims=True)
    gold = dataset.gold_of(ann)
    known = np.flatnonzero(gold >= 0)
    return float(np.mean(top[known, gold[known]] / top[known].sum(axis=1)))


@pytest.mark.parametrize("name", names())
def test_the_page_says_where_the_files_of_a_set_go(name: str) -> None:
    folder = "truth_inference/NAME_" if name in TRUTH_INFERENCE else f"{name}/"
    assert f"`{name}`" in PAGE
    assert f"`{folder}" in PAGE
    assert {"labelme", "cifar100n"} <= set(CROWDS)


def test_every_name_is_checked_below() -> None:
    assert set(names()) == set(FACTS) | WITHOUT_WORKERS | {MEDICAL}
    assert names() == sorted(names())


@data
@pytest.mark.parametrize("name", FACTS)
def test_counts_and_accuracies_are_those_of_the_readme(name: str) -> None:
    dataset, facts = load(name, duplicates="keep"), FACTS[name]
    ann = crowd(dataset)
    assert (ann.n_tasks, len(ann), ann.n_workers, ann.n_classes) == facts[:4]
    assert np.count_nonzero(dataset.gold_of(ann) >= 0) == facts.gold
    assert one_label_accuracy(dataset) == pytest.approx(facts.one_label, abs=6e-5)
    assert majority_accuracy(dataset) == pytest.approx(facts.majority, abs=6e-5)
    assert len(crowd(load(name))) == facts.annotations - facts.repeats
    assert len(set(dataset.classes)) == facts.classes
    assert ann.classes.tolist() == list(range(facts.classes))
    assert ann.tasks.max() < dataset.n_tasks
    for values in (dataset.split, dataset.features, dataset.texts, *dataset.extra.values()):
        assert values is None or len(values) == dataset.n_tasks


@data
@pytest.mark.parametrize("name", ["amazon_isbook", "cifar100n", "cifar10s", "labelme", "stanford_dogs_crowd"])
def test_readme_names_the_same_classes(name: str, data_root: Path) -> None:
    line = (data_root / name / "README.md").read_text().split("\nClasses: ")[1].splitlines()[0]
    assert line == ", ".join(f"{code} = {word}" for code, word in enumerate(load(name).classes))


@data
def test_every_class_of_cifar100_lies_in_one_superclass_and_one_missing_dog_has_no_gold() -> None:
    dataset = load("cifar100n")
    pairs = np.unique(np.stack([dataset.gold, dataset.extra["coarse"]]), axis=1)
    assert pairs.shape == (2, 100)
    assert np.bincount(pairs[1]).tolist() == [5] * 20
    dataset = load("stanford_dogs_crowd")
    nobodys = np.setdiff1d(np.arange(dataset.n_tasks), crowd(dataset).tasks)
    assert dataset.gold[nobodys].tolist() == [-1]
    assert set(array(dataset.raw)["viewtime_ms"].to_pylist()) == {100, 1000, 2500}


@data
@pytest.mark.parametrize(
    ("name", "splits"),
    [
        ("amazon_isbook", {"train": 1000, "valid": 1000, "test": 4000}),
        ("cifar10", {"train": 50000, "test": 10000}),
        ("cifar10n", {"train": 50000, "test": 10000}),
        ("labelme", {"train": 1000, "valid": 500, "test": 1188}),
        ("sentiment_polarity", {"train": 4999, "test": 3999}),
        ("tiny_imagenet_100", {"train": 50000, "test": 5000}),
    ],
)
def test_splits_are_those_of_the_readme(name: str, splits: dict[str, int]) -> None:
    dataset = load(name)
    found, counts = np.unique(array(dataset.split), return_counts=True)
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == splits
    assert (dataset.gold >= 0).all()
    if dataset.annotations is not None:
        assert set(array(dataset.split)[dataset.annotations.tasks]) == {"train"}


@data
@pytest.mark.parametrize(("name", "floor"), [("amazon_isbook", 0.9), ("sentiment_polarity", 0.66), ("labelme", 0.93)])
def test_texts_and_features_join_the_gold(name: str, floor: float) -> None:
    # The largest class is 0.61, 0.52 and 0.16 of the test split.
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    dataset = load(name)
    first, C = (TfidfVectorizer(), 1.0) if dataset.features is None else (StandardScaler(), 0.01)
    X, split = array(dataset.texts if dataset.features is None else dataset.features), array(dataset.split)
    model = make_pipeline(first, LogisticRegression(C=C, max_iter=1000))
    model.fit(X[split == "train"], dataset.gold[split == "train"])
    assert model.score(X[split == "test"], dataset.gold[split == "test"]) > floor


@data
def test_labelme_images_join_the_features() -> None:
    dataset = load("labelme", images=True)
    images = array(dataset.images)
    assert (images.shape, images.dtype) == ((2688, 64, 64, 3), np.uint8)
    blue_minus_green = images[..., 2].mean(axis=(1, 2)) - images[..., 1].mean(axis=(1, 2))
    by_class = [blue_minus_green[dataset.gold == code].mean() for code in range(8)]
    assert dataset.classes[int(np.argmin(by_class))] == "forest"


@data
def test_cifar10n_workers_are_the_three_slots() -> None:
    dataset = load("cifar10n")
    ann = crowd(dataset)
    assert ann.workers.tolist() == [1, 2, 3]
    right = ann.label == dataset.gold_of(ann)[ann.task]
    accuracy = [right[ann.worker == slot].mean() for slot in range(3)]
    assert accuracy == pytest.approx([0.8277, 0.8188, 0.8236], abs=6e-5)
    assert array(dataset.raw).column_names == ["task", "slot", "label"]


@data
@pytest.mark.parametrize("name", ["cifar10n", "cifar10s"])
def test_cifar10_gold_is_the_gold_published_with_the_labels(name: str, data_root: Path) -> None:
    dataset = load(name)
    own = pq.read_table(data_root / name / "gold.parquet")
    np.testing.assert_array_equal(dataset.gold[own["task"].to_numpy()], own["label"].to_numpy())


@data
def test_cifar10h_counts_are_those_of_the_readme() -> None:
    dataset = load("cifar10h_counts")
    counts = dataset.extra["counts"].astype(int)
    assert dataset.annotations is None
    assert (counts.shape, counts.sum(), counts.sum(axis=1).min(), counts.sum(axis=1).max()) == (
        (10000, 10),
        511000,
        47,
        63,
    )
    right = counts[np.arange(10000), dataset.gold]
    assert right.sum() / 511000 == pytest.approx(0.9524, abs=6e-5)
    top = counts == counts.max(axis=1, keepdims=True)
    assert (top[np.arange(10000), dataset.gold] / top.sum(axis=1)).mean() == pytest.approx(0.9921, abs=6e-5)


@data
def test_cifar10s_keeps_its_second_labels_and_ticks_in_raw() -> None:
    dataset = load("cifar10s", duplicates="keep")
    raw = array(dataset.raw)
    ticks = np.stack([raw[f"impossible_{name}"].to_numpy() for name in dataset.classes], axis=1)
    gold = dataset.gold[raw["task"].to_numpy()]
    assert ticks.sum(axis=1).mean() == pytest.approx(7.32, abs=0.006)
    assert ticks[np.arange(len(gold)), gold].mean() == pytest.approx(0.042, abs=6e-4)


@data
@pytest.mark.parametrize(
    ("question", "n", "positive", "one"), [("CAUSES", 929, 0.257, 0.764), ("TREATS", 606, 0.48, 0.771)]
)
def test_medical_question_is_that_of_the_readme(question: str, n: int, positive: float, one: float) -> None:
    dataset = load(MEDICAL, question=question)
    ann = crowd(dataset)
    known = dataset.gold[dataset.gold >= 0]
    assert (ann.n_tasks, len(ann), ann.n_workers, len(known)) == (3231, 50226, 468, n)
    assert known.mean() == pytest.approx(positive, abs=6e-4)
    assert one_label_accuracy(dataset) == pytest.approx(one, abs=6e-4)
    assert np.count_nonzero(dataset.extra["expert"] >= 0) == {"CAUSES": 975, "TREATS": 621}[question]


@data
@pytest.mark.parametrize("name", ["cifar10", "cifar10s", "cifar10h_counts"])
def test_cifar10_images_are_the_original_bytes(name: str) -> None:
    dataset = load(name, images=True)
    images = array(dataset.images)
    sums = ["f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04"]
    if name == "cifar10":
        sums.insert(0, "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a")
        assert np.bincount(dataset.gold[:50000]).tolist() == [5000] * 10
    assert [hashlib.sha256(part.tobytes()).hexdigest() for part in np.split(images, [50000][: len(sums) - 1])] == sums
    assert np.bincount(dataset.gold[-10000:]).tolist() == [1000] * 10


@data
def test_tiny_imagenet_has_its_classes_and_images_and_they_join_the_gold() -> None:
    dataset = load("tiny_imagenet_100", images=True)
    images = array(dataset.images)
    assert images.shape == (55000, 32, 32, 3)
    assert np.bincount(dataset.gold[:50000]).tolist() == [500] * 100
    assert np.bincount(dataset.gold[50000:]).tolist() == [50] * 100
    assert len(dataset.classes) == len(dataset.extra["wnids"]) == 100
    assert dataset.extra["wnids"].tolist() == sorted(dataset.extra["wnids"])
    assert share_named_by_the_nearest_mean(images[:50000], images[50000:], dataset.gold) > 0.05  # chance: 0.01


def share_named_by_the_nearest_mean(train: Any, test: Any, gold: Any) -> float:
    train, test = (images.reshape(len(images), -1).astype(np.float32) for images in (train[::5], test))
    means = np.stack([train[gold[:50000:5] == code].mean(axis=0) for code in range(100)])
    nearest = np.argmax(test @ means.T - 0.5 * np.square(means).sum(axis=1), axis=1)
    return float(np.mean(nearest == gold[50000:]))
