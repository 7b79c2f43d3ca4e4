"""`labelonce next`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from labelonce.cli._print import print_json, print_note, print_rows, print_status, warnings_as_notes
from labelonce.cli._progress import shown_progress
from labelonce.cli._source import check_no_questions, check_outputs
from labelonce.data import Annotations
from labelonce.data._answers import only_classes
from labelonce.files._open import File
from labelonce.io import write
from labelonce.learning import MBEM
from labelonce.routing import Limits, Router
from labelonce.routing._strategies import strategy_of
from labelonce.runs._doors import fill_cache, learner_of, settled
from labelonce.runs._gold import choose_gold
from labelonce.runs._labels import find_files, read_labels
from labelonce.runs._record import Options
from labelonce.runs._train import Progress, read_inputs


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
    as_json: bool,
) -> None:
    """Fit all labels so far, and write who should label what next."""
    check_outputs([*paths, Path(inputs["features"]) if inputs["features"] else None, gold], output=(output, None))
    with warnings_as_notes():
        labels = find_files(paths, source.get("format"))
        check_no_questions(labels, source, "next")
    given: dict[str, Any] = inputs | {"gold": gold and str(gold), "ignore": tuple(ignore)} | source
    options = settled(Options(tuple(map(str, paths)), **given))
    with warnings_as_notes():
        annotations, X, known = _read(labels, options)
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
    if output is not None:
        write(found, output)
    elif not as_json:
        print_rows(found)
    _report(router, batch, n, output=output, as_json=as_json)


def _read(labels: Sequence[File], options: Options) -> tuple[Any, Any, dict[Any, Any] | None]:
    """Return the annotations, what a model learns from, if anything, and the known classes."""
    if options.features or options.text or options.images:
        found = read_inputs(options)
        return only_classes(found.annotations, "next"), found.rows.X, found.gold
    annotations = only_classes(read_labels(labels, options.source), "next")
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
    risk = f"the average task's label is now wrong with probability {router.belief.mean_risk:.3f}"
    print_status(f"{len(batch)} labels to ask {asked} of {len(router.workers)} workers for; {risk}")
    if len(batch) < n:
        print_note(f"fewer than the {n} labels asked for: no worker has an open task left, or --each is too small")


def _plain(batch: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the pairs with ids that JSON knows."""
    return [(task if isinstance(task, str) else int(task), worker) for task, worker in batch]
