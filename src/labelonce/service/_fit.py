"""A fit of all answers, in a process of its own: `python -m labelonce.service._fit PROJECT`.

A fit is a folder `fits/000001/` with the answers that it knew (`annotations.parquet`), the run folder of the model
(`run/`), the router's beliefs (`belief.npz`), and last `fit.json`. One that was killed is resumed.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from labelonce import runs
from labelonce._kernels import Beliefs
from labelonce._types import Floats
from labelonce.aggregation import DawidSkene
from labelonce.data import Annotations
from labelonce.files import atomic_path, atomic_write
from labelonce.io import write
from labelonce.multilabel import MultiLabelDawidSkene
from labelonce.report import Facts, estimated_accuracy, read_facts, worker_table
from labelonce.routing import Fit
from labelonce.service._boxes import about_boxes, answers_of, boxes_in, posterior_of, rows_of
from labelonce.service._numbers import numbers
from labelonce.service._outlook import outlook
from labelonce.service._project import Project, locked
from labelonce.service._store import labels

if TYPE_CHECKING:
    from labelonce.service._postgres import SharedStore

BUSY = 3  # the exit code where another process is fitting
TOO_FEW = 4  # the exit code where there are not two classes to fit
_KEPT = 3  # fits whose models are kept; of older ones only fit.json is
_LOCK = ".lock"
_log = logging.getLogger("labelonce")
_T = TypeVar("_T")
_BELIEF, _ANNOTATIONS, _ABOUT = "belief.npz", "annotations.parquet", "fit.json"


@contextmanager
def shared(project: Project) -> Iterator[SharedStore | None]:
    """Yield a connection to the database that services share, None if there is only one service."""
    with closing(project.store()) as store:
        yield store if store.is_shared else None  # type: ignore[misc]  # only a SharedStore is


def publish(project: Project, place: Path) -> None:
    """Share the fit in a folder with all services."""
    with shared(project) as store:
        if store is not None:
            belief, annotations = ((place / name).read_bytes() for name in (_BELIEF, _ANNOTATIONS))
            store.publish(int(place.name), (place / _ABOUT).read_text(), belief, annotations)


def fetch(project: Project) -> list[Path] | None:
    """Return the folders of all shared fits, the newest with its files; None where one service is alone."""
    with shared(project) as store:
        if store is None:
            return None
        found = [_copied(project.fits / f"{number:06d}", about) for number, about in store.fits()]
        if found and not (found[-1] / _BELIEF).exists():
            belief, annotations = store.fit(int(found[-1].name))
            atomic_write(found[-1] / _ANNOTATIONS, annotations)
            atomic_write(found[-1] / _BELIEF, belief)
        return found


def _copied(place: Path, about: str) -> Path:
    """Return the folder of a shared fit; what another fit of this number has left there is removed."""
    path = place / _ABOUT
    if not path.exists() or path.read_text() != about:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        atomic_write(path, about.encode())
    return place


@dataclass(frozen=True)
class FinishedFit:
    """A finished fit: its number, what `fit.json` says of it, and what the router takes over."""

    number: int
    about: dict[str, Any]
    fit: Fit


def main(folder: Path) -> int:
    """Make a new fit, or finish one that was stopped; return the exit code."""
    project = Project(folder)
    with locked(project.fits, _LOCK) as ours:
        if not ours:
            return BUSY
        place = _unfinished(project) or _begun(project)
        if place is None:
            return TOO_FEW
        try:
            _finish(project, place)
        except Exception:
            shutil.rmtree(place)  # the next one begins with the answers of then; one that was killed is resumed
            raise
        publish(project, place)
        _forget_old(project)
    return 0


def newest(project: Project) -> FinishedFit | None:
    """Return the newest finished fit of the project's tasks and classes, None if there is none."""
    folders = fetch(project)
    folders = _folders(project) if folders is None else folders
    found = next(_sound([path for path in reversed(folders) if (path / "belief.npz").exists()], read), None)
    return found if found is not None and subject(project).items() <= found.about.items() else None


