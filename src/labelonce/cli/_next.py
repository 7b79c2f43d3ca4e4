"""`labelonce next`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from labelonce._messages import argument
from labelonce.cli._print import print_json, print_note, print_rows, print_status, warnings_as_notes
from labelonce.cli._progress import shown_progress
from labelonce.cli._source import check_no_questions, check_outputs
from labelonce.data import Annotations
from labelonce.data._answers import only_classes
from labelonce.data._extra import check_whole
from labelonce.files._atomic import atomic_stream
from labelonce.files._open import File, locate, naming
from labelonce.files._table_reader import column_names
from labelonce.formats._task_files import Target, shown_in, shown_in_table, write_tasks
from labelonce.io import write
from labelonce.judges import JudgePanel
from labelonce.learning import MBEM
from labelonce.routing import Limits, Router
from labelonce.routing._strategies import strategy_of
from labelonce.runs._doors import fill_cache, learner_of, settled
from labelonce.runs._gold import choose_gold
from labelonce.runs._labels import find_files, read_labels
from labelonce.runs._record import Options
from labelonce.runs._train import Progress, read_inputs

_HOW = {
    "mturk": "the column worker says who is asked: publish a batch for each worker, with a qualification of its own",
    "toloka": "Toloka chooses the workers: set the overlap of the pool, or restrict it by a skill",
    "label-studio": "import the file; meta.workers of each task says who is asked",
}


def run_next(
    paths: list[Path],
    source: dict[str, Any],
    *,
    n: int,
    inputs: dict[str, str | None],
    ignore: list[str],
    gold: Path | None,
    strategy: str,
    each: int | None,
    max_labels: int | None,
    seed: int,
    output: Path | None,
    target: Target | None,
    tasks: Path | None,
    as_json: bool,
) -> None:
    """Fit all labels so far, and write who should label what next."""
    if target is not None and output is None:
        raise ValueError(f"{argument('output')} must say where the input file of {target} goes; got none.")
    features = Path(inputs["features"]) if inputs["features"] else None
    check_outputs([*paths, features, gold, tasks], output=(output, None))
    with warnings_as_notes():
        labels = find_files(paths, source.get("format"))
        check_no_questions(labels, source, "next")
    given: dict[str, Any] = inputs | {"gold": gold and str(gold), "ignore": tuple(ignore)} | source
    options = settled(Options(tuple(map(str, paths)), **given))
    with warnings_as_notes():
        annotations, X, known = _read(labels, options)
    if X is None and (annotations.family is not None or annotations.order is not None):
        _next_of_panel(annotations, known, n=n, seed=seed, output=output, as_json=as_json)
        return
    with warnings_as_notes():
        check_whole(annotations, "next")
        annotations = only_classes(annotations, "next")
    with shown_progress(as_json=as_json) as progress:
        if X is not None:
            fill_cache(options, X, progress)
        router = Router(
            annotations.tasks,
            annotations.classes,
            X=X,
            learner=None if X is None else _learner(options, len(X), seed, progress),
            strategy=strategy_of(strategy, {}),
            limits=Limits(max_labels=max_labels),
            gold=known,
            random_state=seed,
        )
        _add(router, annotations)
        router.refit()
    batch = router.next_batch(n, each=each)
    found = pa.table({name: [pair[place] for pair in batch] for place, name in enumerate(("task", "worker"))})
    if output is not None and target is not None:
        shown = _shown(batch, tasks or features, labels, source.get("task"))
        with naming(locate(output), may="write"), atomic_stream(locate(output)) as sink:
            write_tasks(batch, sink, target, shown)
        print_note(_HOW[target])
    elif output is not None:
        write(found, output)
    elif not as_json:
        print_rows(found)
    _report(router, batch, n, output=output, as_json=as_json)


def _shown(batch: list[tuple[Any, Any]], table: Path | None, labels: list[File], task: str | None) -> dict[Any, Any]:
    """Return what a tool shows of each task: by the export, else by a table, else the id where that is all it shows."""
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


def _next_of_panel(
    annotations: Annotations, gold: Any, *, n: int, seed: int, output: Path | None, as_json: bool
) -> None:
    """Send items to people, those of the panel in turn: half that it is least sure of, half at random."""
    with warnings_as_notes():
        panel = JudgePanel(random_state=seed).fit(annotations, gold=gold)
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


def _read(labels: Sequence[File], options: Options) -> tuple[Any, Any, dict[Any, Any] | None]:
    """Return the annotations, what a model learns from, if anything, and the known classes."""
    if options.features or options.text or options.images:
        found = read_inputs(options)
        return found.annotations, found.rows.X, found.gold
    annotations = read_labels(labels, options.source)
    return annotations, None, choose_gold(labels, options.gold and Path(options.gold), annotations, **options.source)


def _learner(options: Options, n_tasks: int, seed: int, progress: Progress) -> MBEM:
    def say(event: dict[str, Any]) -> None:
        if not event["round"]:
            progress("choosing", event["fits"], event["planned_fits"])

    return MBEM(learner_of(options, n_tasks), callbacks=[say], random_state=seed)


def _add(router: Router, annotations: Annotations) -> None:
    for task, worker, label in zip(annotations.task, annotations.worker, annotations.label, strict=True):
        router.add(annotations.tasks[task], annotations.workers[worker], annotations.classes[label])


def _report(router: Router, batch: list[tuple[Any, Any]], n: int, *, output: Path | None, as_json: bool) -> None:
    asked = len({worker for _, worker in batch})
    if as_json:
        found: dict[str, Any] = {"assignments": len(batch), "workers_asked": asked, "workers": len(router.workers)}
        found |= {"mean_risk": router.belief.mean_risk, "settled": len(router.settled)}
        pairs = [{"task": task, "worker": worker} for task, worker in _plain(batch)]
        print_json(found | {"output": output and str(output)} | ({} if output else {"next": pairs}))
        return
    risk = f"about {router.belief.mean_risk:.1%} of the tasks have a wrong label now"
    print_status(f"{len(batch)} labels to ask for, of {asked} of {len(router.workers)} workers; {risk}")
    if len(batch) < n:
        print_note(f"fewer than the {n} labels asked for: no worker has an open task left, or --each is too small")


def _plain(batch: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the pairs with ids that JSON knows."""
    return [(task if isinstance(task, str) else int(task), worker) for task, worker in batch]
