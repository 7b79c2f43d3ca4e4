"""Where the crowds of the experiments are drawn: problems (features and true classes), and who labels what, and how.

A problem is a function of a random generator; a crowd is one of a generator, the features, the true classes and their
number. Tables come with scikit-learn and statsmodels, texts and photographs from the data folder of docs/datasets.md.
"""
# ruff: noqa: ARG001 (one signature for all problems, one for all crowds)

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import data_sets
import numpy as np
import numpy.typing as npt
from sklearn import datasets as tables
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelonce as lo

Array = npt.NDArray[Any]
Generator = np.random.Generator
Problem = Callable[[Generator], tuple[Any, Array]]
Skills = Sequence[float] | Array | Callable[[Generator], Array]
Loader = Callable[..., Any]


# Problems: features and true classes.


class Split(NamedTuple):
    """Labelled tasks with their true classes, which no fit sees, tasks for the test, and the labels."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array
    annotations: lo.Annotations


def digits(rng: Generator, *, pixels: slice = slice(None)) -> tuple[Any, Array]:
    """Return scikit-learn's digits, or some of their pixels."""
    X, y = tables.load_digits(return_X_y=True)
    return X[:, pixels] / 16, y


def scaled(loader: Loader, rng: Generator) -> tuple[Any, Array]:
    """Return a table of scikit-learn with standardised columns."""
    X, y = loader(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def made_up(rng: Generator, *, n: int, n_classes: int, separation: float) -> tuple[Any, Array]:
    """Return a made-up table; classes overlap the more, the smaller the separation."""
    X, y = tables.make_classification(
        n, 20, n_informative=8, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        class_sep=separation, random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    return X, y


def balls(rng: Generator, *, n: int, n_classes: int, distance: float, dimensions: int = 20) -> tuple[Any, Array]:
    """Return normal classes around random points."""
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n_classes, dimensions))[y] * distance + rng.normal(size=(n, dimensions)), y


def xor(rng: Generator, *, n: int = 4000) -> tuple[Any, Array]:
    """Return classes that no line tells apart."""
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def rings(rng: Generator, *, n: int = 4000) -> tuple[Any, Array]:
    """Return three rings, of which a line tells nothing but a little of the outermost."""
    y = rng.integers(3, size=n)
    angle, radius = rng.uniform(0, 2 * np.pi, n), 1 + y + 0.25 * rng.normal(size=n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), radius**2 * (y == 2) * 0.3], axis=1), y


def checkerboard(rng: Generator, *, n: int = 4000) -> tuple[Any, Array]:
    """Return four classes in a pattern of fields, two of them next to each other along a line."""
    X = rng.uniform(0, 4, size=(n, 2))
    return X, (X[:, 0].astype(int) + 2 * X[:, 1].astype(int)) % 4


def prices(rng: Generator, *, n: int = 4000) -> tuple[Any, Array]:
    """Return a table with columns in euros, years, counts and shares, unscaled, and three classes of sales."""
    income, age = rng.lognormal(10.3, 0.5, n), rng.uniform(18, 80, n)
    visits, share = rng.poisson(4, n), rng.beta(2, 5, n)
    score = 1.4 * np.log(income / 30_000) + 0.02 * (age - 49) + 0.25 * (visits - 4) + 2 * (share - 0.29)
    y = np.digitize(score + 0.25 * rng.logistic(size=n), [-0.45, 0.45])
    return np.stack([income, age, visits, share, rng.normal(5e5, 1e5, n)], axis=1), y


