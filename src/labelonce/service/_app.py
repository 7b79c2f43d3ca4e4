"""The HTTP interface: thin handlers around `Service`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from starlette.routing import Match

from labelonce import __version__
from labelonce.service._argilla import is_signed, read_response
from labelonce.service._boxes import ticked
from labelonce.service._export import Exported, exported
from labelonce.service._figures import of_task
from labelonce.service._http import Guarded
from labelonce.service._instructions import read_instructions
from labelonce.service._label_studio_api import LabelStudio
from labelonce.service._label_studio_app import label_studio_routes
from labelonce.service._label_studio_bridge import Bridge
from labelonce.service._messages import (
    Given,
    Guide,
    Kept,
    Me,
    Name,
    NewWorker,
    Next,
    Page,
    Recent,
    Remark,
    Skipped,
    TaskId,
    Token,
    Undone,
    Wrong,
    described,
)
from labelonce.service._project import Project
from labelonce.service._service import Refused, Service
from labelonce.service._store import Answer, Comment, DatabaseTrouble, Stored
from labelonce.service._tasks import IMAGE_TYPES, small_copy
from labelonce.service._tokens import Person

_PAGES = {
    "/": ("label.html", "text/html"),
    "/dashboard": ("dashboard.html", "text/html"),
    "/label.js": ("label.js", "text/javascript"),
    "/dashboard.js": ("dashboard.js", "text/javascript"),
    "/people.js": ("people.js", "text/javascript"),
    "/zoom.js": ("zoom.js", "text/javascript"),
    "/service.js": ("service.js", "text/javascript"),
    "/service.css": ("service.css", "text/css"),
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Wrong} for status in (400, 401, 403, 404, 409, 413, 422, 429, 503)
}
_MOST_ROWS = 1_000
_AGAIN = "2"  # seconds
_OF_LABEL_STUDIO = 64 * 1024 * 1024  # bytes of a body: whole tasks, to a path that nobody else knows
_OF_ARGILLA = 1024 * 1024  # and to one that all know
_LARGEST_ID = 2**53  # what JavaScript counts to


def create_app(
    project: Project,
    *,
    label_studio: LabelStudio | None = None,
    url: str = "",
    argilla: tuple[str, str] | None = None,
) -> FastAPI:
    """Return the web application of a project, with `label_studio` also its machine-learning backend at `url`.

    `argilla` is the secret of a webhook and the question whose responses are labels.
    """
    if project.settings.multilabel and (argilla is not None or label_studio is not None):
        raise ValueError("a project that is labelled in another tool must have one label per task; got multilabel.")
    service = Service(project)
    bridge = None if label_studio is None else Bridge(service, label_studio, url=url)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            try:
                await service.start()
                running.push_async_callback(service.stop)
                if bridge is not None:
                    running.push_async_callback(bridge.stop)
                    await bridge.start()
            except Exception as error:
                app.state.trouble = error  # a server logs it, and ends without it
                raise
            yield

    app = FastAPI(
        title="labelonce",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # to an address that the request may have made up
        responses=_REFUSALS,
    )
    app.state.service, app.state.bridge, app.state.trouble = service, bridge, None
    if bridge is not None:
        app.include_router(label_studio_routes(bridge))
    larger = {} if bridge is None else {f"/label-studio/{bridge.secret}/": _OF_LABEL_STUDIO}
    app.add_middleware(Guarded, larger=larger | {"/argilla/": _OF_ARGILLA} if argilla else larger)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(DatabaseTrouble, _away)
    app.add_exception_handler(405, _not_allowed)
    plain, settings = app.openapi, project.settings
    app.openapi = lambda: described(plain(), settings.classes, multilabel=settings.multilabel)  # type: ignore[method-assign]  # as FastAPI documents it
    if argilla is not None:
        _add_argilla(app, service, *argilla)
    _add_pages(app)
    _add_for_workers(app, service)
    _add_for_admins(app, service, bridge)
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)  # registered for nothing else
    headers = {"Retry-After": str(int(error.wait) + 1)} if error.wait else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"detail": error.sentence}, error.status, headers)


async def _away(_: Request, __: Exception) -> JSONResponse:
    """Say that the database is away; why is in the log."""
    sentence = "the database does not answer at this moment; ask again."
    return JSONResponse({"detail": sentence}, 503, {"Retry-After": _AGAIN})


async def _not_allowed(request: Request, _: Exception) -> JSONResponse:
    """Say which methods a path has: all of them, not only those of its first handler."""
    routes = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
    methods = sorted({method for one in routes for method in getattr(one, "methods", None) or ()})
    return JSONResponse({"detail": "Method Not Allowed"}, 405, {"Allow": ", ".join(methods)})


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    """Say what is wrong without repeating what was sent, which may be no JSON: NaN is none."""
    assert isinstance(error, RequestValidationError)  # registered for nothing else
    found = [{name: one[name] for name in ("loc", "msg", "type")} for one in error.errors()]
    return JSONResponse({"detail": found}, 422)


async def person_of(request: Request) -> Person:
    """Return who is asking, by the token in the header."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    service: Service = request.app.state.service
    address = request.client.host if request.client else ""
    return await service.person(token if kind.lower() == "bearer" else None, address)


