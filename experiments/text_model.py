"""What character n-grams add to words: `labelonce.learning.text_model` beside the same model on words alone.

Test accuracy on two crowds with texts, with all labels and with one random label per task (one draw), trained on the
true labels, on the majority vote and by MBEM. Penalties: MBEM chooses by held-out annotations; the others use the one
that five-fold cross-validation on their own training labels prefers.

    python experiments/text_model.py            # about 8 CPU minutes; goes on where it was stopped
    python experiments/text_model.py --table    # results/text_model.md from results/text_model.json
"""

import argparse
import json
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import labelonce as lo
from labelonce.learning import TextFeatures, text_model

PATH = Path(__file__).parent / "results" / "text_model.json"
METHODS = ["truth", "MV", "MBEM"]
PENALTIES = (0.1, 1.0, 10.0)


def word_model() -> list[Any]:
    """Return the candidates of `text_model` with TF-IDF of words and pairs of words alone."""
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
    return [make_pipeline(words, lo.SoftmaxRegression(C=C)) for C in PENALTIES]


def tuned(X: Any, y: Any) -> Any:
    """Return softmax regression with the penalty that cross-validation prefers."""
    return GridSearchCV(lo.SoftmaxRegression(), {"C": list(PENALTIES)}, cv=5).fit(X, y)


def trial(name: str, redundancy: int | None, seed: int) -> dict[str, Any]:
    """Return the test accuracy of every method with both kinds of features."""
    warnings.simplefilter("ignore")
    data = lo.datasets.load(name)
    assert data.annotations is not None
    assert data.texts is not None
    ann = data.annotations
    train, test = ann.tasks, np.flatnonzero(data.split == "test")
    if redundancy is not None:
        ann = ann.sample(redundancy=redundancy, random_state=seed)
    vote = lo.MajorityVote().fit(ann).labels_
    texts, y_test = data.texts[train], data.gold[test]
    row: dict[str, Any] = {"name": name, "redundancy": redundancy or "all", "seed": seed}
    for kind, model in (("words", word_model()), ("words and characters", text_model())):
        started = time.process_time()
        features = model[0][0] if kind == "words" else TextFeatures()
        X, X_test = features.fit_transform(texts), features.transform(data.texts[test])
        mbem = lo.MBEM(model).fit(texts, ann)
        predictions = {
            "truth": tuned(X, data.gold[train]).predict(X_test),
            "MV": tuned(X, vote).predict(X_test),
            "MBEM": mbem.predict(data.texts[test]),
        }
        row[kind] = {method: float((labels == y_test).mean()) for method, labels in predictions.items()}
        row[kind] |= {"terms": X.shape[1], "cpu_s": time.process_time() - started}
    return row


def run() -> None:
    """Run what is not in the file yet."""
    done = json.loads(PATH.read_text())["trials"] if PATH.exists() else []
    seen = {(row["name"], row["redundancy"], row["seed"]) for row in done}
    for name in ("sentiment_polarity", "amazon_isbook"):
        for redundancy, seed in ((1, 0), (None, 0)):
            if (name, redundancy or "all", seed) not in seen:
                done.append(trial(name, redundancy, seed))
                versions = {package: version(package) for package in ("labelonce", "numpy", "scipy", "scikit-learn")}
                PATH.write_text(json.dumps({"versions": versions, "device": "cpu", "trials": done}, indent=1) + "\n")
                print(done[-1], flush=True)


def table() -> None:
    """Write the mean of every method and kind of features."""
    trials = json.loads(PATH.read_text())["trials"]
    kinds = ("words", "words and characters")
    head = ["data set", "labels per task", "features", "terms", *METHODS]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for key in dict.fromkeys((row["name"], row["redundancy"]) for row in trials):
        rows = [row for row in trials if (row["name"], row["redundancy"]) == key]
        for kind in kinds:
            accuracy = [f"{np.mean([100 * row[kind][method] for row in rows]):.1f}" for method in METHODS]
            cells = [*map(str, key), kind, f"{rows[0][kind]['terms']:,}", *accuracy]
            lines.append("| " + " | ".join(cells) + " |")
    PATH.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    PATH.parent.mkdir(exist_ok=True)
    (table if parser.parse_args().table else run)()
