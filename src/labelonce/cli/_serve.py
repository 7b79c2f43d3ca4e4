"""`labelonce project` and `labelonce serve`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from labelonce.cli._print import print_json, stderr, stdout
from labelonce.service import LabelStudio, Project, serve
from labelonce.service._label_studio_project import project_from
from labelonce.service._settings import FILE

_OF_NEW = ("title", "text", "image", "multilabel")  # options that a project which is there has in its file


def run_project(
    folder: Path,
    tasks: Path | None,
    classes: str | None,
    workers: str | None,
    *,
    there: tuple[str | None, int | None],
    url: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Make a project, or add workers to one, and print the links."""
    is_new = not (folder / FILE).exists()
    project = _project_of(folder, tasks, classes, _label_studio(*there), **options)
    if not is_new and not workers:
        raise ValueError(f"{folder} is a project already; name --workers to add to it.")
    tokens = project.add_workers(_words(workers or ""))
    links = {worker: f"{url.rstrip('/')}/#token={token}" for worker, token in tokens.items()}
    dashboard = f"{url.rstrip('/')}/dashboard#token={project.add_admin()}" if is_new else None
    if as_json:
        print_json({"project": str(folder), "tasks": len(project.tasks), "workers": links, "dashboard": dashboard})
        return
    for worker, link in links.items():
        stdout.print(f"{worker}: {link}", markup=False, soft_wrap=True)
    if dashboard:
        stdout.print(f"dashboard: {dashboard}", markup=False, soft_wrap=True)
    source = project.settings.learn_from
    stderr.print(f"{len(project.tasks):,} tasks, learning from {source}; next: labelonce serve {folder}", markup=False)


def _project_of(
    folder: Path, tasks: Path | None, classes: str | None, tool: LabelStudio | None, **options: Any
) -> Project:
    """Return the project in a folder, made where there is none; options that nobody would look at are an error."""
    is_new = not (folder / FILE).exists()
    asked = {"--tasks": tasks, "--classes": classes} | {f"--{name}": options[name] for name in _OF_NEW}
    given = [option for option, value in asked.items() if value]
    if is_new and tool is not None:
        if extra := [option for option in given if option != "--title"]:
            raise ValueError(f"{extra[0]} must be left out with --label-studio, whose project says it; got both.")
        return project_from(folder, tool, **{"title": options["title"]} if options["title"] else {})
    if is_new:
        if tasks is None or classes is None:
            raise ValueError("a new project must have --tasks and --classes; got one of them at most.")
        return Project.make(folder, tasks, _words(classes), **options)
    if given:
        raise ValueError(
            f"{folder} must be a new folder to take {given[0]}; got a project. Edit its {FILE}, or name another."
        )
    return Project(folder)


def run_revoke(folder: Path, workers: str) -> None:
    """Make the links of workers worthless."""
    project, names = Project(folder), _words(workers)
    known = project.workers()
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        got = f"{unknown[0]!r}, who has none" if unknown else "nobody"
        raise ValueError(f"--revoke must name workers with a link; got {got}.")
    project.revoke(names)
    stderr.print(f"the links of {', '.join(names)} work no longer; their labels stay", markup=False)


def run_serve(folder: Path, there: tuple[str | None, int | None], *, host: str, port: int, url: str | None) -> None:
    """Serve a project until it is interrupted."""
    project, tool = Project(folder), _label_studio(*there)
    stderr.print(f"{project.settings.title}: http://{host}:{port}, dashboard at /dashboard", markup=False)
    serve(project, host=host, port=port, label_studio=tool, url=url)


def _label_studio(url: str | None, number: int | None) -> LabelStudio | None:
    """Return the project in Label Studio that is named by its URL and number, None if there is none."""
    if url is None:
        return None
    token = os.environ.get("LABEL_STUDIO_API_KEY")
    if number is None or not token:
        missing = "--label-studio-project" if number is None else "LABEL_STUDIO_API_KEY in the environment"
        raise ValueError(f"--label-studio must go with {missing}; got none.")
    return LabelStudio(url, token, number)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