async def worker_of(request: Request) -> Person:
    """Return the worker who is asking."""
    person = await person_of(request)
    if person.is_admin:
        raise Refused(403, "tasks must be asked for with a worker's token; got an admin's. Add a worker for yourself.")
    return person


async def admin_of(request: Request) -> Person:
    """Return the admin who is asking."""
    person = await person_of(request)
    if not person.is_admin:
        raise Refused(403, "this must be asked with the admin's token; got a worker's.")
    return person


Anybody = Annotated[Person, Depends(person_of)]
Worker = Annotated[Person, Depends(worker_of)]
Admin = Annotated[Person, Depends(admin_of)]


def _add_pages(app: FastAPI) -> None:
    """Serve the pages, which hold no data: that comes with a token."""
    folder = files("labelonce.service").joinpath("pages")
    for path, (name, kind) in _PAGES.items():
        content = folder.joinpath(name).read_bytes()

        async def page(content: bytes = content, kind: str = kind) -> Response:
            return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

        app.add_api_route(path, page, include_in_schema=False)

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Say that the service is up."""
        return {"status": "UP", "model_class": "labelonce"}


def _add_argilla(app: FastAPI, service: Service, secret: str, question: str) -> None:
    @app.post("/argilla/webhook", include_in_schema=False)
    async def webhook(request: Request) -> dict[str, str]:
        body = await request.body()
        if not is_signed(secret, request.headers, body):
            raise HTTPException(401, "the signature must be that of the webhook's secret")
        try:
            found = read_response(json.loads(body), question)
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, f"an event of Argilla must be sent; got: {error}.") from error
        if found is not None:
            await service.mirror(*found)
        return {"status": "ok"}


def _recent(row: Stored, *, multilabel: bool) -> Recent:
    """Return an answer as its worker sees it."""
    boxes = ticked(row.label) if multilabel and row.label is not None else None
    return Recent(id=row.id, task=row.task, label=None if multilabel else row.label, labels=boxes)


def _add_for_workers(app: FastAPI, service: Service) -> None:
    settings = service.project.settings
    guide = json.dumps({"content": read_instructions(service.project.folder)}).encode()  # megabytes, made once

    @app.get("/api/me")
    async def me(person: Anybody) -> Me:
        """Return who is asking, and what the project asks."""
        live = service.live
        return Me(
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
            share_settled=live.n_settled / len(live.tasks),
        )

    @app.get("/api/next", response_model=Next)
    async def next_task(worker: Worker) -> JSONResponse:
        """Return the task to label now: the same until it is labelled or skipped."""
        task = await service.next(worker.worker)
        live = service.live
        settled = live.n_settled / len(live.tasks)
        if task is None:
            why = live.stop or ("all" if live.finished(worker.worker) else "nothing")
            return JSONResponse(Next(task=None, why=why, share_settled=settled).model_dump())
        return JSONResponse(live.tasks.shown(task) | {"share_settled": settled})

    @app.post("/api/annotations", response_model=Kept)
    async def annotate(body: Given, worker: Worker) -> JSONResponse:
        """Give a label. It is on the disk when this answers, and the same key counts once."""
        label = service.label_of(body.model_dump(exclude_unset=True))
        row, new = await service.answer(Answer(worker.worker, body.key, body.task, label, seconds=body.seconds))
        known = service.live.known.get(row.task) if settings.feedback else None
        return JSONResponse({"id": row.id, "task": row.task, "new": new, "known": known})

    @app.post("/api/skips", response_model=Kept)
    async def skip(body: Skipped, worker: Worker) -> JSONResponse:
        """Leave a task to others, with the reason. The same key counts once."""
        row, new = await service.answer(Answer(worker.worker, body.key, body.task, None, body.reason))
        return JSONResponse({"id": row.id, "task": row.task, "new": new})

    @app.post("/api/comments", status_code=201)
    async def comment(body: Remark, worker: Worker) -> dict[str, bool]:
        """Say something about a task. The same key counts once."""
        await service.comment(Comment(worker.worker, body.key, body.task, body.text, body.flagged, 0.0))
        return {"kept": True}

    @app.get("/api/instructions", response_model=Guide)
    async def instructions(person: Anybody) -> Response:  # noqa: ARG001  # must have a token
        """Return what people should know before they label."""
        return Response(guide, media_type="application/json")

    @app.delete("/api/annotations/{number}")
    async def undo(number: Annotated[int, InPath(ge=1, le=_LARGEST_ID)], worker: Worker) -> Undone:
        """Take back a label or a skip of one's own, and get its task again."""
        row = await service.undo(worker.worker, number)
        said = _recent(row, multilabel=settings.multilabel).model_dump()
        return Undone(**said | service.live.tasks.shown(row.task))

    @app.get("/api/image", response_class=FileResponse)
    async def image(
        task: Annotated[TaskId, Query()],
        person: Anybody,  # noqa: ARG001  # must have a token
        small: bool = False,
    ) -> Response:
        """Return the image of a task, or a small copy of it."""
        tasks = service.live.tasks
        path = tasks.images[tasks.place[task]] if tasks.images is not None and task in tasks.place else None
        if path is None or not path.is_file() or path.resolve() != path:  # a link may have taken its place
            raise HTTPException(404, "there is no such image")
        if small:
            return Response(await asyncio.to_thread(small_copy, path), media_type="image/png")
        return FileResponse(path, media_type=IMAGE_TYPES[path.suffix.lower()])


