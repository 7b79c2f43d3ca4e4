"""The crowds that come with the package."""

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import labelonce as lo
from labelonce.datasets import Dataset, load, names
from labelonce.datasets._load import SHIPPED

FILES = {
    "truth_inference/bluebird_annotations.parquet",
    "truth_inference/bluebird_gold.parquet",
    "pandalm/verdicts.parquet",
    "llmbar/annotations.parquet",
    "llmbar/gold.parquet",
    "crowdtruth_video/annotations_wide.parquet",
}


def crowd(dataset: Dataset) -> lo.Annotations:
    assert dataset.annotations is not None
    return dataset.annotations


def array(values: Any) -> Any:
    assert values is not None
    return values


def test_unknown_names_are_told_and_nothing_but_the_shipped_sets_is_in_the_package() -> None:
    with pytest.raises(ValueError, match=f"one of {str(names())[1:-1]}; got 'mnist'"):
        load("mnist")
    files = [path.relative_to(SHIPPED) for path in SHIPPED.rglob("*") if path.is_file()]
    assert {path.as_posix() for path in files if path.suffix not in (".md", ".txt")} == FILES


@pytest.mark.parametrize("folder", ["truth_inference", "pandalm", "llmbar", "crowdtruth_video"])
def test_shipped_sets_are_small_and_carry_their_licence(folder: str) -> None:
    licence = (SHIPPED / folder / "LICENSE.txt").read_text()
    assert sum(path.stat().st_size for path in (SHIPPED / folder).glob("*.parquet")) < 40_000
    assert any(grant in licence for grant in ("Permission is hereby granted", "Grant of Copyright License"))
    assert f"]({folder}/LICENSE.txt)" in (SHIPPED / "README.md").read_text()


@pytest.mark.data
@pytest.mark.parametrize("file", sorted(FILES))
def test_shipped_files_are_those_of_the_data_folder(file: str, data_root: Any) -> None:
    assert pq.read_table(SHIPPED / file).to_pylist() == pq.read_table(data_root / file).to_pylist()


def test_bluebird_has_the_counts_and_accuracies_that_are_published() -> None:
    dataset = load("bluebird")
    ann = crowd(dataset)
    gold = dataset.gold_of(ann)
    votes = lo.MajorityVote().fit(ann)
    assert (ann.n_tasks, len(ann), ann.n_workers, ann.n_classes) == (108, 4212, 39, 2)
    assert np.mean(ann.label == gold[ann.task]) == pytest.approx(0.6356, abs=6e-5)
    assert lo.metrics.accuracy(gold, votes.posterior_) == pytest.approx(0.7593, abs=6e-5)


def test_llmbar_has_judges_in_families_and_orders_and_the_vote_that_was_measured() -> None:
    dataset = load("llmbar")
    ann = crowd(dataset)
    gold = dataset.gold_of(ann)
    assert (ann.n_tasks, len(ann), ann.n_workers, ann.n_classes) == (419, 48_470, 58, 2)
    assert (array(ann.orders).tolist(), len(array(ann.families))) == ([0, 1], 6)
    assert lo.metrics.accuracy(gold, lo.MajorityVote().fit(ann).posterior_) == pytest.approx(0.591, abs=2e-3)
    assert array(dataset.raw)["subset"].null_count == 0


def test_pandalm_has_people_and_language_models_as_workers() -> None:
    dataset = load("pandalm")
    ann = crowd(dataset)
    assert ann.workers.tolist() == ["annotator1", "annotator2", "annotator3", "gpt35", "pandalm7b"]
    assert np.bincount(ann.worker).tolist() == [999, 999, 999, 974, 999]  # 25 of gpt35's verdicts name no answer
    assert (dataset.n_tasks, dataset.classes) == (999, ("tie", "first", "second"))
    assert not (dataset.gold >= 0).any()
    people = np.full((999, 3), -1)
    of_people = ann.worker < 3
    people[ann.tasks[ann.task[of_people]], ann.worker[of_people]] = ann.label[of_people]
    stored = [array(dataset.raw)[f"annotator{number}"].to_numpy() for number in (1, 2, 3)]
    np.testing.assert_array_equal(people, np.stack(stored, axis=1))
    assert np.sum((people == people[:, :1]).all(axis=1)) == 879


def test_the_video_crowd_ticks_boxes() -> None:
    dataset = load("crowdtruth_video", question="Astronaut")
    ann = crowd(dataset)
    assert (ann.n_tasks, len(ann), ann.n_workers, dataset.classes) == (50, 1000, 54, ("no", "yes"))
    ticks = array(dataset.raw)
    assert set(ticks.column_names) == {"task", "worker", *ticks.column_names[2:]}
    assert ann.label.sum() == ticks["Astronaut"].to_numpy().sum() > 0


def test_only_the_video_set_needs_a_question_and_gold_of_rejects_other_tasks() -> None:
    with pytest.raises(ValueError, match=r"question must be one of Archeologist, .*; got None"):
        load("crowdtruth_video")
    with pytest.raises(ValueError, match="got 'CAUSES' for 'bluebird'"):
        load("bluebird", question="CAUSES")
    dataset = Dataset(name="toy", gold=np.zeros(3, dtype=np.int32), classes=("a", "b"))
    with pytest.raises(ValueError, match=r"'toy', 0 to 2; got \[3\] \(1 in total\)"):
        dataset.gold_of(lo.Annotations.from_arrays([1, 3], [0, 0], [0, 1]))
    with pytest.raises(ValueError, match=r"got \['x'\] \(1 in total\)"):
        dataset.gold_of(lo.Annotations.from_arrays(["x"], [0], [0]))
