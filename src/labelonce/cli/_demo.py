"""`labelonce demo`: a simulated crowd labels scikit-learn's digits once each; MBEM learns from it."""

import sys
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

from labelonce import simulate
from labelonce._messages import show
from labelonce._types import Codes, Floats
from labelonce.aggregation import DawidSkene, MajorityVote, RedundancyWarning
from labelonce.cli._print import print_plain, print_table, warnings_as_notes
from labelonce.cli._progress import shown_progress
from labelonce.cli._show import worker_row
from labelonce.data import Annotations
from labelonce.files import check_no_file
from labelonce.io import write
from labelonce.learning import MBEM, OracleConfusion, TrainOnAggregate, default_learner
from labelonce.runs import Options, RunFolder, load, near, train

N_TRAIN, N_WORKERS, QUALITY = 1297, 50, 0.2
LABELS, PIXELS, NEW, RUN = "digits-labels.csv", "digits-pixels.csv", "digits-new.csv", "run"


@dataclass(frozen=True)
class LabelledDigits:
    """Digits to learn from and to test on, and the crowd that labelled the former."""

    pixels: Floats
    y_true: Codes
    annotations: Annotations
    confusion: Floats


def run_demo(seed: int, folder: Path) -> None:
    """Write the crowd's files, train on them as `labelonce train` does, and print what each method learned."""
    _check_ours(folder)
    crowd = _simulated(seed)
    right = np.mean(crowd.annotations.label == crowd.y_true[crowd.annotations.task])
    print_plain(
        f"{N_TRAIN:,} handwritten digits, each labelled once by one of {N_WORKERS} workers.\n"
        f"{round(QUALITY * N_WORKERS)} of them are always right, the others guess: {right:.0%} of the labels are right."
        "\nTraining and the report take about half a minute."
    )
    _write_files(crowd, folder)
    with warnings_as_notes():
        clf = _trained(crowd, folder, seed)
        _print_methods(crowd, clf)
    _print_workers(crowd, clf)
    _print_next(folder)


def _check_ours(folder: Path) -> None:
    check_no_file(folder)
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if others := names - {LABELS, PIXELS, NEW, RUN}:
        raise ValueError(
            f"{folder} must be a new folder or that of an earlier demo; got one with other files, such as "
            f"{show(min(others))}. Name another one with -o."
        )


def _simulated(seed: int) -> LabelledDigits:
    digits = load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits.target))
    y_true = digits.target[order]
    confusion = simulate.hammer_spammer(N_WORKERS, 10, QUALITY, rng, exact=True)
    codes = simulate.annotate(y_true[:N_TRAIN], confusion, simulate.assign(N_TRAIN, N_WORKERS, 1, rng), rng)
    names = np.array([f"worker {w:02d}" for w in range(N_WORKERS)], dtype=object)
    annotations = Annotations(codes.task, codes.worker, codes.label, codes.tasks, names, codes.classes)
    return LabelledDigits(digits.data[order], y_true, annotations, confusion)


