"""Files as people have them, on the command line: several, of spreadsheets, spellings, questions, probabilities."""

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from commands import Capture, json_of, output_of, refused, run
from small_files import rows_of

import labelonce as lo

EXCEL = "\ufeffReview ID;E-mail;Rating;Review\r\n"
WORDS = {"book": "a fine book to read", "not a book": "it is a lamp for the desk"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def excel() -> Path:
    """Return labels as Excel saves them: semicolons, a mark, spellings, a missing label, no task seen by two people."""
    rows = [(4320 + i, f"w{i % 4}@gmail.com", ("book", "not a book")[i % 2]) for i in range(48)]
    lines = [f"{i};{w};{'BOOK ' if i == 4322 else y};{WORDS[y]} {i}" for i, w, y in rows] + ["5000;w1@gmail.com;;a cup"]
    Path("reviews.csv").write_text(EXCEL + "\r\n".join(lines) + "\r\n", newline="")
    return Path("reviews.csv")


NAMES = ["--task-column", "Review ID", "--worker-column", "E-mail", "--label-column", "Rating"]


def test_check_of_a_file_from_excel_says_all_at_once_and_what_to_run(excel: Path, capsys: Capture) -> None:
    assert run("check", excel, *NAMES) == 1
    shown = capsys.readouterr().out
    for words in (
        "reviews.csv: csv with semicolons, 48 annotations",
        "left out: without a label 1",
        "1 of 49 rows are left out (without a label 1), the first is row 50. Other commands refuse the file",
        "2 labels are spellings of 1 class: 'BOOK ' (1), 'book' (23). Give them one spelling with --normalise, or new",
        "comparable workers: none, because nobody shares a task with anybody",
    ):
        assert words in shown
    command = shlex.split(shown.partition("Next: labelonce ")[2])
    options = ["--missing", "drop", "--normalise", "--text", "Review", "-o", "run"]
    assert command == ["train", "reviews.csv", *NAMES, *options]


def test_the_command_that_check_names_trains_and_says_what_it_did(excel: Path, capsys: Capture) -> None:
    command = ["train", *NAMES, "--missing", "drop", "--normalise", "--text", "Review", "-o", "run", "--rounds", "1"]
    assert run(*command, excel) == 0
    said = capsys.readouterr().err
    assert "1 of 49 rows are left out (without a label 1), the first is row 50." in said
    assert "spellings of one label are merged: 'BOOK ' (1) is 'book'." in said
    options = json.loads(Path("run/run.json").read_text())["options"]
    assert (options["missing"], options["normalise"]) == ("drop", True)


@pytest.mark.parametrize("command", ["train", "aggregate", "compare", "next"])
def test_spellings_are_refused_until_somebody_decides(command: str, excel: Path, capsys: Capture) -> None:
    more = ["--text", "Review", "--rounds", "1"] if command == "train" else []
    error = refused(capsys, command, excel, *NAMES, "--missing", "drop", *more)
    assert "Give them one spelling with --normalise, or new names with --relabel FILE." in error
    assert "If they are classes of their own, add --spellings keep." in error


@pytest.mark.parametrize("decided", [["--spellings", "keep"], ["--relabel", "map.csv"], ["--normalise"]])
def test_each_way_to_decide_on_spellings_is_taken(decided: list[str], excel: Path) -> None:
    Path("map.csv").write_text("old,new\nBOOK ,book\n")
    options = ["--missing", "drop", *decided, "--method", "majority-vote", "-o", "clean.csv"]
    assert run("aggregate", excel, *NAMES, *options) == 0
    assert len({row["label"] for row in rows_of(Path("clean.csv"))}) == (3 if "keep" in decided else 2)


def test_a_missing_label_is_one_sentence_with_the_row_and_both_ways_on(excel: Path, capsys: Capture) -> None:
    assert refused(capsys, "aggregate", excel, *NAMES) == (
        "labelonce: reviews.csv: label must not be missing; got a missing value at row 50 (1 in total). Leave such "
        "rows out with --missing drop, or fill them in.\n"
    )


@pytest.mark.parametrize("command", ["check", "aggregate", "compare", "agreement", "next"])
def test_every_command_that_reads_labels_takes_several_files(command: str, capsys: Capture) -> None:
    rows = [f"{task},{worker},{'ab'[task % 2]}\n" for task in range(30) for worker in ("ann", "bob", "eve")]
    Path("a.csv").write_text("task,worker,label\n" + "".join(rows[:45]))
    Path("b.tsv").write_text("task\tworker\tlabel\n" + "".join(rows[40:]).replace(",", "\t"))
    assert run(command, "a.csv", "b.tsv", "--json") == 0
    shown = capsys.readouterr()
    if command == "check":
        assert json.loads(shown.out)["left_out"] == {"in an earlier file too": 5}
    else:
        assert "b.tsv: 5 of its 50 annotations are in an earlier file too, and counted once." in shown.err


def test_train_takes_batches_and_the_run_remembers_them(capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    lines = [f"{i},w{i % 3},{'yes' if x[i] > 0 else 'no'}\n" for i in range(60)]
    Path("a.csv").write_text("task,worker,label\n" + "".join(lines[:30]))
    Path("b.csv").write_text("task;worker;label\n" + "".join(lines[30:]).replace(",", ";"))
    lo.write(pa.table({"task": range(60), "x": x}), "features.parquet")
    command = ["train", "a.csv", "b.csv", "--features", "features.parquet", "--rounds", "1", "-o", "run"]
    assert run(*command) == 0
    record = json.loads(Path("run/run.json").read_text())
    assert [Path(path).name for path in record["options"]["labels"]] == ["a.csv", "b.csv"]
    assert {"labels", "labels_2", "features"} == set(record["inputs"])
    assert "from a.csv, b.csv" in capsys.readouterr().out
    assert run("train", "--resume", "a.csv", "b.csv", "-o", "run") == 0
    assert "nothing to resume" in capsys.readouterr().err
    assert run("show", "run") == run("plan", "run", "--fits", "1") == 0


def test_texts_are_found_in_all_files_of_labels() -> None:
    for name, start in (("a.csv", 0), ("b.csv", 20)):
        labels = [(i, ("book", "not a book")[i % 2]) for i in range(start, start + 20)]
        rows = [f"{i},w{i % 3},{y},{WORDS[y]}\n" for i, y in labels]
        Path(name).write_text("task,worker,label,said\n" + "".join(rows) + ",,,\n")
    assert run("train", "a.csv", "b.csv", "--text", "said", "--missing", "drop", "--rounds", "1", "-o", "run") == 0
    assert json.loads(Path("run/run.json").read_text())["data"]["tasks"] == 40


@pytest.mark.parametrize("command", ["train", "aggregate", "compare", "next"])
def test_probabilities_are_refused_in_a_sentence(command: str, capsys: Capture) -> None:
    rows = "".join(f"{i},{w},0.{i}{ord(w)}\n" for i in range(20) for w in "ab")
    Path("soft.csv").write_text("task,worker,label\n" + rows)
    assert run(command, "soft.csv", *(["--features", "soft.csv"] if command == "train" else [])) == 2
    said = "got 40 different numbers between 0 and 1, such as '0.097', which look like probabilities"
    assert said in capsys.readouterr().err
    assert run("check", "soft.csv") == 1
    assert "Next: make classes of the probabilities" in capsys.readouterr().out


RELATIONS = ("CAUSES", "TREATS", "SIDE_EFFECT")


@pytest.fixture
def long() -> list[str]:
    """Return the options of a file with one answer to one question per row."""
    rng = np.random.default_rng(0)
    said = ["no", "yes", "maybe"]
    rows = [
        f"s{s},r{r},{relation},{said[rng.choice(3, p=[0.5, 0.4, 0.1])]}\n"
        for s in range(30) for r in range(3) for relation in RELATIONS
    ]  # fmt: skip
    Path("long.csv").write_text("sentence,rater,relation,says\n" + "".join(rows))
    return ["long.csv", "--task-column", "sentence", "--worker-column", "rater"]


def test_questions_in_long_form_are_recognised_and_the_command_runs(long: list[str], capsys: Capture) -> None:
    assert run("check", *long, "--label-column", "says") == 1
    shown = capsys.readouterr().out
    assert "Column 'relation' tells these rows apart" in shown
    command = shlex.split(shown.partition("Next: labelonce ")[2])
    assert command == ["check", *long, "--question-column", "relation", "--answer-column", "says"]
    assert "30 tasks, 3 questions, 3 workers" in output_of(capsys, *command)


@pytest.mark.parametrize("command", ["check", "aggregate"])
def test_answers_are_not_taken_for_questions(command: str, long: list[str], capsys: Capture) -> None:
    assert refused(capsys, command, *long, "--label-column", "says", "--multiple", "questions") == (
        "labelonce: long.csv: column 'says' must hold ticked labels; got ['maybe', 'no', 'yes'], which look like "
        "answers. For one answer per row name the columns with --question-column relation and --answer-column says.\n"
    )


def test_long_questions_are_aggregated_and_trained_by_their_columns(long: list[str]) -> None:
    asked = ["--question-column", "relation", "--answer-column", "says"]
    assert run("aggregate", *long, *asked, "-o", "clean.csv") == 0
    assert {row["question"] for row in rows_of(Path("clean.csv"))} == set(RELATIONS)
    features = pa.table({"sentence": [f"s{i}" for i in range(30)], "x": np.arange(30) % 4})
    lo.write(features, "features.csv")
    assert run("train", *long, *asked, "--features", "features.csv", "--rounds", "1", "-o", "run") == 0


WIDE = "task,worker,CAUSES,TREATS,comment,note\n1,a,yes,No,hm,\n1,b,Yes,no,,\n2,a,no,maybe,ok,\n2,b,no,YES,,\n"


def test_a_wide_file_is_recognised_the_advice_can_be_taken_and_other_columns_are_named(capsys: Capture) -> None:
    Path("wide.csv").write_text(WIDE)
    assert run("check", "wide.csv") == 2
    advice = "for one question per column read them with --multiple questions --ignore comment --ignore note.\n"
    assert capsys.readouterr().err.endswith(advice)
    options = ["--multiple", "questions", "--ignore", "comment", "--normalise"]
    assert run("check", "wide.csv", *options) in (0, 1)
    shown = capsys.readouterr()
    assert "2 tasks, 2 questions, 2 workers" in shown.out
    assert "wide.csv: 1 empty columns are no questions, such as 'note'." in shown.err
    assert run("aggregate", "wide.csv", *options, "-o", "clean.csv") == 0
    Path("wide.csv").write_text(WIDE)
    assert run("check", "wide.csv", "--multiple", "questions") == 2
    said = "column 'comment' must hold answers to a question; got 'hm' at row 2. Leave it out with --ignore comment, or"
    assert said in capsys.readouterr().err


def test_columns_of_wide_labels_and_of_features_are_left_out_alike() -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"{i},w{i % 3},{rng.choice(['yes', 'no'])},{rng.choice(['yes', 'no'])},hm\n" for i in range(30))
    Path("wide.csv").write_text("task,worker,A,B,comment\n" + rows)
    lo.write(pa.table({"task": range(30), "x": rng.normal(size=30), "shop": ["a"] * 30}), "features.csv")
    command = ["train", "wide.csv", "--multiple", "questions", "--features", "features.csv", "--rounds", "1"]
    assert run(*command, "--ignore", "comment", "--ignore", "shop", "-o", "run") == 0


def test_questions_come_from_several_files_too(capsys: Capture) -> None:
    Path("a.csv").write_text("task,worker,ticked\n1,ann,dog|sea\n2,ann,\n")
    Path("b.csv").write_text("task,worker,question,answer\n1,bob,dog,yes\n1,bob,road,no\n")
    assert run("check", "a.csv", "b.csv", "--json") in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert (found["n_questions"], found["n_workers"], found["n_annotations"]) == (3, 2, 6)


@pytest.fixture
def trained() -> None:
    x = np.random.default_rng(0).normal(size=60)
    said = ["yes" if one > 0 else "no" for one in x]
    lo.write(pa.table({"Review ID": range(60), "worker": [i % 3 for i in range(60)], "label": said}), "labels.csv")
    lo.write(pa.table({"Review ID": range(60), "x": x}), "features.csv")
    command = ["--task-column", "Review ID", "--features", "features.csv", "--rounds", "1", "-o", "run"]
    assert run("train", "labels.csv", *command) == 0


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    ("header", "options"),
    [("Review ID,x", []), ("task,x", []), ("x,id", []), ("id,x,price,said", []), ("a,b,x", ["--task-column", "b"])],
)
def test_predict_keeps_the_ids_under_any_name(header: str, options: list[str]) -> None:
    cells = {"x": ["0.5", "-1", "2"], "price": ["1.5", "2.5", "3.5"], "said": ["a b c", "d e f", "g h i"]}
    rows = zip(*(cells.get(name, ["007", "x1", "9"]) for name in header.split(",")), strict=True)
    Path("new.csv").write_text("\n".join([header, *map(",".join, rows)]))
    assert run("predict", "run", "new.csv", *options, "-o", "out.csv") == 0
    assert [row["task"] for row in rows_of(Path("out.csv"))] == ["007", "x1", "9"]


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("header", ["a,b,x", "kind,x"])
def test_predict_says_where_it_numbers_the_rows(header: str, capsys: Capture) -> None:
    Path("new.csv").write_text(header + "\n" + "\n".join(("1,2,0.5", "2,3,-1") if "b" in header else ("q,0.5", "q,1")))
    assert run("predict", "run", "new.csv", "-o", "out.csv") == 0
    assert [row["task"] for row in rows_of(Path("out.csv"))] == ["0", "1"]
    error = capsys.readouterr().err
    assert "no column of task ids was found in [" in error
    assert "so the rows are numbered. Name it with --task-column" in error


