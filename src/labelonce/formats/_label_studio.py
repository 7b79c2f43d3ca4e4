"""Label Studio's JSON: tasks with the annotations, or the predictions, inside them."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from labelonce._messages import argument, show
from labelonce.files import File, whole_text
from labelonce.formats._answers import SEPARATOR, Answers, Fields, choose_field

_GROUND_TRUTHS = "ground truths, which are gold"
_PATH = " / "  # between the levels of a taxonomy
_VALUE = {"choices": "choices", "taxonomy": "taxonomy", "rating": "rating", "pairwise": "selected"}


class Control(NamedTuple):
    """A control of the labelling interface that asks for a class."""

    name: str
    type: str
    to_name: str


def read(file: File, fields: Fields, *, keep_rejected: bool = False) -> Answers:
    """Return what the users chose in one control."""
    tasks = load(file)
    answered = any(True for task in tasks for one in _annotations(task) for _ in _results(one))
    answers = Answers()
    if fields.text is not None:
        answers.texts = [(task_id(task, fields.task), _task_field(task, fields.text, "text")) for task in tasks]
        if not answered:  # new tasks, of which only the texts are wanted
            return answers
    control = _find_control(tasks, fields.label)
    for task in tasks:
        given = _annotations(task)
        answers.left_out["drafts"] += len(task.get("drafts") or [])
        if not given:
            answers.left_out["tasks without annotations"] += 1
            continue
        for annotation in given:
            _add(answers, task, annotation, control, fields, keep_rejected)
    answers.left_out = +answers.left_out
    return answers


def _add(
    answers: Answers, task: dict[str, Any], annotation: dict[str, Any], control: Control, fields: Fields, keep: bool
) -> None:
    labels = _labels(annotation, control)
    if annotation.get("was_cancelled") and not (keep and labels):
        answers.left_out["cancelled or skipped"] += 1
        return
    on_regions = any(True for item in _results(annotation) if item["from_name"] == control.name and _of_region(item))
    if on_regions and not labels:
        answers.left_out["about a region of the task"] += 1
        return
    own_id = task_id(task, fields.task)
    if not annotation.get("ground_truth") or not labels or annotation.get("was_cancelled"):
        answers.add(own_id, _worker(task, annotation, fields.worker), labels)
        return
    before = answers.gold.setdefault(own_id, labels)
    if set(before) != set(labels):
        raise ValueError(
            f"ground truths of a task must agree; got {show(list(before))} and {show(list(labels))} in task "
            f"{show(task.get('id'))}. Keep the mark at one of them and export again; Label Studio marks whatever is "
            "imported without ground_truth: false."
        )
    answers.left_out[_GROUND_TRUTHS] += 1
    answers.gold[own_id] = labels


def load(file: File) -> list[dict[str, Any]]:
    """Return the tasks in an export."""
    try:
        tasks = json.loads(whole_text(file))
    except (json.JSONDecodeError, RecursionError) as error:
        place = f"at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else "nested too deep"
        said = f"the file must be one JSON list; got text that is not JSON {place}. Export it again."
        raise ValueError(said) from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise ValueError(f"the file must be one JSON list of tasks; got {show(tasks)}. Export it as JSON.")
    for i, task in enumerate(tasks):
        if "annotator" in task and "annotations" not in task:
            raise ValueError("the export must be of type JSON; got JSON-MIN, which hides skips. Export it as JSON.")
        if not ({"annotations", "completions", "data"} & task.keys()):
            raise ValueError(
                f"a task must hold 'data' and 'annotations'; got {show(list(task))} at position {i}. Export it as JSON "
                "from Label Studio; records of another program are read as .jsonl, one object per line."
            )
    return tasks


def _annotations(task: dict[str, Any]) -> list[dict[str, Any]]:
    given = task.get("annotations") or task.get("completions") or []
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise ValueError(f"annotations must be a list of objects; got {show(given)} in task {show(task.get('id'))}.")
    return given


def _results(annotation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    given = annotation.get("result")
    for item in given if isinstance(given, list) else []:
        if isinstance(item, dict) and item.get("type") in _VALUE and isinstance(item.get("value"), dict):
            yield {"from_name": "", "to_name": "", **item}


def _of_region(item: dict[str, Any]) -> bool:
    """Return whether a choice is about a region of the task: it then has coordinates."""
    return bool(item["value"].keys() - {_VALUE[item["type"]]})


def _labels(annotation: dict[str, Any], control: Control) -> tuple[Any, ...]:
    labels: list[Any] = []
    for item in _results(annotation):
        if item["from_name"] == control.name and not _of_region(item):
            value = item["value"].get(_VALUE[control.type])
            labels += value if isinstance(value, list) else [] if value is None else [value]
    return tuple(_PATH.join(map(str, label)) if isinstance(label, list) else label for label in labels)


def _find_control(tasks: list[dict[str, Any]], name: str | None) -> Control:
    found: Counter[Control] = Counter()
    for task in tasks:
        for annotation in _annotations(task):
            found.update(Control(item["from_name"], item["type"], item["to_name"]) for item in _results(annotation))
    by_name = {control.name: control for control in reversed(list(found))}
    if name is None and len(by_name) > 1:
        listed = ", ".join(f"{control.name!r} ({control.type}, {n:,} answers)" for control, n in found.most_common())
        raise ValueError(
            f"the control must be named where there are several; got {listed}. Name one with {argument('label')}"
        )
    if name is None and not by_name:
        raise ValueError(
            "the file must hold answers to a choices, taxonomy, rating or pairwise control; got none. "
            "Were these tasks labelled yet?"
        )
    return by_name[choose_field(name, sorted(by_name), "the control", "label")]


def task_id(task: dict[str, Any], key: str | None) -> Any:
    """Return the id of a task: a field of it or of its data, by default `id`."""
    return _task_field(task, key or "id", "task")


def _task_field(task: dict[str, Any], key: str, role: str) -> Any:
    data = task["data"] if isinstance(task.get("data"), dict) else {}
    value = task[key] if key in task else data.get(key)
    if value is None:
        raise ValueError(
            f"every task must have the field {key!r}; got {show(list(data))} in task {show(task.get('id'))}. "
            f"Name a field of its data with {argument(role)}"
        )
    return value


def _worker(task: dict[str, Any], annotation: dict[str, Any], key: str | None) -> Any:
    user = annotation.get("completed_by")
    details = user if isinstance(user, dict) else {"id": user}
    value = annotation[key] if key in annotation else details.get(key if key not in (None, "completed_by") else "id")
    if isinstance(value, dict):
        value = value.get("id")
    if value is None and key is None:
        value = details.get("email")
    if value is None:
        raise ValueError(
            f"every annotation must say who made it; got {key or 'completed_by'!r} missing in task "
            f"{show(task.get('id'))}. Name another field with {argument('worker')}"
        )
    return value


def write(
    table: pa.Table,
    sink: Any,
    *,
    like: File | None = None,
    control: File | None = None,
    fields: Fields = Fields(),  # noqa: B008  # immutable
    multiple: str = "error",
) -> None:
    """Write annotations, or labels as predictions with scores, as tasks that Label Studio imports.

    `like`: the export that the annotations came from; the data, the ids and the control are taken from it, or the
    control from an export `control`.
    """
    tasks, target = _template(like, control, fields)
    made: dict[Any, dict[str, Any]] = {}
    for row in table.to_pylist():
        task = row["task"]
        if tasks and task not in tasks:
            raise ValueError(f"like must hold every task; got none for {show(task)}. Give the export they came from.")
        whole = made.setdefault(task, dict(tasks.get(task) or {"id": task, "data": {"task": task}}))
        labels = str(row["label"]).split(SEPARATOR) if multiple == "join" else [row["label"]]
        result = [_result(target, labels)]
        if "worker" in row:
            entry = {"completed_by": row["worker"], "was_cancelled": False, "ground_truth": False, "result": result}
            whole.setdefault("annotations", []).append(entry)
        else:
            score = row.get("confidence")
            entry = {"task": whole["id"], "model_version": "labelonce", "score": score, "result": result}
            whole.setdefault("predictions", []).append(entry)
    sink.write(json.dumps(list(made.values()), ensure_ascii=False, indent=1, allow_nan=False).encode())


def _template(like: File | None, control: File | None, fields: Fields) -> tuple[dict[Any, dict[str, Any]], Control]:
    tasks = [] if like is None else load(like)
    kept = {task_id(task, fields.task): {"id": task.get("id"), "data": task.get("data")} for task in tasks}
    if control is not None:
        return kept, _find_control(load(control), fields.label)
    if like is None:
        return kept, Control(fields.label or "label", "choices", fields.task or "task")
    return kept, _find_control(tasks, fields.label)


def _result(control: Control, labels: list[Any]) -> dict[str, Any]:
    value: Any = [str(label) for label in labels]
    if control.type == "taxonomy":
        value = [label.split(_PATH) for label in value]
    elif control.type == "rating":
        value = int(labels[0])
    elif control.type == "pairwise":
        value = value[0]
    names = {"from_name": control.name, "to_name": control.to_name, "type": control.type}
    return names | {"value": {_VALUE[control.type]: value}}
