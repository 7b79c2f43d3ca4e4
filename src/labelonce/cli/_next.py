"""`labelonce next`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._kernels import Beliefs
from labelonce._messages import argument
from labelonce.cli._print import print_json, print_note, print_rows, print_status, right_in_words, warnings_as_notes
from labelonce.cli._progress import shown_progress
from labelonce.cli._source import check_no_questions, check_outputs
from labelonce.data import Annotations, check_whole, only_classes
from labelonce.files import File, atomic_stream, column_names, locate, naming
from labelonce.formats import Target, shown_in, shown_in_table, write_tasks
from labelonce.io import write
from labelonce.judges import JudgePanel
from labelonce.learning import MBEM
from labelonce.planning import wanted_overlap
from labelonce.report import among_classes
from labelonce.routing import Fit, Limits, Router, strategy_of
from labelonce.runs import (
    EstimatedAccuracy,
    Options,
    Progress,
    RunFolder,
    choose_gold,
    find_files,
    fitted_to,
    load,
    near,
    read_inputs,
    read_labels,
    read_run,
    settled,
)

Pairs = list[tuple[Any, Any]]  # of a task and a worker

_HOW = {
    "mturk": "the column worker says who is asked: publish a batch for each worker, with a qualification of its own",
    "toloka": "Toloka chooses the workers: set the overlap of the pool, or restrict it by a skill",
    "label-studio": "import the file; meta.workers of each task says who is asked",
}


@dataclass(frozen=True)
class _KnownLabels:
    """What is known so far: files of labels, the labels in them, gold, and the fit of them if there is a model."""

    files: Sequence[File]
    annotations: Annotations
    gold: Mapping[Any, Any] | None
    fitted: MBEM | None
    task: str | None = None
    table: Path | None = None  # with features or texts of the tasks


def run_next(
    *,
    files: list[Path],
    source: dict[str, Any],
    n: int,
    gold: Path | None,
    strategy: str,
    each: int | None,
    max_labels: int | None,
    overlap: int | None,
    seed: int,
    output: Path | None,
    target: Target | None,
    tasks: Path | None,
    as_json: bool,
    **inputs: Any,
) -> None:
    """Fit all labels so far, or take the fit of a run, and write who should label what next."""
    if target is not None and output is None:
        raise ValueError(f"{argument('output')} must say where the input file of {target} goes; got none.")
    check_outputs([*files, inputs["features"], gold, tasks], output=(output, None))
    given: dict[str, Any] = {
        name: str(value) if isinstance(value, Path) else value for name, value in (inputs | source).items()
    }
    with warnings_as_notes(), shown_progress(as_json=as_json) as progress:
        if len(files) == 1 and (files[0] / "run.json").exists():
            known = _of_run(files[0], given, gold)
        else:
            options = Options(tuple(map(str, files)), **given, gold=str(gold) if gold else None, seed=seed)
            known = _of_labels(options, progress)
        if known.fitted is None and (known.annotations.family is not None or known.annotations.order is not None):
            _next_of_panel(known, n=n, seed=seed, output=output, as_json=as_json)
            return
        check_whole(known.annotations, "next")
        limits = Limits(max_labels=max_labels)
        router = _router(known, strategy=strategy_of(strategy, {}), limits=limits, random_state=seed)
    fitted, n_labels = known.fitted or router.model_, router.state.n_labels
    if overlap is None:
        overlap = wanted_overlap(fitted, int((n_labels > 0).sum()), int((n_labels > 1).sum()))
    second = _second_labels(router, min(n, overlap), each, seed)
    batch = second + _first_labels(router, n - len(second), each, second)
    found = pa.table({name: [pair[place] for pair in batch] for place, name in enumerate(("task", "worker"))})
    if output is not None and target is not None:
        shown = _shown(batch, tasks or known.table, known.files, known.task)
        with naming(locate(output), may="write"), atomic_stream(locate(output)) as sink:
            write_tasks(batch, sink, target, shown)
        print_note(_HOW[target])
    elif output is not None:
        write(found, output)
    elif not as_json:
        print_rows(found)
    _report(router, fitted, batch, n, n_second=len(second), output=output, as_json=as_json)


def _of_run(folder: Path, given: dict[str, Any], gold: Path | None) -> _KnownLabels:
    """Return what a finished run knows, without a new fit."""
    for name, value in given.items():
        if value:
            raise ValueError(f"{argument(name)} must be left out with a run folder, which knows it; got {value}.")
    options, _ = read_run(folder).options.with_paths(near), read_run(folder).outcome  # of questions it is an error
    fitted: MBEM = load(RunFolder(folder).file("model.skops"))
    known = gold or (options.gold and Path(options.gold))
    codes = choose_gold([], known, fitted.annotations_, **options.source)
    files, table = find_files(options.label_files), Path(options.features) if options.features else None
    return _KnownLabels(files, fitted.annotations_, codes, fitted, options.task, table)


def _of_labels(options: Options, progress: Progress) -> _KnownLabels:
    """Return a fit to the labels, made as `train` does if there are features."""
    files = find_files(options.label_files, options.format)
    check_no_questions(files, options.source, "next")
    options = settled(options)
    if not (options.features or options.text or options.images):
        annotations = read_labels(files, options.source)
        gold = choose_gold(files, options.gold and Path(options.gold), annotations, **options.source)
        return _KnownLabels(files, annotations, gold, None, options.task)
    found, table = read_inputs(options), Path(options.features) if options.features else None
    fitted = fitted_to(options, found, progress)
    return _KnownLabels(files, found.annotations, found.gold, fitted, options.task, table)


def _router(known: _KnownLabels, **terms: Any) -> Router:
    annotations, fitted = only_classes(known.annotations, "next"), known.fitted
    router = Router(annotations.tasks, annotations.classes, gold=known.gold, **terms)
    for task, worker, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        router.add(annotations.tasks[task], annotations.workers[worker], annotations.classes[label])
    if fitted is None:
        router.refit()
        return router
    posterior, predictions = (Beliefs.of(one).to_dense() for one in (fitted.posterior_, fitted.predictions_))
    confusion = among_classes(np.asarray(fitted.confusion_))
    router.adopt(Fit(posterior, confusion, fitted.workers_.tolist(), router.answers, predictions))
    return router


def _second_labels(router: Router, n: int, each: int | None, seed: int) -> Pairs:
    """Return random tasks with one label, each with another worker; workers take turns, whatever their skill."""
    rng, most = np.random.default_rng(seed), inf if each is None else each
    once = router.tasks[router.open & (router.state.n_labels == 1)]
    turn, given = cycle(rng.permutation(len(router.workers)).tolist()), dict.fromkeys(range(len(router.workers)), 0)
    found: Pairs = []
    for task in rng.permutation(once).tolist():
        free = (next(turn) for _ in given)
        worker = next((one for one in free if given[one] < most and router.is_free(task, router.workers[one])), None)
        if len(found) == n or worker is None:
            break
        given[worker] += 1
        router.hand_out(task, router.workers[worker])
        found.append((task, router.workers[worker]))
    return found


def _first_labels(router: Router, n: int, each: int | None, before: Pairs) -> Pairs:
    """Return the strategy's assignments, within the remaining capacity of every worker."""
    had = [worker for _, worker in before]
    left = None if each is None else each - max(map(had.count, set(had)), default=0)
    return [] if n == 0 or left == 0 else router.next_batch(n, each=left)


