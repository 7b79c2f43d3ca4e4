"""Do no harm: `MBEM()` on 70 worlds, made to be hard on a default, next to votes, Dawid-Skene, CROWDLAB and the truth.

A world is a problem (weak, misspecified, unscaled or plenty of features; texts; many classes; few tasks; a rare class)
and a crowd (teams of three, long tails, adversaries, people who choose their tasks, who copy, who err together). Half
of the worlds ("choose") may be looked at while rules are chosen, the other half ("report") is for the pages. A draw is
harmed where the returned labels are more than a point worse than the better of given and vote. Confidence and the 90 %
range are compared with the share that is right, and test accuracy with that of models trained on the vote, the soft
vote, Dawid-Skene, CROWDLAB (which needs tasks with several labels) and the truth, each with the penalty that three-fold
cross-validation on the vote prefers.

    python experiments/worlds.py                      # three draws; resumes; some need the data of datasets.md
    python experiments/worlds.py --seeds 0            # one draw; see --worlds for some of the worlds
    python experiments/worlds.py --table              # the table again
    make crowdlab                                     # --crowdlab in an environment with cleanlab: adds its column

The columns "former" are what the release before (commit 541c069) made of the same worlds, in draws 100 to 102; its
trials are in results/worlds-former.json.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import draws
import numpy as np
from draws import Array, Generator, Problem, Split, real_crowd
from record import RESULTS, Trial, arguments, made_before, main, markdown, read, resume, write
from scipy import sparse
from sklearn import datasets as tables
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.preprocessing import StandardScaler

import labelonce as lo

PATH = RESULTS / "worlds.json"
FORMER = RESULTS / "worlds-former.json"
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
TRAINED = ("vote", "soft vote", "Dawid-Skene", "CROWDLAB", "truth")
MOST_TEST = 3000
Labels = Callable[[Generator, Any, Array, int], lo.Annotations]


@dataclass(frozen=True)
class World:
    """A problem and a crowd: `draw(seed)` gives the same tasks and labels for the same seed."""

    name: str
    kind: str
    half: str
    problem: Problem
    crowd: Labels
    n_tasks: int

    def draw(self, seed: int) -> Split:
        """Return the tasks, labels and test tasks of a seed."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        X, y = self.problem(rng)
        order = rng.permutation(len(y))
        train, test = order[: self.n_tasks], order[self.n_tasks : self.n_tasks + MOST_TEST]
        annotations = self.crowd(rng, X[train], y[train], int(y.max()) + 1)
        return Split(X[train], y[train], X[test], y[test], annotations)


@dataclass(frozen=True)
class RealWorld:
    """A real crowd with gold on its tasks: one random label per task, or all."""

    name: str
    half: str
    data: str
    per_task: Any
    kind: str = "real"

    def draw(self, seed: int) -> Split:
        """Return a draw of the labels, and the test tasks."""
        X, y, X_test, y_test, ann = real_crowd(self.data, self.per_task, seed)
        y, y_test = (np.searchsorted(ann.classes, one) for one in (y, y_test))
        codes, tasks = np.arange(ann.n_classes), np.arange(ann.n_tasks)
        return Split(X, y, X_test, y_test, lo.Annotations(ann.task, ann.worker, ann.label, tasks, ann.workers, codes))


def alike(n: int, skill: float) -> Array:
    """Return workers of one skill."""
    return np.full(n, skill)


def of_kinds(n: int, *kinds: float) -> Callable[[Generator], Array]:
    """Return workers of all kinds, by default very good, middling, guessing."""
    return lambda rng: rng.choice(kinds or (0.95, 0.8, 0.5), n)


def between(n: int, low: float, high: float) -> Callable[[Generator], Array]:
    """Return workers with skills between two."""
    return lambda rng: rng.uniform(low, high, n)


def later(draw: Any) -> Callable[..., Any]:
    """Return a function that takes the options of a draw and leaves the rest for later."""
    return partial(partial, draw)


