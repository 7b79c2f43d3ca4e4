"""Tables as people have them: each is read rightly, or refused or doubted in a sentence that says what to do."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from small_files import saved

import labelonce as lo
from labelonce._messages import named_as_options

ROWS = [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
BODY = "".join(f"{','.join(row)}\n" for row in ROWS)
HEAD = "task,worker,label\n"
ONE = {"task": 1, "worker": "a"}


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def doubts(path: Path, **options: Any) -> str:
    ann = lo.read_annotations(path, duplicates="keep", **options)
    return " ".join(problem.sentence for problem in lo.check(ann).problems)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"Labels of March,,\n{HEAD}{BODY}", "Row 2 has these names: delete what stands above"),
        (f",,\n\n{HEAD}{BODY}", "Row 3 has these names"),
        (f"# of March\n{HEAD}{BODY}", r"1 cells, as the header has; got 3 at row 2.*a title or a comment, delete it\."),
        (BODY, "Its first row holds values, such as '.*', and no names: add a row of names"),
        ("Task, Worker ,LABEL\n" + BODY, 'task="Task", worker=" Worker ", label="LABEL"'),
        ("item_id,annotator,class\n" + BODY, 'task="item_id", worker="annotator", label="class"'),
        ("task,ann,bob\nt1,cat,dog\nt2,dog,cat\n", 'a column for each worker, read it with format="matrix"'),
        (f"{HEAD}t1,ann\n", r"got 2 at row 2: t1,ann\. Fix that row: an empty cell needs its separator"),
        (f"{HEAD}t1,ann,\nt2,bob,\n", r"label must not be missing; got a missing value at row 2 \(2 in total\)"),
        ("task,worker,label", "no row under the first one"),
        ("<html><body>", "got a web page or XML file"),
        (gzip.compress(HEAD.encode()), r"got a gzip file without \.gz\. Rename it to end in \.gz"),
    ],
)
def test_what_a_csv_lacks_is_said_with_the_fix(tmp_path: Path, content: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=rf"labels\.csv.*{says}"):
        lo.read_annotations(saved(tmp_path, content))


def test_likely_columns_and_formats_are_named_as_one_would_type_them(tmp_path: Path) -> None:
    path = saved(tmp_path, "Review ID, Who ,label\n" + BODY)
    with named_as_options({"worker": "--worker-column"}), pytest.raises(ValueError, match=r"--worker-column ' Who '$"):
        lo.read_annotations(path, task="Review ID")
    path = saved(tmp_path, f"{HEAD}t1,ann,\nt2,bob,\n")
    with pytest.raises(ValueError, match=r"got 2 rows without \(without a label 2\)\. Are these the right columns"):
        lo.read_annotations(path, missing="drop")
    path = saved(tmp_path, json.dumps([{"task": 1, "worker": "a", "label": 1}]), "labels.json")
    with pytest.raises(ValueError, match=r"records of another program are read as \.jsonl, one object per line"):
        lo.read_annotations(path)


@pytest.mark.parametrize(("name", "says"), [("a.zip", "Unpack it"), ("a.xlsx.gz", r"got '\.xlsx\.gz'")])
def test_archives_that_are_not_read_are_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        lo.read_annotations(tmp_path / name)


def test_a_workbook_whose_first_sheet_has_no_labels_is_said_to_be_read_from_the_front(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.worksheets[0].append(["read me"])
    book.worksheets[0].append(["please"])
    book.save(tmp_path / "labels.xlsx")
    with pytest.raises(ValueError, match="the first visible sheet is read: is it the right one"):
        lo.read_annotations(tmp_path / "labels.xlsx")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lines({**ONE, "label": ["cat"]}), r"got \['cat'\] at line 1\. Write one of its values"),
        (lines({**ONE, "label": 1.0}, {**ONE, "worker": "b", "label": "1"}), "got '1' at line 2"),
        (lines([{"task": 1}]), "at line 1. Write one object per line, and not one list"),
    ],
)
def test_what_json_lines_lack_is_said_with_the_fix(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        lo.read_annotations(saved(tmp_path, content, "labels.jsonl"))


@pytest.mark.filterwarnings("ignore::labelonce.data.MissingWarning")
def test_the_first_line_of_json_may_lack_a_field_and_numbers_may_have_a_point(tmp_path: Path) -> None:
    rows = ONE, {"task": 1, "worker": "b", "label": 1}, {"task": 2, "worker": "b", "label": 1.0}
    ann = lo.read_annotations(saved(tmp_path, lines(*rows), "labels.jsonl"), missing="drop")
    assert (len(ann), ann.classes.tolist()) == (2, [1])


def test_the_first_column_of_a_matrix_may_have_any_name_if_it_holds_ids(tmp_path: Path) -> None:
    path = saved(tmp_path, "item;ann;bob\nx;cat;dog\ny;dog;dog\nz;cat;\n")
    assert lo.read_annotations(path, format="matrix").tasks.tolist() == ["x", "y", "z"]
    path = saved(tmp_path, "eve,ann,bob\ncat,cat,dog\ndog,dog,dog\n")
    assert lo.read_annotations(path, format="matrix").n_workers == 3


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("Total,4 workers,120", "task 'Total' looks like a row of totals"),
        (HEAD.strip(), r"1 rows hold the names of the columns, \['task', 'worker', 'label'\], again\. Delete them"),
        ("t3,ann,-", r"label ids \['-'\] look like missing values\. If they are, leave them out with relabel"),
        ("t3,ann,#NV", r"\['#NV'\] look like missing"),
        ("t3,ann,k.A.", r"\['k\.A\.'\] look like missing"),
        ("t3,JÃ¼rgen,cat", "worker ids such as 'JÃ¼rgen' look like 'Jürgen' in a wrong encoding"),
        ("1.23457E+11,ann,cat", r"task ids such as '1\.23457E\+11' were shortened by a spreadsheet program"),
        ("t3,ann,cat; dog", r"labels such as 'cat; dog' \(1 annotations\) are several others in one cell"),
        ("t3,ann,cat\u200b", r"2 labels are spellings of 1 class"),
        ("t3,ann,&#99;at", r"2 labels are spellings of 1 class"),
    ],
)
def test_check_doubts_what_is_no_annotation(tmp_path: Path, row: str, says: str) -> None:
    assert "look" not in doubts(saved(tmp_path, HEAD + BODY))
    with pytest.raises(ValueError, match=says):
        raise ValueError(doubts(saved(tmp_path, f"{HEAD}{BODY}{row}\n")))


def test_a_minus_is_a_label_where_there_is_a_plus_and_weights_may_have_a_decimal_comma(tmp_path: Path) -> None:
    assert "missing" not in doubts(saved(tmp_path, f"{HEAD}t1,ann,+\nt1,bob,-\nt2,bob,-\n"))
    path = saved(tmp_path, "task;worker;label;weight\n1;ann;cat;0,5\n2;bob;dog;2,0\n")
    np.testing.assert_array_equal(lo.read_annotations(path).weight, [0.5, 2.0])


@pytest.mark.parametrize("label", ["{}", "{}.5", "this is free text no {}"])
def test_labels_that_nobody_repeats_are_no_classes(tmp_path: Path, label: str) -> None:
    path = saved(tmp_path, HEAD + "".join(f"t{i // 2},w{i % 3},{label.format(i)}\n" for i in range(40)))
    with pytest.raises(ValueError, match=r"40 of the 40 labels are given only once, such as .* With label=... another"):
        raise ValueError(doubts(path))


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        ("weight", "high", "weight must be numbers; got 'high' at row 3. .*plain=True"),
        ("probability", "50", r"probability must be from 0 to 1; got 50 at row 3 \(1 in total\)\. .*plain=True"),
    ],
)
def test_an_optional_column_of_other_things_is_told(tmp_path: Path, column: str, cell: str, says: str) -> None:
    path = saved(tmp_path, f"task,worker,label,{column}\n1,ann,cat,0.5\n2,bob,dog,{cell}\n")
    with pytest.raises(ValueError, match=says):
        lo.read_annotations(path)
    assert lo.read_annotations(path, plain=True).weight is None


def test_a_column_that_numbers_the_rows_is_no_order_of_choices(tmp_path: Path) -> None:
    rows = "".join(f"t{i // 2},w{i % 2},{'ab'[i % 3 == 0]},{i}\n" for i in range(40))
    path = saved(tmp_path, f"task,worker,label,order\n{rows}")
    assert "column order has 40 values, such as 0" in doubts(path)
    assert "order" not in doubts(path, plain=True)
