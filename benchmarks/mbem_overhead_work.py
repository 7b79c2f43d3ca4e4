"""One row of the overhead: `python mbem_overhead_work.py WORK FOLDER`, the learner alone or MBEM around it."""

import json
import sys
import time
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from measure import report

import labelonce as lo
from labelonce._types import Floats

ROUNDS = 3


class TimedSoftmax(lo.SoftmaxRegression):
    """Softmax regression that adds up the CPU seconds of its fits and predictions, over all clones."""

    spent: ClassVar[dict[str, float]] = {"fits": 0, "learner_s": 0.0}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, and count it."""
        start = time.process_time()
        super().fit(X, y, sample_weight)
        self.spent["fits"] += 1
        self.spent["learner_s"] += time.process_time() - start
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Predict, and count it."""
        start = time.process_time()
        probabilities = super().predict_proba(X)
        self.spent["learner_s"] += time.process_time() - start
        return probabilities


def main(work: str, folder: Path) -> None:
    """Print one JSON line for one piece of work."""
    X, y_true = np.load(folder / "features.npy"), np.load(folder / "truth.npy")
    rows = np.load(folder / "annotations.npy")
    ann = lo.Annotations.from_arrays(*rows, classes=np.arange(10))
    votes = np.eye(10)[ann.label]
    about = {"version": lo.__version__, "work": work, "rounds": ROUNDS, "n_tasks": len(X), "n_features": X.shape[1]}
    about |= {"n_workers": ann.n_workers, "n_classes": ann.n_classes, "n_annotations": len(ann)}
    if work == "learner":
        report(lambda: TimedSoftmax().fit(X, votes).predict_proba(X), lambda p: accuracy(p, y_true), **about)
    else:
        del votes
        options: dict[str, Any] = {"rounds": ROUNDS, "folds": 1}
        model = lo.MBEM(TimedSoftmax(), **options)
        report(lambda: model.fit(X, ann).predict_proba(X), lambda p: accuracy(p, y_true), **about)
    print(json.dumps(TimedSoftmax.spent))


def accuracy(probabilities: Floats, y_true: Any) -> float:
    """Return the share of right picks."""
    return float((probabilities.argmax(axis=1) == y_true).mean())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
