"""A project folder: tasks, settings, the database of answers, and fits next to it that can all be made again."""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from labelonce._messages import printable, show
from labelonce.files import check_no_file, locate
from labelonce.io import read_gold
from labelonce.service._instructions import copy_instructions
from labelonce.service._settings import FILE, Settings, is_unicode, model_for, read_settings, write_settings
from labelonce.service._store import Store
from labelonce.service._tasks import IMAGE_TYPES, Tasks, check_tasks, guessed_source, why_unusable
from labelonce.service._tokens import MOST_LETTERS, NAME, hash_of, new_token


class Project:
    r"""A folder with everything about one labelling project.

    `project.toml` holds the settings, the tasks are a table next to it, and the answers are in a database, by default
    `annotations.db`. `fits/` holds what was made of the answers: whatever is deleted there comes back.

    Parameters
    ----------
    folder : path

    Attributes
    ----------
    left_out : list of str
        Right after `make`: the files in a folder of images that did not become tasks, each with the reason.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> temporary = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(temporary.name)
    >>> _ = (folder / "pets.csv").write_text("task,text\nimg1,a small dog\nimg2,it purrs\n")
    >>> project = Project.make(folder / "pets", folder / "pets.csv", ["cat", "dog"], text="text")
    >>> len(project.tasks), project.settings.learn_from
    (2, 'text')
    >>> tokens = project.add_workers(["ann", "bob"])
    >>> sorted(tokens), len(tokens["ann"])
    (['ann', 'bob'], 43)
    >>> temporary.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.settings = read_settings(self.folder)
        for name in (self.settings.tasks, self.settings.known):  # what people are shown, or told, is of this folder
            if not (self.folder / name).resolve().is_relative_to(self.folder.resolve()):
                raise ValueError(f"{self.folder} must hold its own tables; got one elsewhere: {show(name)}.")
        self.left_out: list[str] = []

    @classmethod
    def make(
        cls,
        folder: str | os.PathLike[str],
        tasks: str | os.PathLike[str],
        classes: Sequence[str],
        *,
        title: str | None = None,
        task: str = "task",
        text: str = "",
        image: str = "",
        embed: str | None = None,
        known: str | os.PathLike[str] | None = None,
        guide: str | os.PathLike[str] | None = None,
        **settings: Any,
    ) -> Self:
        """Make a project folder of a table of tasks, or of a folder of images, and return the project.

        Parameters
        ----------
        folder : path
            A new folder.
        tasks : path
            A table with one row per task, which is copied; or a folder of images, which are copied, with their names
            as ids.
        classes : sequence of str
            The labels to choose from.
        title : str, optional
            Default: the folder's name.
        task, text, image : str
            The columns of ids, of texts and of images; image files are named from where the table lies.
        embed : str, optional
            The pretrained model that texts or images are made numbers with; "none": none. Default: one that is at hand.
        known : path, optional
            A table with the true labels of some tasks, in columns task and label: they are mixed in, to see who is
            right.
        guide : path, optional
            Markdown with what people should know, and examples; images in it lie next to it.
        **settings
            More settings, as in `project.toml`.
        """
        folder, source = Path(folder), Path(tasks)
        check_no_file(folder)
        if folder.exists() and any(folder.iterdir()):
            first = show(min(path.name for path in folder.iterdir()))
            raise ValueError(f"{folder} must be a new folder; got one with files, such as {first}.")
        options: dict[str, Any] = {"title": title or folder.resolve().name, "classes": tuple(classes)}
        options |= {"task": task, "text": text, "image": image} | settings
        if known is not None:
            options["known"] = "known" + "".join(locate(Path(known)).path.suffixes[-2:])
        images = source.is_dir()
        if not images:
            options["tasks"] = "tasks" + "".join(locate(source).path.suffixes[-2:])
            guess = guessed_source(source, task=task, text=text, image=image)
        else:
            options |= {"image": "image", "text": "", "task": "task"}
            guess = "images"
        chosen = Settings(**{"learn_from": guess} | options)
        chosen = replace(chosen, embed=model_for(chosen, embed))
        if not images:
            check_tasks(source, chosen)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            left_out = _copy_images(source, folder) if images else _copy_table(source, folder, chosen)
            if known is not None:
                shutil.copyfile(known, folder / chosen.known)
            if guide is not None:
                copy_instructions(Path(guide), folder)
            write_settings(folder, chosen)
            project = cls(folder)
            project.left_out = left_out
            if len(project.tasks) == 0:
                raise ValueError(f"{source} must have a task; got none.")
            project.known_labels()
        except BaseException:
            shutil.rmtree(folder)
            raise
        return project

    @cached_property
    def tasks(self) -> Tasks:
        """All tasks."""
        return Tasks(self.folder, self.settings)

    def known_labels(self) -> dict[str, str]:
        """Return the true labels that are known, by task."""
        if not self.settings.known:
            return {}
        path = self.folder / self.settings.known
        found = {str(task): str(label) for task, label in read_gold(path).items()}
        for task, label in found.items():
            if task not in self.tasks.place:
                raise ValueError(f"{path} must have tasks of the project; got {show(task)}.")
            if label not in self.settings.classes:
                raise ValueError(f"{path} must have labels among the classes; got {show(label)}.")
        return found

    @property
    def fits(self) -> Path:
        """Where fits are kept."""
        return self.folder / "fits"

    def store(self) -> Store:
        """Return a new connection to the answers."""
        database = os.environ.get("LABELONCE_DATABASE") or self.settings.database
        if ":" not in database.partition("/")[0]:
            return Store(str(self.folder / database))
        if not database.startswith(("postgresql://", "postgres://")):
            raise ValueError("database must be a file in the folder or postgresql://...; got another address.")
        try:
            from labelonce.service._postgres import SharedStore
        except ImportError as error:
            fix = "install it with: pip install 'labelonce[postgres]'."
            raise ImportError(f"PostgreSQL needs psycopg; {fix}") from error
        return SharedStore(database, lease_seconds=self.settings.lease_seconds)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of all answers and tokens to a file, also while the project is served."""
        target = Path(path)
        with closing(self.store()) as store:
            if not target.parent.is_dir():
                raise ValueError(f"{path} must lie in a folder that is there; got none at {target.parent}.")
            if target.exists() and target.samefile(store.name):
                raise ValueError(f"{path} must be another file than the one with the answers; got the same.")
            store.backup(target)

    def add_workers(self, workers: Sequence[str]) -> dict[str, str]:
        """Give every worker a new token and return them, by worker: they are kept nowhere else.

        A worker who has a token already gets a second one.
        """
        for worker in workers:
            check_worker(worker)
        return self._tokens([("worker", worker) for worker in workers])

    def workers(self) -> list[str]:
        """Return the workers who have a token."""
        with closing(self.store()) as store:
            return [worker for role, worker in store.tokens().values() if role == "worker"]

    def revoke(self, workers: Sequence[str]) -> int:
        """Revoke the tokens of these workers, within seconds if the project is being served; return how many.

        Their labels stay.
        """
        with closing(self.store()) as store:
            return sum(store.remove_tokens(worker) for worker in workers)

    def add_admin(self) -> str:
        """Return a new token that may see and do everything."""
        (token,) = self._tokens([("admin", "")]).values()
        return token

    def _tokens(self, wanted: list[tuple[str, str]]) -> dict[str, str]:
        made = {}
        with closing(self.store()) as store:
            for role, worker in wanted:
                made[worker] = new_token()
                store.add_token(hash_of(made[worker]), role, worker)
        return made