def _add_for_admins(app: FastAPI, service: Service, bridge: Bridge | None) -> None:
    @app.get("/api/progress")
    async def progress(admin: Admin) -> dict[str, Any]:  # noqa: ARG001  # must have a token
        """Return how far the project is, what the next labels are expected to bring, and when to stop."""
        by_hand = bridge.url if bridge is not None and bridge.unknown else None
        return service.progress() | {"add_to_label_studio": by_hand}

    @app.get("/api/workers")
    async def workers(admin: Admin) -> list[dict[str, Any]]:  # noqa: ARG001  # must have a token
        """Return everybody who labels or may: labels, skill with its interval, flags, and whether a link works."""
        return service.workers()

    @app.get("/api/figures")
    async def figures(admin: Admin) -> dict[str, Any]:  # noqa: ARG001  # must have a token
        """Return agreement, classes, seconds, reasons of skips, and what people remarked."""
        return await service.figures()

    @app.get("/api/task")
    async def one_task(task: Annotated[TaskId, Query()], admin: Admin) -> dict[str, Any]:  # noqa: ARG001
        """Return a task with what everybody said of it."""
        live = service.live
        if task not in live.tasks.place:
            raise HTTPException(404, "there is no such task")
        place, boxes = live.tasks.place[task], service.project.settings.multilabel
        found = {"found": live.labels(place, place + 1)[0]} | live.tasks.shown(task)
        return found | await service.beside(lambda store: of_task(store, task, boxes=boxes))

    @app.post("/api/workers", status_code=201)
    async def add_worker(body: NewWorker, admin: Admin) -> Token:  # noqa: ARG001  # must have a token
        """Make a token for a worker; it is shown this once."""
        return Token(worker=body.worker, token=await service.add_worker(body.worker))

    @app.delete("/api/tokens")
    async def revoke(worker: Annotated[Name, Query()], admin: Admin) -> dict[str, int]:  # noqa: ARG001  # must have a token
        """Make all tokens of a worker worthless; the labels stay."""
        return {"revoked": await service.revoke(worker)}

    @app.get("/api/labels")
    async def labels(
        admin: Admin,  # noqa: ARG001  # must have a token
        offset: Annotated[int, Query(ge=0, le=_LARGEST_ID)] = 0,
        limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 100,
    ) -> Page:
        """Return the labels found so far, with their confidence."""
        return Page(total=len(service.live.tasks), offset=offset, rows=service.live.labels(offset, offset + limit))

    @app.get("/api/export", response_class=Response)
    async def export(
        admin: Admin,  # noqa: ARG001  # must have a token
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

    @app.post("/api/refit", status_code=202)
    async def refit(admin: Admin) -> dict[str, bool]:  # noqa: ARG001  # must have a token
        """Start a fit now, unless one is running."""
        return {"started": service.refits.start(service.live.n_labels)}
