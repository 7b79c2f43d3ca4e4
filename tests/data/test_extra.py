"""The optional columns of annotations: probability, weight, order and family."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal

import labelonce as lo
from labelonce.data import check
from labelonce.data._extra import name_families
from labelonce.io import read_annotations, write

WEIGHTED = [lo.MajorityVote(), lo.DawidSkene(), lo.OneCoin(), lo.IBCC()]
NAMES = [type(one).__name__ for one in WEIGHTED]


def panel(**changed: Any) -> lo.Annotations:
    """Two prompts of one model, the first in both orders, and a person without order, probability and family."""
    columns: dict[str, Any] = {
        "probability": [0.9, 0.6, 0.8, None, 0.7],
        "weight": [1, 2, 3, None, 5],
        "order": [1, 0, 0, None, 0],
        "family": {"m/a": "m", "m/b": "m"},
    }
    workers = ["m/a", "m/a", "m/b", "ann", "m/b"]
    return lo.Annotations.from_arrays([1, 1, 1, 2, 2], workers, ["x", "y", "x", "y", "y"], **columns | changed)


def triple() -> lo.Annotations:
    share = [[0.5, 0.3, 0.2], [np.nan, np.nan, np.nan], [0.1, 0.1, 0.8]]
    return lo.Annotations.from_arrays([1, 2, 3], [7, 7, 7], ["a", "b", "c"], probability=share)


def test_a_number_is_the_probability_of_the_label_and_classes_that_become_one_add_theirs() -> None:
    ann = lo.Annotations.from_arrays([1, 2], [1, 1], ["a", "c"], probability=[0.8, None], classes=["a", "b", "c"])
    assert ann.probability is not None
    assert_allclose(ann.probability[0], [0.8, 0.1, 0.1])
    assert np.isnan(ann.probability[1]).all()
    merged, moved = (np.asarray(triple().relabel(names).probability) for names in ({"a": "b"}, [1, 0, 2]))
    assert_allclose(merged, np.array([[0.8, 0.2], [np.nan, np.nan], [0.2, 0.8]]))
    assert_allclose(moved, np.array([[0.3, 0.5, 0.2], [np.nan] * 3, [0.1, 0.1, 0.8]]))


@pytest.mark.parametrize("ann", [panel(), triple()], ids=["number", "distribution"])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "arrow"])
def test_what_is_written_is_read_again(ann: lo.Annotations, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"labels.{suffix}"
    write(ann, path)
    assert read_annotations(path) == ann == pickle.loads(pickle.dumps(ann)) == lo.Annotations.from_frame(ann.to_frame())
    assert read_annotations(path, plain=True, duplicates="last") != ann


def test_a_worker_may_answer_once_per_order_and_columns_stay_with_their_rows() -> None:
    assert len(panel()) == 5
    with pytest.raises(ValueError, match=r"a worker must label a task once; got worker 'm/a' on task 1 again"):
        panel(order=[0, 0, 0, 0, 0])
    ann = panel()
    for part in (ann.select([False, True]), ann[[1]], ann.align([2, 1]).select([True, False])):
        assert part.to_frame().to_pylist() == ann.to_frame().to_pylist()[3:]
    assert set(ann.without("order", "weight").to_frame().column_names[3:]) == {"probability", "family"}
    assert ann.sample(redundancy=5, random_state=0) == ann


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"probability": [0.9, 1.6, 0.8, 1, 1]}, r"probability must be from 0 to 1; got 1\.6 at row 1 \(1 in total\)"),
        ({"probability": ["high"] * 5}, "probability must be numbers; got 'high'"),
        ({"probability": [0.5] * 4}, "probability must have one entry per annotation, 5; got 4"),
        ({"probability": np.full((5, 2), 0.4)}, r"must add up to 1; got 0\.8 at row 0 \(5 in total\)"),
        ({"probability": np.ones((5, 3))}, r"must have shape \(5, 2\), a column per class; got \(5, 3\)"),
        ({"weight": [1, 1, -2, 1, 1]}, r"weight must be at least 0 and finite; got -2 at row 2"),
        ({"family": ["m", "n", "m", "p", "m"]}, "one family; got 'm' and 'n' for worker 'm/a'"),
    ],
)
def test_what_cannot_be_is_refused_with_value_and_place(column: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        panel(**column)


@pytest.mark.parametrize("model", WEIGHTED, ids=NAMES)
def test_a_weight_is_a_number_of_equal_labels(model: Any) -> None:
    ann, _ = crowd(n_tasks=60)
    table = ann.to_frame()
    twice = lo.Annotations.from_frame(table.take([*range(len(ann)), 0, 5]), duplicates="keep")
    weight = np.ones(len(ann))
    weight[[0, 5]] = 2
    weighted = lo.Annotations.from_arrays(*(table[name] for name in ("task", "worker", "label")), weight=weight)
    assert_allclose(model.fit(weighted).posterior_, model.fit(twice).posterior_, atol=1e-6)


@pytest.mark.parametrize("model", WEIGHTED, ids=NAMES)
def test_a_sure_probability_is_the_label_and_an_even_one_tells_nothing(model: Any) -> None:
    ann, _ = crowd(n_tasks=60)
    columns = [ann.to_frame()[name] for name in ("task", "worker", "label")]
    sure = lo.Annotations.from_arrays(*columns, probability=np.ones(len(ann)))
    assert_allclose(model.fit(sure).posterior_, model.fit(ann).posterior_, atol=1e-6)
    even = lo.Annotations.from_arrays(*columns, probability=np.full(len(ann), 1 / 3))
    assert_allclose(model.fit(even).posterior_, 1 / 3, atol=1e-3)


@pytest.mark.parametrize("model", [lo.GLAD(), lo.MACE()], ids=["GLAD", "MACE"])
def test_other_methods_refuse_weights_instead_of_ignoring_them(model: Any) -> None:
    ann = lo.Annotations.from_arrays([0, 0, 1], [0, 1, 1], [0, 1, 1], weight=[1, 2, 1])
    with pytest.raises(ValueError, match=r"counts every annotation as one whole label; got annotations with weight\."):
        model.fit(ann)
    with pytest.raises(ValueError, match="are for the CPU; got device='cuda'"):
        lo.DawidSkene(device="cuda").fit(ann)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_mbem_counts_labels_by_their_weights_and_refuses_probabilities() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 3)) + truth[:, None]
    sure = rng.random((400, 3))
    label = np.where(rng.random((400, 3)) < 0.5 + 0.48 * sure, truth[:, None], 1 - truth[:, None]).ravel()
    columns = np.repeat(np.arange(400), 3), np.tile(np.arange(3), 400), label

    def fitted(**more: Any) -> Any:
        model = lo.MBEM(rounds=2, folds=2, learner=lo.SoftmaxRegression())
        return model.fit(X, lo.Annotations.from_arrays(*columns, **more))

    plain = fitted()
    assert_allclose(fitted(weight=np.ones(1200)).posterior_, plain.posterior_, atol=1e-8)
    weighted = fitted(weight=2 * sure.ravel())
    assert (weighted.labels_ == truth).mean() > (plain.labels_ == truth).mean() + 0.01
    message = r"^MBEM counts every annotation as one whole label; got .* with probability\."
    with pytest.raises(ValueError, match=message):
        fitted(probability=np.full(1200, 0.9), weight=np.ones(1200))


@pytest.mark.parametrize(
    ("workers", "families"),
    [
        (["gpt/plain", "gpt/steps", "llama/plain", "ann"], [1, 1, 2, 0]),
        (["gpt:1", "gpt:2"], [0, 0]),
        (["gpt/plain", "llama/plain"], None),
        (["ann", "bob"], None),
    ],
)
def test_families_are_the_part_of_the_names_before_the_prompt(workers: list[str], families: list[int] | None) -> None:
    found = name_families(np.array(workers, dtype=object))
    assert (found is None) if families is None else (found is not None and found.tolist() == families)


def test_check_takes_swapped_orders_for_consistency_and_accidents_for_duplicates() -> None:
    kinds = {note.kind: note.count for note in check(panel()).notes}
    assert (kinds["families"], kinds["consistency"], kinds["stated probabilities"]) == (2, 1, 4)
    assert not [one for one in check(panel()).problems if one.kind == "duplicates"]
    accident = lo.Annotations.from_arrays([1, 1, 2, 3], [1, 1, 1, 1], ["a", "b", "a", "a"], duplicates="keep")
    assert [one.kind for one in check(accident).problems if one.kind == "duplicates"] == ["duplicates"]
    workers = ["m/a"] * 4 + ["m/b"]
    always = lo.Annotations.from_arrays([1, 1, 2, 2, 1], workers, list("abaaa"), duplicates="keep")
    assert "consistency" in {note.kind for note in check(always).notes}


def test_files_with_and_without_the_columns_are_read_together(tmp_path: Path) -> None:
    write(panel(), tmp_path / "models.csv")
    people = lo.Annotations.from_arrays([1, 2], ["bob", "bob"], ["x", "y"])
    write(people, tmp_path / "people.parquet")
    both = read_annotations([tmp_path / "models.csv", tmp_path / "people.parquet"])
    assert (len(both), both.n_workers) == (7, 4)
    assert both.families is not None
    assert_array_equal(both.families, ["ann", "bob", "m"])
