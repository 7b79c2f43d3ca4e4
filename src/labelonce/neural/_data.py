"""Features on the device: arrays and tensors whole, map-style data sets batch by batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from labelonce._sklearn import check_classification_targets, check_weight, count_rows
from labelonce._types import Floats, Ids
from labelonce._validate import check_distribution

AddUp = Callable[[torch.Tensor], torch.Tensor]

_SAMPLE = 20_000  # tasks whose features are scaled by


class Inputs:
    """The tasks' features, ready to be taken by number.

    Parameters
    ----------
    X : array, tensor or map-style data set
    device : torch.device
    dtype : torch.dtype
        Of the batches.
    moments : (mean, deviation), optional
        Taken off and divided by, for each feature or channel. Default: those of X; a data set's are left alone.
    add_up : callable, optional
        Sums a tensor over all processes that have a part of the tasks.
    """

    def __init__(
        self,
        X: Any,
        device: torch.device,
        dtype: torch.dtype,
        moments: Any = None,
        *,
        add_up: AddUp = lambda numbers: numbers,
    ) -> None:
        self.device, self.dtype = device, dtype
        self.n_rows = count_rows(X)
        self._set: Any = None
        if not _is_array(X):
            self._set = X
            self.moments = None
            return
        whole = _as_tensor(X).to(device)
        if whole.dtype == torch.uint8 and whole.ndim == 4 and whole.shape[1] != 3 and whole.shape[-1] == 3:
            whole = whole.permute(0, 3, 1, 2)
        self.moments = _moments(whole, add_up) if moments is None else moments
        mean, deviation = self.moments
        self._whole = torch.empty(whole.shape, dtype=dtype, device=device, memory_format=_layout(whole))
        for start in range(0, len(whole), 4096):
            part = slice(start, start + 4096)
            self._whole[part] = (whole[part].float() - mean) / deviation

    def take(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the inputs of some tasks, on the device."""
        if self._set is None:
            return self._whole[rows]
        batch = torch.stack([torch.as_tensor(_input_of(self._set[row])) for row in rows.tolist()])
        return batch.to(self.device, self.dtype)


def _is_array(X: Any) -> bool:
    return isinstance(X, (np.ndarray, torch.Tensor, list)) or hasattr(X, "__array__")


def _as_tensor(X: Any) -> torch.Tensor:
    if isinstance(X, torch.Tensor):
        return X
    array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"X must hold numbers for a network; got {array.dtype}. Put a transformer before it.")
    if array.ndim < 2:
        raise ValueError(
            f"X must have a row of features a task; got shape {array.shape}. Reshape your data, for instance by "
            "array.reshape(-1, 1)."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("X must be finite; it contains NaN or infinity.")
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))  # torch warns of arrays it must not write to


def _moments(whole: torch.Tensor, add_up: AddUp) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and deviation of every feature, or of every channel, in the shape that they apply to."""
    sample = whole[:: max(1, len(whole) // _SAMPLE)].float()
    over = (0, 2, 3) if whole.ndim == 4 else (0,)
    variance, own = (part.double() for part in torch.var_mean(sample, dim=over, keepdim=True, correction=0))
    n = torch.full_like(own, sample[:, :1].numel())
    n_all = add_up(n)
    mean = add_up(n * own) / n_all
    deviation = (add_up(n * (variance + (own - mean) ** 2)) / n_all).sqrt()
    return mean.float(), torch.where(deviation > 0, deviation, 1.0).float()


def _layout(whole: torch.Tensor) -> torch.memory_format:
    return torch.channels_last if whole.ndim == 4 else torch.contiguous_format


def _input_of(item: Any) -> Any:
    """Return the input of a data set's item; a label that comes with it is not looked at."""
    return item[0] if isinstance(item, tuple | list) else item


def as_targets(X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Floats, Ids]:
    """Return probability targets, weights and classes from labels (n_tasks,) or targets (n_tasks, n_classes)."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give labels or targets.")
    y = np.asarray(y)
    n_rows = count_rows(X)
    if len(y) != n_rows:
        raise ValueError(f"X and y must have the same number of rows; got {n_rows} and {len(y)}.")
    weight = check_weight(sample_weight, y)
    if y.ndim == 2:
        return check_distribution(y, "targets", y.shape), weight, np.arange(y.shape[1])
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return np.eye(len(classes))[codes], weight, classes
