"""The requests of the dashboard: progress, workers, labels as files, making and revoking links."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response

from labelonce.service._dependencies import Running, admin_of
from labelonce.service._export import Exported, exported
from labelonce.service._figures import of_task
from labelonce.service._messages import LARGEST_ID, Name, NewWorker, Page, TaskId, Token

routes = APIRouter(prefix="/api", dependencies=[Depends(admin_of)])
_MOST_ROWS = 1_000


@routes.get("/progress")
async def progress(request: Request, service: Running) -> dict[str, Any]:
    """Return how far the project is, what the next labels are expected to bring, and when to stop."""
    bridge = request.app.state.bridge
    by_hand = bridge.url if bridge is not None and bridge.unknown else None
    return service.progress() | {"add_to_label_studio": by_hand}


@routes.get("/workers")
async def workers(service: Running) -> list[dict[str, Any]]:
    """Return all workers with labels or a link: labels, skill with its interval, flags, and whether the link works."""
    return service.workers()


@routes.get("/figures")
async def figures(service: Running) -> dict[str, Any]:
    """Return agreement, classes, changes over time, seconds, reasons of skips, and comments."""
    return await service.figures()


@routes.get("/task")
async def one_task(task: Annotated[TaskId, Query()], service: Running) -> dict[str, Any]:
    """Return a task with all answers about it."""
    live = service.live
    if task not in live.tasks.place:
        raise HTTPException(404, "there is no such task")
    place, boxes = live.tasks.place[task], service.project.settings.multilabel
    found = {"found": live.labels(place, place + 1)[0]} | live.tasks.shown(task)
    return found | await service.read_store(lambda store: of_task(store, task, boxes=boxes))


@routes.post("/workers", status_code=201)
async def add_worker(body: NewWorker, service: Running) -> Token:
    """Make a token for a worker; it is shown this once."""
    return Token(worker=body.worker, token=await service.add_worker(body.worker))


@routes.delete("/tokens")
async def revoke(worker: Annotated[Name, Query()], service: Running) -> dict[str, int]:
    """Revoke all tokens of a worker; the labels stay."""
    return {"revoked": await service.revoke(worker)}


@routes.get("/labels")
async def labels(
    service: Running,
    offset: Annotated[int, Query(ge=0, le=LARGEST_ID)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 100,
) -> Page:
    """Return the labels found so far, with their confidence."""
    return Page(total=len(service.live.tasks), offset=offset, rows=service.live.labels(offset, offset + limit))


@routes.get("/export", response_class=Response)
async def export(
    service: Running,
    what: Exported = "annotations",
    format: Literal["csv", "jsonl", "parquet"] = "csv",
    spreadsheet: bool = False,
) -> Response:
    """Return all annotations, the labels found so far, workers, or skips and comments, as a file; all in a zip.

    For a `spreadsheet`, texts that it would take for formulas begin with an apostrophe.
    """
    content, kind = await exported(service, what, format, spreadsheet=spreadsheet)
    name = f'attachment; filename="{what}.{"zip" if what == "everything" else format}"'
    return Response(content, media_type=kind, headers={"Content-Disposition": name})


@routes.post("/refit", status_code=202)
async def refit(service: Running) -> dict[str, bool]:
    """Start a fit now, unless one is running."""
    return {"started": service.refits.start(service.live.n_labels)}