# names of problems and of crowds, with their options only; `by` are workers with a chance of being right each
digits, balls, rare, scaled = map(later, (draws.digits, draws.balls, draws.rare, draws.scaled))
outliers, undetermined = map(later, (draws.with_outliers, draws.undetermined))
by, matrices, sided, boundary = map(later, (draws.coins, draws.matrices, draws.sided, draws.near_boundary))
regions, specialists, in_groups = map(later, (draws.regions, draws.specialists, draws.groups_confused))
one_does_most, long_tail = map(later, (draws.one_does_most, draws.long_tail))
REVIEWS, BOOK = "sentiment_polarity", "amazon_isbook"
numbers = partial(draws.text_numbers, REVIEWS, 4000)
review_words, book_words = (partial(draws.text_words, name, 4000) for name in (REVIEWS, BOOK))
hammers, better_hammers = (matrices(draw=partial(lo.simulate.hammer_spammer, quality=q)) for q in (0.2, 0.4))
class_wise = matrices(draw=partial(lo.simulate.class_wise_hammer_spammer, quality=0.2), n_workers=50)
cancer, wine, iris = tables.load_breast_cancer, tables.load_wine, tables.load_iris


def table_of(K: int, separation: float, n: int = 3000) -> Problem:
    """Return a made-up table of K classes."""
    return partial(draws.made_up, n=n, n_classes=K, separation=separation)


