"""Labelling with a team: a project folder, and a service that hands out tasks while the model improves."""

from __future__ import annotations

from typing import Any

from labelonce.service._project import Project

__all__ = ["Project", "create_app", "serve"]


def create_app(project: Project) -> Any:
    """Return the web application of a project, for uvicorn or any other ASGI server, in one process."""
    try:
        from labelonce.service import _app
    except ImportError as error:
        raise ImportError(
            "labelonce.service needs FastAPI; install it with: pip install 'labelonce[service]'."
        ) from error
    return _app.create_app(project)


def serve(project: Project, *, host: str = "127.0.0.1", port: int = 8080) -> None:
    """Serve a project over HTTP until the process is interrupted."""
    app = create_app(project)
    import uvicorn

    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)
