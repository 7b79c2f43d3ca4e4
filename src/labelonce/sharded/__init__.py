"""Annotations larger than memory, on one machine or several: prepared once on disk, then streamed by every process."""

try:
    import torch as _torch  # noqa: F401  # the missing extra is said here, at the door
except ImportError as error:
    raise ImportError("labelonce.sharded needs PyTorch; install it with: pip install 'labelonce[neural]'.") from error

from labelonce.sharded._append import append
from labelonce.sharded._fit import fit
from labelonce.sharded._prepare import prepare

__all__ = ["append", "fit", "prepare"]