def read(place: Path) -> FinishedFit:
    """Return the fit in a folder."""
    with np.load(place / "belief.npz", allow_pickle=False) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    table = parquet.read_table(place / "annotations.parquet", columns=["task", "worker", "label"])
    about = json.loads((place / "fit.json").read_bytes())
    labels, posterior, predictions = table["label"], arrays["posterior"], arrays["predictions"]
    if arrays["confusion"].ndim == 4:  # check boxes, [worker, box, true, ticked]
        labels = answers_of(labels.to_pylist(), about["classes"])
        posterior, predictions = rows_of(posterior), rows_of(predictions)
    answers = (table["task"], table["worker"], labels)  # as Arrow: a list of them would take a while to make
    fit = Fit(posterior, arrays["confusion"], about["worker_ids"], answers, predictions)
    return FinishedFit(int(place.name), about, fit)


def history(project: Project) -> list[dict[str, Any]]:
    """Return how the estimate of accuracy grew, one entry per fit: its number, labels, accuracy, low and high."""

    def entry(place: Path) -> dict[str, Any]:
        about = json.loads((place / "fit.json").read_bytes())
        return {"fit": int(place.name), "labels": about["labels"]} | (about["accuracy"] or {})

    folders = fetch(project)
    return list(_sound(_folders(project) if folders is None else folders, entry))


def subject(project: Project) -> dict[str, Any]:
    """Return the tasks and classes of a fit as a key: a fit of other tasks or classes cannot be used."""
    return {"tasks": project.tasks.digest, "classes": list(project.settings.classes)}


def _sound(folders: Iterable[Path], read: Callable[[Path], _T]) -> Iterator[_T]:
    """Yield the finished fits; damaged ones are skipped, since the next fit replaces them."""
    for place in folders:
        if (place / "fit.json").exists():
            try:
                yield read(place)
            except Exception as error:  # what is damaged may fail in any way
                _log.warning("%s cannot be read, and is left out: %s: %s", place, type(error).__name__, error)


def _folders(project: Project) -> list[Path]:
    return sorted(path for path in project.fits.glob("[0-9]*") if path.is_dir() and path.name.isdecimal())


def _unfinished(project: Project) -> Path | None:
    """Return the newest fit if it was stopped after its answers were written down."""
    for path in _folders(project)[-1:]:
        stopped = (path / _ANNOTATIONS).exists() and not (path / _ABOUT).exists()
        if stopped and _next_number(project) in (None, int(path.name)):
            return path
    return None


def _next_number(project: Project) -> int | None:
    """Return the number of the next shared fit, None where one service is alone."""
    with shared(project) as store:
        return None if store is None else store.newest_fit() + 1


def _begun(project: Project) -> Path | None:
    """Write down the answers of a new fit and return its folder."""
    with closing(project.store()) as store:
        unreadable = numbers(project).unreadable if project.settings.learn_from == "images" else []
        known = project.tasks.place.keys() - unreadable
        rows = [row for row in labels(store.answers()) if row.task in known]
    if len({row.label for row in rows}) < 2:
        return None
    number = _next_number(project) or max((int(path.name) for path in _folders(project)), default=0) + 1
    place = project.fits / f"{number:06d}"
    shutil.rmtree(place, ignore_errors=True)  # a fit of this number that was not in time
    place.mkdir(parents=True, exist_ok=True)
    columns = {
        "task": pa.array(project.tasks.ids[[project.tasks.place[row.task] for row in rows]]),
        "worker": pa.array([row.worker for row in rows]),
        "label": pa.array([row.label for row in rows]),
    }
    write(pa.table(columns), place / "annotations.parquet")
    return place


def _finish(project: Project, place: Path) -> None:
    started = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few labels: more are being bought, and the report of the run says so
        model, annotations = _fitted(project, place)
        if project.settings.multilabel:
            posterior, about = posterior_of(model), about_boxes(model, annotations)
        else:
            posterior = Beliefs.of(model.posterior_).to_dense()
            about = _about(read_facts(model, annotations), posterior)
    with atomic_path(place / "belief.npz") as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            posterior=posterior,
            predictions=np.asarray(Beliefs.of(getattr(model, "predictions_", posterior)), dtype=np.float32),
            confusion=model.confusion_,
        )
    if project.settings.learn_from == "images":
        about["unreadable"] = numbers(project).unreadable
    about |= {"seconds": round(time.time() - started, 3), "finished": time.time()} | subject(project)
    atomic_write(place / "fit.json", json.dumps(about).encode())


