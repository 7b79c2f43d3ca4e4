"""Labelling with a team: a project folder, and a service that hands out tasks while the model improves."""

from typing import TYPE_CHECKING, Any

from labelonce._lazy import lazy_names
from labelonce.service._label_studio_api import LabelStudio
from labelonce.service._prodigy import ProdigyRouter
from labelonce.service._project import Project

__all__ = ["LabelStudio", "ProdigyRouter", "Project", "create_app", "serve"]


def create_app(
    project: Project, *, label_studio: LabelStudio | None = None, url: str = "", argilla: tuple[str, str] | None = None
) -> Any:
    """Return the web application of a project, for uvicorn or any other ASGI server, in one process.

    Parameters
    ----------
    project : Project
    label_studio : LabelStudio, optional
        A project there that has the same tasks and classes: its annotations come in, our predictions go out.
    url : str
        Where Label Studio reaches us.
    argilla : (str, str), optional
        The secret of an Argilla webhook that sends response events to `/argilla/webhook`, and the question whose
        responses are labels.
    """
    try:
        from labelonce.service import _app
    except ImportError as error:
        fix = "install it with: pip install 'labelonce[service]'."
        raise ImportError(f"labelonce.service needs FastAPI; {fix}") from error
    return _app.create_app(project, label_studio=label_studio, url=url, argilla=argilla)


def serve(
    project: Project,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    label_studio: LabelStudio | None = None,
    url: str | None = None,
) -> None:
    """Serve a project over HTTP until the process is interrupted; parameters as those of `create_app`."""
    app = create_app(project, label_studio=label_studio, url=url or f"http://{host}:{port}")
    from labelonce.service._connections import run

    run(app, host=host, port=port)


if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.service._label_studio_project import project_from
    from labelonce.service._numbers import encode_tasks
    from labelonce.service._settings import FILE, check_url
else:
    __getattr__, _, _ = lazy_names(__name__)