def survey(rng: Generator) -> tuple[Any, Array]:
    """Return statsmodels' survey of American voters in 1996: a party on a scale of seven, in three classes."""
    import statsmodels.api as sm

    data = sm.datasets.anes96.load().data
    columns = ["logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "educ", "income"]
    return StandardScaler().fit_transform(data[columns].to_numpy()), np.digitize(data["PID"].to_numpy(), [2, 5])


def affairs(rng: Generator) -> tuple[Any, Array]:
    """Return statsmodels' survey on affairs (Fair 1978), and whether she had one."""
    import statsmodels.api as sm

    data = sm.datasets.fair.load().data
    rows = rng.permutation(len(data))[:3000]
    y = (data["affairs"].to_numpy() > 0).astype(int)[rows]
    return StandardScaler().fit_transform(data.drop(columns="affairs").to_numpy()[rows]), y


def rare(problem: Problem, share: float, rng: Generator) -> tuple[Any, Array]:
    """Return a problem of two classes of which the second is rare."""
    X, y = problem(rng)
    y = (y == y.max()).astype(int)
    kept = rng.permutation(np.flatnonzero(y))[: round(share / (1 - share) * (y == 0).sum())]
    rows = rng.permutation(np.concatenate([np.flatnonzero(y == 0), kept]))
    return X[rows], y[rows]


def with_outliers(problem: Problem, share: float, rng: Generator) -> tuple[Any, Array]:
    """Return a problem in which the numbers of some rows are ten thousand times too large."""
    X, y = problem(rng)
    hit = rng.random(len(X)) < share
    return np.where(hit[:, None], 1e4 * X, X), y


def undetermined(problem: Problem, share: float, rng: Generator) -> tuple[Any, Array]:
    """Return a problem of which some rows have another class than their features say."""
    X, y = problem(rng)
    other = (y + rng.integers(1, y.max() + 1, len(y))) % (y.max() + 1)
    return X, np.where(rng.random(len(y)) < share, other, y)


@cache
def _texts(name: str) -> tuple[Array, Array]:
    data = data_sets.load(name)
    known = data.gold >= 0
    return np.asarray(data.texts, dtype=object)[known], data.gold[known].astype(int)


def text_numbers(name: str, n: int, rng: Generator) -> tuple[Any, Array]:
    """Return texts as 64 numbers: components of their TF-IDF."""
    words, y = text_words(name, n, rng, longest=1)
    X = TruncatedSVD(min(64, words.shape[1] - 1), random_state=0).fit_transform(words)
    return X / X.std(axis=0), y


def text_words(name: str, n: int, rng: Generator, *, longest: int = 2) -> tuple[Any, Array]:
    """Return texts as their words and pairs of words: more columns than rows."""
    texts, y = _texts(name)
    rows = rng.permutation(len(y))[:n]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, longest)).fit_transform(texts[rows])
    return words.tocsr(), y[rows]


def photographs(rng: Generator, *, side: int | None = None) -> tuple[Any, Array]:
    """Return LabelMe's photographs as 64 components of VGG features, or as grey pixels of a small side."""
    return _photographs(side)


@cache
def _photographs(side: int | None) -> tuple[Any, Array]:
    data = data_sets.load("labelme", images=side is not None)
    y = np.asarray(data.gold, dtype=int)
    if side is None:
        X = TruncatedSVD(64, random_state=0).fit_transform(StandardScaler().fit_transform(data.features))
        return X / X[:, 0].std(), y
    images = np.asarray(data.images).mean(axis=3)
    step = images.shape[1] // side
    return images.reshape(len(images), side, step, side, step).mean(axis=(2, 4)).reshape(len(images), -1) / 255, y


def components(raw: Any, n: int) -> Any:
    """Return 64 principal components of standardised features, on one scale, fitted to the first n rows alone."""
    found = make_pipeline(StandardScaler(), PCA(64, random_state=0)).fit(raw[:n].astype(np.float64))
    X = found.transform(raw.astype(np.float64))
    return X / X[:n].std()


SETS = {"digits": (1297, 1.0), "labelme": (1500, 0.1), "film reviews": (3000, 0.01)}  # tasks to train on, and C


def shuffled(name: str, rng: Generator) -> tuple[Any, Array]:
    """Return features and classes of a set in random order; nothing fitted to features sees test tasks or labels."""
    if name == "digits":
        X, y = digits(rng)
    elif name == "labelme":
        data = data_sets.load(name)
        X, y = data.features, data.gold
    else:
        texts, y = _texts("sentiment_polarity")
        words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(texts)
        X = TruncatedSVD(300, random_state=0).fit_transform(words)
        X = X / X.std()
    order = rng.permutation(len(y))
    return components(X[order], SETS[name][0]) if name == "labelme" else X[order], y[order]


# Crowds: who labels what, and how.


