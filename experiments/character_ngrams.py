"""What character n-grams add to words: `labelonce.learning.text_model` beside the same model on words alone.

Test accuracy on two crowds with texts, with all labels and with one random label per task (one draw), trained on the
true labels, on the majority vote and by MBEM. Penalties: MBEM chooses by held-out annotations; the others use the one
that five-fold cross-validation on their own training labels prefers.

    python experiments/character_ngrams.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/character_ngrams.py --table    # the table alone, from results/character_ngrams.json
"""

import time
import warnings
from typing import Any, Literal

import data_sets
import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, resume
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import labelonce as lo
from labelonce.learning import TextFeatures, text_model

PATH = RESULTS / "character_ngrams.json"
NAMES = ("sentiment_polarity", "amazon_isbook")
METHODS = ["truth", "MV", "MBEM"]
PENALTIES = (0.1, 1.0, 10.0)


def word_model() -> list[Any]:
    """Return the candidates of `text_model` with TF-IDF of words and pairs of words alone."""
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, ngram_range=(1, 2))
    return [make_pipeline(words, lo.SoftmaxRegression(C=C)) for C in PENALTIES]


def tuned(X: Any, y: Any) -> Any:
    """Return softmax regression with the penalty that cross-validation prefers."""
    return GridSearchCV(lo.SoftmaxRegression(), {"C": list(PENALTIES)}, cv=5).fit(X, y)


def trial(name: str, redundancy: int | Literal["all"], seed: int) -> dict[str, Any]:
    """Return the test accuracy of every method with both kinds of features."""
    warnings.simplefilter("ignore")
    data = data_sets.load(name)
    assert data.annotations is not None
    assert data.texts is not None
    ann = data.annotations
    train, test = ann.tasks, np.flatnonzero(data.split == "test")
    if redundancy != "all":
        ann = ann.sample(redundancy=redundancy, random_state=seed)
    vote = lo.MajorityVote().fit(ann).labels_
    texts, y_test = data.texts[train], data.gold[test]
    row: dict[str, Any] = {"name": name, "redundancy": redundancy, "seed": seed}
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


def table(trials: list[Trial]) -> str:
    """Return the mean of every method and kind of features."""
    rows = []
    for key in dict.fromkeys((row["name"], row["redundancy"]) for row in trials):
        own = [row for row in trials if (row["name"], row["redundancy"]) == key]
        for kind in ("words", "words and characters"):
            accuracy = [f"{np.mean([100 * row[kind][method] for row in own]):.1f}" for method in METHODS]
            rows.append([*key, kind, f"{own[0][kind]['terms']:,}", *accuracy])
    return markdown(["data set", "labels per task", "features", "terms", *METHODS], rows)


if __name__ == "__main__":
    points = [{"name": name, "redundancy": redundancy, "seed": 0} for name in NAMES for redundancy in (1, "all")]
    options = arguments(__doc__, PATH)
    options.set_defaults(jobs=1)
    main(options.parse_args(), lambda options: resume(options, trial, points, order={"name": NAMES}), table)
