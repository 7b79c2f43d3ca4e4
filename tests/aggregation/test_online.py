import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from labelonce import IBCC, Annotations, DawidSkene, load, save
from labelonce._types import Codes

MODELS = [DawidSkene, IBCC]


def batches(ann: Annotations, n: int, seed: int = 0) -> list[Annotations]:
    order = np.random.default_rng(seed).permutation(len(ann))
    return [part(ann, rows) for rows in np.array_split(order, n)]


def part(ann: Annotations, rows: Any) -> Annotations:
    return Annotations.from_arrays(ann.task[rows], ann.worker[rows], ann.label[rows], classes=range(ann.n_classes))


def streamed(model: Any, parts: list[Annotations]) -> Any:
    for one in parts:
        model.partial_fit(one)
    return model


@pytest.mark.parametrize("model", MODELS)
def test_batches_agree_with_the_full_fit(model: Any) -> None:
    ann, _ = crowd(n_tasks=1500)
    full, online = model().fit(ann), streamed(model(), batches(ann, 30))
    assert (online.labels_ == full.labels_[online.tasks_]).mean() > 0.99
    assert_allclose(online.confusion_[np.argsort(online.workers_)], full.confusion_, atol=0.02)
    assert_allclose(online.prior_, full.prior_, atol=0.01)


def test_a_batch_leaves_other_tasks_until_there_is_half_as_much_again_and_reading_changes_nothing() -> None:
    ann, _ = crowd(n_tasks=300)
    model = DawidSkene().fit(ann.select(np.arange(300) < 200))
    before = model.posterior_
    model.partial_fit(ann.select((np.arange(300) >= 200) & (np.arange(300) < 250)))
    assert_array_equal(model.posterior_[:200], before)
    assert (model.partial_fit(ann.select(np.arange(300) >= 250)).posterior_[:200] != before).any()
    first, second = batches(crowd()[0], 2)
    read, unread = (DawidSkene(random_state=np.random.default_rng(0)).partial_fit(first) for _ in range(2))
    before = {name: str(value) for name, value in vars(read).items()}
    assert len(read.posterior_) == len(read.labels_) == len(read.tasks_)
    assert {name: str(value) for name, value in vars(read).items()} == before
    assert_array_equal(read.partial_fit(second).labels_, unread.partial_fit(second).labels_)


@pytest.mark.parametrize("model", MODELS)
def test_many_small_batches_of_few_labels_do_not_settle_on_them(model: Any) -> None:
    ann, y_true = crowd(n_tasks=1000, redundancy=5)
    online = streamed(model(), batches(ann, 200))
    full = (model().fit(ann).labels_ == y_true).mean()
    assert (online.labels_ == y_true[online.tasks_]).mean() > full - 0.02


def test_new_tasks_and_workers_follow_the_old_ones() -> None:
    first = Annotations.from_arrays(["b", "b", "a"], ["x", "y", "x"], [0, 0, 1])
    second = Annotations.from_arrays(["c", "a", "c"], ["z", "y", "x"], [1, 1, 1])
    model = streamed(DawidSkene(), [first, second])
    assert model.tasks_.tolist() == ["b", "a", "c"]
    assert model.workers_.tolist() == ["x", "y", "z"]
    assert model.labels_.tolist() == [0, 1, 1]
    assert model.workers_to_frame().num_rows == 3
    assert sum(model.workers_to_frame()["annotations"].to_pylist()) == 6


@pytest.mark.parametrize("model", MODELS)
def test_goes_on_from_a_full_fit(model: Any) -> None:
    ann, _ = crowd(n_tasks=1500)
    first, second = batches(ann, 2)
    online = model().fit(first).partial_fit(second)
    full = model().fit(ann)
    assert len(online.tasks_) == 1500
    assert (online.labels_ == full.labels_[online.tasks_]).mean() > 0.98


def test_fit_forgets_the_batches_and_results_already_read_do_not_change() -> None:
    ann, _ = crowd()
    model = DawidSkene().partial_fit(batches(ann, 3)[0]).fit(ann)
    assert_array_equal(model.posterior_, DawidSkene().fit(ann).posterior_)
    first, second = batches(crowd()[0], 2)
    model = DawidSkene().partial_fit(first)
    posterior, before = model.posterior_, model.posterior_.copy()
    model.partial_fit(second)
    assert_array_equal(posterior, before)


