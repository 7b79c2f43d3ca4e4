"""Medical relations: 14 check boxes per sentence, experts on two of them, labels alone, with one to all judgements.

    python experiments/medical_relations.py    # some minutes; needs the data folder

Share of the experts' sentences whose label is right and F1, for TREATS (606 sentences) and CAUSES (929), against the
authors' corrected test partition, which no method sees. With fewer judgements than all, workers of a sentence are drawn
with all their ticks, five times. "OneCoin" is one fit per question, as our guide once recommended.
"""

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import record

import labelonce as lo
from labelonce.multilabel import f1_score

PATH = record.RESULTS / "medical_relations.json"
METHODS = ("vote", "OneCoin", "one Dawid-Skene per question", "shared", "shared, context")
ALL = 99


def load() -> tuple[lo.MultiLabelAnnotations, dict[str, dict[int, int]]]:
    """Return the judgements, and the experts' answers by question and sentence."""
    folder = Path(os.environ["LABELONCE_DATA"]) / "medical_relations_multilabel"
    gold = pq.read_table(folder / "gold.parquet").to_pylist()
    known: dict[str, dict[int, int]] = {"TREATS": {}, "CAUSES": {}}
    for row in gold:
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


def trial(method: str, judgements: int, seed: int) -> record.Trial:
    """Return what one method reaches on the two questions."""
    ann, known = load()
    if judgements != ALL:
        ann = ann.sample(redundancy=judgements, random_state=seed)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = posterior(method, ann)
    row: record.Trial = {"method": method, "judgements": judgements, "seed": seed}
    place = {int(task): number for number, task in enumerate(ann.tasks)}
    for name, answers in known.items():
        column = found[[place[task] for task in answers], list(ann.questions).index(name)]
        given, true = (column > 0.5).astype(int), np.array(list(answers.values()))
        row |= {
            f"{name} accuracy": float((given == true).mean()),
            f"{name} F1": f1_score(true[:, None], given[:, None]),
        }
    return row | {"seconds": round(time.perf_counter() - started, 2)}


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    points = [
        {"method": method, "judgements": judgements, "seed": seed}
        for judgements in (ALL, 7, 5, 3, 1)
        for seed in range(1 if judgements == ALL else options.seeds)
        for method in METHODS
    ]
    record.resume(options, trial, points, order={"method": METHODS})


def table(trials: list[record.Trial]) -> str:
    """Return one row per method and number of judgements, in percent."""
    names = [f"{name} {figure}" for name in ("TREATS", "CAUSES") for figure in ("accuracy", "F1")]
    rows = []
    for judgements in sorted({row["judgements"] for row in trials}, reverse=True):
        for method in METHODS:
            own = [row for row in trials if (row["judgements"], row["method"]) == (judgements, method)]
            if own:
                cells = [record.mean_error([100 * row[name] for row in own]) for name in names]
                rows.append(["all" if judgements == ALL else judgements, method, *cells])
    return record.markdown(["judgements", "", *names], rows)


if __name__ == "__main__":
    parser = record.arguments(__doc__, PATH)
    parser.add_argument("--seeds", type=int, default=5)
    record.main(parser.parse_args(), run, table)
