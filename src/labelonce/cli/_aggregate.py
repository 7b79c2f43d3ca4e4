"""`labelonce aggregate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelonce._types import GROUPINGS, TABLES
from labelonce.aggregation import COMMANDS, Aggregator, aggregator_of
from labelonce.cli._multilabel import aggregate_questions
from labelonce.cli._print import print_json, print_rows, print_status, right_in_words, warnings_as_notes
from labelonce.cli._source import check_outputs, read_comparable
from labelonce.files import File
from labelonce.io import detect_format, read_class_groups, write
from labelonce.runs import find_files, has_questions
from labelonce.workers import Grouped


def run_aggregate(
    *,
    files: list[Path],
    source: dict[str, Any],
    method: str,
    gold: Path | None,
    groups: str | None,
    device: str | None,
    seed: int,
    output: Path | None,
    output_format: str | None,
    workers: Path | None,
    as_json: bool,
) -> None:
    """Read the annotations as `source` says, fit the method, write its labels and workers."""
    table = None if groups is None or groups in GROUPINGS else Path(groups)
    check_outputs([*files, gold, table], output=(output, output_format), workers=(workers, None))
    if workers is not None and detect_format(workers, reading=False) not in TABLES:
        raise ValueError(f"--workers must be a table, such as workers.csv; got {workers}.")
    labels = find_files(files, source.get("format"))
    if has_questions(labels, source):
        for option, value in (("groups", groups), ("device", device)):
            if value is not None:
                raise ValueError(f"--{option} must be left out for questions; got {value}.")
        written: dict[str, Any] = {"output": output, "output_format": output_format, "workers": workers}
        aggregate_questions(labels, source, method=method, gold=gold, as_json=as_json, **written)
        return
    model = _aggregator(method, device, seed)
    if groups is not None and method != "dawid-skene":
        raise ValueError(f"--groups must go with --method dawid-skene; got {method}. Leave it out.")
    annotations, known = read_comparable(labels, source, gold)
    with warnings_as_notes():
        if groups is not None:
            model.set_params(worker_model=Grouped(read_class_groups(groups, annotations)))
        model.fit(annotations, gold=known)
    if output is not None:
        write(model, output, format=output_format, **_origin(labels, source, output, output_format))
    elif not as_json:
        print_rows(model.to_frame())
    if workers is not None:
        write(model.workers_to_frame(), workers)
    right = model.estimated_accuracy_
    if not as_json:
        print_status(f"{annotations!r}")
        print_status(f"{method}, {model.n_iter_} iterations: {right_in_words(right)}")
        return
    found: dict[str, Any] = {"method": method, "annotations": len(annotations), "tasks": annotations.n_tasks}
    found |= {"workers": annotations.n_workers, "classes": annotations.classes.tolist()}
    found |= {"answers": annotations.answers.tolist(), "redundancy": annotations.redundancy}
    found |= {"estimated_accuracy": vars(right), "iterations": model.n_iter_, "converged": model.converged_}
    found |= {"output": output and str(output), "workers_output": workers and str(workers)}
    print_json(found | ({} if output else {"labels": model.to_frame().to_pylist()}))


def _aggregator(method: str, device: str | None, seed: int) -> Aggregator:
    """Return the unfitted method; a device for one that offers no choice is an error."""
    model = aggregator_of(method)()
    model.set_params(random_state=seed)
    if device is not None:
        able = [one for one in COMMANDS.values() if "device" in aggregator_of(one)().get_params()]
        if method not in able:
            raise ValueError(f"--device must go with --method {', '.join(able)}; got {method}. Leave it out.")
        model.set_params(device=device)
    return model


def _origin(files: Sequence[File], source: dict[str, Any], output: Path, output_format: str | None) -> dict[str, Any]:
    """Return what Label Studio's predictions need to find their way back to the tasks of an export."""
    if {files[0].format, detect_format(output, format=output_format, reading=False)} != {"label-studio"}:
        return {}
    if len(files) > 1:
        raise ValueError(
            f"predictions go back to one export; got {len(files)} files. Aggregate to .csv, or one by one."
        )
    return {"like": files[0]} | {name: source[name] for name in ("task", "label", "multiple") if name in source}
