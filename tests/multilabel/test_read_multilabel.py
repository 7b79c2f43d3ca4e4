"""Files of questions: four layouts give the same annotations; bad files say what is wrong in one sentence."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelonce.formats import LeftOutWarning
from labelonce.multilabel import MultiLabelAnnotations, read_multilabel

HEAD = "task,question,worker,answer\n"
LONG = HEAD + "1,dog,ann,yes\n1,sea,ann,yes\n1,dog,bob,yes\n1,sea,bob,no\n2,dog,bob,no\n2,sea,bob,no\n"
WIDE = "task,worker,dog,sea\n1,ann,yes,yes\n1,bob,yes,no\n2,bob,no,no\n"
TICKED = "task,worker,ticked\n1,ann,dog|sea\n1,bob,dog\n2,bob,\n"


@pytest.fixture
def wanted() -> MultiLabelAnnotations:
    return MultiLabelAnnotations.from_ticked([1, 1, 2], ["ann", "bob", "bob"], [["dog", "sea"], ["dog"], []])


@pytest.mark.parametrize("separator", [";", ", ", "/"])
def test_labels_made_of_others_are_an_error_that_names_the_separator(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "ticked.csv"
    path.write_text(f'task,worker,ticked\n1,ann,"dog{separator}sea"\n1,bob,dog\n2,bob,sea\n')
    fix = re.escape(f"Replace {separator.strip()!r} by '|'")
    with pytest.raises(ValueError, match=f"got 'dog{separator}sea' at row 2.*{fix}"):
        read_multilabel(path)


@pytest.mark.parametrize("text", [LONG, WIDE, TICKED], ids=["long", "wide", "ticked"])
def test_every_layout_reads_alike(tmp_path: Path, text: str, wanted: MultiLabelAnnotations) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    assert read_multilabel(path) == wanted


def test_lists_in_parquet_and_json_lines(tmp_path: Path, wanted: MultiLabelAnnotations) -> None:
    rows = [(1, "ann", ["dog", "sea"]), (1, "bob", ["dog"]), (2, "bob", [])]
    columns = dict(zip(("task", "worker", "ticked"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table(columns), tmp_path / "labels.parquet")
    lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines) + "\n")
    assert read_multilabel(tmp_path / "labels.parquet") == wanted
    assert read_multilabel(tmp_path / "labels.jsonl") == wanted


def test_an_empty_cell_is_not_asked_and_columns_have_other_names(tmp_path: Path, wanted: MultiLabelAnnotations) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,dog,sea\n1,ann,1,\n2,ann,0,1\n")
    assert len(read_multilabel(path)) == 3
    path.write_text(LONG.replace("question", "tag").replace("answer", "says"))
    assert read_multilabel(path, question="tag", answer="says") == wanted


def ticked_boxes(ticked: list[str]) -> list[dict[str, object]]:
    box: dict[str, object] = {"from_name": "tags", "to_name": "x", "type": "choices", "value": {"choices": ticked}}
    return [box] if ticked else []


def export(*results: list[str], cancelled: bool = False) -> str:
    annotations = [
        {"completed_by": who, "was_cancelled": cancelled and who == 0, "result": ticked_boxes(ticked)}
        for who, ticked in enumerate(results)
    ]
    return json.dumps([{"id": 5, "data": {"text": "t"}, "annotations": annotations}])


def test_check_boxes_of_label_studio_are_read_and_cancelled_forms_left_out(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(export(["dog", "sea"], ["dog"], []))
    ann = read_multilabel(path, format="label-studio")
    assert ann == MultiLabelAnnotations.from_ticked([5] * 3, [0, 1, 2], [["dog", "sea"], ["dog"], []])
    path.write_text(export([], ["dog"], cancelled=True))
    with pytest.warns(UserWarning, match="1 judgements are read, others left out \\(cancelled or skipped 1\\)"):
        assert len(read_multilabel(path, format="label-studio")) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("task,question,worker,answer\n1,dog,ann,perhaps\n", "got 'perhaps'"),
        ("task,question,worker,answer\n1,dog,ann,\n", "answer must not be missing; got a missing value at row 2"),
        ("task,worker\n1,ann\n", "a column per question is needed besides 'task' and 'worker'; got none"),
        ("item,worker,dog\n1,ann,1\n", "the task column must be one of \\['item', 'worker', 'dog'\\]; got 'task'"),
        ("task,question,worker,answer\n1,dog,ann,1\n1,dog,ann,0\n", "got worker 'ann' on question 'dog' about task 1"),
        ("task,worker,dog\n1,ann,7\n", "got 7 \\(1 in total"),
        ("", "must have|empty|Empty"),
        ("task,question,worker,answer\n", "at least one row; got 0"),
    ],
)
def test_a_bad_file_is_one_sentence_with_its_name(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence) as error:
        read_multilabel(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def saved(folder: Path, text: str, name: str = "labels.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_answers_get_one_spelling_or_new_names(tmp_path: Path, wanted: MultiLabelAnnotations) -> None:
    odd = saved(tmp_path, LONG.replace("ann,yes", "ann, YES").replace("2,dog", "2,Dog"))
    with pytest.raises(ValueError, match=r"got ' YES' .*Give them one spelling with normalise=\.\.\., or declare them"):
        read_multilabel(odd)
    with pytest.warns(UserWarning, match="spellings of one label are merged"):
        assert read_multilabel(odd, normalise=True) == wanted
    german = saved(tmp_path, WIDE.replace("yes", "ja").replace("no", "nein"))
    assert read_multilabel(german, relabel={"ja": "yes", "nein": "no"}) == wanted


def test_answers_without_a_new_name_are_left_out_in_one_column_too(tmp_path: Path) -> None:
    path = saved(tmp_path, "task,worker,dog,sea\n1,ann,yes,unclear\n2,ann,no,yes\n")
    with pytest.raises(
        ValueError, match=r"column 'sea' must hold answers .*; got 'unclear' at row 2\. Leave it out with"
    ):
        read_multilabel(path)
    with pytest.warns(LeftOutWarning, match="1 of 4 annotations are left out"):
        assert len(read_multilabel(path, relabel={"unclear": None})) == 3


@pytest.mark.parametrize("text", [LONG, WIDE, TICKED], ids=["long", "wide", "ticked"])
def test_rows_without_a_task_are_left_out_everywhere(tmp_path: Path, text: str, wanted: MultiLabelAnnotations) -> None:
    row = {LONG: ",dog,ann,yes\n", WIDE: ",ann,yes,no\n", TICKED: ",ann,sea\n"}[text]
    header, _, rest = text.partition("\n")
    path = saved(tmp_path, f"{header}\n{row}{rest}")
    with pytest.raises(ValueError, match=r"task must not be missing; got a missing value at row 2"):
        read_multilabel(path)
    with pytest.warns(LeftOutWarning, match=r"rows are left out \(without a task 1\), the first is row 2"):
        assert read_multilabel(path, missing="drop") == wanted


def test_layouts_of_all_kinds_go_together(tmp_path: Path, wanted: MultiLabelAnnotations) -> None:
    files = [saved(tmp_path, text, f"{i}.csv") for i, text in enumerate((TICKED, WIDE, LONG))]
    with pytest.warns(LeftOutWarning, match=r"\d\.csv: 6 of its 6 annotations are in an earlier file too") as caught:
        together = read_multilabel(files)
    assert len(caught) == 2
    assert together.to_frame().to_pylist() == wanted.to_frame().to_pylist()
