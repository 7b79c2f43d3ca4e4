"""Answers and labels as files."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pyarrow as pa

from labelonce.files._table_writer import write_table
from labelonce.service._service import Service
from labelonce.service._store import Stored
from labelonce.service._tasks import Tasks

Exported = Literal["annotations", "labels"]
_KINDS = {"csv": "text/csv", "jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


async def exported(service: Service, what: Exported, format: str) -> tuple[bytes, str]:
    """Return a file's content and its media type."""
    if what == "annotations":
        rows = await service.answers()
        table = annotations_table(service.live.tasks, rows)
    else:
        table = _labels_table(service)
    return await asyncio.to_thread(_written, table, format), _KINDS[format]


def annotations_table(tasks: Tasks, rows: list[Stored]) -> pa.Table:
    """Return labels, without skips, as a table with the tasks' own ids: what `read_annotations` reads."""
    kept = [row for row in rows if row.label is not None and row.task in tasks.place]
    return pa.table(
        {
            "task": pa.array(tasks.ids[[tasks.place[row.task] for row in kept]]),
            "worker": pa.array([row.worker for row in kept], pa.string()),
            "label": pa.array([row.label for row in kept], pa.string()),
            "seconds": pa.array([row.seconds for row in kept], pa.float64()),
            "given_at": pa.array([round(row.given_at * 1000) for row in kept], pa.timestamp("ms", "UTC")),
        }
    )


def _labels_table(service: Service) -> pa.Table:
    rows: list[dict[str, Any]] = service.live.labels(0, len(service.live.tasks))
    names = ("label", "confidence", "labels", "settled")
    columns: dict[str, Any] = {"task": pa.array(service.live.tasks.ids)}
    return pa.table(columns | {name: [row[name] for row in rows] for name in names})


def _written(table: pa.Table, format: str) -> bytes:
    sink = pa.BufferOutputStream()
    write_table(table, sink, format)
    content: bytes = sink.getvalue().to_pybytes()
    return content
