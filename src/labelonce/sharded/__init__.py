"""Annotations larger than memory, on one machine or several: prepared once on disk, then streamed by every process."""

try:
    import torch as _torch  # the missing extra is said here, at the door
except ImportError as error:
    raise ImportError("labelonce.sharded needs PyTorch; install it with: pip install 'labelonce[neural]'.") from error

from typing import TYPE_CHECKING

from labelonce._lazy import lazy_names
from labelonce.sharded._append import append
from labelonce.sharded._fit import fit
from labelonce.sharded._prepare import prepare

__all__ = ["append", "fit", "prepare"]

if TYPE_CHECKING:  # for other rooms of the library; users are promised nothing
    from labelonce.sharded._shards import open_shards
else:
    __getattr__, _, _ = lazy_names(__name__)