MADE: dict[str, list[tuple[str, Problem, Labels, int]]] = {  # by kind: name, problem, crowd and number of tasks
    "weak": [
        ("reviews 64 numbers, all .9", numbers, by(skills=alike(40, 0.9)), 2500),
        ("reviews 64 numbers, mixed", numbers, by(skills=of_kinds(40)), 2500),
        ("weak table, .95 .7 .4", table_of(4, 0.35), by(skills=np.repeat([0.95, 0.7, 0.4], 5)), 1500),
        ("weak table, all .8", table_of(3, 0.4), by(skills=alike(20, 0.8)), 1500),
        ("digits 12 pixels, hammers", digits(pixels=slice(20, 32)), partial(hammers, n_workers=50), 1300),
        ("digits 6 pixels, all .9", digits(pixels=slice(26, 32)), by(skills=alike(25, 0.9)), 1300),
        ("pixels 16 x 16, five of .9", partial(draws.photographs, side=16), by(skills=alike(5, 0.9)), 1500),
        ("affairs, mixed", draws.affairs, by(skills=of_kinds(30)), 2000),
        ("survey, mixed", draws.survey, by(skills=of_kinds(20)), 700),
        ("noise features, all .75", table_of(2, 0.01), by(skills=alike(30, 0.75)), 1500),
    ],
    "misspecified": [
        ("xor, mixed", draws.xor, by(skills=of_kinds(20)), 1500),
        ("xor, all .85", draws.xor, by(skills=alike(20, 0.85)), 1500),
        ("rings, mixed", draws.rings, by(skills=of_kinds(20, 0.98, 0.9, 0.6)), 1500),
        ("checkerboard, all .9", draws.checkerboard, by(skills=alike(15, 0.9)), 1500),
        ("checkerboard, hammers", draws.checkerboard, partial(hammers, n_workers=30), 2000),
    ],
    "unscaled": [
        ("prices, .95 .85 .6", draws.prices, by(skills=np.repeat([0.95, 0.85, 0.6], 6)), 1500),
        ("wine raw, mixed", lambda _: wine(return_X_y=True), by(skills=of_kinds(10)), 120),
        ("tumours raw, mixed", lambda _: cancer(return_X_y=True), by(skills=of_kinds(15)), 380),
        ("prices, hammers", draws.prices, partial(better_hammers, n_workers=25), 2000),
    ],
    "team": [
        ("team of 3", balls(n=3000, n_classes=3, distance=0.5), by(skills=[0.95, 0.8, 0.6]), 900),
        ("team of 3, overlap", balls(n=3000, n_classes=3, distance=0.5), by(skills=[0.95, 0.8, 0.6], second=0.2), 900),
        ("team of 5, all .9", digits(pixels=slice(20, 44)), by(skills=alike(5, 0.9)), 1000),
        ("team of 5, overlap", digits(pixels=slice(20, 44)), by(skills=[0.95, 0.9, 0.8, 0.7, 0.5], second=0.2), 1000),
        ("team of 3 on reviews, overlap", numbers, by(skills=[0.95, 0.85, 0.7], second=0.2), 2000),
        ("team of 2, all .8", table_of(2, 0.8), by(skills=[0.8, 0.8]), 800),
    ],
    "one labeller": [
        ("one does most, .8", digits(pixels=slice(16, 48)), one_does_most(skills=np.r_[0.8, np.full(6, 0.9)]), 1200),
        ("one does most, .95", table_of(3, 0.7), one_does_most(skills=np.r_[0.95, np.full(6, 0.6)]), 1500),
    ],
    "long tail": [
        ("long tail, digits", draws.digits, long_tail(n_workers=150), 1300),
        ("long tail, reviews", numbers, long_tail(n_workers=200), 2000),
    ],
    "adversaries": [
        ("adversaries, tumours", scaled(cancer), by(skills=np.repeat([0.9, 0.1], [8, 4])), 400),
        ("adversaries, weak", table_of(3, 0.6), by(skills=np.repeat([0.85, 0.05], [12, 4])), 1500),
    ],
    "chosen tasks": [
        ("regions, weak", table_of(3, 0.7), regions(skills=np.repeat([0.95, 0.8, 0.6], 4)), 1500),
        ("regions, digits", digits(pixels=slice(18, 46)), regions(skills=np.repeat([0.95, 0.85, 0.6], 5)), 1300),
        ("specialists", balls(n=3000, n_classes=5, distance=0.5),
         specialists(n_workers=20, skills=between(20, 0.6, 0.98)), 1500),
        ("specialists, weak", table_of(4, 0.5), specialists(n_workers=16, skills=between(16, 0.7, 0.95)), 1500),
    ],
    "boundary": [
        ("boundary, tumours", scaled(cancer), boundary(n_workers=15, most=0.12), 400),
        ("boundary, digits", draws.digits, boundary(n_workers=20, most=0.2), 1300),
        ("boundary, three labels", table_of(3, 0.8), boundary(n_workers=20, most=0.25, per_task=3), 1200),
    ],
    "shared": [
        ("copies", table_of(4, 0.8), partial(draws.copies, n_workers=12, share=0.5, skill=0.75), 1000),
        ("shared mistakes", digits(pixels=slice(16, 48)),
         partial(draws.shared_mistakes, n_workers=20, skill=0.75, share=0.6, per_task=5), 1000),
    ],
    "rare": [
        ("rare 2 %", rare(table_of(2, 1.2, 12000), 0.02),
         sided(n_workers=30, sensitivity=(0.5, 0.95), specificity=(0.93, 0.995)), 3000),
        ("rare 5 %, three labels", rare(table_of(2, 1.0, 9000), 0.05),
         sided(n_workers=30, sensitivity=(0.5, 0.9), specificity=(0.85, 0.99), per_task=3), 2000),
        ("rare 10 %, digits", rare(draws.digits, 0.1),
         sided(n_workers=20, sensitivity=(0.6, 0.95), specificity=(0.8, 0.99)), 1300),
    ],
    "few tasks": [
        ("100 irises", scaled(iris), by(skills=of_kinds(8)), 100),
        ("60 wines, one label", scaled(wine), by(skills=[0.95, 0.85, 0.7]), 60),
        ("150 digits, three labels", draws.digits, by(skills=of_kinds(12), per_task=3), 150),
        ("80 tumours, all .8", scaled(cancer), by(skills=alike(6, 0.8)), 80),
    ],
    "wide": [  # more columns than rows
        ("reviews in words, mixed", review_words, by(skills=of_kinds(30)), 1200),
        ("books in words, hammers", book_words, partial(better_hammers, n_workers=30), 1200),
        ("books in words, all .8", book_words, by(skills=alike(20, 0.8)), 800),
    ],
    "many classes": [
        ("20 classes, mixed", balls(n=5000, n_classes=20, distance=0.6), by(skills=of_kinds(30)), 2000),
        ("40 classes in groups", balls(n=6000, n_classes=40, distance=0.7), in_groups(n_workers=40, size=5), 3000),
        ("60 classes in groups", balls(n=7000, n_classes=60, distance=0.7), in_groups(n_workers=60, size=6), 4000),
    ],
    "alike": [
        ("all .7, three classes", table_of(3, 1.0), by(skills=alike(25, 0.7)), 1500),
        ("all .6, digits", draws.digits, by(skills=alike(40, 0.6)), 1300),
        ("all .95, photographs", draws.photographs, by(skills=alike(20, 0.95)), 1500),
    ],
    "paper": [
        ("digits, hammers", draws.digits, partial(hammers, n_workers=50), 1297),
        ("digits, class-wise", draws.digits, class_wise, 1297),
        ("photographs, hammers", draws.photographs, partial(hammers, n_workers=50), 1500),
        ("photographs, class-wise", draws.photographs, class_wise, 1500),
    ],
}  # fmt: skip
AUDITED: dict[str, tuple[str, Problem, Labels, int]] = {  # found by an audit, so all were looked at
    "weak": ("ten weak classes, all .92", balls(n=4500, n_classes=10, distance=0.25), by(skills=alike(20, 0.92)), 2000),
    "long tail": ("long tail of good workers", table_of(4, 0.5), by(skills=alike(150, 0.93)), 1500),
    "unscaled": ("outliers, mixed", outliers(table_of(3, 1.0), 0.01), by(skills=np.repeat([0.95, 0.75, 0.5], 6)), 1500),
    "rare": ("rare 1 %, good workers", rare(table_of(2, 1.3, 12000), 0.01),
             sided(n_workers=20, sensitivity=(0.85, 0.98), specificity=(0.985, 0.999)), 3000),
    "undetermined": ("undetermined, three labels", undetermined(balls(n=3000, n_classes=3, distance=1.0), 0.15),
                     by(skills=alike(20, 0.9), per_task=3), 800),
}  # fmt: skip
REAL: list[tuple[str, Any]] = [("labelme", 1), ("labelme", "all"), (REVIEWS, 1), (REVIEWS, "all"), (BOOK, 1)]


