"""Does a difficulty per task pay in MBEM? Labels of hard tasks say less: GLAD with a model in the loop.

A worker's confusion matrix holds for tasks of usual difficulty; a task of easiness t is labelled by its rows to the
power t, scaled to sum to one, so that with two classes the log-odds of a right label are ability times easiness, as in
J. Whitehill and others, "Whose Vote Should Count More", NIPS 2009. A task's easiness is one of `LEVELS` and is summed
out, since a few labels do not tell it; how frequent the levels are is learned in every E-step, for all tasks together
("labels") or for each fifth of the tasks by how sure the model's prediction is ("features": the model says which tasks
are hard). Everything else is MBEM of five rounds with a penalty that suits the set.

Simulated crowds: workers as usual ("no difficulty"), tasks whose difficulty has nothing to do with the features, and
tasks that are hard where a model trained on the truth is unsure.

    python experiments/difficulty.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/difficulty.py --table    # the table alone, from results/difficulty.json
"""

import warnings
from typing import Any

import numpy as np
from mbem_on_real_crowds import SUITABLE_PENALTY, draw
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume
from scipy import special
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import labelonce as lo
from labelonce._kernels import EStep, ScipyEngine, Sweep, entropy
from labelonce.learning._calibration import sample_tasks
from labelonce.learning._contenders import memorises
from labelonce.learning._rounds import N_FOLDS, Fitted, Recipe, answered, fit_and_predict, judge_round, vote_targets
from labelonce.workers import Full

PATH = RESULTS / "difficulty.json"
TITLES = {
    "none": "digits, no difficulty",
    "any": "digits, difficulty apart from the features",
    "looks": "digits, hard where a good model is unsure",
    "labelme": "LabelMe",
    "sentiment_polarity": "film reviews",
    "amazon_isbook": "is it a book?",
}
KINDS = ("none", "labels", "features")
LEVELS = np.array([0.0, 0.25, 0.5, 1.0, 2.0])
FIFTHS = 5
CAUTION = 20.0  # tasks that the shares of the levels lean on, all of them of usual difficulty
ROUNDS = 5
SEEDS = range(5)


class DifficultyEngine:
    """Sums over annotations whose workers do worse on hard tasks; otherwise a `ScipyEngine`."""

    def __init__(self, annotations: lo.Annotations, *, by_features: bool) -> None:
        self._inner, self.leaning = ScipyEngine(annotations, "float64"), None
        self._by_features = by_features
        self._part = np.zeros(annotations.n_tasks, dtype=int)
        usual = np.where(LEVELS == 1.0, 0.8, 0.2 / (len(LEVELS) - 1))
        self._shares = np.tile(usual, (FIFTHS, 1))
        self._usual = usual
        self.easiness = np.ones(annotations.n_tasks)

    def vote_counts(self) -> Any:
        """Return how often each class was given to each task."""
        return self._inner.vote_counts()

    def e_step(self, log_confusion: Any, log_prior: Any, gold: Any = None) -> EStep:
        """Return P(true label) of every task, its difficulty summed out; the shares of the levels take one EM step."""
        n_workers, n_classes, n_answers = log_confusion.shape
        powers = log_confusion[:, :, None, :] * LEVELS[:, None]
        powers -= special.logsumexp(powers, axis=3, keepdims=True)
        if log_prior.ndim == 2 and self._by_features:
            unsure = entropy(np.exp(log_prior - special.logsumexp(log_prior, axis=1, keepdims=True)))
            self._part = unsure.argsort(kind="stable").argsort(kind="stable") * FIFTHS // len(unsure)
        prior = np.broadcast_to(log_prior, (len(self._part), n_classes))[:, :, None]
        states = prior + np.log(self._shares[self._part])[:, None, :]
        table = powers.reshape(n_workers, -1, n_answers)
        found = self._inner.e_step(table, states.reshape(len(states), -1), gold)
        joint = found.posterior.reshape(len(states), n_classes, len(LEVELS))
        level = joint.sum(axis=1)
        self.easiness = level @ LEVELS
        if log_prior.ndim == 2:
            sums = np.stack([level[self._part == part].sum(axis=0) for part in range(FIFTHS)]) + CAUTION * self._usual
            self._shares = sums / sums.sum(axis=1, keepdims=True)
        return EStep(joint.sum(axis=2), found.log_likelihood)

    def m_step(self, posterior: Any) -> Any:
        """Return the expected confusion counts; a label counts as much as its task is easy."""
        return self._inner.m_step(posterior * self.easiness[:, None])

    def sweep(self, log_confusion: Any, log_prior: Any, gold: Any = None) -> Sweep:
        """Return the counts of `m_step` for the posteriors of `e_step`."""
        posterior, log_likelihood = self.e_step(log_confusion, log_prior, gold)
        return Sweep(self.m_step(posterior), posterior.sum(axis=0), log_likelihood, None)


