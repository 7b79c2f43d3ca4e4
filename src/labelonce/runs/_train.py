"""One run: labels and features in, a run folder out; a stopped run resumes from its last finished round."""

import os
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import argument
from labelonce._types import MODELS, TABLES
from labelonce._validate import check_int
from labelonce.aggregation import has_no_room
from labelonce.data import Annotations
from labelonce.files import absolute, atomic_write, column_names, fingerprint
from labelonce.formats import Fields
from labelonce.io import read_class_groups, write
from labelonce.learning import MBEM
from labelonce.multilabel import MultiLabelAnnotations, MultiLabelMBEM
from labelonce.runs._doors import fill_cache, first_line, kind_of, learner_of, settled, size_of
from labelonce.runs._folder import START_OVER, RunFolder, write_record
from labelonce.runs._images import Images, check_extras, flattened, read_images
from labelonce.runs._inputs import Rows, align_rows, joined_texts, read_features, read_texts
from labelonce.runs._labels import choose_gold, find_files, read_labels, work_in
from labelonce.runs._model_file import dumped, load
from labelonce.runs._questions import (
    QUESTIONS,
    choose_question_gold,
    has_questions,
    labels_of_questions,
    question_parts,
    read_questions,
    used_recipe,
)
from labelonce.runs._record import (
    DataSize,
    EstimatedAccuracy,
    ImageInput,
    InputFile,
    Job,
    NumberInput,
    Options,
    Outcome,
    RoundEntry,
    RunRecord,
    TextInput,
    near,
)
from labelonce.runs._results import labels_of, workers_of
from labelonce.workers import Grouped

Progress = Callable[[str, int, int], None]

_PACKAGES = ("labelonce", "numpy", "scipy", "scikit-learn", "pyarrow", "skops")


@dataclass(frozen=True)
class Inputs:
    """What the options' files hold, with the annotations in the order of the rows."""

    annotations: Any  # Annotations, or MultiLabelAnnotations
    rows: Rows
    gold: dict[Any, Any] | None
    images: Images | None = None

    @property
    def on_questions(self) -> bool:
        """Whether there are several labels at once."""
        return isinstance(self.annotations, MultiLabelAnnotations)


def train(
    options: Options,
    folder: Path,
    *,
    progress: Progress | None = None,
    report: bool = True,
    tell: Callable[[str], None] | None = None,
) -> RunRecord:
    """Run, write the run folder, with or without the report, and return its record, which `run.json` holds.

    Bad input is an error before anything is written. An earlier result in the folder stays until the new one is
    complete. What learns from texts or images, and how long that takes, is said to `tell` first.
    """
    _check_options(options)
    options = settled(options)
    inputs = read_inputs(options)
    if tell is not None and kind_of(options) is not None:
        tell(first_line(options, inputs.rows.X))
    fill_cache(options, inputs.rows.X, progress)
    job = _job(options, inputs)
    run = RunFolder(folder)
    with run.locked():
        run.begin(job)
        clf = _estimator(options, inputs)
        return _finish(run, job, inputs, clf, resume=False, progress=progress, report=report)


def resume(folder: Path, *, progress: Progress | None = None, report: bool = True) -> RunRecord:
    """Resume the unfinished run in the folder; it ends with the numbers of a run that was never stopped."""
    run = RunFolder(folder)
    with run.locked():
        job = run.unfinished()
        if job is None:
            raise ValueError(f"{folder} must hold an unfinished run; got none. Start one with labelonce train LABELS.")
        options = job.options.with_paths(near)
        inputs = read_inputs(options)
        _check_unchanged(job, _job(options, inputs))
        fill_cache(options, inputs.rows.X, progress)
        saved = run.checkpoint()
        clf = _estimator(options, inputs) if saved is None else _checkpointed(saved, inputs)
        return _finish(run, job, inputs, clf, resume=saved is not None, progress=progress, report=report)


def _checkpointed(path: Path, inputs: Inputs) -> Any:
    try:
        clf = load(path)
    except ValueError as error:
        raise ValueError(f"{error} {START_OVER}") from error
    wanted = MultiLabelMBEM if inputs.on_questions else MBEM
    if not isinstance(clf, wanted):
        raise ValueError(f"{path} must hold an {wanted.__name__}; got {type(clf).__name__}. {START_OVER}")
    return clf