def _worlds() -> Iterator[World | RealWorld]:
    """Yield every world; of those that no audit found every second one is for the report."""
    halves = ("report", "choose")
    made = [(kind, one) for kind, some in MADE.items() for one in some]
    for at, (kind, (name, problem, crowd, n)) in enumerate(made):
        yield World(name, kind, halves[at % 2], problem, crowd, n)
    for kind, (name, problem, crowd, n) in AUDITED.items():
        yield World(name, kind, "choose", problem, crowd, n)
    for at, (data, per_task) in enumerate(REAL):
        yield RealWorld(f"{data}, {'one' if per_task == 1 else 'all'}", halves[at % 2], data, per_task)


WORLDS: dict[str, World | RealWorld] = {world.name: world for world in _worlds()}


def penalty(X: Any, y: Array) -> lo.SoftmaxRegression:
    """Return the regression that three-fold cross-validation prefers."""
    _, counts = np.unique(y, return_counts=True)
    if counts.min() < 3:
        return lo.SoftmaxRegression(C=0.1)
    best = GridSearchCV(lo.SoftmaxRegression(), {"C": PENALTIES}, cv=3).fit(X, y).best_params_
    return lo.SoftmaxRegression(**best)


def crowdlab(crowd: Split) -> float | None:
    """Return the test accuracy of a model trained on the labels of cleanlab's CROWDLAB.

    It takes out-of-fold predictions of a model of the vote. None where it cannot be had: it asks for tasks with several
    labels and for predictions of every class.
    """
    from cleanlab.multiannotator import get_label_quality_multiannotator

    ann, (X, X_test) = crowd.annotations, scaled_features(crowd)
    vote = lo.MajorityVote().fit(ann).labels_
    if np.bincount(ann.task).max() == 1 or len(np.unique(vote)) < ann.n_classes:
        return None
    learner = penalty(X, vote)
    chances = cross_val_predict(learner, X, vote, cv=5, method="predict_proba")
    said = np.full((ann.n_tasks, ann.n_workers), np.nan)
    said[ann.task, ann.worker] = ann.label
    quality = get_label_quality_multiannotator(said, chances, verbose=False)["label_quality"]
    predicted = learner.fit(X, np.asarray(quality["consensus_label"])).predict(X_test)
    return float((predicted == crowd.y_test).mean())


