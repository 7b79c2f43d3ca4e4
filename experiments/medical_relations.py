"""Medical relations: 14 check boxes per sentence, experts on two of them, with one to all judgements.

    python experiments/medical_relations.py    # some minutes; needs the data folder

Share of the experts' sentences whose label is right and F1, for TREATS (606 sentences) and CAUSES (929), against the
authors' corrected test partition, which no method sees. With fewer judgements than all, workers of a sentence are drawn
with all their ticks, five times. "OneCoin" is one fit per question, as our guide once recommended.

The models of texts are trained on seven tenths of the sentences, drawn by the seed, and measured on the experts'
sentences among the rest, of which they see neither text nor ticks. The total is fixed: 2,261 judgements are spent on as
many sentences once, or on fewer of them three, five or seven times; "all" is every judgement of these sentences.
Texts are TF-IDF of words and characters, the two terms in question replaced by marks, in 150 principal directions.
"Votes" and "Dawid-Skene" are heads fitted to these labels with C by cross-validation, "MBEM" is `MultiLabelMBEM`.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import data_sets
import numpy as np
import pyarrow.parquet as pq
from multilabel import by_cross_validation
from record import RESULTS, Trial, experiment, grouped, markdown, mean_error, several
from sklearn.decomposition import TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelonce as lo
from labelonce.learning import TextFeatures
from labelonce.multilabel import average_precision, f1_score

PATH = RESULTS / "medical_relations.json"
METHODS = ("vote", "OneCoin", "one Dawid-Skene per question", "shared", "shared, context")
TEXT = ("text on votes", "text on Dawid-Skene", "text, MBEM")
ALL = 99
N_DIRECTIONS = 150


def load() -> tuple[lo.MultiLabelAnnotations, dict[str, dict[int, int]]]:
    """Return the judgements, and the experts' answers by question and sentence."""
    folder = data_sets.folder() / data_sets.MEDICAL
    known: dict[str, dict[int, int]] = {"TREATS": {}, "CAUSES": {}}
    for row in pq.read_table(folder / "gold.parquet").to_pylist():
        if row["test_partition"]:
            known[row["question"]][row["task"]] = int(row["test_partition"] > 0)
    return lo.MultiLabelAnnotations.from_wide(pq.read_table(folder / "annotations_wide.parquet")), known


def posterior(method: str, ann: lo.MultiLabelAnnotations) -> Any:
    """Return P(yes) of every sentence and relation."""
    if method == "OneCoin":
        columns = [lo.OneCoin().fit(ann.of_question(name)).posterior_[:, 1] for name in ann.questions]
        return np.stack(columns, axis=1)
    models = {
        "vote": lo.MultiLabelVote(),
        "one Dawid-Skene per question": lo.MultiLabelDawidSkene(sharing="none"),
        "shared": lo.MultiLabelDawidSkene(),
        "shared, context": lo.MultiLabelDawidSkene(context="votes"),
    }
    return models[method].fit(ann).posterior_


def texts() -> dict[int, str]:
    """Return the sentences with marks in place of the two terms."""
    found = {}
    for row in pq.read_table(data_sets.folder() / data_sets.MEDICAL / "texts.parquet").to_pylist():
        text = row["text"]
        for term, mark in ((row["term1"], "TERMONE "), (row["term2"], "TERMTWO ")):
            text = text.replace(term, mark) if term else text
        found[row["task"]] = text
    return found


def text_trial(method: str, ann: lo.MultiLabelAnnotations, judgements: int, seed: int) -> tuple[Any, Any, float]:
    """Return P(yes) of every sentence by a model of texts, which sentences it has not seen, and its seconds."""
    order = np.random.default_rng([seed, 3]).permutation(ann.n_tasks)
    pool, is_test = order[: int(0.7 * ann.n_tasks)], np.ones(ann.n_tasks, dtype=bool)
    is_test[pool] = False
    used = np.isin(np.arange(ann.n_tasks), pool[: len(pool) if judgements == ALL else len(pool) // judgements])
    seen = ann.select(used)
    if judgements != ALL:
        seen = seen.sample(redundancy=judgements, random_state=seed)
    marked = texts()
    said = [marked[task] for task in ann.tasks.tolist()]
    features = make_pipeline(TextFeatures(min_df=3), TruncatedSVD(N_DIRECTIONS, random_state=0), StandardScaler())
    X = features.fit([said[row] for row in pool]).transform(said)
    started = time.perf_counter()
    if method == "text, MBEM":
        model: Any = lo.MultiLabelMBEM().fit(X[used], seen)
    else:
        aggregator = lo.MultiLabelVote() if method == "text on votes" else lo.MultiLabelDawidSkene()
        model = by_cross_validation(X[used], aggregator.fit(seen).posterior_)
    return model.predict_proba(X), is_test, time.perf_counter() - started


def figures(name: str, true: Any, chance: Any) -> Trial:
    """Return accuracy, F1 and average precision of one question."""
    given = (chance > 0.5).astype(int)
    found = {"accuracy": (given == true).mean(), "F1": f1_score(true[:, None], given[:, None])}
    found["AP"] = np.mean(average_precision(true[:, None], chance[:, None]))
    return {f"{name} {figure}": float(value) for figure, value in found.items()}


def trial(method: str, judgements: int, seed: int) -> Trial:
    """Return what one method reaches on the two questions."""
    ann, known = load()
    if method in TEXT:
        found, measured, seconds = text_trial(method, ann, judgements, seed)
    else:
        ann = ann if judgements == ALL else ann.sample(redundancy=judgements, random_state=seed)
        started = time.perf_counter()
        found, measured = posterior(method, ann), np.ones(ann.n_tasks, dtype=bool)
        seconds = time.perf_counter() - started
    place = {int(task): number for number, task in enumerate(ann.tasks)}
    row: Trial = {}
    for name, answers in known.items():
        rows, true = np.array([place[task] for task in answers]), np.array(list(answers.values()))
        kept = measured[rows]
        row |= figures(name, true[kept], found[rows[kept], list(ann.questions).index(name)])
    return row | {"seconds": round(seconds, 2)}


def points(options: argparse.Namespace) -> Iterator[Trial]:
    for judgements, seed, method in product((ALL, 7, 5, 3, 1), range(options.seeds), (*METHODS, *TEXT)):
        if method in options.methods and (seed == 0 or judgements != ALL or method in TEXT):
            yield {"method": method, "judgements": judgements, "seed": seed}


def table(trials: list[Trial]) -> str:
    """Return two tables, of labels alone and of models of texts: a row per method and number of judgements."""
    return f"{part(trials, METHODS, ('accuracy', 'F1'))}\n{part(trials, TEXT, ('accuracy', 'F1', 'AP'))}"


def part(trials: list[Trial], methods: tuple[str, ...], shown: tuple[str, ...]) -> str:
    """Return one row per method and number of judgements, in percent."""
    names = [f"{name} {figure}" for name in ("TREATS", "CAUSES") for figure in shown]
    found, rows = grouped(trials, "judgements", "method"), []
    for judgements, method in product(sorted({row["judgements"] for row in trials}, reverse=True), methods):
        if own := found.get((judgements, method)):
            cells = [mean_error([100 * row[name] for row in own]) for name in names]
            rows.append(["all" if judgements == ALL else judgements, method, *cells])
    return markdown(["judgements", "", *names], rows)


if __name__ == "__main__":
    methods, seeds = (*METHODS, *TEXT), {"type": int, "default": 5}
    asked: dict[str, Any] = {"methods": several(methods, choices=methods), "seeds": seeds}
    experiment(__doc__, PATH, trial, points, table, order={"method": methods}, **asked)