def fitted(X: Any, ann: lo.Annotations, learner: Any, kind: str) -> tuple[Any, Any]:
    """Return model and posterior after the rounds."""
    engine: Any = ScipyEngine(ann, "float64")
    if kind != "none":
        engine = DifficultyEngine(ann, by_features=kind == "features")
    how = "out_of_fold" if memorises(learner, X, ann, None, 0, N_FOLDS) else "in_sample"
    recipe, start, sample = Recipe(learner, Full(), how), answered(ann, None), sample_tasks(ann, engine)
    posterior, weight = vote_targets(engine, None)
    for number in range(1, ROUNDS + 1):
        rng = np.random.default_rng([0, number])
        model, predictions = fit_and_predict(learner, X, posterior, weight, recipe, rng)
        done = Fitted(model, predictions, posterior, weight)
        this = judge_round(engine, recipe, done, None, number=number, start=start, sample=sample)
        posterior, weight = this.posterior, this.weight
    return model, posterior


def crowd(name: str, redundancy: Any, seed: int) -> tuple[Any, Any, Any, Any, lo.Annotations, Any]:
    """Return features and classes of train and test tasks, annotations and the learner."""
    if name in SUITABLE_PENALTY:
        X, y, X_test, y_test, ann = draw(name, redundancy, seed)
        return X, y, X_test, y_test, ann, lo.SoftmaxRegression(C=SUITABLE_PENALTY[name])
    rng = np.random.default_rng(seed)
    X, y = load_digits(return_X_y=True)
    order = rng.permutation(len(y))
    X, y, n, n_workers = X[order] / 16, y[order], 1297, 50
    redundancy = 5 if redundancy == "all" else redundancy
    easiness = np.ones(n)
    if name == "any":
        easiness = np.exp(rng.normal(0.0, 1.0, n))
    elif name == "looks":
        sure = cross_val_predict(LogisticRegression(max_iter=500), X[:n], y[:n], method="predict_proba").max(axis=1)
        easiness = 2.0 * sure.argsort().argsort() / n
    ability = rng.choice([0.0, 1.0, 3.0], n_workers)
    worker = lo.simulate.assign(n, n_workers, redundancy, rng, replace=False).ravel()
    task = np.repeat(np.arange(n), redundancy)
    right = special.expit(2 * ability[worker] * easiness[task] - np.log(9))  # one in ten where either is 0
    other = (y[task] + rng.integers(1, 10, len(task))) % 10
    ann = lo.Annotations.from_arrays(task, worker, np.where(rng.random(len(task)) < right, y[task], other))
    return X[:n], y[:n], X[n:], y[n:], ann, lo.SoftmaxRegression()


def trial(name: str, redundancy: Any, seed: int) -> Trial:
    """Return how often labels and model are right with and without difficulty."""
    X, y, X_test, y_test, ann, learner = crowd(name, redundancy, seed)
    row: Trial = {"name": name, "redundancy": redundancy, "seed": seed, "model": {}, "labels": {}}
    for kind in KINDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, posterior = fitted(X, ann, learner, kind)
        row["model"][kind] = float((ann.classes[model.predict_proba(X_test).argmax(axis=1)] == y_test).mean())
        row["labels"][kind] = float((ann.classes[posterior.argmax(axis=1)] == y).mean())
    return row


def table(trials: list[Trial]) -> str:
    """Return one row per set and redundancy: without difficulty, and what each kind adds."""
    head = ["set", "labels per task", "draws", "model right, %", "by labels", "by features"]
    head += ["labels right, %", "by labels", "by features"]
    rows = []
    for name, redundancy in dict.fromkeys((one["name"], one["redundancy"]) for one in trials):
        of = [one for one in trials if (one["name"], one["redundancy"]) == (name, redundancy)]
        cells: list[Any] = []
        for what in ("model", "labels"):
            cells.append(mean_error([100 * one[what]["none"] for one in of]))
            cells += [
                mean_error([100 * (one[what][kind] - one[what]["none"]) for one in of], sign="+") for kind in KINDS[1:]
            ]
        shown = 5 if redundancy == "all" and name not in SUITABLE_PENALTY else redundancy
        rows.append([TITLES[name], shown, len(of), *cells])
    return markdown(head, rows)


def points() -> list[Trial]:
    """Return every set with its redundancies and seeds; all labels of a real crowd are there once."""
    found: list[Trial] = []
    for name in TITLES:
        for redundancy in (1, "all"):
            seeds = [0] if redundancy == "all" and name in SUITABLE_PENALTY else SEEDS
            found += [{"name": name, "redundancy": redundancy, "seed": seed} for seed in seeds]
    return found


if __name__ == "__main__":
    order: dict[str, list[Any]] = {"name": list(TITLES), "redundancy": [1, "all"]}
    main(arguments(__doc__, PATH).parse_args(), lambda options: resume(options, trial, points(), order=order), table)
