"""What files of labels say about the work: seconds and pay of every label, and when it was given."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import nan
from typing import Any

import pyarrow as pa

from labelonce._types import TABLES
from labelonce.files import File, column_names, naming, read_table, whole_text

COLUMNS = ("seconds", "pay", "time")
_NAMES = {  # by what they are called: in the service's export, in those of MTurk and Toloka, and by people
    "seconds": ("seconds", "WorkTimeInSeconds", "lead_time", "duration"),
    "pay": ("pay", "Reward", "ASSIGNMENT:reward", "reward", "price"),
    "time": ("given_at", "SubmitTime", "ASSIGNMENT:submitted", "created_at", "timestamp", "time"),
}
_IDS = {"mturk": ("HITId", "WorkerId"), "toloka": ("ASSIGNMENT:task_id", "ASSIGNMENT:worker_id")}
_AMOUNT = re.compile(r"[^\d.,-]*(-?\d[\d,]*\.?\d*)[^\d]*")
_UNIX_TIME = re.compile(r"\d{9,10}(\.\d+)?")  # in seconds, of 1973 and later
_MTURK_TIME = re.compile(r"(\w{3} \w{3} \d+ [\d:]+) \w+ (\d{4})")  # Wed Nov 18 10:00:00 PST 2026


def read_work(files: Sequence[File], *, task: str | None = None, worker: str | None = None) -> pa.Table | None:
    """Return task, worker, seconds, pay and time of every label where the files have them; None where none does."""
    rows = [row for file in files for row in _rows(file, task, worker)]
    if not any(row[name] == row[name] for row in rows for name in COLUMNS):
        return None
    table = {name: pa.array([row[name] for row in rows], pa.float64()) for name in COLUMNS}
    known = {name: column for name, column in table.items() if any(row[name] == row[name] for row in rows)}
    return pa.table({name: [str(row[name]) for row in rows] for name in ("task", "worker")} | known)


def _rows(file: File, task: str | None, worker: str | None) -> list[dict[str, Any]]:
    if file.format == "label-studio":
        return _of_label_studio(file)
    if file.format not in (*TABLES, *_IDS):
        return []
    usual_task, usual_worker = _IDS.get(file.format, ("task", "worker"))
    with naming(file):
        plain = file._replace(format={"mturk": "csv", "toloka": "tsv"}.get(file.format, file.format))
        present = column_names(plain)
        ids = [
            next((one for one in (wanted, f"Input.{wanted}", f"INPUT:{wanted}", usual) if one in present), None)
            for wanted, usual in ((task, usual_task), (worker, usual_worker))
        ]
        found = {role: next((name for name in names if name in present), None) for role, names in _NAMES.items()}
        if None in ids or not any(found.values()):
            return []
        table = read_table(plain)
    columns = {"task": _cells(table, ids[0]), "worker": _cells(table, ids[1])}
    columns |= {role: list(map(_READ[role], _cells(table, name))) for role, name in found.items()}
    if found["seconds"] is None and "ASSIGNMENT:started" in present:
        started = map(seconds_since_1970, _cells(table, "ASSIGNMENT:started"))
        columns["seconds"] = [end - start for start, end in zip(started, columns["time"], strict=True)]
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _cells(table: pa.Table, name: str | None) -> list[Any]:
    return [nan] * table.num_rows if name is None else table.column(name).to_pylist()


def _of_label_studio(file: File) -> list[dict[str, Any]]:
    rows = []
    tasks = json.loads(whole_text(file))
    for task in tasks if isinstance(tasks, list) else ():
        for one in task.get("annotations") or ():
            by = one.get("completed_by")
            who = by.get("email", by.get("id")) if isinstance(by, dict) else by
            said = {"seconds": amount(one.get("lead_time")), "time": seconds_since_1970(one.get("created_at"))}
            rows.append({"task": task.get("id"), "worker": who, "pay": nan} | said)
    return rows


def amount(cell: Any) -> float:
    """Return an amount as a number, without its currency and thousands separators; NaN where there is none.

    >>> amount("$2,000"), amount("0.05 USD"), amount("five")
    (2000.0, 0.05, nan)
    """
    found = _AMOUNT.fullmatch(str(cell).strip())
    return float(found[1].replace(",", "")) if found else nan


def seconds_since_1970(cell: Any) -> float:
    """Return a time in seconds, from a number, a datetime or the text of MTurk or ISO 8601; NaN for others.

    >>> seconds_since_1970("Thu Jan 01 00:01:00 UTC 1970"), seconds_since_1970("1970-01-01T00:01:00Z")
    (60.0, 60.0)
    >>> seconds_since_1970("1700000023"), seconds_since_1970("noon")
    (1700000023.0, nan)
    """
    if isinstance(cell, datetime):
        moment = cell
    elif isinstance(cell, int | float):
        return float(cell)
    else:
        text = str(cell).strip()
        mturk = _MTURK_TIME.fullmatch(text)
        try:
            if mturk:
                moment = datetime.strptime(f"{mturk[1]} {mturk[2]}", "%a %b %d %H:%M:%S %Y")
            else:
                moment = datetime.fromisoformat(text)
        except ValueError:
            return float(text) if _UNIX_TIME.fullmatch(text) else nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


_READ: dict[str, Callable[[Any], float]] = {"seconds": amount, "pay": amount, "time": seconds_since_1970}