@contextmanager
def locked(folder: Path, name: str) -> Iterator[bool]:
    """Hold a lock in the folder until the block or the process ends; False where another process has it."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def check_worker(worker: str) -> str:
    """Return a worker's name if it is one."""
    if not is_unicode(worker) or len(worker) > MOST_LETTERS or not re.fullmatch(NAME, worker):
        rule = f"a name of 1 to {MOST_LETTERS} characters that begins with no space and has no control character"
        raise ValueError(f"a worker must have {rule}; got {show(worker)}.")
    return worker


def _copy_table(source: Path, folder: Path, settings: Settings) -> list[str]:
    """Copy a table and the images that it names; nothing is left out."""
    shutil.copyfile(source, folder / settings.tasks)
    named = Tasks(folder, settings).images or [] if settings.image else []
    known = [path.relative_to(folder.resolve()) for path in named]
    origin = source.parent.resolve()
    bad = [(name, why) for name in known if (why := why_unusable(origin / name)) is not None]
    if bad:
        name, why = bad[0]
        raise ValueError(
            f"{source} must name images that can be shown; got {show(str(name))}: {why} ({len(bad)} in total). "
            "Replace them, or take their rows out."
        )
    for name in known:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin / name, folder / name, follow_symlinks=False)
    return []


def _copy_images(source: Path, folder: Path) -> list[str]:
    """Copy the images in a folder, and return what was left out, and why."""
    (folder / "images").mkdir()
    rows, left_out = ["task,image"], []
    for path in sorted(source.iterdir()):
        if not is_unicode(path.name):
            why: str | None = "its name is no UTF-8"
        elif path.is_dir() and not path.is_symlink():
            inside = sum(1 for _ in path.iterdir())
            why = f"a folder, and only files are read ({inside:,} file{'' if inside == 1 else 's'} in it)"
        elif path.suffix.lower() not in IMAGE_TYPES:
            why = f"its name does not end in one of {', '.join(IMAGE_TYPES)}"
        else:
            why = why_unusable(path)
        if why is not None:
            left_out.append(f"{printable(path.name)}: {why}")
            continue
        shutil.copyfile(path, folder / "images" / path.name, follow_symlinks=False)
        rows.append(",".join('"' + one.replace('"', '""') + '"' for one in (path.name, f"images/{path.name}")))
    if len(rows) == 1:
        got = f"none, and {len(left_out)} others, such as {left_out[0]}" if left_out else "none"
        raise ValueError(f"{source} must hold images ({', '.join(IMAGE_TYPES)}); got {got}.")
    (folder / "tasks.csv").write_text("\n".join(rows) + "\n", "utf-8")
    return left_out


__all__ = ["FILE", "Project", "check_worker", "locked"]
