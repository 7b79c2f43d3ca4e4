"""What is said of a panel of judges, and its page."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labelonce as lo
from labelonce.report._panel import matrix_cells, panel_facts, position_bias

CODE = "<script>alert(1)</script>"


def panel_of(n_people: int = 3, **columns: Any) -> tuple[Any, lo.Annotations]:
    """Six judges of two families who share mistakes, and people who are right nine times in ten."""
    rng = np.random.default_rng(1)
    truth = np.arange(200) % 2
    rows: list[Any] = []
    for family, right in (("big", 0.85), (CODE, 0.65)):
        shared = rng.random(200) < right
        for prompt in "abc":
            said = np.where(shared ^ (rng.random(200) < 0.05), truth, 1 - truth)
            rows += [(task, f"{family}/{prompt}", family, label) for task, label in enumerate(said)]
    for person in range(n_people):
        said = np.where(rng.random(200) < 0.9, truth, 1 - truth)
        rows += [(task, f"person {person}", "people", label) for task, label in enumerate(said[:120])]
    task, worker, own, label = map(list, zip(*rows, strict=True))
    annotations = lo.Annotations.from_arrays(task, worker, label, family=own, **columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lo.DoubtWarning)  # that nobody has checked anything
        return lo.JudgePanel().fit(annotations), annotations


def test_people_are_compared_with_judges_and_named_where_they_differ() -> None:
    panel, annotations = panel_of()
    found = panel_facts(panel, annotations)
    assert (found["n"]["judges"], found["n"]["people"], found["n"]["families"]) == (6, 3, 2)
    assert {row["judge"].split("/")[0] for row in found["replace"][:3]} == {"big"}
    assert found["differences"]["compared"] == 120
    assert sum(kind["items"] for kind in found["differences"]["kinds"]) == found["differences"]["apart"]
    assert not any("by hand" in sentence for sentence in found["todo"])


def test_the_matrix_is_ordered_by_family_with_people_last() -> None:
    panel, annotations = panel_of()
    families = panel_facts(panel, annotations)["families"]
    assert families["names"] == [CODE, "big", "people"]
    assert families["sizes"] == [3, 3, 3]
    assert families["excess"][0][0] > families["excess"][0][1]
    cells = matrix_cells(families)
    assert cells is not None
    assert (cells["size"], cells["cuts"]) == (9, [3, 6])
    assert cells["rows"][0][1]["fill"] != cells["rows"][0][8]["fill"]


def test_position_bias_is_the_difference_between_the_orders() -> None:
    task = np.arange(100)
    label = np.concatenate([np.where(task < 80, 0, 1), np.where(task < 30, 0, 1)])
    annotations = lo.Annotations.from_arrays(np.tile(task, 2), ["m"] * 200, label, order=np.repeat([0, 1], 100))
    bias = position_bias(annotations)["m"]
    assert bias["value"] == pytest.approx(0.5)
    assert bias["high"] - bias["value"] == pytest.approx(1.645 * np.sqrt(0.16 / 100 + 0.21 / 100))
    assert position_bias(annotations.without("order")) == {}


def test_gold_is_measured_and_named_in_the_page(tmp_path: Path) -> None:
    _, annotations = panel_of(0)
    gold = {task: task % 2 for task in range(0, 200, 4)}
    panel = lo.JudgePanel().fit(annotations, gold=gold)
    lo.write_report(tmp_path / "r.html", panel, annotations, title="Verdicts")
    page = (tmp_path / "r.html").read_text()
    assert "On 50 items that people checked" in page
    assert "Nobody has checked an item" not in page
    assert CODE not in page
    assert "&lt;script&gt;alert(1)" in page


def test_without_gold_the_page_asks_for_some_and_is_the_same_each_time(tmp_path: Path) -> None:
    panel, annotations = panel_of(0)
    pages = []
    for name in ("a.html", "b.html"):
        lo.write_report(tmp_path / name, panel, annotations)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]
    assert b"Nobody has checked an item" in pages[0]
