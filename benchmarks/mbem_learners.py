"""MBEM makes at most 15 fits of an expensive learner: 2,000 tasks, 20 features, five classes, two labels per task.

Each learner is fitted once to the vote fractions ("plain"), then by `MBEM(learner)` with all options open. CPU seconds
of one process with one thread; the test accuracy of both next to them. XGBoost and CatBoost have a row where they are
installed.

    python benchmarks/mbem_learners.py    # about two CPU minutes, with OMP_NUM_THREADS=1
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from one_core import RESULTS, keep
from record import Trial, tabulated
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import labelonce as lo

N_TASKS, N_TEST, N_FEATURES, N_CLASSES, N_WORKERS = 2_000, 4_000, 20, 5, 50


def learners() -> dict[str, Callable[[], Any]]:
    """Return what to measure: classifiers of scikit-learn, our own, and others that are installed."""
    found: dict[str, Callable[[], Any]] = {
        "SoftmaxRegression": lo.SoftmaxRegression,
        "LogisticRegression": lambda: LogisticRegression(max_iter=1000),
        "RandomForestClassifier": lambda: RandomForestClassifier(random_state=0),
        "BoostedTrees": lo.BoostedTrees,
        "HistGradientBoostingClassifier": lambda: HistGradientBoostingClassifier(random_state=0),
    }
    others = {
        "lightgbm": ("LGBMClassifier", {"n_jobs": 1, "verbose": -1}),
        "xgboost": ("XGBClassifier", {"n_jobs": 1}),
        "catboost": ("CatBoostClassifier", {"thread_count": 1, "verbose": False, "allow_writing_files": False}),
    }
    for module, (name, options) in others.items():
        try:
            kind = getattr(import_module(module), name)
        except ImportError:
            continue
        found[name] = partial(kind, random_state=0, **options)
    return found


def crowd() -> tuple[Any, Any, Any, Any, lo.Annotations]:
    """Return features and classes of train and test tasks, and the annotations."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLASSES, N_TASKS + N_TEST)
    X = rng.normal(size=(len(y), N_FEATURES)) + (0.7 * rng.normal(size=(N_CLASSES, N_FEATURES)))[y]
    confusion = lo.simulate.hammer_spammer(N_WORKERS, N_CLASSES, 0.4, rng, exact=True)
    ann = lo.simulate.annotate(y[:N_TASKS], confusion, lo.simulate.assign(N_TASKS, N_WORKERS, 2, rng), rng)
    return X[:N_TASKS], y[:N_TASKS], X[N_TASKS:], y[N_TASKS:], ann


def trial(name: str, make: Callable[[], Any]) -> Trial:
    """Return CPU seconds and test accuracy of a plain fit and of MBEM, and the fits that MBEM made."""
    X, _, X_test, y_test, ann = crowd()
    row: Trial = {"learner": name}
    models = {"plain": lo.TrainOnAggregate(lo.MajorityVote(), make(), targets="soft"), "MBEM": lo.MBEM(make())}
    for method, model in models.items():
        started = time.process_time()
        model.fit(X, ann)
        row[f"{method} cpu_s"] = time.process_time() - started
        row[f"{method} accuracy"] = float((model.predict(X_test) == y_test).mean())
    return row | {"fits": models["MBEM"].n_fits_}


def table(rows: list[Trial]) -> str:
    columns = {"learner": "{learner}", "plain fit, CPU s": "{plain cpu_s:.2f}", "MBEM, CPU s": "{MBEM cpu_s:.1f}"}
    columns |= {"fits": "{fits}", "accuracy of the plain fit": "{plain %:.1f}", "accuracy of MBEM": "{MBEM %:.1f}"}
    in_percent = ({f"{method} %": 100 * row[f"{method} accuracy"] for method in ("plain", "MBEM")} for row in rows)
    return tabulated([row | more for row, more in zip(rows, in_percent, strict=True)], columns)


def main() -> None:
    """Measure every learner, and write the results and their table."""
    warnings.simplefilter("ignore")
    started, rows = time.perf_counter(), []
    for name, make in learners().items():
        rows.append(trial(name, make))
        print(rows[-1], flush=True)
    path = RESULTS / "mbem_learners.json"
    keep(path, rows, table, started, {"tasks": N_TASKS, "features": N_FEATURES})


if __name__ == "__main__":
    main()
