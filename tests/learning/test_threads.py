"""Small fits use one thread, divided ones one per worker; large ones and networks are left alone."""

from typing import Any, Self

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_info

import labelonce as lo
from labelonce._types import Floats
from labelonce.learning import Learner
from labelonce.learning import _threads as threads
from labelonce.learning._adapter import as_learner
from labelonce.learning._threads import sharing_threads

pytestmark = pytest.mark.usefixtures("three_threads")


def limits_within(learner: Learner, X: Any) -> dict[str, set[int]]:
    """Return the numbers of threads of all libraries of each kind within the context."""
    found: dict[str, set[int]] = {"blas": set(), "openmp": set()}
    with sharing_threads([learner], X, 3):
        for library in threadpool_info():
            found[library["user_api"]].add(library["num_threads"])
    return found


@pytest.fixture
def three_threads() -> Any:
    """Let every library use three threads, whatever the environment says."""
    with threads._controller().limit(limits=3):
        yield


def test_a_small_fit_has_one_thread() -> None:
    within = limits_within(lo.SoftmaxRegression(), np.zeros((10, 2)))
    assert within["blas"] == {1}
    assert within["openmp"] <= {1}


def test_a_large_fit_keeps_its_threads() -> None:
    large = np.broadcast_to(0.0, (10**6, 1000))
    assert limits_within(lo.SoftmaxRegression(), large)["blas"] == {3}


def test_workers_have_one_blas_thread_each_however_large_the_fit_is() -> None:
    large = np.broadcast_to(0.0, (10**6, 1000))
    within = limits_within(as_learner(RandomForestClassifier(n_jobs=2)), large)
    assert within["blas"] == {1}
    assert within["openmp"] <= {3}


def test_networks_are_left_alone() -> None:
    class Network(lo.SoftmaxRegression):
        any_shape = True

    assert limits_within(Network(), np.zeros((10, 2)))["blas"] == {3}


def test_every_fit_of_mbem_is_limited_and_the_threads_come_back() -> None:
    seen: set[int] = set()

    class Watching(lo.SoftmaxRegression):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
            seen.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X: Any) -> Floats:
            seen.update(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
            return super().predict_proba(X)

    X = np.arange(40.0)[:, None]
    lo.MBEM([Watching(), Watching(C=0.1)], rounds=2).fit(X, (X[:, 0] > 19).astype(int))
    assert seen == {1}
    assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {3}
