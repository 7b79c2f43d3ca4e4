"""Several files at once, rows that are left out, labels under other names: what is read, and what is said."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_files import saved

import labelonce as lo
from labelonce.formats import LeftOutWarning, MissingWarning
from labelonce.io import read_gold

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return three batches: with commas, with semicolons and of JSON lines; the last repeats a row of the first."""
    texts = {
        "a.csv": "task,worker,label\n1,ann,cat\n2,ann,dog\n2,bob,Cat\n",
        "b.csv": "task;worker;label\n3;bob;dog\n4;ann;cat\n",
        "c.jsonl": '{"task": 2, "worker": "bob", "label": "Cat"}\n{"task": 5, "worker": "eve", "label": "dog"}\n',
    }
    return {name: saved(tmp_path, text, name) for name, text in texts.items()}


def test_files_of_any_formats_are_one_set_of_annotations_and_one_is_that_file(files: dict[str, Path]) -> None:
    ann = lo.read_annotations([files["a.csv"], files["b.csv"]])
    assert (ann.tasks.tolist(), ann.workers.tolist(), len(ann)) == ([1, 2, 3, 4], ["ann", "bob"], 5)
    assert lo.read_annotations([files["a.csv"]]) == lo.read_annotations(files["a.csv"])
    with pytest.raises(ValueError, match="path must name at least one file; got none"):
        lo.read_annotations([])


def test_rows_of_an_earlier_file_count_once_and_other_labels_are_repeated(
    files: dict[str, Path], tmp_path: Path
) -> None:
    says = r"c\.jsonl: 1 of its 2 annotations are in an earlier file too, and counted once"
    with pytest.warns(LeftOutWarning, match=says):
        assert len(lo.read_annotations(files.values())) == 6  # type: ignore[arg-type]
    more = saved(tmp_path, "task,worker,label\n1,ann,dog\n", "more.csv")
    says = r"a\.csv, .*more\.csv: a worker must label a task once; got worker 'ann' on task 1"
    with pytest.raises(ValueError, match=says):
        lo.read_annotations([files["a.csv"], more])
    assert lo.read_annotations([files["a.csv"], more], duplicates="last").label.tolist()[0] == 2


def test_numbers_in_one_file_and_text_in_another_are_matched_as_text(files: dict[str, Path], tmp_path: Path) -> None:
    more = saved(tmp_path, "task,worker,label\nx,ann,cat\n2,eve,cat\n", "more.csv")
    says = r"task ids are numbers in .*a\.csv and text in .*more\.csv: they are matched as text"
    with pytest.warns(UserWarning, match=says):
        ann = lo.read_annotations([files["a.csv"], more])
    assert ann.tasks.tolist() == ["1", "2", "x"]


def test_a_file_without_the_named_column_may_have_the_usual_one(files: dict[str, Path], tmp_path: Path) -> None:
    more = saved(tmp_path, "Review ID,worker,label\n9,zoe,dog\n", "more.csv")
    with pytest.warns(UserWarning, match=r"a\.csv has no column 'Review ID'; its column 'task' is read"):
        ann = lo.read_annotations([files["a.csv"], more], task="Review ID")
    assert (ann.n_tasks, ann.names) == (3, ("Review ID", "worker", "label"))
    with pytest.raises(ValueError, match=r"more\.csv: the task column must be one of .*; got 'task'"):
        lo.read_annotations([files["a.csv"], more])


@pytest.mark.filterwarnings("ignore:task ids are numbers:UserWarning", "ignore:.*no column 'animal':UserWarning")
def test_an_export_and_a_table_go_together(files: dict[str, Path]) -> None:
    with pytest.warns(LeftOutWarning, match="rejected 1, without an answer 1"):
        alone = lo.read_annotations(SAMPLES / "mturk.csv", label="animal", multiple="join")
    with pytest.warns(LeftOutWarning):
        ann = lo.read_annotations([SAMPLES / "mturk.csv", files["b.csv"]], label="animal", multiple="join")
    assert len(ann) == len(alone) + 2


def test_a_row_is_named_with_its_file(files: dict[str, Path], tmp_path: Path) -> None:
    more = saved(tmp_path, "task,worker,label\n7,a,Cat\n", "more.csv")
    with pytest.raises(ValueError, match=r"got 'Cat' at row 4 of .*a\.csv \(2 in total\)"):
        lo.read_annotations([files["b.csv"], files["a.csv"], more], classes=["cat", "dog"])
    more = saved(tmp_path, "task,worker,label\n6,a,cat\n,,\n7,,dog\n8,a,cow\n", "more.csv")
    with pytest.warns(MissingWarning), pytest.raises(ValueError, match=r"got 'cow' at row 5 of .*more\.csv"):
        lo.read_annotations([files["b.csv"], more], classes=["cat", "dog"], missing="drop")