def assigned(
    rng: Generator, n: int, n_workers: int, *, second: float = 0.0, per_task: int = 1, load: Array | None = None
) -> tuple[Array, Array]:
    """Return task and worker of every label: `per_task` each, and a second one for a share of the tasks."""
    chance = np.full(n_workers, 1 / n_workers) if load is None else load / load.sum()
    task = np.repeat(np.arange(n), per_task)
    if per_task == 1:
        worker = rng.choice(n_workers, n, p=chance)
    else:
        worker = np.argsort(rng.exponential(size=(n, n_workers)) / chance, axis=1)[:, :per_task].ravel()
    again = np.flatnonzero(rng.random(n) < second)
    more = (worker[again] + rng.integers(1, n_workers, len(again))) % n_workers if len(again) else worker[again]
    return np.concatenate([task, again]), np.concatenate([worker, more])


def said(rng: Generator, y: Array, right: Array | float, n_classes: int) -> Array:
    """Return the true class with a probability for every label, else any other class."""
    other = (y + rng.integers(1, max(n_classes, 2), len(y))) % n_classes
    return np.where(rng.random(len(y)) < right, y, other)


def annotated(task: Array, worker: Array, label: Array, n: int, n_classes: int) -> lo.Annotations:
    """Return the annotations in the order of the rows of X."""
    return lo.Annotations.from_arrays(task, worker, label, classes=np.arange(n_classes)).align(np.arange(n))


def chances_of(skills: Skills, rng: Generator) -> Array:
    """Return the workers' chances of being right; a callable draws them."""
    return np.asarray(skills(rng) if callable(skills) else skills, dtype=np.float64)


def coins(
    rng: Generator, X: Any, y: Array, K: int, *, skills: Skills, second: float = 0.0, per_task: int = 1,
    load: Callable[[int], Array] | None = None,
) -> lo.Annotations:  # fmt: skip
    """Return labels of workers who are right with a chance each."""
    chance = chances_of(skills, rng)
    weight = None if load is None else load(len(chance))
    task, worker = assigned(rng, len(y), len(chance), second=second, per_task=per_task, load=weight)
    return annotated(task, worker, said(rng, y[task], chance[worker], K), len(y), K)


def matrices(
    rng: Generator, X: Any, y: Array, K: int, *, draw: Callable[..., Array], n_workers: int, per_task: int = 1
) -> lo.Annotations:
    """Return labels of workers with confusion matrices of `lo.simulate`."""
    confusion = draw(n_workers, K, rng=rng)
    task, worker = assigned(rng, len(y), n_workers, per_task=per_task)
    passed = rng.random(len(task))[:, None] > confusion[worker, y[task]].cumsum(axis=1)
    return annotated(task, worker, passed.sum(axis=1).clip(0, K - 1), len(y), K)


SIMPLE: dict[str, Callable[..., Any]] = {
    "hammer-spammer": lo.simulate.hammer_spammer,
    "class-wise": lo.simulate.class_wise_hammer_spammer,
}
GROUPED: dict[str, Callable[..., Any]] = {
    "hammer-spammer": lo.simulate.grouped_hammer_spammer,
    "class-wise": lo.simulate.grouped_class_wise_hammer_spammer,
}


def simulated(
    rng: Generator, y: Array, classes: int | Array, crowd: str, quality: float, n_workers: int, redundancy: int,
    **options: Any,
) -> tuple[lo.Annotations, Any]:  # fmt: skip
    """Return labels of the paper's crowds, and their workers, who err within groups where `classes` are groups."""
    crew = (SIMPLE if isinstance(classes, int) else GROUPED)[crowd](n_workers, classes, quality, rng, **options)
    return lo.simulate.annotate(y, crew, lo.simulate.assign(len(y), n_workers, redundancy, rng), rng), crew


def crew(crowd: str, n_workers: int, K: int, quality: float, rng: Generator) -> Array:
    """Return the confusion of workers: the paper's, with skills near the quality, alike, or specialists.

    Specialists have this skill in three classes, of a few classes in one, and guess or reach 0.3 in the others.
    """
    if crowd == "hammer-spammer":
        return lo.simulate.hammer_spammer(n_workers, K, quality, rng, exact=True)
    if crowd == "class-wise":
        return lo.simulate.class_wise_hammer_spammer(n_workers, K, quality, rng)
    if crowd != "specialists":
        skills = rng.normal(quality, 0.1, n_workers) if crowd == "one-coin" else np.full(n_workers, quality)
        return lo.simulate.one_coin(np.clip(skills, 1 / K, 0.99), K)
    right = np.full((n_workers, K), max(0.3, 1 / K))
    for worker in range(n_workers):
        right[worker, rng.permutation(K)[: 3 if K > 4 else 1]] = quality
    return np.where(np.eye(K, dtype=bool), right[:, :, None], (1 - right[:, :, None]) / (K - 1))