def test_gold_of_a_batch_is_kept_and_unsmoothed_batches_learn() -> None:
    ann, y_true = crowd()
    wrong: Codes = (y_true + 1) % 3
    first, second = batches(ann, 2)
    task = int(first.tasks[0])
    model = DawidSkene().partial_fit(first, gold={task: int(wrong[task])}).partial_fit(second)
    assert model.labels_[model.tasks_.tolist().index(task)] == wrong[task]
    ann, y_true = crowd(n_tasks=600)
    model = streamed(DawidSkene(smoothing=0.0), batches(ann, 6))
    assert (model.labels_ == y_true[model.tasks_]).mean() > 0.85


def test_what_a_batch_cannot_hold_is_refused_and_nothing_changes() -> None:
    model = DawidSkene().partial_fit(Annotations.from_arrays([1, 2], [1, 1], ["cat", "dog"]))
    with pytest.raises(ValueError, match=r"got 'cow' \(1 in total\). Declare all classes in the first batch"):
        model.partial_fit(Annotations.from_arrays([3, 3], [1, 2], ["cow", "cat"]))
    assert model.tasks_.tolist() == [1, 2]
    model = DawidSkene().partial_fit(Annotations.from_arrays([1, 2], ["x", "x"], [0, 1]))
    with pytest.raises(ValueError, match=r"got worker 'x' on task 2 again in a later batch \(1 in total\)"):
        model.partial_fit(Annotations.from_arrays([2, 2], ["y", "x"], [0, 0], classes=[0, 1]))
    assert model.workers_.tolist() == ["x"]
    model = DawidSkene().partial_fit(Annotations.from_arrays([1, 2], ["x", "x"], [0, 1]))
    with pytest.raises((ValueError, TypeError), match="tasks"):
        model.partial_fit(Annotations.from_arrays(["1"], ["y"], [0], classes=[0, 1]))
    with pytest.raises(TypeError, match="got list"):
        DawidSkene().partial_fit([[0, 1]])  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="'DawidSkene' object has no attribute 'posterior_'"):
        DawidSkene().posterior_  # noqa: B018
    model = DawidSkene().partial_fit(Annotations.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], list("abab")), gold={1: "a"})
    more = Annotations.from_arrays([1], [3], ["b"], classes=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"gold must be among the classes of the first batch, .*; got 'c' for task 1"):
        model.partial_fit(more, gold={1: "c"})
    assert model.posterior_[0].tolist() == [1.0, 0.0]


@pytest.mark.usefixtures("skops")
def test_a_saved_fit_has_no_annotations_to_go_on_from(tmp_path: Path) -> None:
    first, second = batches(crowd()[0], 2)
    for model in (DawidSkene().fit(first), DawidSkene().partial_fit(first)):
        save(model, tmp_path / "model")
        saved = load(tmp_path / "model")
        assert_array_equal(saved.posterior_, model.posterior_)
        with pytest.raises(ValueError, match="a saved DawidSkene has none; fit all of them again"):
            saved.partial_fit(second)
        assert saved.fit(second).partial_fit(first).n_iter_ > 0


def test_a_stream_survives_pickle_and_copies_go_on_and_clone_starts_anew() -> None:
    first, second = batches(crowd()[0], 2)
    model = DawidSkene().partial_fit(first)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.partial_fit(second).posterior_, model.partial_fit(second).posterior_)
    assert not hasattr(clone(model), "posterior_")
    ann = Annotations.from_arrays([1, 1, 2, 2], [1, 2, 1, 2], list("abab"))
    more = Annotations.from_arrays([3, 3], [1, 2], list("ab"))
    for model in (DawidSkene().fit(ann), DawidSkene().partial_fit(ann)):
        copy = deepcopy(model).partial_fit(more)
        assert len(copy.tasks_) == 3
        assert len(model.tasks_) == 2
        assert_allclose(copy.posterior_, model.partial_fit(more).posterior_)