def test_rows_without_a_label_are_left_out_and_counted_by_reason(tmp_path: Path) -> None:
    path = saved(tmp_path, "task,worker,label\n1,ann,cat\n2,,dog\n,,\n3,bob,\n", "more.csv")
    with pytest.raises(ValueError, match=r"more\.csv: task must not be missing; got a missing value at row 4 \(1 in"):
        lo.read_annotations(path)
    with pytest.warns(MissingWarning, match=r"more\.csv: 3 of 4 rows are left out .*, the first is row 3\.") as caught:
        assert len(lo.read_annotations(path, missing="drop")) == 1
    assert caught[0].message.counts == {"blank": 1, "without a worker": 1, "without a label": 1}  # type: ignore[union-attr]


def test_labels_get_new_names_from_a_mapping_or_a_table_even_numbers(files: dict[str, Path], tmp_path: Path) -> None:
    table = saved(tmp_path, "old,new\nCat,cat\n", "map.csv")
    for relabel in ({"Cat": "cat"}, table):
        assert lo.read_annotations(files["a.csv"], relabel=relabel).classes.tolist() == ["cat", "dog"]
    table = saved(tmp_path, "Cat,1\ncat,1\ndog,0\n", "map.csv")
    assert lo.read_annotations(files["a.csv"], relabel=table).classes.tolist() == [0, 1]


def test_labels_without_a_new_name_are_left_out_and_counted(files: dict[str, Path], tmp_path: Path) -> None:
    table = saved(tmp_path, "old;new\ncat;\nunsure;\n", "map.csv")
    with (
        pytest.warns(UserWarning, match="1 of the 2 labels to be renamed were never given, such as 'unsure'"),
        pytest.warns(LeftOutWarning, match="1 of 3 annotations are left out, because their label has no new name"),
    ):
        assert len(lo.read_annotations(files["a.csv"], relabel=table)) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "old,new\nx,y\n",
            r"relabel must name labels that were given, \['Cat', 'cat', 'dog'\]; got \['old', 'x'\]|\['x'\]",
        ),
        ("old\nx\n", r"map\.csv: the table must have two columns, labels and new names; got \['old'\]"),
        ("old,new\ncat,a\ncat,b\n", r"map\.csv: a label must have one new name; got 'cat' in several rows"),
    ],
)
def test_a_table_that_cannot_rename_is_refused(text: str, says: str, files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=says):
        lo.read_annotations(files["a.csv"], relabel=saved(tmp_path, text, "map.csv"))


def test_normalise_gives_one_spelling_and_says_which(files: dict[str, Path]) -> None:
    with pytest.warns(UserWarning, match=r"spellings of one label are merged: 'Cat' \(1\) is 'cat'\.$"):
        ann = lo.read_annotations([files["a.csv"], files["b.csv"]], normalise=True)
    assert ann.classes.tolist() == ["cat", "dog"]


@pytest.mark.filterwarnings("ignore:spellings of one label:UserWarning")
def test_a_declared_spelling_stands(files: dict[str, Path]) -> None:
    ann = lo.read_annotations(files["a.csv"], normalise=True, classes=["CAT", "DOG"])
    assert ann.label.tolist() == [0, 1, 0]


@pytest.mark.filterwarnings("ignore:spellings of one label:UserWarning")
def test_gold_follows_the_new_names_and_the_text_of_ids(files: dict[str, Path], tmp_path: Path) -> None:
    more = saved(tmp_path, "task,worker,label\nx,ann,cat\n", "more.csv")
    gold = saved(tmp_path, "task,label\n2,CAT\nx,kat\n", "gold.csv")
    with pytest.warns(UserWarning, match="matched as text"):
        ann = lo.read_annotations([files["a.csv"], more], normalise=True)
    found: dict[Any, Any] = read_gold(gold, annotations=ann, normalise=True, relabel={"kat": "cat"})
    assert found == {"2": "cat", "x": "cat"}


def test_questions_in_rows_or_columns_are_recognised(tmp_path: Path) -> None:
    rows = [(s, r, q, "yes" if (s + r) % 2 else "no") for s in range(9) for r in range(3) for q in ("CAUSES", "TREATS")]
    path = saved(tmp_path, "task,worker,relation,label\n" + "".join(f"{s},{r},{q},{a}\n" for s, r, q, a in rows))
    advice = r'tells these rows apart: .* read_multilabel\(\.\.\., question="relation", answer="label"\)'
    with pytest.raises(ValueError, match=rf"a worker must label a task once; .*Column 'relation' {advice}"):
        lo.read_annotations(path)
    path = saved(tmp_path, "task,worker,TREATS,CAUSES,comment\n1,a,yes,no,hm\n2,b,,maybe,\n", "more.csv")
    says = r"the label column must be one of .*; got 'label'\. Columns \['TREATS', 'CAUSES'\] hold answers: .* "
    with pytest.raises(ValueError, match=says + r"read_multilabel\(\.\.\., ignore=\['comment'\]\)\.$"):
        lo.read_annotations(path)


def test_probabilities_are_no_labels_in_parquet_either(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"task": i, "worker": 1, "label": 0.25}) + "\n" for i in range(3))
    says = r"got 0\.25 at line 1\. If these are probabilities, make classes of them first"
    with pytest.raises(TypeError, match=says):
        lo.read_annotations(saved(tmp_path, rows, "p.jsonl"))
