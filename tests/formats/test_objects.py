"""Objects of other libraries in memory: cleanlab, scikit-activeml, crowd-kit, Hugging Face."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import Patch

import labelonce as lo
from labelonce import formats

NAN = float("nan")


@pytest.fixture
def ann() -> lo.Annotations:
    return lo.Annotations.from_arrays(["a", "a", "b", "c"], ["x", "y", "y", "z"], ["cat", "dog", "dog", "cat"])


def test_cleanlab_frame_is_codes_with_gaps_and_comes_back_and_arrays_are_read(ann: lo.Annotations) -> None:
    frame = formats.to_cleanlab(ann)
    assert frame.loc["a"].tolist()[:2] == [0.0, 1.0]
    assert frame.isna().to_numpy().sum() == 9 - 4
    again = formats.from_cleanlab(frame)
    assert again == ann.relabel({"cat": 0, "dog": 1})
    ann = formats.from_cleanlab(np.array([[0, NAN], [1, 1]]))
    assert (len(ann), ann.n_workers) == (3, 2)


def test_skactiveml_labels_and_crowdkit_frames_come_back(ann: lo.Annotations) -> None:
    again = formats.from_skactiveml(formats.to_skactiveml(ann))
    assert again.to_matrix(dense=True).tolist() == ann.to_matrix(dense=True).tolist()
    frame = formats.to_crowdkit(ann)
    assert list(frame.columns) == ["task", "worker", "label"]
    assert not any(isinstance(kind, pd.CategoricalDtype) for kind in frame.dtypes)
    assert formats.from_crowdkit(frame) == ann
    assert formats.from_crowdkit(frame.rename(columns={"worker": "performer"})) == ann


@pytest.mark.parametrize(
    ("y", "missing"),
    [([[0, NAN], [1, 1]], NAN), ([[0, None], [1, 1]], None), ([[0, -5], [1, 1]], -5), ([["a", "?"], ["b", "b"]], "?")],
)
def test_skactiveml_missing_label_may_be_anything(y: Any, missing: Any) -> None:
    ann = formats.from_skactiveml(y, missing_label=missing)
    assert ann.to_matrix(dense=True).tolist() == [[0, -1], [1, 1]]


@pytest.mark.parametrize("missing", [NAN, None, 7, "?"])
def test_skactiveml_minus_one_is_a_label_unless_it_is_the_missing_one(missing: Any) -> None:
    y = [[-1, 1], [1, -1], [-1, missing]]
    ann = formats.from_skactiveml(y, missing_label=missing)
    assert ann.classes[ann.label].tolist() == [-1, 1, 1, -1, -1]
    ann = formats.from_skactiveml([[-1, 1], [NAN, 0]], missing_label=-1)
    assert ann.classes[ann.label].tolist() == [1, 0]


@pytest.mark.parametrize("form", [list, np.array, pd.DataFrame])
def test_cleanlab_minus_one_is_a_label(form: Any) -> None:
    ann = formats.from_cleanlab(form([[-1, NAN], [1, -1]]))
    assert ann.classes[ann.label].tolist() == [-1, 1, -1]


def test_a_matrix_of_millions_by_thousands_is_refused() -> None:
    n = 20_000
    big = lo.Annotations.from_arrays(np.arange(n), np.arange(n), np.zeros(n, dtype=int))
    with pytest.raises(ValueError, match="20,000 tasks x 20,000 workers"):
        formats.to_skactiveml(big)


def test_crowdkit_results_come_back_as_gold_and_name_a_task_once(ann: lo.Annotations) -> None:
    model = lo.DawidSkene(random_state=0).fit(ann)
    labels, probas = formats.to_crowdkit_labels(model), formats.to_crowdkit_probas(model)
    assert (labels.name, labels.index.name) == ("agg_label", "task")
    np.testing.assert_array_equal(probas.loc["b"].to_numpy(), model.posterior_[1])
    expected = dict(zip(model.tasks_, model.labels_, strict=True))
    assert formats.gold_from_crowdkit(labels) == formats.gold_from_crowdkit(probas) == expected
    lo.MajorityVote().fit(ann, gold=formats.gold_from_crowdkit(labels))
    with pytest.raises(ValueError, match=r"\['a', 'a'\] with repeats"):
        formats.gold_from_crowdkit(pd.Series(["x", "y"], index=["a", "a"]))
    with pytest.raises(TypeError, match="got list"):
        formats.gold_from_crowdkit(["x"])


def dataset(features: dict[str, Any] | None = None, **columns: Any) -> Any:
    """Return what `from_dataset` needs of a dataset: its Arrow table and its features."""
    return SimpleNamespace(data=SimpleNamespace(table=pa.table(columns)), features=features or {})


def test_dataset_with_a_row_an_annotation_or_a_task_and_class_names_is_read(ann: lo.Annotations) -> None:
    columns = {name: column.to_pylist() for name, column in zip(("t", "w", "l"), ann.to_frame().columns, strict=True)}
    assert formats.from_dataset(dataset(**columns), task="t", worker="w", label="l") == ann
    data = dataset(who=[["x", "y"], [], ["y"]], says=[[0, 1], [], [1]])
    ann = formats.from_dataset(data, task=None, worker="who", label="says")
    assert [tuple(row.values()) for row in ann.to_frame().to_pylist()] == [(0, "x", 0), (0, "y", 1), (2, "y", 1)]
    places = formats.from_dataset(data, task=None, worker=None, label="says")
    assert places.workers.tolist() == [0, 1]
    names = SimpleNamespace(names=["cat", "dog", "fox"])
    data = dataset({"label": names}, task=[1, 2, 3], worker=["x", "x", "y"], label=[1, -1, 0])
    ann = formats.from_dataset(data)
    assert ann.classes.tolist() == ["cat", "dog", "fox"]
    assert ann.classes[ann.label].tolist() == ["dog", "cat"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"train": 1}, {}, r"got the splits \['train'\]"),
        (3, {}, "got int"),
        (dataset(task=[1], label=[2]), {}, r"must hold 'worker'; got \['task', 'label'\]"),
        (dataset(task=[1], label=[2]), {"worker": None}, "worker must name a column"),
        (dataset(task=[1], worker=[["x"]], label=[[1, 2]]), {}, "got 1 and 2 at row 0"),
    ],
)
def test_a_dataset_that_does_not_fit_is_named(data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        formats.from_dataset(data, **options)


def test_real_datasets_come_back(ann: lo.Annotations) -> None:
    pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    made = formats.to_dataset(ann)
    assert formats.from_dataset(made) == ann
    kept = made.filter(lambda row: row["task"] != "b", keep_in_memory=True)
    assert formats.from_dataset(kept).tasks.tolist() == ["a", "c"]
    encoded = formats.from_dataset(made.class_encode_column("label"))
    assert encoded == ann


def test_to_dataset_without_the_library_says_what_to_install(ann: lo.Annotations, monkeypatch: Patch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(ImportError, match="pip install datasets"):
        formats.to_dataset(ann)
