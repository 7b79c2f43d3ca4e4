"""What a fit will take is known before, about right, and too much is refused in one sentence."""

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from crowds import crowd

import labelonce as lo
from labelonce import Annotations, simulate, workers
from labelonce.aggregation._registry import COMMANDS, aggregators

SIZES = {"many tasks": (20_000, 6, 20, 2), "many classes": (400, 150, 60, 3)}  # tasks, workers, classes, redundancy


def one_coin_crowd(n_tasks: int, n_workers: int, n_classes: int, redundancy: int) -> Annotations:
    skill = np.random.default_rng(0).uniform(0.4, 0.95, n_workers)
    return crowd(n_tasks=n_tasks, confusion=simulate.one_coin(skill, n_classes), redundancy=redundancy)[0]


def one_label(n_tasks: int, n_workers: int, n_classes: int) -> Annotations:
    """Return one annotation of each task, of many declared classes."""
    task = np.arange(n_tasks, dtype=np.int32)
    label = (task % n_classes).astype(np.int32)
    return Annotations(task, task % n_workers, label, *(np.arange(n) for n in (n_tasks, n_workers, n_classes)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", COMMANDS)
def test_the_memory_of_a_fit_is_known_before(name: str, size: str) -> None:
    ann, model = one_coin_crowd(*SIZES[size]), aggregators()[name]()
    if "max_iter" in model.get_params():
        model.set_params(max_iter=3)
    with warnings.catch_warnings(action="ignore"):
        tracemalloc.start()
        model.fit(ann)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak / 1.2 < model._memory(ann) + 2**20  # a megabyte for everything that does not grow
    assert model._memory(ann) < 4 * peak + 2**20


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"MajorityVote", "OneCoin", "Wawa", "ExpertiseVote"}))
def test_sixty_thousand_classes_are_refused_before_anything_is_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 16.0 * 2**30)
    ann = one_label(100_000, 1000, 60_000)
    tracemalloc.start()
    says = rf"^{name} with 100,000 tasks, 1,000 workers and 60,000 classes must fit into"
    with pytest.raises(ValueError, match=says):
        aggregators()[name]().fit(ann)
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::labelonce.aggregation.RedundancyWarning")
@pytest.mark.parametrize("name", ["MajorityVote", "OneCoin", "Wawa", "ExpertiseVote"])
def test_sixty_thousand_classes_are_no_matter_to_those_who_follow_the_labels(name: str) -> None:
    model = aggregators()[name]().fit(one_label(100_000, 1000, 60_000))
    assert (model.labels_ == np.arange(100_000) % 60_000).all()


def test_the_sentence_says_what_to_do_for_matrices_and_for_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 2.0**30)
    ann = one_label(10_000, 100, 1000)
    with pytest.raises(ValueError, match=r"Use OneCoin, MajorityVote or DawidSkene.*, or dtype='float32'\.$"):
        lo.DawidSkene().fit(ann)
    with pytest.raises(ValueError, match=r"follows the labels and not the classes\.$"):
        lo.DawidSkene(dtype="float32").fit(ann)
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 2.0**26)
    ann = one_coin_crowd(3000, 20, 1000, 2)
    wide = lo.DawidSkene(worker_model=workers.Grouped(np.arange(1000) // 500))
    says = r"3,000 tasks with up to \d+ candidate classes each must fit .* smaller groups"
    with pytest.raises(ValueError, match=says):
        wide.fit(ann)


def test_a_comparison_leaves_out_what_cannot_run_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 2.0**28)
    ann = one_coin_crowd(300, 100, 500, 3)
    methods: dict[str, Any] = {"coin": lo.OneCoin(), "matrix": lo.DawidSkene(), "vote": lo.MajorityVote()}
    monkeypatch.setattr("labelonce.data._memory.MOST_NUMBERS", 2**20)
    found = lo.compare_aggregators(ann, methods=methods)
    rows = {row.method: row for row in found.rows}
    assert rows["matrix"].held_out is None
    assert "DawidSkene with 300 tasks, 100 workers and 500 classes must fit" in rows["matrix"].note
    assert found.recommended in ("coin", "vote")
    assert rows["coin"].held_out is not None