def scaled_features(crowd: Split) -> tuple[Any, Any]:
    """Return the features of the tasks and of those for the test, tables with standardised columns."""
    if sparse.issparse(crowd.X):
        return crowd.X, crowd.X_test
    scaler = StandardScaler().fit(crowd.X)
    return scaler.transform(crowd.X), scaler.transform(crowd.X_test)


def tested(crowd: Split) -> dict[str, float]:
    """Return the test accuracy of models trained on what others make of the labels."""
    ann, (X, X_test) = crowd.annotations, scaled_features(crowd)
    vote = lo.MajorityVote().fit(ann).labels_
    learner = penalty(X, vote)

    def on(aggregator: Any) -> Any:
        return lo.TrainOnAggregate(aggregator, learner, targets="soft").fit(X, ann)

    models = {"vote": learner.fit(X, vote).predict(X_test), "soft vote": on(lo.MajorityVote()).predict(X_test)}
    models["Dawid-Skene"] = on(lo.DawidSkene()).predict(X_test)
    models["truth"] = learner.fit(X, crowd.y).predict(X_test)
    return {name: float((predicted == crowd.y_test).mean()) for name, predicted in models.items()}


def trial(world: str, seed: int) -> Trial:
    """Return what `MBEM()` makes of a draw, and what the others do."""
    crowd, started = WORLDS[world].draw(seed), time.process_time()
    ann, y = crowd.annotations, crowd.y
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = lo.MBEM().fit(crowd.X, ann)
    found: Trial = {"world": world, "seed": seed, "kind": WORLDS[world].kind, "half": WORLDS[world].half}
    found |= {"fits": clf.n_fits_, "predictions": clf.recipe_["predictions"], "cpu_s": time.process_time() - started}
    found["warned"] = sorted({one.category.__name__ for one in caught})
    found["given"] = float((ann.label == y[ann.task]).mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["vote"] = float((lo.MajorityVote().fit(ann).labels_ == y).mean())
        found["returned"] = float((clf.labels_ == y).mean())
        found["confidence"] = float(np.mean(clf.confidence_))
        found["range"] = [clf.estimated_accuracy_.low, clf.estimated_accuracy_.high]
        found["accuracy"] = float((clf.predict(crowd.X_test) == crowd.y_test).mean())
        return found | {"test": tested(crowd)}


def add_crowdlab(options: argparse.Namespace) -> None:
    """Add what CROWDLAB makes of the draws that are in the results file."""
    rows, (made_by, seconds), started = read(options.out), made_before([options.out]), time.perf_counter()
    about = json.loads(options.out.read_text())
    for row in rows:
        crowd = WORLDS[row["world"]].draw(row["seed"])
        given = float((crowd.annotations.label == crowd.y[crowd.annotations.task]).mean())
        if abs(given - row["given"]) > 1e-4:
            raise SystemExit(f"draw {row['seed']} of {row['world']} must be the one in {options.out}; it is another.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = crowdlab(crowd)
        if found is not None:
            row["test"]["CROWDLAB"] = found
            print(row["world"], row["seed"], found, flush=True)
    made_by["versions"] = about["versions"] | {"cleanlab": version("cleanlab")}
    write(
        options.out, rows, settings=about["settings"], seconds=seconds + time.perf_counter() - started, made_by=made_by
    )


def run(options: argparse.Namespace) -> None:
    """Draw the worlds whose data are there, the first seed of all of them first."""
    if options.crowdlab:
        add_crowdlab(options)
        return
    named = [WORLDS[name] for name in options.worlds or WORLDS]
    if "LABELONCE_DATA" not in os.environ:
        named = [world for world in named if not needs_data(world)]
    points = [{"seed": seed, "world": world.name} for seed in options.seeds for world in named]
    resume(options, trial, points, order={"world": list(WORLDS)})


def needs_data(world: World | RealWorld) -> bool:
    """Return whether a world is made of texts or photographs of the data folder."""
    return isinstance(world, RealWorld) or any(name in repr(world.problem) for name in ("text_", "photographs"))


def harmed(row: Trial) -> bool:
    """Return whether the returned labels are more than a point worse than the better of given and vote."""
    return bool(row["returned"] < max(row["given"], row["vote"]) - 0.01)


def line(name: str, rows: list[Trial]) -> list[str]:
    """Return one line of the table: means in percent over draws."""

    def mean(values: list[float], digits: int = 1) -> str:
        return f"{100 * np.mean(values):.{digits}f}" if values else ""

    off = [abs(row["confidence"] - row["returned"]) for row in rows]
    held = [float(row["range"][0] <= row["returned"] <= row["range"][1]) for row in rows]
    warned = [float("DoubtWarning" in row["warned"]) for row in rows]
    cells = [mean([row[key] for row in rows]) for key in ("given", "vote", "returned")]
    cells += [str(sum(map(harmed, rows))), mean([row["confidence"] for row in rows]), mean(off), mean(held, 0)]
    names = {row["world"] for row in rows}
    former = [row for row in read(FORMER) if row["world"] in names]
    before = [mean([row[key] for row in former]) for key in ("returned", "accuracy")]
    harm = str(sum(map(harmed, former)))
    cells += [mean(warned, 0), before[0], harm, mean([row["accuracy"] for row in rows]), before[1]]
    shared = [key for key in TRAINED if all(key in row["test"] for row in rows)]
    return [name, *cells, *(mean([row["test"][key] for row in rows]) if key in shared else "" for key in TRAINED)]


def total(name: str, rows: list[Trial]) -> list[str]:
    """Return the line of some draws of several worlds."""
    return line(f"**{name}: {len(rows)} draws of {len({row['world'] for row in rows})} worlds**", rows)


def table(trials: list[Trial]) -> str:
    """Return one line per world, per half, and for all draws that CROWDLAB takes."""
    head = ["world", "given", "vote", "returned", "draws harmed", "confidence", "off by", "range holds", "warned"]
    head += ["former returned", "former harmed", "test", "former test", *(f"test: {name}" for name in TRAINED)]
    rows = []
    for half in ("choose", "report"):
        own = [row for row in trials if row["half"] == half]
        worlds = {name: [row for row in own if row["world"] == name] for name in WORLDS}
        rows += [line(name, found) for name, found in worlds.items() if found]
        rows += [total(half, own)] if own else []
    several = [row for row in trials if "CROWDLAB" in row["test"]]
    rows += [total("several labels per task", several)] if several else []
    return markdown(head, rows)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="the draws")
    parser.add_argument("--crowdlab", action="store_true", help="add CROWDLAB to the trials that are there")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, metavar="WORLD", help="names of worlds, default all")
    main(parser.parse_args(), run, table)
