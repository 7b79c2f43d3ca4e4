"""Every aggregator on real crowds without features: accuracy, log-loss, seconds, and what would be recommended.

One call of `compare_aggregators` a data set, with the methods' defaults; gold is used for accuracy and log-loss alone.

    python experiments/aggregators.py            # some minutes; goes on where it was stopped
    python experiments/aggregators.py --again    # from the start, as after a new method or a new default
    python experiments/aggregators.py --table    # results/aggregators.md from results/aggregators.json
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import labelonce as lo

PATH = Path(__file__).parent / "results" / "aggregators.json"
NAMES = [
    *("bluebird", "dog", "face_sentiment", "sentiment_amt_500", "sentiment_tweets_1000", "product"),
    *("zencrowd_in", "zencrowd_us", "adult_content", "trec", "relevance", "fact_eval"),
    *("reuters_crowd_labels", "stanford_dogs_crowd", "labelme", "sentiment_polarity", "amazon_isbook"),
]
COLUMNS = {"accuracy": "Accuracy", "log_loss": "Log-loss, nats", "seconds": "Wall seconds of one fit"}


def trial(name: str) -> dict[str, Any]:
    """Return the rows of one data set."""
    data = lo.datasets.load(name)
    assert data.annotations is not None
    gold = data.gold_of(data.annotations)
    comparison = lo.compare_aggregators(data.annotations, gold=np.where(gold >= 0, data.annotations.classes[gold], -1))
    sizes = [data.annotations.n_tasks, len(data.annotations), data.annotations.n_classes]
    rows = {row.pop("method"): row for row in comparison.to_frame().to_pylist()}
    return {"name": name, "sizes": sizes, "recommended": comparison.recommended, "rows": rows}


def run(done: list[dict[str, Any]]) -> None:
    """Run the data sets that are not done yet, and write the file after each."""
    versions = {name: version(name) for name in ("labelonce", "numpy", "scipy", "scikit-learn")}
    seen = {one["name"] for one in done}
    for name in NAMES:
        if name not in seen:
            done.append(trial(name))
            done.sort(key=lambda one: NAMES.index(one["name"]))
            about = {"command": "python experiments/aggregators.py", "versions": versions}
            PATH.write_text(json.dumps(about | {"trials": done}, indent=1) + "\n")
            best = {method: row["accuracy"] for method, row in done[-1]["rows"].items()}
            print(name, done[-1]["recommended"], best, flush=True)
    table(done)


def table(trials: list[dict[str, Any]]) -> None:
    """Write a table for each measure, and the means."""
    methods = sorted({method for one in trials for method in one["rows"]})
    parts = [_markdown(title, key, trials, methods) for key, title in COLUMNS.items()]
    PATH.with_suffix(".md").write_text("\n".join(parts))


def _markdown(title: str, key: str, trials: list[dict[str, Any]], methods: list[str]) -> str:
    head = ["data set", "tasks", "labels", "classes", *methods, "recommended"]
    lines = [f"{title}:\n", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    values = np.array([[one["rows"][method][key] for method in methods] for one in trials], dtype=np.float64)
    chosen = [one["rows"][one["recommended"]][key] for one in trials]
    digits = 4 if key == "accuracy" else 2
    for one, row, choice in zip(trials, values, chosen, strict=True):
        cells = [one["name"], *(f"{size:,}" for size in one["sizes"])]
        cells += ["" if np.isnan(value) else f"{value:.{digits}f}" for value in row]
        lines.append("| " + " | ".join([*cells, f"{choice:.{digits}f} ({one['recommended']})"]) + " |")
    means = [*values.mean(axis=0), np.mean(chosen)]
    cells = ["**mean**", "", "", "", *("" if np.isnan(value) else f"{value:.{digits}f}" for value in means)]
    return "\n".join([*lines, "| " + " | ".join(cells) + " |"]) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--again", action="store_true")
    arguments = parser.parse_args()
    PATH.parent.mkdir(exist_ok=True)
    done = json.loads(PATH.read_text())["trials"] if PATH.exists() and not arguments.again else []
    table(done) if arguments.table else run(done)
