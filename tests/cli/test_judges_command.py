"""`labelonce judges`: verdict files in, decisions out."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Capture, run_in_process
from small_files import rows_of, written

import labelonce as lo
from labelonce.io import read_verdicts

N = 160
PANEL_FILES = {"labels.csv", "judges.csv", "next.csv", "report.html", "panel.json"}


@pytest.fixture
def verdicts(tmp_path: Path) -> Path:
    """Four prompts of two models that share mistakes, in both orders, as an evaluation tool writes them."""
    rng = np.random.default_rng(0)
    truth = np.arange(N) % 2
    shared = {model: rng.random(N) < right for model, right in (("big", 0.9), ("small", 0.6))}
    path = tmp_path / "verdicts.jsonl"
    with path.open("w") as file:
        for model, right in shared.items():
            for prompt in ("brief", "steps"):
                own = right ^ (rng.random(N) < 0.05)
                for item, swapped in np.ndindex(N, 2):
                    answer = truth[item] if own[item] else 1 - truth[item]
                    shown = answer ^ swapped  # verdicts name the place, first A, then B
                    row = {"model": model, "prompt": prompt, "item": f"q{item}", "swapped": bool(swapped)}
                    json.dump(row | {"answer": "refusal" if item == 7 else "AB"[shown]}, file)
                    file.write("\n")
    return path


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    path = tmp_path / "checked.csv"
    path.write_text("task,label,chance\n" + "".join(f"q{item},{'AB'[item % 2]},0.25\n" for item in range(0, N, 4)))
    return path


def said(capfd: Capture, *arguments: Any) -> dict[str, Any]:
    assert run_in_process(["judges", *map(str, arguments), "--json"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def test_it_says_what_judges_are_worth_and_writes_what_to_do(
    verdicts: Path, checked: Path, tmp_path: Path, capfd: Capture
) -> None:
    folder = tmp_path / "panel"
    found = said(capfd, verdicts, "--gold", checked, "--swap", "A,B", "--next", 10, "-o", folder)
    crowd = {"judges": 4, "people": 0, "families": 2, "orders": 2}
    assert found["n"] == {"verdicts": 8 * N, "items": N, "refusals": 8, "gold": 40} | crowd
    assert {row["worker"].split("/")[0] for row in found["judges"][:2]} == {"big"}
    assert found["accuracy"]["low"] < 0.86 < found["accuracy"]["high"]
    assert {path.name for path in folder.iterdir()} == PANEL_FILES
    assert len(rows_of(folder / "labels.csv")) == N
    asked = rows_of(folder / "next.csv")
    assert (len(asked), {row["label"] for row in asked}) == (10, {""})
    assert not {row["task"] for row in asked} & {f"q{item}" for item in range(0, N, 4)}


def test_it_says_how_many_items_people_must_check(verdicts: Path, checked: Path, capfd: Capture) -> None:
    options = [verdicts, "--gold", checked, "--swap", "A,B", "--risk", 0.02, "--width", 0.05]
    found = said(capfd, *options)["checks"]
    assert found["risk"]["risk"] == 0.02
    assert 0 <= found["risk"]["low"] <= found["risk"]["value"] <= found["risk"]["high"] <= N
    assert 0 <= found["width"]["value"] < N
    assert run_in_process(["judges", *map(str, options)]) == 0
    text = capfd.readouterr().out
    assert "labels of people to buy, least sure items first, until 2.0% are wrong: " in text
    assert "random items to check until the shares are known to plus or minus 5.0%: " in text


def test_what_people_fill_into_next_csv_is_gold(verdicts: Path, checked: Path, tmp_path: Path, capfd: Capture) -> None:
    folder = tmp_path / "panel"
    said(capfd, verdicts, "--swap", "A,B", "--next", 6, "-o", folder)
    rows = rows_of(folder / "next.csv")
    with (tmp_path / "filled.csv").open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"label": "A" if place < 4 else ""} for place, row in enumerate(rows))
    both = ["--gold", checked, "--gold", tmp_path / "filled.csv"]
    new = {row["task"] for row in rows[:4]} - {f"q{item}" for item in range(0, N, 4)}
    assert said(capfd, verdicts, "--swap", "A,B", *both)["n"]["gold"] == 40 + len(new)


def test_show_says_the_same_as_judges(verdicts: Path, tmp_path: Path, capfd: Capture) -> None:
    found = said(capfd, verdicts, "--swap", "A,B", "-o", tmp_path / "panel")
    assert run_in_process(["show", str(tmp_path / "panel"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == found
    assert run_in_process(["show", str(tmp_path / "panel")]) == 0
    shown = capfd.readouterr().out
    assert "Check 50 items by hand" in shown
    assert "4 judges of 2 families" in shown


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--swap", "A,C"], "swap must name two answers that were given; got 'C'"),
        (["--task-column", "nr"], "the task column must be one of"),
        (["--question-column", "q"], "--question-column is not for judges"),
        (["-o", "{here}"], "must be a new folder or that of an earlier panel"),
        (["--gold", "{gold}"], "every task must have verdicts; got 'q999' without"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    verdicts: Path, tmp_path: Path, options: list[str], sentence: str, capfd: Capture
) -> None:
    gold = written(tmp_path / "gold.csv", "task,label\nq999,A\n")
    filled = [part.format(here=tmp_path, gold=gold) for part in options]
    assert run_in_process(["judges", str(verdicts), *filled]) == 2
    assert sentence in capfd.readouterr().err


def test_check_sends_judges_to_judges(verdicts: Path, tmp_path: Path, capfd: Capture) -> None:
    lo.write(read_verdicts(verdicts), tmp_path / "labels.csv")
    run_in_process(["check", str(tmp_path / "labels.csv")])
    assert f"Next: labelonce judges {tmp_path}/labels.csv" in capfd.readouterr().out


def test_next_sends_items_of_a_panel_to_people(verdicts: Path, tmp_path: Path) -> None:
    lo.write(read_verdicts(verdicts, swap=("A", "B")), tmp_path / "labels.csv")
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\n" + "".join(f"q{item},{'AB'[item % 2]}\n" for item in range(0, N, 4)))
    answers = ["--classes", "A,B", "--answers", "A,B,refusal"]
    command = ["next", str(tmp_path / "labels.csv"), "--gold", str(gold), "-n", "8", "-o", str(tmp_path / "ask.csv")]
    assert run_in_process([*command, *answers]) == 0
    rows = rows_of(tmp_path / "ask.csv")
    assert (len(rows), {row["worker"] for row in rows}) == (8, {"person"})
    assert not {row["task"] for row in rows} & {f"q{item}" for item in range(0, N, 4)}
