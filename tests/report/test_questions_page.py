"""The page about several labels at once: its numbers, its escaping, in a browser in light and dark."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Patch
from questions import crowd
from service_pages import needs_chromium

import labelonce as lo
from labelonce.multilabel import (
    MultiLabelAnnotations,
    MultiLabelDawidSkene,
    MultiLabelMBEM,
    MultiLabelVote,
    SigmoidRegression,
)
from labelonce.report._questions import Strictness, questions_accuracy, read_question_facts

ODD = "<script>document.title='owned'</script>"


def renamed(made: Any) -> MultiLabelAnnotations:
    ann = made.annotations
    workers = np.array([ODD, "שרה", *(f"worker {k}" for k in range(2, ann.n_workers))], dtype=object)
    questions = np.array(["<b>dog</b>", *ann.questions[1:]], dtype=object)
    rows = (ann.task, ann.question, ann.worker, ann.answer)
    return MultiLabelAnnotations(*rows, ann.tasks, questions, workers, ann.answers, ann.values)


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Any, Any]:
    made = crowd(n_tasks=200, n_questions=4, redundancy=3)
    ann = renamed(made)
    return MultiLabelDawidSkene().fit(ann), ann, made.y_true


@pytest.fixture(scope="module")
def page(fitted: tuple[Any, Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    model, ann, _ = fitted
    lo.write_report(path, model, ann, title="Boxes & co", texts=["<i>text</i>"] * 200)
    return path


def test_names_are_escaped_and_the_same_fit_gives_the_same_bytes(
    page: Path, fitted: tuple[Any, Any, Any], tmp_path: Path
) -> None:
    text = page.read_text()
    assert ODD not in text
    assert "&lt;b&gt;dog&lt;/b&gt;" in text
    assert "&lt;i&gt;text&lt;/i&gt;" in text
    assert "<script" not in text
    lo.write_report(tmp_path / "again.html", *fitted[:2], title="Boxes & co", texts=["<i>text</i>"] * 200)
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()


def test_strictness_is_that_of_the_table_of_workers_and_adds_up_over_questions(fitted: tuple[Any, Any, Any]) -> None:
    model, ann, _ = fitted
    found = read_question_facts(model, ann).strictness(by_question=False)
    by_name = dict(zip(ann.workers[found.worker], found.value, strict=True))
    table = model.workers_to_frame()
    for name, value in zip(table["worker"].to_pylist(), table["strictness"].to_pylist(), strict=True):
        assert by_name[name] == pytest.approx(value)
    facts = read_question_facts(*fitted[:2])
    whole, parts = facts.strictness(by_question=False), facts.strictness(by_question=True)
    assert len(parts.worker) == 4 * len(whole.worker)
    for worker, value, answers in zip(whole.worker, whole.value, whole.answers, strict=True):
        own = parts.worker == worker
        assert (parts.value[own] @ parts.answers[own]) / answers == pytest.approx(value)


def test_few_answers_are_not_ranked_as_extreme() -> None:
    few, many = Strictness(*(np.array(one) for one in ([0, 1], [0, 0], [10, 500], [0.1, 0.1], [0.3, 0.25]))).ranked
    assert 0 < few < many


def test_gold_is_measured_by_question(fitted: tuple[Any, Any, Any], tmp_path: Path) -> None:
    model, ann, y_true = fitted
    gold = np.where(np.arange(200)[:, None] < 50, y_true, -1)
    measured = questions_accuracy(model, ann, gold)
    assert measured.n_gold == 200
    assert measured.value == pytest.approx((model.labels_[:50] == y_true[:50]).mean())
    lo.write_report(tmp_path / "gold.html", model, ann, gold=gold)
    assert "Right labels, measured" in (tmp_path / "gold.html").read_text()


def test_matrices_without_room_are_left_out(fitted: tuple[Any, Any, Any], tmp_path: Path, monkeypatch: Patch) -> None:
    lo.write_report(tmp_path / "all.html", *fitted[:2])
    assert "Yes to false" in (tmp_path / "all.html").read_text()
    monkeypatch.setattr("labelonce.report._questions.MOST_NUMBERS", 10)
    lo.write_report(tmp_path / "few.html", *fitted[:2])
    assert "Yes to false" not in (tmp_path / "few.html").read_text()


@pytest.mark.filterwarnings("ignore")
def test_every_multilabel_model_has_a_page(tmp_path: Path) -> None:
    once = crowd(n_tasks=80, n_questions=3, redundancy=1).annotations
    X = np.random.default_rng(0).normal(size=(80, 3))
    lo.write_report(tmp_path / "vote.html", MultiLabelVote().fit(once), once)
    assert "Nothing can be compared" in (tmp_path / "vote.html").read_text()
    lo.write_report(tmp_path / "mbem.html", MultiLabelMBEM(SigmoidRegression(C=0.1), rounds=2).fit(X, once), once)
    assert "Model agrees with answers" in (tmp_path / "mbem.html").read_text()


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_the_page_says_how_right_labels_and_workers_are(tmp_path: Path) -> None:
    made = crowd(n_tasks=120, n_questions=3, redundancy=3)
    X = made.y_true + np.random.default_rng(0).normal(scale=0.5, size=made.y_true.shape)
    model = MultiLabelMBEM(SigmoidRegression(), rounds=2).fit(X, made.annotations)
    lo.write_report(tmp_path / "report.html", model, made.annotations)
    page = (tmp_path / "report.html").read_text()
    assert "Right labels, estimated" in page
    assert '"Right" is the expected share of the worker\'s answers that are right.' in page


def test_other_annotations_and_unfitted_models_are_named(fitted: tuple[Any, Any, Any], tmp_path: Path) -> None:
    model, ann, _ = fitted
    with pytest.raises(ValueError, match=r"its 200 tasks .*; got 10"):
        lo.write_report(tmp_path / "x.html", model, ann.select(np.arange(200) < 10))
    with pytest.raises(TypeError, match=r"got MultiLabelVote\. Call its fit first"):
        lo.write_report(tmp_path / "x.html", MultiLabelVote(), ann)


@needs_chromium
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 390)])
def test_the_page_opens_alone_in_light_and_dark_and_fits(browser: Any, page: Path, scheme: str, width: int) -> None:
    trouble: list[str] = []
    opened = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("request", lambda asked: trouble.append(asked.url))
    opened.goto(page.as_uri())
    assert opened.title() == "Boxes & co"
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    colour = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(14, 20, 26)") == (scheme == "dark")
    opened.locator("#question-1 summary").click()
    assert opened.locator("#question-1 h3").first.is_visible()
    opened.close()
    assert trouble == [page.as_uri()]
