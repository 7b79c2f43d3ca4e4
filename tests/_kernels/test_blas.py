import numpy as np
from threadpoolctl import threadpool_info

from labelonce._kernels import blas_threads


def threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))  # load the library
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_products_use_one_thread_and_give_the_others_back() -> None:
    before = threads()
    with blas_threads(1000):
        assert threads() == {1}
    assert threads() == before


def test_large_products_keep_their_threads() -> None:
    before = threads()
    with blas_threads(10**9):
        assert threads() == before