def one_does_most(rng: Generator, X: Any, y: Array, K: int, *, skills: Skills) -> lo.Annotations:
    """Return labels of which the first worker gave nine of ten."""
    return coins(rng, X, y, K, skills=skills, load=lambda n: np.r_[0.9, np.full(n - 1, 0.1 / (n - 1))])


def long_tail(rng: Generator, X: Any, y: Array, K: int, *, n_workers: int) -> lo.Annotations:
    """Return labels of workers of whom most do little, some of them good."""
    skills = np.clip(rng.beta(5, 2, n_workers), 1 / K, 1)
    return coins(rng, X, y, K, skills=skills, load=lambda n: 1 / (1 + np.arange(n)))


def regions(rng: Generator, X: Any, y: Array, K: int, *, skills: Skills) -> lo.Annotations:
    """Return labels of workers who each took the tasks of a region of the features."""
    chance = chances_of(skills, rng)
    place = np.argsort(np.argsort(X[:, 0])) / len(y)
    worker = np.minimum((place * len(chance)).astype(int), len(chance) - 1)
    stray = rng.random(len(y)) < 0.15
    worker[stray] = rng.integers(len(chance), size=stray.sum())
    worker = rng.permutation(len(chance))[worker]
    return annotated(np.arange(len(y)), worker, said(rng, y, chance[worker], K), len(y), K)


def specialists(rng: Generator, X: Any, y: Array, K: int, *, n_workers: int, skills: Skills) -> lo.Annotations:
    """Return labels of workers who mostly take tasks of the classes that they like (sorted batches)."""
    chance = chances_of(skills, rng)
    liked = rng.integers(K, size=n_workers)
    worker = np.empty(len(y), dtype=int)
    for k in range(K):
        rows, fans = np.flatnonzero(y == k), np.flatnonzero(liked == k)
        weight = np.full(n_workers, 0.3 / n_workers)
        weight[fans] += 0.7 / max(len(fans), 1)
        worker[rows] = rng.choice(n_workers, len(rows), p=weight / weight.sum())
    return annotated(np.arange(len(y)), worker, said(rng, y, chance[worker], K), len(y), K)


def near_boundary(
    rng: Generator, X: Any, y: Array, K: int, *, n_workers: int, most: float, per_task: int = 1
) -> lo.Annotations:
    """Return labels whose mistakes are where classes meet: tasks that a model with the truth is unsure about."""
    chances = cross_val_predict(LogisticRegression(C=0.1, max_iter=300), X, y, cv=3, method="predict_proba")
    confusing = 1 - chances[np.arange(len(y)), y]
    difficulty = np.clip(confusing / max(confusing.mean(), 1e-9) * most, 0, 0.9)
    effort = rng.uniform(0.3, 1.7, n_workers)
    task, worker = assigned(rng, len(y), n_workers, per_task=per_task)
    wrong = rng.random(len(task)) < np.clip(difficulty[task] * effort[worker], 0, 0.95)
    tempting = chances.copy()
    tempting[np.arange(len(y)), y] = -1
    return annotated(task, worker, np.where(wrong, tempting.argmax(axis=1)[task], y[task]), len(y), K)


def copies(rng: Generator, X: Any, y: Array, K: int, *, n_workers: int, share: float, skill: float) -> lo.Annotations:
    """Return three labels per task by workers of whom a share writes down what the first of them said."""
    leader = said(rng, y, skill, K)
    copying = np.arange(n_workers) < share * n_workers
    task, worker = assigned(rng, len(y), n_workers, per_task=3)
    label = np.where(copying[worker], leader[task], said(rng, y[task], skill, K))
    return annotated(task, worker, label, len(y), K)


