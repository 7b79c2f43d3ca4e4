"""Input files for tools: tasks to label, with what the tool shows of each, from the files that the labels came from."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from labelonce._messages import argument, show
from labelonce.files import File, id_column, naming, read_table, write_rows
from labelonce.formats import _label_studio, _mturk, _toloka
from labelonce.formats._answers import integers_if_all, string_columns

Target = Literal["mturk", "toloka", "label-studio"]
Shown = dict[Any, dict[str, Any]]
_INPUTS = {"mturk": "Input.", "toloka": "INPUT:"}


def shown_in(file: File, task: str | None) -> Shown:
    """Return the input fields of the tasks in a tool's file; nothing for other tables."""
    if file.format == "label-studio":
        tasks = _label_studio.load(file)
        return {_label_studio.task_id(one, task): dict(one.get("data") or {}) for one in tasks}
    if file.format not in _INPUTS:
        return {}
    prefix = _INPUTS[file.format]
    with naming(file):
        table = string_columns(file._replace(format="csv" if file.format == "mturk" else "tsv"))
        names = list(table)
        if file.format == "mturk":
            ids = table[_mturk._column(names, task or "HITId", prefix, "task")]
        else:
            ids = table[_toloka._task_column(names, task)]
    fields = [name for name in names if name.startswith(prefix)]
    rows = zip(integers_if_all(ids), *(table[name] for name in fields), strict=True)
    return {one: dict(zip((name.removeprefix(prefix) for name in fields), cells, strict=True)) for one, *cells in rows}


def shown_in_table(file: File, task: str) -> Shown:
    """Return the rows of a table by their task, without the empty column names of spreadsheets."""
    with naming(file):
        table = read_table(file, [task])
        ids = integers_if_all([str(one) for one in id_column(table, task, file).to_pylist()])
        return dict(zip(ids, table.to_pylist(), strict=True))


def write_tasks(
    pairs: Sequence[tuple[Any, Any]], sink: Any, target: Target, shown: Mapping[Any, Mapping[str, Any]]
) -> None:
    """Write the tasks that workers are to label as a tool imports them.

    MTurk: a row per label to ask for, with its worker. Toloka, which chooses the workers: a row per task. Label Studio:
    tasks with their workers in `meta`.
    """
    asked: dict[Any, list[Any]] = {}
    for task, worker in pairs:
        asked.setdefault(task, []).append(worker)
    missing = [task for task in asked if task not in shown]
    if missing:
        raise ValueError(
            f"what {target} shows must be known of every task; got nothing of {show(missing[0])} ({len(missing)} in "
            f"total). Give a table of the tasks: {argument('tasks', 'tasks.csv')}."
        )
    if target == "label-studio":
        made = [{"data": {"task": task} | dict(shown[task]), "meta": {"workers": asked[task]}} for task in asked]
        sink.write(json.dumps(made, ensure_ascii=False, indent=1, default=str).encode())
        return
    names = list(dict.fromkeys(name for task in asked for name in shown[task]))
    cells = {task: ["" if (cell := shown[task].get(name)) is None else cell for name in names] for task in asked}
    if target == "toloka":
        write_rows(sink, "tsv", [f"INPUT:{name}" for name in names], list(cells.values()))
    else:
        write_rows(sink, "csv", [*names, "worker"], [[*cells[task], worker] for task, worker in pairs])