def read_inputs(options: Options) -> Inputs:
    """Return what the options' files hold; files that do not go together are an error."""
    labels = find_files(options.label_files, options.format)
    asked = has_questions(labels, options.source)
    if asked and options.groups is not None:
        raise ValueError(f"{argument('groups')} must be left out for questions; got {options.groups}.")
    texts_in = [options.text] if options.text else []
    annotations: Any = (
        read_questions(labels, options.source, ignore=(*options.ignore, *texts_in))
        if asked
        else read_labels(labels, options.source)
    )
    source = Path(options.features or options.label_files[0])
    images = None
    if options.images is not None:
        source = Path(options.images)
        images = read_images(source, size_of(options), labels, annotations, task=options.task or "task")
        rows = flattened(images.rows) if options.effort == "quick" else images.rows
    elif options.text is not None:
        fields = Fields(options.task, options.worker, options.label)
        texts = labels if options.features is None else [Path(options.features)]
        missing = options.missing if options.features is None and options.missing else "error"
        rows = joined_texts([read_texts(file, options.text, fields=fields, missing=missing) for file in texts])
    else:
        wide = [file for file in labels if asked and file.format in TABLES]  # whose columns can be ignored as well
        of_labels = {name for file in wide for name in column_names(file)}
        ignore = [name for name in options.ignore if name not in of_labels]
        rows = read_features(source, task=options.task, ignore=ignore, missing=options.model == "boost")
    annotations = align_rows(annotations, rows, source)
    if options.groups is not None:
        read_class_groups(options.groups, annotations)
    choose: Any = choose_question_gold if asked else choose_gold
    gold = choose(labels, options.gold, annotations, **options.source)
    return Inputs(annotations, rows, gold, images)


def _check_options(options: Options) -> None:
    """Raise an error for invalid options or combinations, before any file is read."""
    if options.features is None and options.text is None and options.images is None:
        kinds = f"{argument('features')}, {argument('text')} or {argument('images')}"
        raise ValueError(f"train must have {kinds}; got none of them.")
    if options.model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {options.model!r}.")
    if options.rounds != "auto":
        check_int(options.rounds, "rounds", 1, or_else="auto")
    check_int(options.seed, "seed", 0)
    if options.model == "boost" and find_spec("lightgbm") is None:
        raise ValueError(
            f"{argument('model', 'boost')} needs LightGBM; install it with: pip install 'labelonce[boost]'."
        )
    if options.text is not None and options.model != "softmax":
        raise ValueError(f"{argument('text')} must go with {argument('model', 'softmax')}; got {options.model!r}.")
    if options.text is not None and options.ignore and options.multiple != QUESTIONS:
        rule = f"{argument('ignore')} must go with {argument('features')} alone"
        raise ValueError(f"{rule}; got {argument('text', options.text)} as well.")
    if options.images is not None:
        _check_images_alone(options)


def _check_images_alone(options: Options) -> None:
    ignored = None if options.multiple == QUESTIONS else options.ignore or None
    others = {"features": options.features, "text": options.text, "ignore": ignored}
    others["model"] = None if options.model == "softmax" else options.model
    for name, value in others.items():
        if value is not None:
            rule = f"{argument('images')} must go without {argument(name)}"
            raise ValueError(f"{rule}; got both. The model is one of the images.")
    check_extras(options)


def _job(options: Options, inputs: Inputs) -> Job:
    versions = {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES}
    if options.model == "boost":
        versions["lightgbm"] = version("lightgbm")
    found = {}
    for role, path in options.paths.items():
        if role == "images" and inputs.images is not None:
            versions |= {name: version(name) for name in ("torch", "pillow")}
            found[role] = inputs.images.fingerprint
        else:
            found[role] = InputFile(path, *fingerprint(path))
    return Job(options, found, versions, _now()).with_paths(absolute)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _check_unchanged(before: Job, now: Job) -> None:
    for role, one in before.inputs.items():
        if one.sha256 != now.inputs[role].sha256:
            raise ValueError(
                f"{near(one.path)} must be as it was when the run began ({before.started}); its content has changed. "
                f"{START_OVER}"
            )
    for name, number in before.versions.items():
        if now.versions.get(name) != number:
            warnings.warn(
                f"the run began with {name} {number} and resumes with {now.versions.get(name)}: its numbers may "
                "differ from those of a run that was not stopped.",
                UserWarning,
                stacklevel=3,
            )


def _estimator(options: Options, inputs: Inputs) -> Any:
    learner = learner_of(options, len(inputs.rows.tasks), heads=inputs.on_questions)
    if inputs.on_questions:
        return MultiLabelMBEM(learner, rounds=options.rounds, random_state=options.seed)
    workers = None if options.groups is None else Grouped(read_class_groups(options.groups, inputs.annotations))
    return MBEM(learner, rounds=options.rounds, worker_model=workers, random_state=options.seed)


def fitted_to(options: Options, inputs: Inputs, progress: Progress) -> Any:
    """Return the fit of a run with these options, without a run folder."""
    fill_cache(options, inputs.rows.X, progress)
    clf = _estimator(options, inputs).set_params(callbacks=[partial(_say_fits, progress)])
    return clf.fit(inputs.rows.X, inputs.annotations, gold=inputs.gold)


def _say_fits(progress: Progress, event: dict[str, Any]) -> None:
    if not event["round"]:
        progress("choosing", event["fits"], event["planned_fits"])