def _write_files(crowd: LabelledDigits, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write(crowd.annotations, folder / LABELS)
    for name, rows in ((PIXELS, range(N_TRAIN)), (NEW, range(N_TRAIN, len(crowd.pixels)))):
        columns = {f"pixel{j:02d}": crowd.pixels[rows, j] for j in range(crowd.pixels.shape[1])}
        write(pa.table({"task": list(rows), **columns}), folder / name)


def _trained(crowd: LabelledDigits, folder: Path, seed: int) -> MBEM:
    options = Options(labels=str(folder / LABELS), features=str(folder / PIXELS), seed=seed)
    with shown_progress() as progress:
        record = train(options, folder / RUN, progress=progress)
    for sentence in record.warnings:
        warnings.warn(sentence, stacklevel=2)
    clf: MBEM = load(RunFolder(folder / RUN).file("model.skops"))
    if find_spec("jinja2") and find_spec("PIL"):
        from labelonce.report import write_report

        images = list(crowd.pixels[:N_TRAIN].reshape(-1, 8, 8) / 16)
        path, title = RunFolder(folder / RUN).file("report.html"), "Handwritten digits, each labelled once"
        write_report(path, clf, crowd.annotations, title=title, images=images, run=record.with_paths(near).to_dict())
    return clf


def _print_methods(crowd: LabelledDigits, clf: MBEM) -> None:
    """Print the accuracy of every method; MBEM chose its penalty, the others use the one that suits the vote.

    Dawid-Skene is the paper's "EM": no smoothing, hard targets. With its default smoothing and a learned prior one
    class takes over all tasks, since no two workers share one; that would be a straw man.
    """
    X, ann = crowd.pixels[:N_TRAIN], crowd.annotations
    votes = MajorityVote().fit(ann).labels_  # whose cross-validation chooses the penalty, without gold either
    learner = max(default_learner(X), key=lambda one: cross_val_score(one, X, votes, cv=3).mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RedundancyWarning)  # that Dawid-Skene gains nothing here is what the demo shows
        models: dict[str, Any] = {
            "majority vote, then train": TrainOnAggregate(MajorityVote(), learner).fit(X, ann),
            "Dawid-Skene (EM), then train": TrainOnAggregate(DawidSkene(smoothing=0.0), learner).fit(X, ann),
            "MBEM as published": MBEM.paper(learner).fit(X, ann),
            "oracle: true confusion matrices": OracleConfusion(crowd.confusion, learner).fit(X, ann),
            "labelonce's MBEM": clf,
        }
    score = {name: 100 * model.score(crowd.pixels[N_TRAIN:], crowd.y_true[N_TRAIN:]) for name, model in models.items()}
    vote = score["majority vote, then train"]
    rows = [[name, f"{value:.1f}", f"{value - vote:+.1f}"] for name, value in score.items()]
    print_table("Right on 500 unseen digits, %", ["method", "accuracy", "gain over majority vote"], rows)
    print_plain(
        "All train softmax regression on standardised pixels. labelonce's MBEM chose its penalty by held-out labels;\n"
        "the others use the penalty that cross-validation on the votes prefers. None of them saw a true label; the\n"
        "oracle was told how often each worker is right."
    )


def _print_workers(crowd: LabelledDigits, clf: MBEM) -> None:
    right = float((clf.labels_ == crowd.y_true[:N_TRAIN]).mean())
    estimate = clf.estimated_accuracy_
    print_plain(
        f"MBEM estimates that {estimate.value:.1%} of its labels of the digits it learned from are right "
        f"({estimate.low:.0%} to {estimate.high:.0%});\nin truth, which it never saw, {right:.1%} are."
    )
    found = clf.workers_to_frame().to_pylist()
    skill = crowd.confusion.diagonal(axis1=1, axis2=2).mean(axis=1)
    truth = dict(zip(crowd.annotations.workers.tolist(), skill.tolist(), strict=True))
    rows = [[*worker_row(row)[:4], f"{truth[row['worker']]:.2f}"] for row in (*found[:3], *found[-3:])]
    columns = ["worker", "labels", "estimated skill", "90 % interval", "true skill"]
    print_table("The best and the worst workers, as MBEM estimates them", columns, rows)
    n_good = round(QUALITY * N_WORKERS)
    good = sum(truth[row["worker"]] == 1 for row in found[:n_good])
    print_plain(f"{good} of the {n_good} workers that it ranks highest are indeed always right.")


def _print_next(folder: Path) -> None:
    run = folder / RUN
    report = RunFolder(run).file("report.html")
    where = report.resolve().as_uri() if report.exists() else "not written; it needs pip install 'labelonce[report]'"
    called = Path(sys.argv[0])  # which is shown if its name alone is not on the path
    labelonce = str(called) if called.name == "labelonce" and which("labelonce") is None else "labelonce"
    print_plain(
        f"\nThe report: {where}\n\nNext:\n"
        f"  {labelonce} show {run}\n"
        f"  {labelonce} review {run} -o recheck.csv   # the labels worth checking, the most likely wrong first\n"
        f"  {labelonce} predict {run} {folder / NEW} -o predicted.csv\n"
        f"  {labelonce} train {folder / LABELS} --features {folder / PIXELS} -o my-run   # what this demo did\n"
        f"With labels of your own, begin with: {labelonce} check labels.csv"
    )
