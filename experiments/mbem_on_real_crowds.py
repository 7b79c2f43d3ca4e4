"""Where MBEM's default gains on real crowds with features, compared with training on the votes.

All labels of a task, and one random label per task (five draws). Linear models on VGG features (LabelMe) and on TF-IDF
(film reviews, product reviews). Penalties: MBEM chooses by held-out annotations; every other method uses the one that
five-fold cross-validation on the majority vote prefers. Gold is used for the test accuracy alone.

    python experiments/mbem_on_real_crowds.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/mbem_on_real_crowds.py --table    # the table alone, from results/mbem_on_real_crowds.json
"""

import time
import warnings
from typing import Any, Literal

import cost_of_choosing
from draws import real_crowd
from record import RESULTS, Trial, arguments, main, markdown, mean_error, renew, resume
from sklearn.model_selection import GridSearchCV

import labelonce as lo

PATH = RESULTS / "mbem_on_real_crowds.json"
NAMES = ("sentiment_polarity", "labelme", "amazon_isbook")
PENALTIES = {"labelme": (0.001, 0.01, 0.1)}
TEXT_PENALTIES = (0.1, 1.0, 10.0)
METHODS = ["truth", "MV", "weighted MV", "DawidSkene, then train", "OneCoin, then train", "MBEM paper", "MBEM"]


def learners_of(name: str) -> list[lo.SoftmaxRegression]:
    """Return the penalties that MBEM and cross-validation choose from."""
    return [lo.SoftmaxRegression(C=C) for C in PENALTIES.get(name, TEXT_PENALTIES)]


def trial(name: str, redundancy: int | Literal["all"], seed: int) -> dict[str, Any]:
    """Return the test accuracy of every method."""
    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    started = time.process_time()
    X, y, X_test, y_test, ann = real_crowd(name, redundancy, seed)
    learners = learners_of(name)
    vote = lo.MajorityVote().fit(ann).labels_
    grid = {"C": [learner.C for learner in learners]}
    best = lo.SoftmaxRegression(**GridSearchCV(lo.SoftmaxRegression(), grid, cv=5).fit(X, vote).best_params_)
    mbem = lo.MBEM(learners).fit(X, ann)
    models = {
        "truth": lo.SoftmaxRegression(C=best.C).fit(X, y),
        "MV": lo.TrainOnAggregate(lo.MajorityVote(), best).fit(X, ann),
        "weighted MV": lo.TrainOnAggregate(lo.MajorityVote(), best, targets="soft").fit(X, ann),
        "DawidSkene, then train": lo.TrainOnAggregate(lo.DawidSkene(), best, targets="soft").fit(X, ann),
        "OneCoin, then train": lo.TrainOnAggregate(lo.OneCoin(), best, targets="soft").fit(X, ann),
        "MBEM paper": lo.MBEM.paper(best).fit(X, ann),
        "MBEM": mbem,
    }
    accuracy = {method: float((models[method].predict(X_test) == y_test).mean()) for method in METHODS}
    about: dict[str, Any] = {"name": name, "redundancy": redundancy, "seed": seed}
    about |= {"C of the others": best.C} | choice_of(mbem)
    about["recipes"] = cost_of_choosing.recipes(X, ann, X_test, y_test, learners)
    return about | {"accuracy": accuracy, "cpu_s": time.process_time() - started}


def choice_of(mbem: lo.MBEM) -> dict[str, Any]:
    """Return what a fit chose, and among what."""
    chosen = {key: mbem.recipe_[key] for key in ("predictions", "rounds", "averaged")}
    kept = ("held_out_scores", "near_best")
    tried = [{"C": choice["learner"].C} | {key: choice[key] for key in kept} for choice in mbem.choices_]
    return {"chosen": chosen | {"C": mbem.recipe_["learner"].C}, "tried": tried, "fits": mbem.n_fits_}


def mbem_again(row: Trial) -> Trial:
    """Return what another fit of MBEM alone finds in a trial."""
    warnings.simplefilter("ignore")
    X, _, X_test, y_test, ann = real_crowd(row["name"], row["redundancy"], row["seed"])
    mbem = lo.MBEM(learners_of(row["name"])).fit(X, ann)
    return choice_of(mbem) | {"accuracy": {"MBEM": float((mbem.predict(X_test) == y_test).mean())}}


def table(trials: list[Trial]) -> str:
    """Return mean and standard error of every method."""
    rows = []
    for key in dict.fromkeys((row["name"], row["redundancy"]) for row in trials):
        own = [row["accuracy"] for row in trials if (row["name"], row["redundancy"]) == key]
        rows.append([*key, *(mean_error([100 * accuracy[method] for accuracy in own]) for method in METHODS)])
    return markdown(["data set", "labels per task", *METHODS], rows)


if __name__ == "__main__":
    draws = [(redundancy, seed) for seed in range(5) for redundancy in (("all", 1) if seed == 0 else (1,))]
    points = [{"name": name, "redundancy": number, "seed": seed} for number, seed in draws for name in NAMES]
    parser = arguments(__doc__, PATH)
    parser.add_argument("--renew", action="store_true", help="run MBEM again in every trial and keep the rest")
    options = parser.parse_args()
    main(
        options, lambda options: renew(options, mbem_again) if options.renew else resume(options, trial, points), table
    )
