"""Answers on a scale: emotions in headlines, rated by 10 workers each, beside means, votes and published orders.

100 headlines x 6 emotions, each rated from 0 to 100 by 10 of 38 workers, and by the experts of SemEval-2007 (R. Snow,
B. O'Connor, D. Jurafsky and A. Ng, "Cheap and Fast, But is it Good?", EMNLP 2008). Correlation is Pearson's with the
experts' mean, averaged over the emotions as in that paper; accuracy is that of "the experts' mean is at least t". No
method sees a gold score. Bins are 0, 1-20, 21-40, 41-60, 61-80, 81-100.

On a scale, `DawidSkene` and `IBCC` learn two true classes, no and yes, and what each of the six answers of each worker
tells of them; where the border between no and yes lies is theirs to find. "Levels" are six true classes with the same
names, of which those at or above t count as yes. The correction takes every worker's scores for a line, with a height,
a slope and a noise of its own, over the question's unknown score. One rating is drawn 20 times. Intervals are 90 %,
by 1000 draws of the headlines. The published accuracies are those of J. Zhang and X. Wu, "Multi-Label Inference for
Crowdsourcing", KDD 2018, of no and yes; where scores were cut is not stated. Needs data of datasets.md.

    python experiments/snow_affect.py            # resumes where it was stopped
    python experiments/snow_affect.py --table    # the table alone, from results/snow_affect.json
"""

import os
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from record import RESULTS, Trial, arguments, main, markdown, resume

import labelonce as lo

PATH = RESULTS / "snow_affect.json"
EDGES = np.array([1, 21, 41, 61, 81])
LEVELS = ["0", "1-20", "21-40", "41-60", "61-80", "81-100"]
FROM = np.array([0, 1, 21, 41, 61, 81])  # the least score of a level
MIDDLE = np.array([0.0, 10.5, 30.5, 50.5, 70.5, 90.5])
THRESHOLDS = (1, 20, 50)
N_ONE, N_DRAWS = 20, 1000
Found = tuple[np.ndarray, dict[int, np.ndarray]]  # an estimated score of every question, and whether it is yes at t


@cache
def read() -> dict[str, Any]:
    """Return the scores as columns of question, worker and score, and gold, emotion and headline of every question."""
    folder = Path(os.environ["LABELONCE_DATA"]) / "snow_affect"
    rows, gold = (pq.read_table(folder / f"{name}.parquet") for name in ("annotations", "gold"))
    emotion = np.array(gold["emotion"].to_pylist())
    kept = emotion != "valence"  # whose scale goes from -100 to 100
    headline, emotion = gold["task"].to_numpy()[kept], emotion[kept]
    code = {pair: place for place, pair in enumerate(zip(headline.tolist(), emotion.tolist(), strict=True))}
    pairs = zip(rows["task"].to_pylist(), rows["emotion"].to_pylist(), strict=True)
    question = np.array([code.get(pair, -1) for pair in pairs])
    own = question >= 0
    worker, score = (rows[name].to_numpy()[own] for name in ("worker", "score"))
    found = {"question": question[own], "worker": worker, "score": score.astype(float)}
    return found | {"gold": gold["gold"].to_numpy()[kept].astype(float), "emotion": emotion, "headline": headline}


def averaged(reduce: Callable[[np.ndarray], float]) -> Found:
    """Return a summary of the scores of each question, which is yes where it reaches t."""
    data = read()
    value = np.array([reduce(data["score"][data["question"] == q]) for q in range(len(data["gold"]))])
    return value, {t: value >= t for t in THRESHOLDS}


def voted() -> Found:
    """Return at every t the share of scores that reach it, and its majority; a tie is no."""
    data = read()
    number = np.bincount(data["question"])
    share = {t: np.bincount(data["question"], data["score"] >= t) / number for t in THRESHOLDS}
    return np.asarray(share[20]), {t: share[t] > 0.5 for t in THRESHOLDS}


def corrected() -> Found:
    """Return the scores over which every worker's are a line with noise, found in turn; lines lean to the identity."""
    data = read()
    question, worker, score = data["question"], np.unique(data["worker"], return_inverse=True)[1], data["score"]
    number = np.bincount(question)
    value = np.bincount(question, score) / number
    spread = value.var()
    for _ in range(50):
        slope, height, noise = np.ones(worker.max() + 1), np.zeros(worker.max() + 1), np.empty(worker.max() + 1)
        for w in range(len(slope)):
            x, y = value[question[worker == w]], score[worker == w]
            slope[w] = (((x - x.mean()) @ (y - y.mean())) + 10 * spread) / (((x - x.mean()) ** 2).sum() + 10 * spread)
            height[w] = len(y) / (len(y) + 10) * (y.mean() - slope[w] * x.mean())
            noise[w] = (((y - height[w] - slope[w] * x) ** 2).sum() + 10 * spread) / (len(y) + 10)
        weight = slope[worker] ** 2 / noise[worker]
        told = np.bincount(question, weight * (score - height[worker]) / slope[worker])
        value = (told + value.mean() / spread) / (np.bincount(question, weight) + 1 / spread)
    return value, {t: value >= t for t in THRESHOLDS}


def on_scale(model: Any) -> Found:
    """Return P(yes) of two classes of which six levels tell."""
    data = read()
    said = np.array(LEVELS, dtype=object)[np.digitize(data["score"], EDGES)]
    ann = lo.Annotations.from_arrays(data["question"], data["worker"], said, classes=["no", "yes"], answers=LEVELS)
    yes = model.fit(ann.align(np.arange(len(data["gold"])))).posterior_[:, 1]
    return yes, dict.fromkeys(THRESHOLDS, yes > 0.5)


