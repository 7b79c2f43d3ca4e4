"""Why 15 fits lose points: folds, rounds, and what is averaged, with forests and boosted trees, one at a time.

On crowds like those of `fifteen_fits.py`, other draws: every round predicts each task by models that did not see it, of
2 to 5 folds. Beside each other the test accuracy of the last round's model, of the average over all rounds, and of the
average over the rounds that are near the best by the labels; each of the folds' models, which cost nothing more, and of
models fitted to all tasks, one more fit in every round. The rule of `labelonce.learning._fits.frugal_folds` was chosen
by an earlier run of these draws.

    python experiments/folds_and_rounds.py            # some ten minutes of CPU time; resumes where it was stopped
    python experiments/folds_and_rounds.py --table    # the table alone, from results/folds_and_rounds.json
"""

from itertools import islice
from typing import Any

import numpy as np
from fifteen_fits import TITLES, crowd, learner
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume

import labelonce as lo
from labelonce._kernels import ScipyEngine, floored_log
from labelonce._types import Floats
from labelonce.learning._adapter import as_learner
from labelonce.learning._rounds import Recipe, Round, fit_model, learner_of_round, run_rounds
from labelonce.learning._selection import near_best
from labelonce.learning._trials import log_likelihoods
from labelonce.workers import Full

PATH = RESULTS / "folds_and_rounds.json"
SEEDS = (10, 11, 12, 13)
FOLDS = (2, 3, 4, 5)
ROUNDS = (3, 4, 6)
KINDS = ("last", "average", "near best")


def trial(name: str, learner_name: str, seed: int) -> Trial:
    """Return the test accuracy by folds, rounds, kind of average, and whose models these are."""
    X, ann, X_test, y_test = crowd(name, seed)
    row: Trial = {"name": name, "learner_name": learner_name, "seed": seed, "accuracy": {}}
    for folds in FOLDS:
        made = as_learner(learner(learner_name, limited=True))
        recipe = Recipe(made, Full(), "out_of_fold", n_folds=folds, of_folds=True)
        rounds = list(islice(run_rounds(X, ann, recipe, gold=None, seed=0, last=ROUNDS[-1]), ROUNDS[-1]))
        said = {"folds": [this.model.predict_proba(X_test) for this in rounds]}
        said["all tasks"] = [of_all_tasks(X, recipe, this).predict_proba(X_test) for this in rounds]
        for n_rounds in ROUNDS:
            picked = {"last": [n_rounds - 1], "average": range(n_rounds), "near best": near(ann, rounds[:n_rounds])}
            for kind, numbers in picked.items():
                for whose, predictions in said.items():
                    mean = np.mean([predictions[number] for number in numbers], axis=0)
                    key = f"{folds} folds, {n_rounds} rounds, {kind}, {whose}"
                    row["accuracy"][key] = float((mean.argmax(axis=1) == y_test).mean())
    return row


def of_all_tasks(X: Any, recipe: Recipe, this: Round) -> Any:
    """Return the model of a round that is fitted to all tasks."""
    made = learner_of_round(recipe.learner, this.number, ROUNDS[-1], np.random.default_rng(this.number))
    return fit_model(made, X, this.targets, this.target_weight)


def near(ann: lo.Annotations, rounds: list[Round]) -> Any:
    """Return the rounds within one standard error of the one that is right most often, as far as the labels tell."""
    likely = [log_likelihoods(ann, this.predictions, this.confusion).mean() for this in rounds]
    workers: Floats = rounds[int(np.argmax(likely))].confusion
    posterior = ScipyEngine(ann, "float64").e_step(floored_log(workers), np.zeros(ann.n_classes)).posterior
    right = np.stack([posterior[np.arange(len(posterior)), this.predictions.argmax(axis=1)] for this in rounds])
    return np.flatnonzero(near_best(right[None], np.ones((1, len(rounds)), dtype=bool))[0])


def table(trials: list[Trial]) -> str:
    """Return one row per number of folds and rounds: fits, and the accuracy of each kind of model, over all crowds."""
    head = ["folds", "rounds", "fits", *(f"{kind}, {made}" for made in ("forest", "boosted trees") for kind in KINDS)]
    rows = []
    for whose, more in (("folds", 0), ("all tasks", 1)):
        for folds in FOLDS:
            for n_rounds in ROUNDS:
                cells: list[Any] = [f"{folds}" if not more else f"{folds}, and all tasks", n_rounds]
                cells.append(1 + n_rounds * (folds + more))
                for made in ("forest", "boosted trees"):
                    of = [one["accuracy"] for one in trials if one["learner_name"] == made]
                    keys = [f"{folds} folds, {n_rounds} rounds, {kind}, {whose}" for kind in KINDS]
                    cells += [mean_error([100 * one[key] for one in of]).split(" ±")[0] for key in keys]
                rows.append(cells)
    return markdown(head, rows)


def points() -> list[Trial]:
    """Return every set with every learner and seed."""
    return [
        {"name": name, "learner_name": made, "seed": seed}
        for seed in SEEDS
        for name in TITLES
        for made in ("forest", "boosted trees")
    ]


if __name__ == "__main__":
    order: dict[str, list[Any]] = {"name": list(TITLES), "learner_name": ["forest", "boosted trees"]}
    main(arguments(__doc__, PATH).parse_args(), lambda options: resume(options, trial, points(), order=order), table)
