"""`labelonce project` and `labelonce serve`."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from labelonce.cli._print import print_json, print_note, print_status, stderr, stdout
from labelonce.cli._progress import shown_progress
from labelonce.service import FILE, LabelStudio, Project, check_url, encode_tasks, project_from, serve

_SHOWN = 20  # files that were left out
# Options that a project which is there has in its file
_OF_NEW = ("title", "text", "image", "embed", "multilabel", "guide", "known", "feedback", "overlap", "goal")
_NAMED = 3  # tasks


def run_project(
    folder: Path,
    tasks: Path | None,
    classes: str | None,
    workers: str | None,
    *,
    there: tuple[str | None, int | None],
    url: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Make a project, or add workers to one, and print the links."""
    is_new = not (folder / FILE).exists()
    address = {} if url is None else {"url": check_url(url)}
    project = _project_of(folder, tasks, classes, _label_studio(*there), address if is_new else {}, **options)
    if is_new and project.settings.embed:
        with shown_progress(as_json=as_json) as progress:
            encode_tasks(project, progress)
    if not is_new and not workers:
        raise ValueError(f"{folder} is a project already; name --workers to add to it.")
    tokens, begin = project.add_workers(_words(workers or "")), (url or project.settings.url).rstrip("/")
    links = {worker: f"{begin}/#token={token}" for worker, token in tokens.items()}
    dashboard = f"{begin}/dashboard#token={project.add_admin()}" if is_new else None
    if as_json:
        found = {"project": str(folder), "tasks": len(project.tasks), "left_out": project.left_out}
        print_json(found | {"workers": links, "dashboard": dashboard})
        return
    if is_new:
        print_status(_what_became(project, tasks))
    for one in project.left_out[:_SHOWN]:
        print_note(f"left out: {one}")
    if len(project.left_out) > _SHOWN:
        print_note(f"left out: {len(project.left_out) - _SHOWN:,} more; with --json all are listed")
    for worker, link in links.items():
        stdout.print(f"{worker}: {link}", markup=False, soft_wrap=True)
    if dashboard:
        stdout.print(f"dashboard: {dashboard}", markup=False, soft_wrap=True)
    source = project.settings.learn_from + (f" by {project.settings.embed}" if project.settings.embed else "")
    stderr.print(f"{len(project.tasks):,} tasks, learning from {source}; next: labelonce serve {folder}", markup=False)


def _what_became(project: Project, source: Path | None) -> str:
    """Say which files, or rows, became tasks."""
    names, n = project.tasks.names, len(project.tasks)
    some = ", ".join(names[:_NAMED]) + (f", ..., {names[-1]}" if n > _NAMED else "")
    what = "image" if source is not None and source.is_dir() else "row"
    return f"tasks: {n:,} {what}{'s' if n > 1 else ''} of {source or 'Label Studio'} ({some})"


def _project_of(
    folder: Path,
    tasks: Path | None,
    classes: str | None,
    tool: LabelStudio | None,
    address: dict[str, str],
    **options: Any,
) -> Project:
    """Return the project in a folder, made if there is none; options without effect are an error."""
    is_new = not (folder / FILE).exists()
    asked = {"tasks": tasks, "classes": classes} | {name: options[name] for name in _OF_NEW}
    given = ["--instructions" if name == "guide" else f"--{name}" for name, value in asked.items() if value]
    if is_new and tool is not None:
        if extra := [option for option in given if option not in ("--title", "--embed")]:
            raise ValueError(f"{extra[0]} must be left out with --label-studio, whose project says it; got both.")
        kept = {name: options[name] for name in ("title", "embed") if options[name]}
        return project_from(folder, tool, **address | kept)
    if is_new:
        if tasks is None or classes is None:
            raise ValueError("a new project must have --tasks and --classes; got one of them at most.")
        return Project.make(folder, tasks, _words(classes), **address | options)
    if given:
        raise ValueError(
            f"{folder} must be a new folder to take {given[0]}; got a project. Edit its {FILE}, or name another."
        )
    return Project(folder)


def run_revoke(folder: Path, workers: str) -> None:
    project, names = Project(folder), _words(workers)
    known = project.workers()
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        got = f"{unknown[0]!r}, who has none" if unknown else "nobody"
        raise ValueError(f"--revoke must name workers with a link; got {got}.")
    project.revoke(names)
    stderr.print(f"the links of {', '.join(names)} work no longer; their labels stay", markup=False)


def run_backup(folder: Path, path: Path) -> None:
    """Write a copy of the answers."""
    Project(folder).backup(path)
    print_status(f"all answers and tokens -> {path}")


def run_serve(
    folder: Path, there: tuple[str | None, int | None], *, host: str, port: int | None, url: str | None
) -> None:
    """Serve a project until it is interrupted."""
    project, tool = Project(folder), _label_studio(*there)
    links = project.settings.url
    if port is not None and (urlsplit(links).port or port) != port:
        print_note(
            f"the links of {folder} lead to {links}, and this listens at port {port}. If nothing leads from there to "
            f"here, change url in its {FILE}, and make new links."
        )
    port = port or project.settings.port
    stderr.print(f"{project.settings.title}: http://{host}:{port}, dashboard at /dashboard", markup=False)
    serve(project, host=host, port=port, label_studio=tool, url=url)


def _label_studio(url: str | None, number: int | None) -> LabelStudio | None:
    if url is None:
        return None
    token = os.environ.get("LABEL_STUDIO_API_KEY")
    if number is None or not token:
        missing = "--label-studio-project" if number is None else "LABEL_STUDIO_API_KEY in the environment"
        raise ValueError(f"--label-studio must go with {missing}; got none.")
    return LabelStudio(url, token, number)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