def in_levels(model: Any) -> Found:
    """Return the mean level of six, and whether those at or above t have more than half of the probability."""
    data = read()
    said = np.digitize(data["score"], EDGES)
    ann = lo.Annotations.from_arrays(data["question"], data["worker"], said, classes=range(len(LEVELS)))
    posterior = model.fit(ann.align(np.arange(len(data["gold"])))).posterior_
    return posterior @ MIDDLE, {t: posterior[:, t <= FROM].sum(axis=1) > 0.5 for t in THRESHOLDS}


def in_two(model: Any) -> Found:
    """Return P(yes) and labels by scores that were cut at t; the score is that of t = 20."""
    data = read()
    found: dict[int, np.ndarray] = {}
    for t in THRESHOLDS:
        said = (data["score"] >= t).astype(int)
        ann = lo.Annotations.from_arrays(data["question"], data["worker"], said, classes=[0, 1])
        found[t] = model.fit(ann.align(np.arange(len(data["gold"])))).posterior_[:, 1]
    return found[20], {t: found[t] > 0.5 for t in THRESHOLDS}


METHODS: dict[str, Callable[[], Found]] = {
    "mean": lambda: averaged(np.mean),
    "median": lambda: averaged(np.median),
    "majority": voted,
    "mean, each worker's line corrected": corrected,
    "DawidSkene, scores cut at t": lambda: in_two(lo.DawidSkene()),
    "IBCC, scores cut at t": lambda: in_two(lo.IBCC()),
    "DawidSkene, six levels": lambda: in_levels(lo.DawidSkene()),
    "DawidSkene, no and yes on a scale": lambda: on_scale(lo.DawidSkene()),
    "IBCC, no and yes on a scale": lambda: on_scale(lo.IBCC()),
    "mean place on the scale": lambda: on_scale(lo.MajorityVote()),
}
ONE = "one rating"
PUBLISHED = {"majority": 69.71, "iBCC": 70.87, "Dawid-Skene": 72.83, "MCMLI": 74.60, "MCMLD": 76.28}


def measured(found: Found, rows: np.ndarray) -> dict[str, float]:
    """Return correlation and accuracies on some questions."""
    data, (value, yes) = read(), found
    emotion, gold = data["emotion"][rows], data["gold"][rows]
    correlations = [np.corrcoef(value[rows][emotion == e], gold[emotion == e])[0, 1] for e in np.unique(emotion)]
    accuracy = {f"accuracy_{t}": float(np.mean(yes[t][rows] == (gold >= t))) for t in THRESHOLDS}
    return {"correlation": float(np.mean(correlations))} | accuracy


def with_intervals(found: Found) -> dict[str, Any]:
    """Return what is measured on all questions, and the range of it over draws of the headlines."""
    data, rng = read(), np.random.default_rng(0)
    headlines, of_headline = np.unique(data["headline"], return_inverse=True)
    by_headline = [np.flatnonzero(of_headline == h) for h in range(len(headlines))]
    draws = []
    for _ in range(N_DRAWS):
        drawn = rng.integers(len(headlines), size=len(headlines))
        draws.append(measured(found, np.concatenate([by_headline[h] for h in drawn])))
    whole = measured(found, np.arange(len(data["gold"])))
    ranges = {name: np.quantile([one[name] for one in draws], [0.05, 0.95]).tolist() for name in whole}
    return whole | {f"{name}_range": ends for name, ends in ranges.items()}


def one_rating(seed: int) -> dict[str, float]:
    """Return what is measured with one rating of each question, drawn at random."""
    data, rng = read(), np.random.default_rng(seed)
    shuffled = rng.permutation(len(data["score"]))
    _, first = np.unique(data["question"][shuffled], return_index=True)
    value = data["score"][shuffled[first]]
    return measured((value, {t: value >= t for t in THRESHOLDS}), np.arange(len(value)))


def trial(method: str, seed: int) -> Trial:
    """Return what is measured of a method; `seed` draws the one rating."""
    started = time.process_time()
    warnings.simplefilter("ignore")  # of numbers that come close to a bound
    found = one_rating(seed) if method == ONE else with_intervals(METHODS[method]())
    return {"method": method, "seed": seed} | found | {"cpu_s": time.process_time() - started}


def table(trials: list[Trial]) -> str:
    """Return one row per method, and below it what was published."""
    names = ["correlation", *(f"accuracy_{t}" for t in THRESHOLDS)]
    rows = []
    for method in dict.fromkeys(row["method"] for row in trials):
        own = [row for row in trials if row["method"] == method]
        cells: list[Any] = [method]
        for name in names:
            scale = 1 if name == "correlation" else 100
            value = scale * np.mean([row[name] for row in own])
            ends = own[0].get(f"{name}_range")
            digits = 3 if scale == 1 else 1
            between = "" if ends is None else " ({:.{d}f} to {:.{d}f})".format(*np.multiply(scale, ends), d=digits)
            cells.append(f"{value:.{digits}f}{between}")
        rows.append(cells)
    head = ["method", "correlation", *(f"accuracy at t = {t}" for t in THRESHOLDS)]
    published = markdown(["published, t not stated", "accuracy"], PUBLISHED.items())
    return f"{markdown(head, rows)}\n{published}"


if __name__ == "__main__":
    points = [{"method": ONE, "seed": seed} for seed in range(N_ONE)]
    points += [{"method": method, "seed": 0} for method in METHODS]
    order = {"method": [ONE, *METHODS]}
    main(arguments(__doc__, PATH).parse_args(), lambda options: resume(options, trial, points, order=order), table)
