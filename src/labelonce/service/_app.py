"""The web application: pages, errors and limits; requests are answered in `_for_workers` and `_for_admins`."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.routing import Match

from labelonce import __version__
from labelonce.service import _for_admins, _for_workers
from labelonce.service._argilla import is_signed, read_response
from labelonce.service._http import SafeApp
from labelonce.service._instructions import read_instructions
from labelonce.service._label_studio_api import LabelStudio
from labelonce.service._label_studio_app import label_studio_routes
from labelonce.service._label_studio_bridge import Bridge
from labelonce.service._messages import ErrorMessage, described
from labelonce.service._project import Project
from labelonce.service._service import RequestError, Service
from labelonce.service._store import DatabaseTrouble

_SCRIPTS = ("label.js", "dashboard.js", "people.js", "zoom.js", "service.js", "service.css")
_PAGES = {"/": "label.html", "/dashboard": "dashboard.html"} | {f"/{name}": name for name in _SCRIPTS}
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_STATUSES = (400, 401, 403, 404, 409, 413, 422, 429, 503)
_REFUSALS: dict[int | str, dict[str, Any]] = {status: {"model": ErrorMessage} for status in _STATUSES}
_AGAIN = "2"  # seconds
_OF_LABEL_STUDIO = 64 * 1024 * 1024  # bytes of a body: whole tasks, to a path that nobody else knows
_OF_ARGILLA = 1024 * 1024  # and to one that all know


def create_app(
    project: Project, *, label_studio: LabelStudio | None = None, url: str = "", argilla: tuple[str, str] | None = None
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
    app.state.guide = json.dumps({"content": read_instructions(project.folder)}).encode()  # megabytes, made once
    if bridge is not None:
        app.include_router(label_studio_routes(bridge))
    larger = {} if bridge is None else {f"/label-studio/{bridge.secret}/": _OF_LABEL_STUDIO}
    app.add_middleware(SafeApp, larger=larger | {"/argilla/": _OF_ARGILLA} if argilla else larger)
    app.add_exception_handler(RequestError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(DatabaseTrouble, _away)
    app.add_exception_handler(405, _not_allowed)
    plain, settings = app.openapi, project.settings
    app.openapi = lambda: described(plain(), settings.classes, multilabel=settings.multilabel)  # type: ignore[method-assign]  # as FastAPI documents it
    if argilla is not None:
        _add_argilla(app, service, *argilla)
    _add_pages(app)
    app.include_router(_for_workers.routes)
    app.include_router(_for_admins.routes)
    return app


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestError)  # registered for nothing else
    headers = {"Retry-After": str(int(error.wait) + 1)} if error.wait else {}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"detail": error.sentence}, error.status, headers)


async def _away(_: Request, __: Exception) -> JSONResponse:
    """Answer that the database is unavailable; the reason is in the log."""
    sentence = "the database does not answer at this moment; ask again."
    return JSONResponse({"detail": sentence}, 503, {"Retry-After": _AGAIN})


async def _not_allowed(request: Request, _: Exception) -> JSONResponse:
    """Answer which methods a path has: all of them, not only those of its first handler."""
    routes = [one for one in request.app.routes if one.matches(request.scope)[0] is not Match.NONE]
    methods = sorted({method for one in routes for method in getattr(one, "methods", None) or ()})
    return JSONResponse({"detail": "Method Not Allowed"}, 405, {"Allow": ", ".join(methods)})


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    """Answer what is wrong without repeating the request, which may not be valid JSON (such as NaN)."""
    assert isinstance(error, RequestValidationError)  # registered for nothing else
    found = [{name: one[name] for name in ("loc", "msg", "type")} for one in error.errors()]
    return JSONResponse({"detail": found}, 422)


def _add_pages(app: FastAPI) -> None:
    """Serve the pages, which hold no data: that comes with a token."""
    folder = files("labelonce.service").joinpath("pages")
    for path, name in _PAGES.items():
        content, kind = folder.joinpath(name).read_bytes(), _KINDS[name.rpartition(".")[2]]

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
