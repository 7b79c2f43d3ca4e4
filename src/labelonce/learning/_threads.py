"""One limit for all threads of a fit: those of BLAS, of OpenMP and of joblib must not fight for the cores."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from labelonce.learning._learner import Learner

_SMALL_FOR_BLAS = 10**8  # multiplications of a pass over the features of all classes, with which a thread is worth it
_SMALL_FOR_OPENMP = 10**7  # as many for trees, whose passes are cut into more pieces


@contextmanager
def sharing_threads(learners: Iterable[Learner], X: Any, n_classes: int) -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread within, where more would only wait for each other.

    That is where a pass over X is short. A learner that divides its work among workers of its own (`n_jobs`) keeps
    them, and each of them has one thread for BLAS, which else would start as many as there are cores. Networks are left
    alone.
    """
    learners = list(learners)
    if any(learner.any_shape for learner in learners):
        yield
        return
    size = n_values(X) * n_classes
    divided = any(has_workers(learner) for learner in learners)
    limits = {"blas": size < _SMALL_FOR_BLAS or divided, "openmp": size < _SMALL_FOR_OPENMP and not divided}
    with _controller().limit(limits={name: 1 for name, wanted in limits.items() if wanted}):
        yield


def n_values(X: Any) -> int:
    """Return how many values a pass over X reads: those stored, where it is sparse; texts count as rows.

    >>> from scipy import sparse
    >>> n_values(np.zeros((5, 3))), n_values(sparse.eye_array(4)), n_values(["a text", "another"])
    (15, 4, 2)
    """
    stored = getattr(X, "nnz", None)
    if stored is not None:
        return int(stored)
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(np.prod(shape))
    return len(X) if hasattr(X, "__len__") else int(np.asarray(X).size)


def has_workers(learner: Learner) -> bool:
    """Return whether a part of a learner asks joblib, or whatever it uses, for more than one worker.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from labelonce.learning._adapter import as_learner
    >>> [has_workers(as_learner(RandomForestClassifier(n_jobs=n))) for n in (None, 1, 2, -1)]
    [False, False, True, True]
    """
    found = (value for name, value in learner.get_params().items() if name == "n_jobs" or name.endswith("__n_jobs"))
    return any(value not in (None, 1) for value in found)


@cache
def _controller() -> Any:
    return ThreadpoolController()
