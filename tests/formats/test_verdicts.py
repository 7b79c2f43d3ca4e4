"""Verdict files of evaluation tools."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from small_files import saved

import labelonce as lo
from labelonce.io import read_verdicts


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_model_prompt_item_answer_and_logprob_are_found_by_name(tmp_path: Path) -> None:
    rows = [
        {"model": model, "prompt": prompt, "item": item, "answer": answer, "logprob": -0.5 * item}
        for item, answer in enumerate(["yes", "no", None])
        for model, prompt in (("m", "brief"), ("m", "steps"), ("n", "brief"))
    ]
    found = read_verdicts(lines(tmp_path / "v.jsonl", *rows))
    assert found.workers.tolist() == ["m/brief", "m/steps", "n/brief"]
    assert found.families is not None
    assert found.families.tolist() == ["m", "n"]
    assert (found.classes.tolist(), found.answers.tolist()[2:]) == (["no", "yes"], ["no answer"])
    assert_allclose(np.asarray(found.probability)[0], [0, 1], atol=1e-9)
    assert_allclose(np.asarray(found.probability)[3, 0], np.exp(-0.5))


def test_verdicts_about_places_trade_them_in_the_other_order(tmp_path: Path) -> None:
    said = ((1, False, "A"), (1, True, "A"), (2, False, "B"), (2, True, "tie"))
    rows = [{"judge": "m", "id": item, "swapped": swapped, "winner": won} for item, swapped, won in said]
    path = lines(tmp_path / "v.jsonl", *rows)
    swapped = read_verdicts(path, swap=("A", "B")).to_frame().to_pydict()
    assert (swapped["order"], swapped["label"]) == ([0, 1, 0, 1], ["A", "B", "B", "tie"])
    assert read_verdicts(path).to_frame()["label"].to_pylist() == ["A", "A", "B", "tie"]
    with pytest.raises(ValueError, match="swap must name two answers that were given; got 'C'"):
        read_verdicts(path, swap=("A", "C"))


def test_fastchat_pairs_have_a_verdict_per_order(tmp_path: Path) -> None:
    row = {"question_id": 81, "model_1": "alpaca", "model_2": "vicuna", "judge": ["gpt-4", "pair-v2"], "turn": 1}
    found = read_verdicts(lines(tmp_path / "gpt-4_pair.jsonl", row | {"g1_winner": "model_2", "g2_winner": "error"}))
    assert (found.tasks.tolist(), found.workers.tolist()) == (["81/alpaca/vicuna/1"], ["gpt-4/pair-v2"])
    assert (found.classes.tolist(), found.n_answers) == (["model_2"], 2)


def test_declared_classes_make_a_tie_no_class_and_filled_in_prompts_are_no_names(tmp_path: Path) -> None:
    rows = [{"model": "m", "item": item, "verdict": won} for item, won in enumerate(["A", "B", "tie"])]
    assert read_verdicts(lines(tmp_path / "v.jsonl", *rows), classes=["A", "B"]).only_classes().n_answers == 2
    rows = [{"model": "m", "prompt": f"Is {item} odd?", "item": item, "answer": item % 2} for item in range(9)]
    assert read_verdicts(lines(tmp_path / "v.jsonl", *rows)).workers.tolist() == ["m"]


def test_models_and_people_are_read_together(tmp_path: Path) -> None:
    models = lines(tmp_path / "models.jsonl", {"model": "m", "item": 1, "answer": "A", "probability": 0.9})
    people = saved(tmp_path, "task,worker,label,family\n1,ann,B,people\n2,ann,A,people\n", "people.csv")
    found = read_verdicts([models, people])
    assert found.to_frame().to_pydict()["probability"] == [None, 0.9, None]
    assert found.families is not None
    assert found.families.tolist() == ["m", "people"]


def test_a_table_without_verdicts_is_refused_with_the_names_that_are_looked_for(tmp_path: Path) -> None:
    path = lines(tmp_path / "v.jsonl", {"model": "m", "text": "A"})
    says = r"column must hold the task of each verdict, such as 'task', 'item'.*task=\.\.\."
    with pytest.raises(ValueError, match=says):
        read_verdicts(path)


def test_llmbar_written_as_a_table_is_read_as_it_was(tmp_path: Path) -> None:
    annotations = lo.datasets.load("llmbar").annotations
    assert annotations is not None
    part = annotations[:20]
    lo.write(part, tmp_path / "v.csv")
    assert read_verdicts(tmp_path / "v.csv").to_frame() == part.to_frame()
