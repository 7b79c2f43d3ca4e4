"""Rows of X meet their tasks by ids, or in an order that can only mean one thing."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import labelonce as lo

N = 300
COLUMNS = ["a", "b", "c", "d"]


def made(ids: Any) -> tuple[Any, Any, lo.Annotations]:
    """Features and true labels in the order of `ids`, and the annotations of these tasks in that order."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    X = rng.normal(size=(N, 4)) + 3 * y[:, None]
    worker = np.arange(N) % 5
    label = np.where((worker < 3) | (rng.random(N) < 0.5), y, 1 - y)
    return X, y, lo.Annotations.from_frame(pd.DataFrame({"task": ids, "worker": worker, "label": label}))


PERMUTED = np.random.default_rng(1).permutation(N)
NAMES = np.array([f"task-{i}" for i in PERMUTED], dtype=object)


def frame(X: Any, ids: Any, order: Any, kind: str) -> Any:
    """The rows of X in another order, with their ids."""
    table = pd.DataFrame(X[order], columns=COLUMNS)
    if kind == "index":
        return table.set_index(pd.Index(ids[order]))
    table.insert(2, "task", ids[order])
    if kind == "polars":
        return pl.from_pandas(table)
    return pa.table(table) if kind == "arrow" else table


@pytest.mark.parametrize("ids", [PERMUTED, NAMES], ids=["numbers", "names"])
@pytest.mark.parametrize("kind", ["index", "pandas", "polars", "arrow"])
@pytest.mark.parametrize("estimator", [lo.MBEM, lo.TrainOnAggregate])
def test_rows_are_matched_by_the_ids_that_x_carries(ids: Any, kind: str, estimator: Any) -> None:
    X, y, ann = made(ids)
    learner = lo.SoftmaxRegression()
    clf = lo.MBEM(learner, rounds=2) if estimator is lo.MBEM else lo.TrainOnAggregate(lo.MajorityVote(), learner)
    order = np.random.default_rng(2).permutation(N)
    carrying = frame(X, ids, order, kind)
    assert (clf.fit(carrying, ann).predict(carrying) == y[order]).mean() > 0.95
    assert clf.score_annotations(carrying, ann) > np.log(0.5)


def test_tasks_name_the_rows_of_an_array() -> None:
    X, y, ann = made(PERMUTED)
    order = np.random.default_rng(2).permutation(N)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X[order], ann, tasks=PERMUTED[order])
    assert (clf.predict(X) == y).mean() > 0.95
    assert (clf.labels_ == y[order]).mean() > 0.95
    assert clf.tasks_.tolist() == PERMUTED[order].tolist()


def test_an_array_in_the_order_of_named_tasks_needs_no_ids() -> None:
    X, y, ann = made(NAMES)
    assert (lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, ann).predict(X) == y).mean() > 0.95


def test_an_array_for_permuted_numbers_is_in_the_order_of_the_numbers() -> None:
    X, y, ann = made(PERMUTED)
    by_number = np.argsort(PERMUTED)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X[by_number], ann)
    assert (clf.predict(X) == y).mean() > 0.95


def test_gold_as_an_array_follows_the_rows_of_x() -> None:
    X, y, ann = made(NAMES)
    order = np.random.default_rng(2).permutation(N)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X[order], ann, tasks=NAMES[order], gold=y[order])
    assert clf.labels_.tolist() == y[order].tolist()


def test_a_labelled_task_without_a_row_is_named() -> None:
    X, _, ann = made(NAMES)
    short = frame(X, NAMES, np.arange(N - 1), "pandas")
    with pytest.raises(ValueError, match=rf"column 'task' of X: .*got none for '{NAMES[-1]}'"):
        lo.MBEM(lo.SoftmaxRegression()).fit(short, ann)


def test_an_index_that_is_not_of_the_tasks_says_how_to_drop_it() -> None:
    X, _, ann = made(NAMES)
    with pytest.raises(TypeError, match=r"index of X \(X\.reset_index\(drop=True\) takes it away\): .*got integers"):
        lo.MBEM(lo.SoftmaxRegression()).fit(pd.DataFrame(X, index=np.arange(N) + 7), ann)


def test_ids_of_another_number_than_rows_are_refused() -> None:
    X, _, ann = made(NAMES)
    with pytest.raises(ValueError, match="tasks must name the task of each of the 300 rows of X; got 2 ids"):
        lo.MBEM(lo.SoftmaxRegression()).fit(X, ann, tasks=["a", "b"])


def test_plain_labels_follow_the_rows_whatever_the_index() -> None:
    X, y, _ = made(NAMES)
    shuffled = pd.DataFrame(X, index=PERMUTED)
    assert (lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(shuffled, y).predict(shuffled) == y).mean() > 0.95
