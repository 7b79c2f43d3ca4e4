"""What MBEM cannot know about LabelMe's crowd, whose workers share mistakes: parts of the truth told to it, one by one.

The recipe is fixed (softmax regression with C = 0.01, six rounds, judged out of fold, the last three averaged), so that
no choice plays a part. In every round what is estimated of the workers is replaced by what gold says of the labelled
tasks: how often each class is right in the whole crowd (one number per class), the crowd's confusion matrix (one for
all workers), each worker's chance of being right by class, or each worker's matrix; or a class balance is given as
`prior`, or some true labels as `gold`. The log-likelihood of all labels after the last round tells what the labels
prefer.

    python experiments/shared_mistakes.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/shared_mistakes.py --table    # the table alone, from results/shared_mistakes.json
"""

import warnings
from itertools import islice
from typing import Any, Self

import numpy as np
from mbem_on_real_crowds import draw
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume
from scipy import special

import labelonce as lo
from labelonce._kernels import ScipyEngine
from labelonce.learning._average import average_models
from labelonce.learning._rounds import Recipe, run_rounds
from labelonce.workers import Full

PATH = RESULTS / "shared_mistakes.json"
TOLD = {
    "nothing": "nothing",
    "equal": "nothing; a guess that classes are equally frequent (`prior=`)",
    "hundred": "the true labels of 100 tasks (`gold=`)",
    "balance": "the class balance (`prior=`)",
    "classes": "how often the crowd is right, by class",
    "crowd": "one confusion matrix of the whole crowd",
    "right": "how often each worker is right, by class",
    "workers": "each worker's confusion matrix",
}
PENALTY, ROUNDS, AVERAGED = 0.01, 6, 3
SEEDS = range(5)


class Told(Full):
    """Workers of whom a part is known: `counts` [worker, true, given] are those that gold gives."""

    def __init__(self, part: str = "nothing", counts: Any = None) -> None:
        self.part, self.counts = part, counts

    def fit_counts(self, counts: Any, leaning: Any = None) -> Self:
        """Fit to counts, and replace what is known."""
        super().fit_counts(counts, leaning)
        if self.part == "workers":
            self.confusion_ = Full().fit_counts(self.counts).confusion_
        elif self.part == "crowd":
            pooled = self.counts.sum(axis=0) + 0.5
            self.confusion_ = np.tile(pooled / pooled.sum(axis=1, keepdims=True), (len(counts), 1, 1))
        elif self.part == "right":
            self.confusion_ = with_right(self.confusion_, right(Full().fit_counts(self.counts).confusion_))
        elif self.part == "classes":
            self.confusion_ = with_right(self.confusion_, self._moved(counts))
        return self

    def _moved(self, counts: Any) -> Any:
        """Return the workers' chances of being right, their log-odds moved so that the crowd's are those of gold."""
        own, labels = right(self.confusion_), counts.sum(axis=2)
        believed = (labels * own).sum(axis=0) / labels.sum(axis=0)
        pooled = self.counts.sum(axis=0)
        true = np.diag(pooled) / pooled.sum(axis=1)
        return special.expit(special.logit(own) + special.logit(true) - special.logit(believed))


def right(confusion: Any) -> Any:
    """Return the chances of being right, (n_workers, n_classes)."""
    return np.einsum("wkk->wk", confusion)


def with_right(confusion: Any, chance: Any) -> Any:
    """Return confusion with other chances of being right; mistakes keep their shares."""
    mistakes = confusion * ((1 - chance) / (1 - right(confusion)))[:, :, None]
    return np.where(np.eye(confusion.shape[1], dtype=bool), chance[:, :, None], mistakes)


def trial(redundancy: Any, seed: int, told: str) -> Trial:
    """Return the test accuracy, that of the labels, the log-likelihood, and what was believed of the classes."""
    warnings.simplefilter("ignore")
    X, y, X_test, y_test, ann = draw("labelme", redundancy, seed)
    counts = ScipyEngine(ann, "float64").m_step(np.eye(ann.n_classes)[y])
    shares = np.bincount(y, minlength=ann.n_classes) / len(y)
    prior = {"balance": shares, "equal": np.full(ann.n_classes, 1 / ann.n_classes)}.get(told, "uniform")
    workers = Told(told, counts)
    gold = np.full(len(y), -1, dtype=np.int32)
    if told == "hundred":
        some = np.random.default_rng(seed).choice(len(y), 100, replace=False)
        gold[some] = y[some]
    recipe = Recipe(lo.SoftmaxRegression(C=PENALTY), workers, "out_of_fold", prior=prior)
    rounds = list(islice(run_rounds(X, ann, recipe, gold=gold, seed=seed, last=ROUNDS), ROUNDS))
    model, last = average_models([this.model for this in rounds[-AVERAGED:]]), rounds[-1]
    return {
        "redundancy": redundancy,
        "seed": seed,
        "told": told,
        "accuracy": float((model.predict_proba(X_test).argmax(axis=1) == y_test).mean()),
        "labels": float((last.posterior.argmax(axis=1) == y).mean()),
        "log_likelihood": last.log_likelihood,
        "shares": last.posterior.mean(axis=0).tolist(),
        "true_shares": shares.tolist(),
    }


def table(trials: list[Trial]) -> str:
    """Return mean and standard error by what was told."""
    head = ["known from gold"]
    for r in ("one label", "all labels"):
        head += [f"{r}: test accuracy", "labels right", "log-likelihood of the labels"]
    rows = []
    for told, title in TOLD.items():
        row: list[Any] = [title]
        for redundancy in (1, "all"):
            own = [one for one in trials if (one["told"], one["redundancy"]) == (told, redundancy)]
            row += [mean_error([100 * one[key] for one in own]) for key in ("accuracy", "labels")]
            row.append(f"{np.mean([one['log_likelihood'] for one in own]):.0f}" if own else "")
        rows.append(row)
    return markdown(head, rows)


if __name__ == "__main__":
    points = [{"redundancy": r, "seed": seed, "told": told} for seed in SEEDS for r in (1, "all") for told in TOLD]
    main(arguments(__doc__, PATH).parse_args(), lambda options: resume(options, trial, points), table)
