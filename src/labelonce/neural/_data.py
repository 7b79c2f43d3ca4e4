"""Features for a network: arrays and tensors, on the device where they fit, and map-style data sets batch by batch."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch.utils.data import DataLoader, IterableDataset

from labelonce._kernels import on_slots
from labelonce._messages import shorten
from labelonce._sklearn import check_classification_targets, check_weight, count_rows
from labelonce._types import Floats, Ids
from labelonce._validate import check_distribution
from labelonce.data._memory import check_memory
from labelonce.learning._adapter import one_hot

AddUp = Callable[[torch.Tensor], torch.Tensor]

_SAMPLE = 20_000  # tasks whose features are scaled by
_IMAGE = 32 * 32 * 3  # numbers in a task up to which tasks are taken by the thousand
_SHARE = 0.5  # of the free memory of a device: larger arrays stay where they are


class Inputs:
    """The tasks' features, ready to be taken by number; `shape` is that of one task, channels first.

    `moments`, mean and deviation, are subtracted and divided by, for each feature or channel: by default those of X,
    for a data set (), nothing. `add_up` sums a tensor over all processes that have a part of the tasks.
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
        self.device, self.dtype, self.moments = device, dtype, moments
        self.n_rows = count_tasks(X)
        self._set = None if _is_array(X) else X
        if self._set is not None:
            self.moments = moments or ()
            self.shape = tuple(self._item(0).shape)
            self._check_features()
            return
        self._raw: torch.Tensor | None = _channels_first(_as_tensor(X))
        self.shape = tuple(self._raw.shape[1:])
        _check_finite(self._raw, self.at_most(4096))
        if moments is None:
            self.moments = _moments(self._raw, device, add_up, self.at_most(2 * _SAMPLE))
        self._check_features()
        self._scaled: torch.Tensor | None = None
        if self._raw.numel() * dtype.itemsize <= _SHARE * free_memory(device):
            self._scaled = torch.empty(self._raw.shape, dtype=dtype, device=device, memory_format=_layout(self._raw))
            for start in range(0, self.n_rows, self.at_most(4096)):
                part = slice(start, start + self.at_most(4096))
                self._scaled[part] = self._scale(self._raw[part])
            self._raw = None

    def at_most(self, n_tasks: int) -> int:
        """Return how many tasks to take at once: `n_tasks`, or fewer where they are larger than 32 x 32 images."""
        return max(1, min(n_tasks, n_tasks * _IMAGE // max(1, prod(self.shape))))

    def take(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the inputs of some tasks, on the device."""
        if self._set is not None:
            batch = self._read(rows.tolist())
            return self._scale(batch) if self.moments else batch.to(self.device, self.dtype)
        if self._raw is None:
            return self._scaled[rows]  # type: ignore[index]
        batch = self._scale(self._raw[rows.to(self._raw.device)])
        return batch.contiguous(memory_format=_layout(batch))

    def _scale(self, part: torch.Tensor) -> torch.Tensor:
        part = part.to(self.device).float()
        if self.moments:
            mean, deviation = (moment.to(self.device) for moment in self.moments)
            part = (part - mean) / deviation
        return part.to(self.dtype)

    def _check_features(self) -> None:
        if self.moments:
            _check_same_features(self.shape, tuple(self.moments[0].shape[1:]))

    def _read(self, rows: list[int]) -> torch.Tensor:
        """Return some items of the data set; not finite or of another shape than the first is an error."""
        items = [self._item(row) for row in rows]
        for row, item in zip(rows, items, strict=True):
            if item.shape != self.shape:
                raise ValueError(
                    f"items of a data set must have one shape; item 0 has {self.shape} and item {row} "
                    f"{tuple(item.shape)}. Crop, pad or resize them in the data set."
                )
        batch = torch.stack(items) if items else torch.empty((0, *self.shape))
        if batch.is_floating_point() and not batch.sum(dtype=torch.float64).isfinite():
            for row, item in zip(rows, items, strict=True):
                if not item.isfinite().all():
                    raise ValueError(f"items of a data set must be finite; item {row} contains NaN or infinity.")
        return batch

    def _item(self, number: int) -> torch.Tensor:
        """Return the input of an item; a label that comes with it is not looked at."""
        if number >= self.n_rows:
            raise ValueError("X must have at least one task; got a data set of length 0.")
        item = self._set[number]  # type: ignore[index]
        item = item[0] if isinstance(item, tuple | list) and len(item) else item
        where = f"item {number} of the data set must be a tensor of numbers, or a tuple whose first entry is"
        if isinstance(item, Mapping):
            raise TypeError(
                f"{where}; got a mapping with the keys {shorten(list(item))}. Return the entry to learn from."
            )
        try:
            found = torch.as_tensor(item)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"{where}; got {type(item).__name__}. Convert it in the data set.") from error
        if found.is_complex() or found.ndim == 0:
            raise ValueError(
                f"{where}; got {found.dtype} of shape {tuple(found.shape)}. Give real numbers, in a row at least."
            )
        return found


def free_memory(device: torch.device) -> float:
    """Return how many bytes are free on a device; no limit on the CPU, whose memory holds X already."""
    if device.type != "cuda":
        return float("inf")
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return float(torch.cuda.mem_get_info(device)[0] + unused)


def count_tasks(X: Any) -> int:
    """Return the number of tasks; what is neither an array, a tensor nor a map-style data set is an error."""
    if sparse.issparse(X) or (isinstance(X, torch.Tensor) and X.layout != torch.strided):
        dense = "X.to_dense()" if isinstance(X, torch.Tensor) else "X.toarray()"
        raise TypeError(
            f"X must not be sparse for a network; got {type(X).__name__} of shape {tuple(X.shape)}. Use {dense}."
        )
    if isinstance(X, DataLoader):
        raise TypeError("X must be an array, a tensor or a map-style data set; got a DataLoader. Give loader.dataset.")
    numbered = hasattr(X, "__getitem__") and hasattr(X, "__len__") and not isinstance(X, Mapping | IterableDataset)
    if not (_is_array(X) or numbered):
        raise TypeError(
            f"X must be an array, a tensor or a map-style data set, with len(X) and X[number]; got {type(X).__name__}. "
            "Expected sequence or array-like."
        )
    return int(count_rows(X))


def _is_array(X: Any) -> bool:
    return isinstance(X, (np.ndarray, torch.Tensor, list)) or hasattr(X, "__array__")


def _as_tensor(X: Any) -> torch.Tensor:
    """Return an array or tensor as a tensor of numbers with one row, or more axes, per task."""
    array = X if isinstance(X, torch.Tensor) else np.asarray(X)
    shape = tuple(array.shape)
    numbers = not array.is_complex() if isinstance(array, torch.Tensor) else array.dtype.kind in "fiub"
    if not numbers:
        raise ValueError(f"X must hold numbers for a network; got {array.dtype}. Put a transformer before it.")
    if len(shape) < 2:
        raise ValueError(
            f"X must have one row of features per task; got shape {shape}. Reshape your data, for instance by "
            "array.reshape(-1, 1)."
        )
    if prod(shape[1:]) == 0:
        raise ValueError(f"X has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if isinstance(array, torch.Tensor):
        return array.detach()
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return torch.from_numpy(np.require(native, requirements=["C", "W"]))  # torch warns of arrays it must not write to


def _channels_first(whole: torch.Tensor) -> torch.Tensor:
    """Return images (n_tasks, height, width, 3) with their channels before height and width."""
    channels_last = whole.ndim == 4 and whole.shape[-1] == 3 and 3 not in whole.shape[1:3]
    return whole.permute(0, 3, 1, 2) if channels_last else whole


def _check_finite(whole: torch.Tensor, at_once: int) -> None:
    if not whole.is_floating_point():
        return
    for number, part in enumerate(torch.split(whole, at_once)):
        finite = part.isfinite().flatten(1).all(dim=1)
        if not finite.all():
            task = number * at_once + int((~finite).nonzero()[0])
            raise ValueError(
                f"X must be finite; it contains NaN or infinity, first in row {task}. Fill or drop such rows."
            )


def _check_same_features(shape: tuple[int, ...], fitted: tuple[int, ...]) -> None:
    """Raise unless tasks of this shape have the features, or the channels, whose moments have shape `fitted`."""
    if len(shape) != len(fitted):
        raise ValueError(
            f"X must have {len(fitted)} axes per task, like the tasks of the fit; got {len(shape)}: {shape} per task."
        )
    kind = "channels" if len(shape) == 3 else "features"
    features, wanted = (part[:1] if len(part) == 3 else part for part in (shape, fitted))
    if features != wanted:
        got, expected = ("x".join(map(str, part)) for part in (features, wanted))
        raise ValueError(
            f"X has {got} {kind}, but TorchLearner is expecting {expected} {kind} as input, as in its fit."
        )


def _moments(
    whole: torch.Tensor, device: torch.device, add_up: AddUp, at_once: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and deviation of every feature, or of every channel, in the shape that they apply to."""
    over = (0, 2, 3) if whole.ndim == 4 else (0,)
    parts = []
    for some in torch.split(whole[:: max(1, len(whole) // _SAMPLE)], at_once):
        sample = some.to(device).float()
        variance, mean = (part.double() for part in torch.var_mean(sample, dim=over, keepdim=True, correction=0))
        parts.append((torch.full_like(mean, sample[:, :1].numel()), mean, variance))
    n_all = add_up(torch.stack([n for n, _, _ in parts]).sum(dim=0))
    mean = add_up(torch.stack([n * own for n, own, _ in parts]).sum(dim=0)) / n_all
    spread = torch.stack([n * (variance + (own - mean) ** 2) for n, own, variance in parts]).sum(dim=0)
    deviation = (add_up(spread) / n_all).sqrt()
    return mean.float(), torch.where(deviation > 0, deviation, 1.0).float()


def _layout(whole: torch.Tensor) -> torch.memory_format:
    return torch.channels_last if whole.ndim == 4 else torch.contiguous_format


def as_targets(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Floats, Ids]:
    """Return probability targets, weights and classes from labels, targets (n_tasks, n_classes) or `Beliefs`.

    The last stay what they are.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give labels or targets.")
    few = on_slots(y)
    y = np.asarray(y) if few is None else few
    n_rows = count_tasks(X)
    if len(y) != n_rows:
        raise ValueError(f"X and y must have the same number of rows; got {n_rows} and {len(y)}.")
    if few is not None:
        return few, check_weight(sample_weight, few.rest), np.arange(few.n_classes)
    weight = check_weight(sample_weight, y)
    if y.ndim == 2:
        return check_distribution(y, "targets", y.shape), weight, np.arange(y.shape[1])
    check_classification_targets(y)
    n_classes = len(np.unique(y))
    check_memory(
        8.0 * 2 * n_rows * n_classes,
        f"targets of {n_rows:,} tasks and {n_classes:,} classes",
        "Give Beliefs, or train by MBEM(worker_model=workers.Grouped(groups)).",
    )
    targets, classes = one_hot(y)
    return targets, weight, classes


def check_split(n_held: int, n_all: int, holdout: float) -> None:
    """Raise if no task is held out, or none is left, in all processes together."""
    if n_held == 0:
        raise ValueError(
            f"holdout must hold out at least one task; holdout={holdout:g} held out 0 of {n_all} with a weight. "
            "Raise it, or set it to 0 to train on all."
        )
    if n_held == n_all:
        raise ValueError(
            f"holdout must leave tasks to train on; holdout={holdout:g} held out all {n_held} with a weight. Lower it."
        )
