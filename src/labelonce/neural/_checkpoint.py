"""A training's state on disk, so that a fit that was stopped can resume."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from labelonce._kernels import Processes, on_slots
from labelonce._messages import described
from labelonce._types import Floats
from labelonce.files import atomic_path
from labelonce.neural._training import Best, Training

_FREE = ("callbacks", "checkpoint", "device", "compile", "record", "random_state")  # may differ when a fit resumes


def fingerprint(options: dict[str, Any], targets: Any, weight: Floats) -> str:
    """Return what tells a fit from another: a hash of its options, targets and weights."""
    kept = {name: value for name, value in sorted(options.items()) if name not in _FREE}
    found = sha256(described(kept).encode())
    few = on_slots(targets)
    parts = (targets,) if few is None else (few.codes, few.wide())
    for array in (*parts, weight):
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def files_of(path: str | Path | None, n_models: int) -> list[Path]:
    """Return where the state of each network is kept; nowhere without a path."""
    if path is None:
        return []
    path = Path(path)
    return [path] if n_models == 1 else [path.with_name(f"{path.name}.{number}") for number in range(n_models)]


def state_of(job: Training, best: Best) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Return all that the next epoch needs: tensors, which the training goes on to change, and plain numbers."""
    tensors = {f"module.{name}": value for name, value in job.module.state_dict().items()}
    if job.teacher is not None:
        tensors |= {f"teacher.{name}": value for name, value in job.teacher.module.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.state.items()}
    for number, state in job.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors["order"] = job.order.get_state()
    steps = 0 if job.teacher is None else job.teacher.steps
    return tensors, {"epoch": job.epoch, "stopped": job.stopped, "best": [best.loss, best.since], "steps": steps}


def set_state(job: Training, best: Best, tensors: dict[str, torch.Tensor], reached: dict[str, Any]) -> None:
    job.module.load_state_dict(_named(tensors, "module."))
    if job.teacher is not None:
        job.teacher.module.load_state_dict(_named(tensors, "teacher."))
        job.teacher.steps = reached["steps"]
    whole = job.optimizer.state_dict()
    for name, value in _named(tensors, "optimizer.").items():
        number, key = name.split(".", 1)
        whole["state"].setdefault(int(number), {})[key] = value
    job.optimizer.load_state_dict(whole)
    _lay_out(job.optimizer)
    job.order.set_state(tensors["order"].cpu())
    job.epoch, job.stopped = reached["epoch"], reached["stopped"]
    best.loss, best.since = reached["best"]
    best.state = {name: value.to(job.order.device) for name, value in _named(tensors, "best.").items()}


class Checkpoint:
    """The file of one network of one fit; without a path nothing is written.

    The first process writes; all must find the file there to resume from it.
    """

    def __init__(self, path: Path | None, fit: dict[str, Any], processes: Processes) -> None:
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"checkpoint must be in a folder that exists; got {str(path)!r}. Make the folder first.")
        self.path, self.fit, self.processes = path, fit, processes

    def save(self, job: Training, best: Best) -> None:
        """Write what the next epoch needs, whole or not at all."""
        if self.path is None or self.processes.rank > 0:
            return
        tensors, reached = state_of(job, best)
        note = {"fit": json.dumps(self.fit), "reached": json.dumps(reached)}
        with atomic_path(self.path) as temporary:
            save_file({name: value.contiguous() for name, value in tensors.items()}, temporary, note)

    def load(self, job: Training, best: Best) -> None:
        """Put the saved state in place; nothing is changed if there is none, or another fit wrote it."""
        if self.path is None:
            return
        reached, tensors = self._read() if self.path.exists() else ({}, {})
        there = torch.tensor(float(bool(reached)), device=job.order.device)
        if float(self.processes.sum(there)) < self.processes.size:
            return
        try:
            set_state(job, best, tensors, reached)
        except (RuntimeError, ValueError, KeyError) as error:
            raise ValueError(
                f"{self.path} holds another network than module_fn makes now. Delete it to train from scratch."
            ) from error

    def _read(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """Return how far a fit had come, and its tensors; nothing if that was another fit."""
        try:
            with safe_open(self.path, framework="pt") as file:
                note = file.metadata() or {}
                if self.processes.rank == 0 and json.loads(note["fit"]) != self.fit:
                    return {}, {}
                reached = json.loads(note["reached"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
        except (SafetensorError, OSError, KeyError) as error:
            raise ValueError(
                f"checkpoint must be a file that a fit wrote; {str(self.path)!r} is damaged or something else. "
                "Delete it, or give another path."
            ) from error
        return reached, tensors


def _named(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _lay_out(optimizer: torch.optim.Optimizer) -> None:
    """Give the averages the strides of their parameters, which fused optimisers insist on."""
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                state[name] = torch.empty_like(parameter).copy_(value)
