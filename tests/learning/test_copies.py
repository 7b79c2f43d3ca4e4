"""Workers who copy each other are found, count once, and are named; workers who are merely good are not."""

import tracemalloc

import numpy as np
import pytest

import labelonce as lo
from labelonce.learning._copies import copiers, without_copies

Generator = np.random.Generator


@pytest.fixture
def rng() -> Generator:
    return np.random.default_rng(0)


def crowd(rng: Generator, n_copiers: int) -> tuple[np.ndarray, lo.Annotations]:
    """Return true classes and three labels of each task by twelve workers, of whom some write down one opinion."""
    y = rng.integers(0, 4, 1000)
    own = np.where(rng.random((1000, 12)) < 0.75, y[:, None], rng.integers(0, 4, (1000, 12)))
    own[:, :n_copiers] = own[:, :1]
    worker = np.argsort(rng.random((1000, 12)), axis=1)[:, :3]
    task = np.repeat(np.arange(1000), 3)
    return y, lo.Annotations.from_arrays(task, worker.ravel(), own[task, worker.ravel()])


@pytest.mark.parametrize("n_copiers", [3, 6])
def test_copiers_are_found(rng: Generator, n_copiers: int) -> None:
    _, annotations = crowd(rng, n_copiers)
    (group,) = copiers(annotations)
    assert group.tolist() == list(range(n_copiers))


def test_good_workers_among_others_do_not_copy(rng: Generator) -> None:
    y = rng.integers(0, 4, 1500)
    for skills in ([0.99] * 3 + [0.7] * 9, [1.0] * 3 + [0.25] * 12, [0.9] * 12):
        confusion = np.stack([np.where(np.eye(4) == 1, skill, (1 - skill) / 3) for skill in skills])
        annotations = lo.simulate.annotate(y, confusion, lo.simulate.assign(1500, len(skills), 4, rng), rng)
        assert copiers(annotations) == []


def test_the_search_keeps_no_numbers_of_every_pair_and_class(rng: Generator) -> None:
    y = rng.integers(0, 2000, 20_000)
    workers = lo.simulate.grouped_class_wise_hammer_spammer(60, np.arange(2000) // 10, 0.3, rng=0)
    annotations = lo.simulate.annotate(y, workers, lo.simulate.assign(20_000, 60, 4, rng), rng)
    tracemalloc.start()
    assert copiers(annotations) == []
    assert tracemalloc.get_traced_memory()[1] < 45e6  # 1,770 pairs of 2,000 numbers twice are 57 MB
    tracemalloc.stop()


def test_what_copiers_say_of_a_task_counts_once(rng: Generator) -> None:
    _, annotations = crowd(rng, 3)
    kept, (group,) = without_copies(annotations)
    copied = np.isin(kept.worker, group)
    pairs = np.stack([kept.task[copied], kept.label[copied]], axis=1)
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    assert (~copied).sum() == (~np.isin(annotations.worker, group)).sum()


@pytest.mark.filterwarnings("ignore:.*(cannot tell how right|are surest):labelonce.DoubtWarning")
def test_mbem_names_copiers_and_is_less_sure(rng: Generator) -> None:
    y, annotations = crowd(rng, 6)
    X = np.eye(4)[y] + rng.normal(size=(1000, 4)) * 1.2
    with pytest.warns(lo.DoubtWarning, match=r"workers 0, 1, 2, 3, 4, ... nearly always give the same labels"):
        clf = lo.MBEM(lo.SoftmaxRegression()).fit(X, annotations)
    right = (clf.labels_ == y).mean()
    assert right > (lo.MajorityVote().fit(annotations).labels_ == y).mean()
    assert clf.estimated_accuracy_.low < right < clf.estimated_accuracy_.high
    assert clf.workers_to_frame()["annotations"].to_numpy().sum() == len(annotations)