def shared_mistakes(
    rng: Generator, X: Any, y: Array, K: int, *, n_workers: int, skill: float, share: float, per_task: int
) -> lo.Annotations:
    """Return labels by workers who make a share of their mistakes together: the same wrong class, the same tasks."""
    trap = (y + rng.integers(1, max(K, 2), len(y))) % K
    deceived = rng.random(len(y)) < (1 - skill) * share
    task, worker = assigned(rng, len(y), n_workers, per_task=per_task)
    alone = said(rng, y[task], 1 - (1 - skill) * (1 - share), K)
    return annotated(task, worker, np.where(deceived[task], trap[task], alone), len(y), K)


def groups_confused(rng: Generator, X: Any, y: Array, K: int, *, n_workers: int, size: int) -> lo.Annotations:
    """Return labels of workers who take classes for others of their group, or are right."""
    good = rng.random(n_workers) < 0.4
    task, worker = assigned(rng, len(y), n_workers)
    true = y[task]
    inside = true // size * size + (true % size + rng.integers(1, size, len(true))) % size
    label = np.where(good[worker] | (rng.random(len(true)) < 1 / size), true, np.minimum(inside, K - 1))
    return annotated(task, worker, label, len(y), K)


def sided(
    rng: Generator, X: Any, y: Array, K: int, *, n_workers: int, sensitivity: tuple[float, float],
    specificity: tuple[float, float], per_task: int = 1,
) -> lo.Annotations:  # fmt: skip
    """Return labels of two classes by workers with a sensitivity and a specificity each."""
    right = np.stack([rng.uniform(*specificity, n_workers), rng.uniform(*sensitivity, n_workers)], axis=1)
    task, worker = assigned(rng, len(y), n_workers, per_task=per_task)
    return annotated(task, worker, said(rng, y[task], right[worker, y[task]], 2), len(y), 2)


def real_crowd(name: str, redundancy: int | Literal["all"], seed: int) -> Split:
    """Return features and gold of the tasks a real crowd labelled, of the test tasks, and the annotations."""
    data = data_sets.load(name)
    assert data.annotations is not None
    assert data.split is not None
    ann = data.annotations
    train, test = ann.tasks, np.flatnonzero(data.split == "test")
    if redundancy != "all":
        ann = ann.sample(redundancy=redundancy, random_state=seed)
    if data.features is not None:
        scaler = StandardScaler().fit(data.features[train])
        X, X_test = (scaler.transform(data.features[rows]).astype(np.float64) for rows in (train, test))
    else:
        assert data.texts is not None
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2)).fit(data.texts[train])
        X, X_test = words.transform(data.texts[train]), words.transform(data.texts[test])
    return Split(X, data.gold[train], X_test, data.gold[test], ann)


def real_components(name: str) -> Split:
    """Return the same with components of the features, all labels and the tasks in the order of the rows."""
    data = data_sets.load(name)
    assert data.annotations is not None
    n, test = data.annotations.n_tasks, np.flatnonzero(data.split == "test")
    X = components(np.asarray(data.features), n)
    return Split(X[:n], data.gold[:n], X[test], data.gold[test], data.annotations.align(np.arange(n)))


# Many classes.


@cache
def cifar100n() -> tuple[lo.Annotations, Array, Array]:
    """Return one real label for each of 50,000 images, the true classes, and the superclass of each class."""
    data = data_sets.load("cifar100n")
    assert data.annotations is not None
    y = np.asarray(data.gold)
    groups = np.zeros(len(data.classes), dtype=np.int64)
    groups[y] = data.extra["coarse"]
    return data.annotations, y, groups


def many_classes(
    rng: Generator, kind: str, classes: int, n: int, n_workers: int, redundancy: int
) -> tuple[Array, lo.Annotations, Array]:
    """Return true classes, `n` labels and the groups of classes: CIFAR-100N's own, else tens, 30 % of workers good.

    Mistakes stay in the groups of "hammers" and "class-wise" workers, and go "anywhere".
    """
    if kind == "cifar100n":
        labels, y, groups = cifar100n()
        some = np.isin(np.arange(len(y)), rng.permutation(len(y))[:n])
        return y[some], labels.select(some), groups
    groups = np.arange(classes) // 10
    y = rng.integers(0, classes, n // redundancy)
    sizes = np.zeros_like(groups) if kind == "anywhere" else groups
    crowd = "class-wise" if kind == "class-wise" else "hammer-spammer"
    return y, simulated(rng, y, sizes, crowd, 0.3, n_workers, redundancy)[0], groups
