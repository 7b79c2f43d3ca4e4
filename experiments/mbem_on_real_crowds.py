"""Where MBEM's default gains on real crowds with features, compared with training on the votes.

All labels of a task, and one random label per task (five draws). Linear models on VGG features (LabelMe) and on TF-IDF
(film reviews, product reviews). Penalties: MBEM chooses by held-out annotations; every other method uses the one that
five-fold cross-validation on the majority vote prefers. Gold is used for the test accuracy alone.

    python experiments/mbem_on_real_crowds.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/mbem_on_real_crowds.py --table    # the table alone, from results/mbem_on_real_crowds.json
"""

import time
from typing import Any, Literal

import cost_of_choosing
from draws import real_crowd
from record import RESULTS, Trial, arguments, grouped, main, markdown, mean_error, renew, resume
from sklearn.model_selection import GridSearchCV

import labelonce as lo

PATH = RESULTS / "mbem_on_real_crowds.json"
NAMES = ("sentiment_polarity", "labelme", "amazon_isbook")
PENALTIES = {"labelme": (0.001, 0.01, 0.1)}
TEXT_PENALTIES = (0.1, 1.0, 10.0)
AGGREGATORS: dict[str, Any] = {"MV": lo.MajorityVote, "weighted MV": lo.MajorityVote}
AGGREGATORS |= {"DawidSkene, then train": lo.DawidSkene, "OneCoin, then train": lo.OneCoin}
METHODS = ["truth", *AGGREGATORS, "MBEM paper", "MBEM"]


def learners_of(name: str) -> list[lo.SoftmaxRegression]:
    """Return the penalties that MBEM and cross-validation choose from."""
    return [lo.SoftmaxRegression(C=C) for C in PENALTIES.get(name, TEXT_PENALTIES)]


def trial(name: str, redundancy: int | Literal["all"], seed: int) -> Trial:
    """Return the test accuracy of every method."""
    started = time.process_time()
    X, y, X_test, y_test, ann = real_crowd(name, redundancy, seed)
    learners = learners_of(name)
    vote = lo.MajorityVote().fit(ann).labels_
    grid = {"C": [learner.C for learner in learners]}
    best = lo.SoftmaxRegression(**GridSearchCV(lo.SoftmaxRegression(), grid, cv=5).fit(X, vote).best_params_)
    models: dict[str, Any] = {"truth": lo.SoftmaxRegression(C=best.C).fit(X, y)}
    for method in METHODS[1:-2]:
        targets = "hard" if method == "MV" else "soft"
        models[method] = lo.TrainOnAggregate(AGGREGATORS[method](), best, targets=targets).fit(X, ann)
    models |= {"MBEM paper": lo.MBEM.paper(best).fit(X, ann), "MBEM": lo.MBEM(learners).fit(X, ann)}
    accuracy = {method: float((models[method].predict(X_test) == y_test).mean()) for method in METHODS}
    recipes = cost_of_choosing.recipes(X, ann, X_test, y_test, learners)
    about = {"C of the others": best.C} | choice_of(models["MBEM"]) | {"recipes": recipes}
    return about | {"accuracy": accuracy, "cpu_s": time.process_time() - started}


def choice_of(mbem: lo.MBEM) -> dict[str, Any]:
    """Return what a fit chose, and among what."""
    chosen = {key: mbem.recipe_[key] for key in ("predictions", "rounds", "averaged")}
    kept = ("held_out_scores", "near_best")
    tried = [{"C": choice["learner"].C} | {key: choice[key] for key in kept} for choice in mbem.choices_]
    return {"chosen": chosen | {"C": mbem.recipe_["learner"].C}, "tried": tried, "fits": mbem.n_fits_}


def mbem_again(row: Trial) -> Trial:
    """Return what another fit of MBEM alone finds in a trial."""
    X, _, X_test, y_test, ann = real_crowd(row["name"], row["redundancy"], row["seed"])
    mbem = lo.MBEM(learners_of(row["name"])).fit(X, ann)
    return choice_of(mbem) | {"accuracy": {"MBEM": float((mbem.predict(X_test) == y_test).mean())}}


def table(trials: list[Trial]) -> str:
    """Return mean and standard error of every method."""
    rows = []
    for key, own in grouped(trials, "name", "redundancy").items():
        rows.append([*key, *(mean_error([100 * row["accuracy"][method] for row in own]) for method in METHODS)])
    return markdown(["data set", "labels per task", *METHODS], rows)


if __name__ == "__main__":
    draws = [(redundancy, seed) for seed in range(5) for redundancy in (("all", 1) if seed == 0 else (1,))]
    points = [{"name": name, "redundancy": number, "seed": seed} for number, seed in draws for name in NAMES]
    parser = arguments(__doc__, PATH)
    parser.add_argument("--renew", action="store_true", help="run MBEM again in every trial and keep the rest")
    options = parser.parse_args()
    main(options, lambda asked: renew(asked, mbem_again) if asked.renew else resume(asked, trial, points), table)