@pytest.mark.usefixtures("trained")
def test_predict_refuses_a_column_of_ids_that_is_not_there(capsys: Capture) -> None:
    Path("new.csv").write_text("id,x\n1,2\n")
    assert run("predict", "run", "new.csv", "--task-column", "number") == 2
    assert "the task column must be one of ['id', 'x']; got 'number'" in capsys.readouterr().err


def test_agreement_prints_figures_classes_and_pairs(capsys: Capture) -> None:
    rows = [f"{t},{w},{(t + (w == 'c' and t < 2)) % 3 + 1}\n" for t in range(9) for w in "abc"]
    Path("r.csv").write_text("task,worker,label\n" + "".join(rows))
    shown = output_of(capsys, "agreement", "r.csv", "-o", "pairs.csv")
    for words in ("27 labels of 9 tasks", "are the same: 0.85 (", "Fleiss' kappa: 0.78 (", "by their order: 0.8"):
        assert words in shown
    assert [row["tasks"] for row in rows_of(Path("pairs.csv"))] == ["9", "9", "9"]
    found = json_of(capsys, "agreement", "r.csv", "--order", "3,1,2")
    assert found["pairs"][0]["kappa"] == 1.0
    assert found["alpha_ordinal"]["value"] < found["alpha"]["value"] + 0.2


def test_agreement_has_a_row_for_each_question_and_needs_two_workers(
    long: list[str], capsys: Capture, excel: Path
) -> None:
    assert run("agreement", *long, "--question-column", "relation", "--answer-column", "says", "--json") == 0
    assert list(json.loads(capsys.readouterr().out)["questions"]) == list(RELATIONS)
    assert run("agreement", excel, *NAMES, "--missing", "drop") == 2
    assert "a task must have labels by two workers to compare; got none that has." in capsys.readouterr().err


def test_own_repeated_rows_are_no_agreement(capsys: Capture) -> None:
    Path("l.csv").write_text("task,worker,label\n" + "".join(f"{t},w{t % 3},{'ab'[t % 2]}\n" * 2 for t in range(30)))
    assert run("check", "l.csv") == 1
    shown = capsys.readouterr().out
    assert "agreement: unknown, no task has labels by two workers" in shown
    assert "Next: labelonce train l.csv --duplicates last --features" in shown
