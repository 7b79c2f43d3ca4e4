"""Small problems use one BLAS thread: waiting for the others takes longer than the work."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

_SMALL = 10**8  # multiplications in one product


def blas_threads(size: int = 0) -> AbstractContextManager[Any]:
    """Return a context with one BLAS thread if the products in it take fewer than 10^8 multiplications."""
    return _controller().limit(limits=1, user_api="blas") if size < _SMALL else nullcontext()


@cache
def _controller() -> Any:
    return ThreadpoolController()
