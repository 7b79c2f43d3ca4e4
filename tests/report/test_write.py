"""What the file says and refuses, without a browser."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowds import crowd
from sklearn.datasets import make_classification

import labelonce as lo
from labelonce._kernels import ScipyEngine
from labelonce.data import OtherAnswersWarning
from labelonce.report import _write, write_report


def small_crowd(redundancy: int = 3) -> lo.Annotations:
    return crowd(n_tasks=60, n_workers=6, redundancy=redundancy)[0]


def page_of(path: Path, fitted: Any, annotations: lo.Annotations, **options: Any) -> str:
    write_report(path / "report.html", fitted, annotations, **options)
    return (path / "report.html").read_text("utf-8")


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return dict(json.loads(found[1]))


@pytest.mark.parametrize("kind", [lo.MajorityVote, lo.DawidSkene, lo.OneCoin, lo.IBCC])
def test_every_aggregator_has_a_report(kind: Any, tmp_path: Path) -> None:
    ann = small_crowd()
    fitted = kind().fit(ann)
    data = data_of(page_of(tmp_path, fitted, ann))
    assert sorted(data["names"]) == sorted(map(str, ann.workers))
    assert data["skill"] == [round(1000 * fitted.skill_[int(name)]) for name in data["names"]]
    assert sum(data["labels"]) == len(ann)


def test_mbem_shows_its_rounds_and_its_model(tmp_path: Path) -> None:
    X, y = make_classification(200, 5, random_state=0)
    confusion = lo.simulate.one_coin([0.95, 0.9, 0.6, 0.5], 2)
    ann = lo.simulate.annotate(y, confusion, lo.simulate.assign(200, 4, 1, rng=0), rng=0)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, ann)
    page = page_of(tmp_path, clf, ann)
    assert "The model alone" in page
    assert f'<th scope="row" class="num">{clf.n_rounds_}</th>' in page
    trained = lo.TrainOnAggregate(lo.MajorityVote(), lo.SoftmaxRegression()).fit(X, ann)
    assert "MajorityVote, then a model trained on its labels" in page_of(tmp_path, trained, ann)


def test_the_same_fit_gives_the_same_bytes_and_nothing_is_fetched(tmp_path: Path) -> None:
    ann = small_crowd()
    assert page_of(tmp_path, lo.DawidSkene().fit(ann), ann) == page_of(tmp_path, lo.DawidSkene().fit(ann), ann)
    page = page_of(tmp_path, lo.DawidSkene().fit(ann), ann)
    assert "default-src 'none'" in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert set(re.findall(r"https?://[^\"' ]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_every_name_is_escaped(tmp_path: Path) -> None:
    bad = "</script><script>alert(1)</script>"
    ann = small_crowd()
    tables = ([f"{bad}{i}" for i in range(n)] for n in (ann.n_tasks, ann.n_workers, ann.n_classes))
    ann = lo.Annotations(ann.task, ann.worker, ann.label, *(np.array(table, object) for table in tables))
    fitted = lo.DawidSkene().fit(ann)
    page = page_of(tmp_path, fitted, ann, title=bad, texts=[bad] * ann.n_tasks, run={bad: {bad: bad}})
    assert "<script>alert" not in page
    assert page.count("<script") == 2
    assert bad + "0" in data_of(page)["names"]


@pytest.mark.parametrize("n_classes", [1, 2, 16, 100])
def test_any_number_of_classes(n_classes: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, n_classes, 400)
    ann = lo.Annotations.from_arrays(np.arange(400) // 2, np.arange(400) % 7, label, classes=range(n_classes))
    data = data_of(page_of(tmp_path, lo.MajorityVote().fit(ann), ann))
    assert len(data["classes"]) == n_classes


def test_one_worker_and_unlabelled_tasks(tmp_path: Path) -> None:
    ann = lo.Annotations.from_arrays(["a", "b"], ["only", "only"], [0, 1]).align(["a", "b", "c"])
    page = page_of(tmp_path, lo.MajorityVote().fit(ann), ann)
    assert "1 worker gave 2 labels to 2 tasks" in page
    assert "cannot be told" in page
    assert "1 more without a label" in page


def test_gold_is_measured(tmp_path: Path) -> None:
    ann = small_crowd()
    fitted = lo.DawidSkene().fit(ann)
    gold = {int(task): int(fitted.labels_[task]) for task in range(10)}
    page = page_of(tmp_path, fitted, ann, gold=gold)
    assert "On 10 tasks with known true labels 100\xa0% of its labels are right" in page


def test_the_estimate_stands_next_to_the_measurement(tmp_path: Path) -> None:
    ann = small_crowd()
    fitted = lo.DawidSkene().fit(ann)
    estimated = re.search(r"<p><strong>([^<]+)</strong>, within ([^(]+) \(", page_of(tmp_path, fitted, ann))
    assert estimated
    wrong = {0: int(fitted.labels_[0] == 0), 1: int(fitted.labels_[1])}
    page = page_of(tmp_path, fitted, ann, gold=wrong)
    assert "<strong>50\xa0%</strong> of 2 tasks with known true labels are right (measured)" in page
    estimate = f"the report would estimate: <strong>{estimated[1]}</strong>, within {estimated[2]}, over all tasks"
    assert estimate in page


def test_gold_that_contradicts_the_fit_withdraws_the_advice(tmp_path: Path) -> None:
    ann = small_crowd()
    fitted = lo.DawidSkene().fit(ann)
    right = {int(task): int(label) for task, label in zip(fitted.tasks_, fitted.labels_, strict=True)}
    wrong = {task: (label + 1) % 3 if task % 2 else label for task, label in right.items()}
    with_advice, without = page_of(tmp_path, fitted, ann, gold=right), page_of(tmp_path, fitted, ann, gold=wrong)
    assert "Do not replace labels yet" not in with_advice
    assert "Do not replace labels yet" in without
    assert "can replace the given one" not in without


def test_a_fit_that_held_nothing_out_says_so_loudly(tmp_path: Path) -> None:
    X, y = make_classification(200, 5, random_state=0)
    ann = lo.Annotations.from_matrix(y[:, None])
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=1, folds=1).fit(X, ann)
    page = page_of(tmp_path, clf, ann)
    assert '<p class="doubt"><strong>Nothing was held out.</strong>' in page
    assert "Right labels, unchecked" in page


def test_both_lists_are_in_the_file_and_hold_no_formula(tmp_path: Path) -> None:
    ann = small_crowd()
    workers = np.array(["=cmd()", "@x", "-1", "+1", "d,e", "f"], dtype=object)
    ann = lo.Annotations(ann.task, ann.worker, ann.label, ann.tasks, workers, ann.classes)
    fitted = lo.DawidSkene().fit(ann)
    lists = data_of(page_of(tmp_path, fitted, ann, texts=["=1+1"] * 60))["lists"]
    rows = list(csv.DictReader(io.StringIO(lists["labels-to-check.csv"])))
    assert list(rows[0]) == ["task", "text", "given", "worker", "label", "chance_wrong", "action"]
    assert {row["text"] for row in rows} == {"'=1+1"}
    assert {row["worker"] for row in rows} <= {"'=cmd()", "'@x", "'-1", "'+1", "d,e", "f"}
    chances = [float(row["chance_wrong"]) for row in rows]
    assert chances == sorted(chances, reverse=True)
    found = list(csv.DictReader(io.StringIO(lists["workers.csv"])))
    assert {row["worker"] for row in found} == {"'=cmd()", "'@x", "'-1", "'+1", "d,e", "f"}
    wrong = [float(row["expected_wrong"]) for row in found]
    assert wrong == sorted(wrong, reverse=True) == data_of(page_of(tmp_path, fitted, ann))["wrong"]


def test_the_record_of_the_run_is_folded_and_gold_of_the_fit_called_so(tmp_path: Path) -> None:
    ann = small_crowd()
    page = page_of(tmp_path, lo.DawidSkene().fit(ann), ann, run={"seed": 7})
    folded = re.search(r"<details><summary>The record of the run.*?</details>", page, re.DOTALL)
    assert folded
    assert "<dt>seed</dt><dd>7</dd>" in folded[0]
    gold = {0: 1, 1: 2}
    assert "Probably not a test" in page_of(tmp_path, lo.DawidSkene().fit(ann, gold=gold), ann, gold=gold)


@pytest.mark.filterwarnings("ignore::labelonce.aggregation.RedundancyWarning")
def test_where_nothing_can_be_estimated_the_measurement_says_so(tmp_path: Path) -> None:
    ann = small_crowd(redundancy=1)
    fitted = lo.DawidSkene().fit(ann)
    page = page_of(tmp_path, fitted, ann, gold={0: int(fitted.labels_[0])})
    assert "Without these true labels there would be no estimate" in page


def test_expected_counts_are_summed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = small_crowd()
    fitted, real = lo.DawidSkene().fit(ann), ScipyEngine.m_step
    sums: list[Any] = []

    def noted(engine: ScipyEngine, *args: Any) -> Any:
        sums.append(args)
        return real(engine, *args)

    monkeypatch.setattr(ScipyEngine, "m_step", noted)
    page_of(tmp_path, fitted, ann)
    assert len(sums) == 1


def test_texts_images_and_seconds_are_shown(tmp_path: Path) -> None:
    ann = small_crowd(redundancy=2)
    texts = {0: "x", 1: "y"} | dict.fromkeys(range(2, 60), "שלום 🙂")
    page = page_of(tmp_path, lo.DawidSkene().fit(ann), ann, texts=texts, images=np.zeros((ann.n_tasks, 8, 8)))
    assert "שלום 🙂" in page
    assert "data:image/webp;base64," in page
    ann = small_crowd()
    data = data_of(page_of(tmp_path, lo.DawidSkene().fit(ann), ann, seconds={0: 2.5}))
    assert data["seconds"][data["names"].index("0")] == 2.5
    assert data["seconds"].count(None) == ann.n_workers - 1


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"texts": ["a"]}, r"texts must have one entry per task, 60; got 1\."),
    ({"images": [np.zeros(64)] * 60}, r"images must be paths .* shape \(64,\) for task"),
    ({"images": ["nowhere.png"] * 60}, r"images must be image files that can be read; got 'nowhere.png' of task"),
    ({"seconds": {"zoe": 1.0}}, r"seconds must be by worker id, as 0; got none of the 6 workers\."),
    ({"seconds": [1.0]}, r"seconds must have one entry per worker, 6; got shape \(1,\)\."),
    ({"gold": {}}, r"gold must be known for a task at least; got none\."),
    ({"gold": {0: 7}}, r"gold must be among \[0, 1, 2\]; got 7"),
]


@pytest.mark.parametrize(("options", "sentence"), BROKEN)
def test_bad_input_is_one_sentence_and_writes_nothing(options: Any, sentence: str, tmp_path: Path) -> None:
    ann = small_crowd()
    with pytest.raises(ValueError, match=sentence):
        page_of(tmp_path, lo.MajorityVote().fit(ann), ann, **options)
    assert list(tmp_path.iterdir()) == []


def test_unfitted_objects_other_annotations_and_missing_folders_are_refused(tmp_path: Path) -> None:
    ann = small_crowd()
    with pytest.raises(TypeError, match=r"got DawidSkene without posterior_\. Call its fit first"):
        page_of(tmp_path, lo.DawidSkene(), ann)
    with pytest.raises(ValueError, match=r"with its 60 tasks \[0, 1, 2, \.\.\. 60 in all\]; got 61"):
        page_of(tmp_path, lo.DawidSkene().fit(ann), ann.align(range(61)))
    with pytest.raises(TypeError, match="must be the Annotations of the fit; got list"):
        page_of(tmp_path, lo.DawidSkene().fit(ann), [])  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"missing/report\.html: No such file"):
        page_of(tmp_path / "missing", lo.DawidSkene().fit(ann), ann)


def test_a_missing_extra_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = small_crowd()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _write._template.cache_clear()
    said = r"the report needs Jinja2; install it with: pip install 'labelonce\[report\]'"
    with pytest.raises(ImportError, match=said):
        page_of(tmp_path, lo.DawidSkene().fit(ann), ann)


def answered_crowd() -> lo.Annotations:
    """Return labels of workers who skip tasks of class 1 more often."""
    skip = np.tile([[0.1], [0.5]], (6, 1, 1))
    confusion = np.concatenate([(1 - skip) * lo.simulate.one_coin([0.9] * 6, 2), skip], axis=2)
    said = ["no", "yes", "skip"]
    ann, _ = crowd(confusion=confusion, n_tasks=120)
    named = [said[label] for label in ann.label]
    return lo.Annotations.from_arrays(ann.task, ann.worker, named, classes=["no", "yes"], answers=said)


@pytest.mark.parametrize("model", [lo.DawidSkene(), lo.OneCoin()])
def test_other_answers_have_a_table_of_their_own(tmp_path: Path, model: Any) -> None:
    ann = answered_crowd()
    page = page_of(tmp_path, model.fit(ann), ann)
    n_other = len(ann) - len(ann.only_classes())
    assert f"{n_other} more answers are no class." in page
    assert re.search(rf"<bdi>skip</bdi></th><td class=\"num\">{n_other}</td>", page)
    assert "other_answers" in page


def test_other_answers_may_be_left_out_and_a_scale_is_refused_in_one_sentence(tmp_path: Path) -> None:
    ann = answered_crowd()
    with pytest.warns(OtherAnswersWarning, match="Wawa"):
        fitted = lo.Wawa().fit(ann)
    assert "no class" not in page_of(tmp_path, fitted, ann)
    ann = lo.Annotations.from_matrix([[1, 5], [2, 4], [1, 3]], classes=["no", "yes"], answers=[1, 2, 3, 4, 5])
    with pytest.raises(ValueError, match=r"answers that are classes, \['no', 'yes'\]; got the scale \[1, 2, 3, 4, 5\]"):
        page_of(tmp_path, lo.DawidSkene().fit(ann), ann)
