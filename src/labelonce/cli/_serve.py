"""`labelonce project` and `labelonce serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelonce.cli._print import print_json, stderr, stdout
from labelonce.service import Project, serve
from labelonce.service._settings import FILE


def run_project(
    folder: Path,
    tasks: Path | None,
    classes: str | None,
    workers: str | None,
    *,
    url: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Make a project, or add workers to one, and print the links."""
    is_new = not (folder / FILE).exists()
    if is_new:
        if tasks is None or classes is None:
            raise ValueError("a new project must have --tasks and --classes; got one of them at most.")
        project = Project.make(folder, tasks, _words(classes), **options)
    elif tasks is not None or classes is not None:
        raise ValueError(
            f"{folder} must be a new folder to get tasks; got a project. Edit its {FILE}, or name another."
        )
    else:
        project = Project(folder)
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


def run_serve(folder: Path, *, host: str, port: int) -> None:
    """Serve a project until it is interrupted."""
    project = Project(folder)
    stderr.print(f"{project.settings.title}: http://{host}:{port}, dashboard at /dashboard", markup=False)
    serve(project, host=host, port=port)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