def _fitted(project: Project, place: Path) -> tuple[Any, Any]:
    """Return the fitted model, and the annotations with all tasks and classes."""
    options = _options(project, place)
    if options is None:
        table = parquet.read_table(place / "annotations.parquet")
        if project.settings.multilabel:
            boxes = boxes_in(table, project)
            return MultiLabelDawidSkene().fit(boxes), boxes
        columns = (table[name] for name in ("task", "worker", "label"))
        annotations = Annotations.from_arrays(*columns, classes=list(project.settings.classes)).align(project.tasks.ids)
        ids, places = project.tasks.ids.tolist(), project.tasks.place
        gold = {ids[places[name]]: label for name, label in project.known_labels().items()}
        return DawidSkene().fit(annotations, gold=gold or None), annotations
    run = runs.RunFolder(place / "run")
    if run.finished() is None:  # nobody reads a report every fifty labels: labelonce report makes it when it is wanted
        runs.resume(run.path, report=False) if run.is_unfinished else runs.train(options, run.path, report=False)
    model: Any = runs.load(run.file("model.skops"))
    return model, model.annotations_


def _options(project: Project, place: Path) -> runs.Options | None:
    settings = project.settings
    task = "task" if settings.learn_from == "images" else settings.task
    known: dict[str, Any] = {"seed": settings.seed, "task": task}
    known |= {} if settings.multilabel else {"classes": settings.classes, "gold": _gold(project, place, task)}
    source, given = settings.learn_from, str(_given(project, place, task))
    if source == "nothing":
        return None
    if source == "text":
        known |= {"text": settings.text, "embed": settings.embed or "none"}
        return runs.Options(given, str(project.folder / settings.tasks), **known)
    if source == "images":
        return runs.Options(given, str(numbers(project).path), **known)
    shown = tuple(name for name in (settings.text, settings.image) if name)
    return runs.Options(given, str(project.folder / settings.tasks), ignore=shown, **known)


def _gold(project: Project, place: Path, task: str) -> str | None:
    """Return a file with the known labels of those tasks that somebody has labelled."""
    known, path = project.known_labels(), place / "gold.parquet"
    ids = parquet.read_table(place / "annotations.parquet", columns=["task"])["task"].unique()
    kept = [(one, known[str(one)]) for one in ids.to_pylist() if str(one) in known]
    if not kept:
        return None
    if not path.exists():
        write(pa.table({task: [one for one, _ in kept], "label": [label for _, label in kept]}), path)
    return str(path)


def _given(project: Project, place: Path, task: str) -> Path:
    """Return the answers in a file whose column of tasks is named as in the file of tasks, one row per box."""
    path = place / "labels.parquet"
    if not path.exists():
        table = parquet.read_table(place / "annotations.parquet")
        table = boxes_in(table, project).to_frame() if project.settings.multilabel else table
        write(table.rename_columns({"task": task}), path)
    return path


def _about(facts: Facts, posterior: Floats) -> dict[str, Any]:
    """Return what is shown about a fit: accuracy with its range, workers, and what more labels would bring."""
    accuracy, table, ann = estimated_accuracy(facts), worker_table(facts), facts.annotations
    labelled = np.unique(ann.worker)
    columns = {"skill": table.skill, "low": table.low, "high": table.high}
    workers = {
        str(ann.workers[one]): {name: float(values[one]) for name, values in columns.items()}
        | {"flags": table.names(one)}
        for one in labelled.tolist()
    }
    return {
        "labels": len(ann),
        "doubts": facts.doubts,
        "accuracy": accuracy and {"accuracy": accuracy.value, "low": accuracy.low, "high": accuracy.high},
        "workers": workers,
        "worker_ids": [str(one) for one in ann.workers.tolist()],
        "outlook": outlook(posterior, np.asarray(facts.confusion[labelled].mean(axis=0))),
    }


def _forget_old(project: Project) -> None:
    finished = [path for path in _folders(project) if (path / "fit.json").exists()]
    for place in finished[:-_KEPT]:
        for name in ("run", "belief.npz", "annotations.parquet", "labels.parquet", "gold.parquet"):
            path = place / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
