"""The requests of the labelling page: a task, its image, storing a label, taking it back."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from labelonce.service._boxes import ticked
from labelonce.service._dependencies import Anybody, Running, Worker, person_of
from labelonce.service._messages import (
    LARGEST_ID,
    Guide,
    Identity,
    LabelMessage,
    NextTask,
    Receipt,
    RecentAnswer,
    Remark,
    SkipMessage,
    TaskId,
    UndoReceipt,
)
from labelonce.service._store import Answer, AnswerRow, Comment
from labelonce.service._tasks import IMAGE_TYPES, small_copy

routes = APIRouter(prefix="/api")


@routes.get("/me")
async def me(person: Anybody, service: Running) -> Identity:
    """Return who is asking, and what the project asks."""
    live, settings = service.live, service.project.settings
    return Identity(
        role=person.role,
        worker=person.worker,
        title=settings.title,
        instructions=settings.instructions,
        classes=list(settings.classes),
        multilabel=settings.multilabel,
        labels=live.n_given[person.worker],
        tasks=len(live.tasks),
        goal=settings.goal,
        recent=[_recent(row, multilabel=settings.multilabel) for row in await service.recent(person.worker)],
        share_settled=live.share_settled,
    )


@routes.get("/next", response_model=NextTask)
async def next_task(worker: Worker, service: Running) -> JSONResponse:
    """Return the task to label now: the same until it is labelled or skipped."""
    task, live = await service.next(worker), service.live
    if task is None:
        why = live.stop or ("all" if live.finished(worker) else "nothing")
        return JSONResponse(NextTask(task=None, why=why, share_settled=live.share_settled).model_dump())
    return JSONResponse(live.tasks.shown(task) | {"share_settled": live.share_settled})


@routes.post("/annotations", response_model=Receipt)
async def annotate(body: LabelMessage, worker: Worker, service: Running) -> JSONResponse:
    """Store a label. It is on disk when the response is sent, and the same key counts once."""
    label = service.label_of(body.model_dump(exclude_unset=True))
    row, new = await service.answer(Answer(worker, body.key, body.task, label, seconds=body.seconds))
    known = service.live.known.get(row.task) if service.project.settings.feedback else None
    return JSONResponse({"id": row.id, "task": row.task, "new": new, "known": known})


@routes.post("/skips", response_model=Receipt)
async def skip(body: SkipMessage, worker: Worker, service: Running) -> JSONResponse:
    """Skip a task, with the reason. The same key counts once."""
    row, new = await service.answer(Answer(worker, body.key, body.task, None, body.reason))
    return JSONResponse({"id": row.id, "task": row.task, "new": new})


@routes.post("/comments", status_code=201)
async def comment(body: Remark, worker: Worker, service: Running) -> dict[str, bool]:
    """Comment on a task. The same key counts once."""
    await service.comment(Comment(worker, body.key, body.task, body.text, body.flagged, 0.0))
    return {"kept": True}


@routes.get("/instructions", response_model=Guide, dependencies=[Depends(person_of)])
async def instructions(request: Request) -> Response:
    """Return what people should know before they label."""
    return Response(request.app.state.guide, media_type="application/json")


@routes.delete("/annotations/{number}")
async def undo(number: Annotated[int, Path(ge=1, le=LARGEST_ID)], worker: Worker, service: Running) -> UndoReceipt:
    """Undo one of the worker's own labels or skips, and get its task again."""
    row = await service.undo(worker, number)
    said = _recent(row, multilabel=service.project.settings.multilabel).model_dump()
    return UndoReceipt(**said | service.live.tasks.shown(row.task))


@routes.get("/image", response_class=FileResponse, dependencies=[Depends(person_of)])
async def image(task: Annotated[TaskId, Query()], service: Running, small: bool = False) -> Response:
    """Return the image of a task, or a small copy of it."""
    tasks = service.live.tasks
    path = tasks.images[tasks.place[task]] if tasks.images is not None and task in tasks.place else None
    if path is None or not path.is_file() or path.resolve() != path:  # a link may have taken its place
        raise HTTPException(404, "there is no such image")
    if small:
        return Response(await asyncio.to_thread(small_copy, path), media_type="image/png")
    return FileResponse(path, media_type=IMAGE_TYPES[path.suffix.lower()])


def _recent(row: AnswerRow, *, multilabel: bool) -> RecentAnswer:
    """Return an answer as its worker sees it."""
    boxes = ticked(row.label) if multilabel and row.label is not None else None
    return RecentAnswer(id=row.id, task=row.task, label=None if multilabel else row.label, labels=boxes)
