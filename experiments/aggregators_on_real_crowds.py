"""Which aggregator is best on real crowds without features: accuracy, log-loss, seconds, and the recommended one.

One call of `compare_aggregators` per data set, with the methods' defaults; gold serves accuracy and log-loss alone.

    python experiments/aggregators_on_real_crowds.py            # needs the data of datasets.md; resumes
    python experiments/aggregators_on_real_crowds.py --again    # from the start, as after a new method or a new default
    python experiments/aggregators_on_real_crowds.py --table    # the table alone
"""

from typing import Any

import data_sets
import numpy as np
from record import RESULTS, Trial, experiment, markdown

import labelonce as lo

PATH = RESULTS / "aggregators_on_real_crowds.json"
NAMES = [
    *("bluebird", "dog", "face_sentiment", "sentiment_amt_500", "sentiment_tweets_1000", "product"),
    *("zencrowd_in", "zencrowd_us", "adult_content", "trec", "relevance", "fact_eval"),
    *("reuters_crowd_labels", "stanford_dogs_crowd", "labelme", "sentiment_polarity", "amazon_isbook"),
]
COLUMNS = {"accuracy": "Accuracy", "log_loss": "Log-loss, nats", "seconds": "Wall seconds of one fit"}


def trial(name: str) -> dict[str, Any]:
    """Return the rows of one data set."""
    data = data_sets.load(name)
    assert data.annotations is not None
    gold = data.gold_of(data.annotations)
    comparison = lo.compare_aggregators(data.annotations, gold=np.where(gold >= 0, data.annotations.classes[gold], -1))
    sizes = [data.annotations.n_tasks, len(data.annotations), data.annotations.n_classes]
    rows = {row.pop("method"): row for row in comparison.to_frame().to_pylist()}
    return {"sizes": sizes, "recommended": comparison.recommended, "rows": rows}


def table(trials: list[Trial]) -> str:
    """Return a table for each measure, with the means."""
    methods = sorted({method for one in trials for method in one["rows"]})
    return "\n".join(f"{title}:\n\n{_part(key, trials, methods)}" for key, title in COLUMNS.items())


def _part(key: str, trials: list[Trial], methods: list[str]) -> str:
    head = ["data set", "tasks", "labels", "classes", *methods, "recommended"]
    values = np.array([[one["rows"][method][key] for method in methods] for one in trials], dtype=np.float64)
    chosen = [one["rows"][one["recommended"]][key] for one in trials]
    digits = 4 if key == "accuracy" else 2

    def shown(numbers: Any) -> list[str]:
        return ["" if np.isnan(value) else f"{value:.{digits}f}" for value in numbers]

    rows = []
    for one, row, choice in zip(trials, values, chosen, strict=True):
        sizes = [f"{size:,}" for size in one["sizes"]]
        rows.append([one["name"], *sizes, *shown(row), f"{choice:.{digits}f} ({one['recommended']})"])
    means = [*values.mean(axis=0), np.mean(chosen)]
    return markdown(head, [*rows, ["**mean**", "", "", "", *shown(means)]])


if __name__ == "__main__":
    points = [{"name": name} for name in NAMES]
    experiment(__doc__, PATH, trial, lambda _: points, table, order={"name": NAMES}, jobs=1)  # seconds are measured