def _finish(
    run: RunFolder, job: Job, inputs: Inputs, clf: Any, *, resume: bool, progress: Progress | None, report: bool
) -> RunRecord:
    """Fit with a checkpoint at every stage, then write the results and put them in place."""
    say = progress or (lambda *_: None)
    clf.set_params(callbacks=[partial(_say_fits, say)])
    before = run.warnings()
    say("resuming" if resume else "choosing", 0, 0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in clf.stages(inputs.rows.X, inputs.annotations, gold=inputs.gold, resume=resume):
            run.save_checkpoint(dumped(clf), _sentences(before, caught))
            say("round", clf.n_rounds_, clf.planned_rounds_)
            if clf.n_rounds_ == clf.planned_rounds_:
                say("confidence", 0, 0)
    say("writing", 0, 0)
    record = _record(job, clf, inputs, _sentences(before, caught))
    staged = run.staging()
    labels, workers = _tables(clf, inputs)
    write(labels, staged / "labels.parquet")
    write(workers, staged / "workers.parquet")
    atomic_write(staged / "model.skops", dumped(clf))
    record = _write_report(staged / "report.html", clf, inputs, record) if report else record
    write_record(staged / "run.json", record)
    run.commit()
    return record


def _tables(clf: Any, inputs: Inputs) -> tuple[pa.Table, pa.Table]:
    """Return what is known about every task, and of every worker."""
    annotations, shown = inputs.annotations, {}
    if inputs.images is not None:
        shown["image"] = [os.path.abspath(path) for path in inputs.images.paths]
    elif isinstance(inputs.rows.X, list):
        shown["text"] = inputs.rows.X
    if inputs.on_questions:
        return labels_of_questions(clf, annotations, **shown), clf.workers_to_frame()
    return labels_of(clf, annotations, **shown), workers_of(clf, annotations)


def _sentences(before: list[str], caught: list[warnings.WarningMessage]) -> list[str]:
    return list(dict.fromkeys([*before, *(str(warning.message) for warning in caught)]))


def _record(job: Job, clf: Any, inputs: Inputs, said: list[str]) -> RunRecord:
    parts = question_parts if inputs.on_questions else _class_parts
    return RunRecord(
        **vars(job),
        finished=_now(),
        warnings=said,
        features=_model_input(job.options, inputs),
        **parts(clf, inputs.annotations, inputs.gold),
        rounds=[RoundEntry.of(entry) for entry in clf.history_],
    )


def _class_parts(clf: MBEM, ann: Annotations, gold: dict[Any, Any] | None) -> dict[str, Any]:
    """Return the parts of the record that are about the classes: data, recipe and result."""
    shares = np.bincount(clf.verdict_.labels, minlength=ann.n_classes) / ann.n_tasks
    found = EstimatedAccuracy.of(clf), clf.history_[-1]["agreement"]
    result = Outcome(*found, ann.classes.tolist(), shares.tolist())
    return {"data": DataSize.of(ann, gold), "recipe": used_recipe(clf), "result": result}


def _model_input(options: Options, inputs: Inputs) -> NumberInput | TextInput | ImageInput:
    if inputs.images is not None:
        return ImageInput(inputs.images.named, size_of(options))
    if options.text is not None:
        return TextInput(options.text)
    return NumberInput(inputs.rows.columns, inputs.rows.X.shape[1])


def _write_report(path: Path, clf: Any, inputs: Inputs, record: RunRecord) -> RunRecord:
    """Write the report where its libraries are installed; return the record, which says if it was not."""
    reason = _no_report(inputs)
    try:
        if not reason:
            _report_of(path, clf, inputs, record)
    except ImportError as error:  # Jinja2 is not installed
        reason = str(error)
    said = [f"report.html was not written: {reason}"] if reason else []
    return replace(record, warnings=[*record.warnings, *said])


def _report_of(path: Path, clf: Any, inputs: Inputs, record: RunRecord) -> None:
    report = import_module("labelonce.report")
    rows, images = inputs.rows, inputs.images
    shown: dict[str, Any] = {"run": record.with_paths(near).to_dict()}
    if not inputs.on_questions:
        options = record.options.with_paths(near)
        shown["work"] = work_in(options.label_files, options.source, len(inputs.annotations))
    if images is None:
        texts = rows.X if isinstance(rows.X, list) else None
        report.write_report(path, clf, inputs.annotations, texts=texts, **shown)
        return
    try:
        report.write_report(path, clf, inputs.annotations, images=images.paths, **shown)
    except ValueError:  # a file has gone since it was read
        shots = None if isinstance(rows.X, list) or rows.X.ndim != 4 else rows.X
        report.write_report(path, clf, inputs.annotations, images=shots, **shown)


def _no_report(inputs: Inputs) -> str:
    """Return why there is no report of such annotations, nothing where there is one."""
    ann = inputs.annotations
    if inputs.on_questions:
        return ""
    if ann.is_scale:
        return "it is about labels that are classes, and the answers are a scale."
    if has_no_room(ann):
        return f"{ann.n_classes:,} classes are too many; see labels.parquet, workers.parquet."
    return ""
