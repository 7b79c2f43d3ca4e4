"""Answers and labels as files."""

import asyncio
from io import BytesIO
from math import isfinite
from typing import Literal
from zipfile import ZIP_DEFLATED, ZipFile

import pyarrow as pa

from labelonce.files import write_table
from labelonce.formats import SEPARATOR
from labelonce.report import safe_cells
from labelonce.service._boxes import ticked
from labelonce.service._figures import remarks_table
from labelonce.service._project import Project
from labelonce.service._service import Service
from labelonce.service._store import AnswerRow

Exported = Literal["annotations", "labels", "workers", "remarks", "everything"]
_EACH: tuple[Exported, ...] = ("annotations", "labels", "workers", "remarks")
_KINDS = {"csv": "text/csv", "jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}


async def exported(service: Service, what: Exported, format: str, *, spreadsheet: bool) -> tuple[bytes, str]:
    """Return a file's content and its media type; slow work is done in a thread."""
    if what == "everything":
        files = [await exported(service, one, format, spreadsheet=spreadsheet) for one in _EACH]
        names = [f"{one}.{format}" for one in _EACH]
        return await asyncio.to_thread(_zipped, names, [content for content, _ in files]), "application/zip"
    if what in ("labels", "workers"):
        table = service.live.labels_table() if what == "labels" else _workers(service)
    elif what == "remarks":
        rows, comments = await service.read_store(lambda store: (store.answers(), store.comments()))
        table = await asyncio.to_thread(remarks_table, [row for row in rows if row.label is None], comments)
    else:
        rows = await service.read_store(lambda store: store.answers())
        table = await asyncio.to_thread(annotations_table, service.project, rows, joined=format == "csv")
    return await asyncio.to_thread(_written, table, format, spreadsheet), _KINDS[format]


def _zipped(names: list[str], contents: list[bytes]) -> bytes:
    sink = BytesIO()
    with ZipFile(sink, "w", ZIP_DEFLATED) as archive:
        for name, content in zip(names, contents, strict=True):
            archive.writestr(name, content)
    return sink.getvalue()


def _workers(service: Service) -> pa.Table:
    """Return one row per worker, as on the dashboard."""
    rows = [row | {"flags": ", ".join(row["flags"])} for row in service.workers()]
    text, number, share = pa.string(), pa.int64(), pa.float64()
    kinds = {"worker": text, "labels": number, "skips": number, "skill": share, "low": share, "high": share}
    kinds |= {"flags": text, "has_link": pa.bool_()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def annotations_table(project: Project, rows: list[AnswerRow], *, joined: bool) -> pa.Table:
    """Return labels, without skips, as a table with the tasks' own ids: what `read_annotations` reads.

    With check boxes it is what `read_multilabel` reads: the ticked classes, `joined` into one word or as lists.
    """
    tasks = project.tasks
    kept = [row for row in rows if row.label is not None and row.task in tasks.place]
    columns = {
        "task": pa.array(tasks.ids[[tasks.place[row.task] for row in kept]]),
        "worker": pa.array([row.worker for row in kept], pa.string()),
    }
    if project.settings.multilabel:
        boxes = [ticked(row.label or "[]") for row in kept]
        words = pa.array([SEPARATOR.join(one) for one in boxes], pa.string())
        columns["ticked"] = words if joined else pa.array(boxes, pa.list_(pa.string()))
    else:
        columns["label"] = pa.array([row.label for row in kept], pa.string())
    seconds = [None if row.seconds is None or not isfinite(row.seconds) else row.seconds for row in kept]
    columns["seconds"] = pa.array(seconds, pa.float64())
    columns["given_at"] = pa.array([round(row.given_at * 1000) for row in kept], pa.timestamp("ms", "UTC"))
    return pa.table(columns)


def _written(table: pa.Table, format: str, spreadsheet: bool) -> bytes:
    sink = pa.BufferOutputStream()
    write_table(safe_cells(table) if spreadsheet else table, sink, format)
    content: bytes = sink.getvalue().to_pybytes()
    return content