def _shown(batch: Pairs, table: Path | None, labels: Sequence[File], task: str | None) -> dict[Any, Any]:
    """Return the fields that a tool shows for each task: those of the export, else of a table, else the id."""
    found: dict[Any, Any] = {}
    for one in labels:
        found |= shown_in(one, task)
    fields = {name for row in found.values() for name in row}
    if table is not None:
        with_ids = next((name for name in (task, "task") if name in column_names(locate(table))), None)
        for one, row in ({} if with_ids is None else shown_in_table(locate(table), with_ids)).items():
            found.setdefault(one, {name: row.get(name) for name in fields or row})
    own = {one: {task: one} for one, _ in batch} if fields == {task} else {}
    return own | found


def _next_of_panel(known: _KnownLabels, *, n: int, seed: int, output: Path | None, as_json: bool) -> None:
    """Assign items to people in turn: half are those the panel is least sure of, half are random."""
    panel = JudgePanel(random_state=seed).fit(known.annotations, gold=known.gold)
    found = panel.next_tasks(n).rename_columns({"probability": "chance"})
    people = panel.workers_[panel.people_].tolist() or ["person"]
    found = found.add_column(1, "worker", pa.array([people[place % len(people)] for place in range(len(found))]))
    if output is not None:
        write(found, output)
    if as_json:
        print_json({"items": len(found), "output": output and str(output), "next": found.to_pylist()})
    elif output is None:
        print_rows(found)
    right = panel.estimated_accuracy_
    said = f"{right.value:.0%} of the labels are right ({right.low:.0%} to {right.high:.0%})"
    print_status(f"{len(found)} items for people; {said}")


def _report(
    router: Router, fitted: Any, batch: Pairs, n: int, *, n_second: int, output: Path | None, as_json: bool
) -> None:
    asked, right = len({worker for _, worker in batch}), fitted.estimated_accuracy_
    if as_json:
        found: dict[str, Any] = {"assignments": len(batch), "second_labels": n_second, "workers_asked": asked}
        found |= {"workers": len(router.workers), "estimated_accuracy": vars(right), "settled": len(router.settled)}
        pairs = [{"task": task if isinstance(task, str) else int(task), "worker": worker} for task, worker in batch]
        print_json(found | {"output": output and str(output)} | ({} if output else {"next": pairs}))
        return
    print_status(f"{len(batch)} labels to ask for, of {asked} of {len(router.workers)} workers")
    if isinstance(fitted, MBEM):
        print_status(f"now {EstimatedAccuracy.of(fitted)}")
    elif n_second:
        print_status("how many labels are right now cannot be told: hardly any task has labels by two workers")
    else:
        print_status(f"now {right_in_words(right)}")
    if n_second:
        print_status(
            f"{n_second} of them are second labels of random tasks: how often two workers agree shows how right the "
            f"labels are ({argument('overlap', '0')} leaves them out)"
        )
    if len(batch) < n:
        print_note(f"fewer than the {n} labels asked for: no worker has an open task left, or --each is too small")
