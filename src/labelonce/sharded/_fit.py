"""EM over prepared blocks: every process sweeps its own, the counts are added up, every iteration is kept."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
import torch

from labelonce import __version__
from labelonce._kernels import (
    Block,
    BlockSums,
    Counts,
    Processes,
    Sweep,
    find_device,
    floored_log,
    join_processes,
    logs_of,
    top_class,
)
from labelonce._types import Floats
from labelonce._validate import check_rng
from labelonce.aggregation import (
    IBCC,
    AnswersEM,
    DawidSkene,
    Iteration,
    OneCoin,
    Parameters,
    labels_frame,
    set_fitted,
    warn_not_converged,
    warn_of_overlap,
)
from labelonce.data import check_memory
from labelonce.files import atomic_path, atomic_write
from labelonce.io import write
from labelonce.sharded._shards import Shards, open_shards

Model = TypeVar("Model", bound=AnswersEM)
Callback = Callable[[int, float], None]

_FREE_TO_CHANGE = ("max_iter", "tol", "device", "random_state")  # between a run and the one that resumes it


def fit(
    model: Model,
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    callback: Callback | None = None,
) -> Model:
    """Fit a model to prepared annotations and write every task's posterior; works under `torchrun` as well.

    The same estimate as `model.fit`, up to the order of sums. Blocks are streamed from disk, so memory is needed
    for one block and the workers' confusion. Each process takes every n-th block; all need to see both folders.
    Blocks are on the `device` of the model, by default CUDA where there is any, and stay on the GPU if they fit.

    Parameters
    ----------
    model : DawidSkene, OneCoin or IBCC
    folder : path
        What `prepare` wrote.
    output : path
        A folder for `labels`, a table in Parquet files that any engine reads as one (task, label, confidence,
        posterior_<class>), `workers.parquet` and, last, `run.json`. While EM runs it holds `checkpoint.npz`, renewed
        after every iteration: the same call resumes from there, with the same result.
    callback : callable, optional
        Called after every iteration with its number and the objective.

    Returns
    -------
    model
        With `confusion_`, `prior_`, `skill_`, `workers_`, `classes_`, `log_likelihood_`, `n_iter_`, `converged_`;
        the posteriors are on disk only.
    """
    shards, target = open_shards(Path(folder)), Path(output)
    _check(model, shards, target)
    (target / "labels").mkdir(parents=True, exist_ok=True)
    with join_processes(model.device) as processes:
        job = _Job(model, shards, target, processes, find_device(model.device))
        last = job.climb(callback)
        job.write_labels(last.parameters)
        set_fitted(
            model,
            confusion=last.parameters.confusion,
            prior=last.parameters.prior,
            workers=shards.workers,
            classes=shards.classes,
            annotation_counts=shards.annotations_of_worker,
            log_likelihood_=np.array(last.path),
            n_iter_=len(last.path),
            converged_=last.converged,
        )
        processes.wait()
        if processes.rank == 0:
            _finish(model, shards, target, processes.size)
    return model


def _check(model: AnswersEM, shards: Shards, target: Path) -> None:
    if type(model) not in (DawidSkene, OneCoin, IBCC):
        raise TypeError(f"model must be DawidSkene, OneCoin or IBCC; got {type(model).__name__}.")
    if getattr(model, "worker_model", None) is not None:
        raise ValueError(f"worker_model must be None for prepared annotations; got {model.worker_model!r}.")
    if model.n_init != 1:
        raise ValueError(f"n_init must be 1 for prepared annotations; got {model.n_init}.")
    if (target / "run.json").exists():
        raise ValueError(f"{target} must not hold a finished run; got run.json. Remove it, or name another folder.")
    n_workers, n_classes = len(shards.workers), len(shards.classes)
    check_memory(
        8.0 * 8 * n_workers * n_classes**2,
        f"{type(model).__name__} with {n_workers:,} workers and {n_classes:,} classes",
        "Use the same labels in memory: OneCoin().fit(annotations) keeps one number per worker.",
    )
    model._check_options(n_classes)


class _Job:
    """One process's share of a fit."""

    def __init__(
        self, model: AnswersEM, shards: Shards, target: Path, processes: Processes, device: torch.device
    ) -> None:
        self.model, self.shards, self.target, self.device = model, shards, target, device
        self.is_first = processes.rank == 0
        shape = (len(shards.workers), len(shards.classes))
        self.sums = BlockSums(*shape, dtype=model.dtype, device=device, processes=processes)
        self.numbers = range(processes.rank, shards.n_blocks, processes.size)
        self.held: dict[int, Block] = {}
        self.checked: set[int] = set()
        kept = {name: value for name, value in model.get_params().items() if name not in _FREE_TO_CHANGE}
        self.about = json.dumps({"shards": shards.name, "model": type(model).__name__} | kept, default=repr)

    def climb(self, callback: Callback | None) -> Iteration:
        """Return the last iteration, from the checkpoint or from the votes."""
        counts, path = self._restore() or (self.sums.sweep_votes(self._blocks()), [])
        if self.is_first:
            n_labelled, redundancy = self.shards.n_labelled, self.shards.n_annotations / self.shards.n_labelled
            warn_of_overlap(type(self.model).__name__, self.shards.n_overlap, n_labelled, redundancy)
        for step in self.model.iterations(counts, self._sweep, self.shards.n_annotations, path):
            finished = step.converged or len(step.path) == self.model.max_iter
            if self.is_first and not finished:  # the last one is repeated: it ends in the posteriors
                self._save(step)
            if callback:
                callback(len(step.path), step.path[-1])
        if not step.converged and self.is_first:
            warn_not_converged(type(self.model).__name__, step.path, self.model.tol, self.shards.n_annotations)
        return step

    def write_labels(self, found: Parameters) -> None:
        """Write the posteriors of this process's blocks, each when it is known."""
        seed = int(check_rng(self.model.random_state).integers(2**31))
        posteriors = self.sums.posteriors(self._blocks(), *_logs(found))
        for number, posterior in zip(self.numbers, posteriors, strict=True):
            picks = top_class(posterior, np.random.default_rng([seed, number]))
            frame = labels_frame(self.shards.tasks(number), self.shards.classes, posterior, picks)
            write(frame, self.target / "labels" / f"part-{number:05d}.parquet")

    def _sweep(self, found: Parameters) -> Sweep:
        return self.sums.sweep(self._blocks(), *_logs(found))

    def _blocks(self) -> Iterator[Block]:
        for number in self.numbers:
            if number not in self.checked:  # once, since all of it has to be read
                self.shards.check(number)
                self.checked.add(number)
            block = self.held.get(number) or self.shards.block(number).to(self.device)
            if self.device.type == "cuda" and _has_room(self.device):
                self.held[number] = block
            yield block

    def _save(self, step: Iteration) -> None:
        """Put the checkpoint in the place of the last one."""
        with atomic_path(self.target / "checkpoint.npz") as temporary, temporary.open("wb") as file:
            counts = step.sweep.tallies.values.swapaxes(1, 2)  # as it lies in memory: sums must not change order
            np.savez(file, about=self.about, path=step.path, counts=counts, class_counts=step.sweep.class_counts)

    def _restore(self) -> tuple[Sweep, list[float]] | None:
        path = self.target / "checkpoint.npz"
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as kept:
                about, done = str(kept["about"]), kept["path"].tolist()
                counts = Sweep(Counts(kept["counts"].swapaxes(1, 2)), kept["class_counts"], -np.inf)
        except (BadZipFile, KeyError, ValueError, EOFError) as error:
            raise ValueError(f"{path} must be a whole checkpoint; it is damaged. Remove it to start over.") from error
        if about != self.about:
            said = f"{path} must come from the same model and annotations; got {about}. Remove it to start over."
            raise ValueError(said)
        if len(done) >= self.model.max_iter:
            raise ValueError(f"max_iter must be above the {len(done)} of {path}; got {self.model.max_iter}.")
        return counts, done


def _logs(found: Parameters) -> tuple[Floats, Floats]:
    """Return log P(given | true) and log P(true)."""
    return logs_of(found.confusion), floored_log(found.prior) if found.log_prior is None else found.log_prior


def _has_room(device: torch.device) -> bool:
    """Return whether a GPU has a quarter of its memory left, which the sums need."""
    free, total = torch.cuda.mem_get_info(device)
    return free > total // 4


def _finish(model: AnswersEM, shards: Shards, target: Path, n_processes: int) -> None:
    write(model.workers_to_frame(), target / "workers.parquet")
    about: dict[str, Any] = {"labelonce": __version__, "torch": torch.__version__, "shards": shards.name}
    about |= {"model": repr(model), "annotations": shards.n_annotations, "tasks": shards.n_labelled}
    about |= {"processes": n_processes, "iterations": model.n_iter_, "converged": model.converged_}
    about["log_likelihood"] = model.log_likelihood_.tolist()
    atomic_write(target / "run.json", (json.dumps(about, indent=1) + "\n").encode())
    (target / "checkpoint.npz").unlink(missing_ok=True)
