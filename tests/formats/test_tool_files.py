"""Every tool's file: what is read, what is left out and said, and the way back."""

import contextlib
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_files import saved

import labelonce as lo
from labelonce import io
from labelonce.formats import LeftOutWarning

SAMPLES = Path(__file__).parent / "samples"
TOOLS = ["label-studio", "mturk", "toloka", "prodigy", "matrix"]
TRUTHS = SAMPLES / "label-studio-ground-truth.json"
SUFFIX = {"label-studio": ".json", "mturk": ".csv", "toloka": ".tsv", "prodigy": ".jsonl", "matrix": ".csv"}

Triples = set[tuple[Any, Any, Any]]


def triples(ann: lo.Annotations) -> Triples:
    return {tuple(row.values()) for row in ann.to_frame().to_pylist()}


def read(name: str, **options: Any) -> tuple[Triples, dict[str, int]]:
    """Return the rows of a sample, and the counts of what was left out."""
    with pytest.warns(LeftOutWarning) as caught:
        ann = lo.read_annotations(SAMPLES / name, **options)
    message = caught[0].message
    assert isinstance(message, LeftOutWarning)
    assert name in str(message)
    return triples(ann), message.counts


def test_label_studio_choices_leave_out_what_is_cancelled_empty_or_about_a_region() -> None:
    rows, left_out = read("label-studio.json", label="sentiment")
    assert rows == {(101, 7, "positive"), (101, 8, "positive"), (102, 7, "negative")}
    assert left_out == {
        "cancelled or skipped": 2,
        "without an answer": 1,
        "about a region of the task": 1,
        "drafts": 1,
        "tasks without annotations": 1,
    }


def test_label_studio_rating_gives_integers_taxonomy_paths_and_pairwise_sides(tmp_path: Path) -> None:
    assert {label for _, _, label in read("label-studio.json", label="stars")[0]} == {5, 4, 2, 3}
    assert read("label-studio.json", label="kind")[0] == {(101, 7, "kitchen / kettle")}
    result = {"type": "pairwise", "from_name": "better", "to_name": "a,b", "value": {"selected": "left"}}
    tasks = [{"id": 1, "data": {}, "annotations": [{"completed_by": 3, "result": [result]}]}]
    assert triples(lo.read_annotations(saved(tmp_path, json.dumps(tasks), "export.json"))) == {(1, 3, "left")}


def test_label_studio_cancelled_answers_can_be_kept_and_ground_truths_are_no_votes() -> None:
    rows, left_out = read("label-studio.json", label="sentiment", rejected="keep")
    assert (102, 8, "positive") in rows
    assert left_out["cancelled or skipped"] == 1
    rows, left_out = read("label-studio-ground-truth.json")
    assert left_out == {"ground truths, which are gold": 5, "cancelled or skipped": 1}
    assert {worker for _, worker, _ in rows} == {7, 8, 9}
    assert len(rows) == 11


@pytest.mark.filterwarnings("ignore::labelonce.formats.LeftOutWarning")
def test_tasks_and_classes_that_only_ground_truths_have_are_kept() -> None:
    ann = lo.read_annotations(TRUTHS)
    assert ann.tasks.tolist() == [201, 202, 204, 205, 206, 203]
    assert ann.classes.tolist() == ["negative", "neutral", "positive"]
    labels = dict(zip(ann.tasks, lo.MajorityVote().fit(ann, gold=lo.read_gold(TRUTHS)).labels_, strict=True))
    assert labels == lo.read_gold(TRUTHS) | {204: "negative", 206: "negative"}


def test_ground_truths_must_agree_and_annotations_are_written_as_none(tmp_path: Path) -> None:
    lo.write(lo.Annotations.from_arrays(["a"], [1], ["cat"]), tmp_path / "import.json", format="label-studio")
    (task,) = json.loads((tmp_path / "import.json").read_text())
    assert [one["ground_truth"] for one in task["annotations"]] == [False]
    tasks = json.loads(TRUTHS.read_text())
    tasks[4]["annotations"][3]["result"][0]["value"]["choices"] = ["negative"]
    with pytest.raises(ValueError, match=r"got \['positive'\] and \['negative'\] in task 205"):
        lo.read_annotations(saved(tmp_path, json.dumps(tasks), "export.json"))


@pytest.mark.filterwarnings("ignore::labelonce.formats.LeftOutWarning")
def test_several_true_labels_are_joined_or_split_as_answers_are(tmp_path: Path) -> None:
    tasks = json.loads(TRUTHS.read_text())
    tasks[2]["annotations"][0]["result"][0]["value"]["choices"] = ["neutral", "negative"]
    path = saved(tmp_path, json.dumps(tasks), "export.json")
    with pytest.raises(ValueError, match=r"one label; got \['neutral', 'negative'\] as gold on task 203"):
        lo.read_gold(path)
    assert lo.read_gold(path, multiple="join")[203] == "negative|neutral"
    split = lo.read_gold(path, multiple="split")
    assert (split["203|neutral"], split["203|positive"], split["202|negative"]) == ("yes", "no", "yes")
    assert set(split) <= set(lo.read_annotations(path, multiple="split").tasks)


def test_label_studio_tasks_workers_and_controls_may_be_named() -> None:
    rows, _ = read("label-studio.json", label="sentiment", task="url")
    assert {task for task, _, _ in rows} == {"review-1", "review-2"}
    with pytest.raises(ValueError, match="'email' missing in task 101"):
        lo.read_annotations(SAMPLES / "label-studio.json", label="sentiment", worker="email")
    with pytest.raises(ValueError, match=r"field 'page'; got \['text', 'url'\] in task 101"):
        lo.read_annotations(SAMPLES / "label-studio.json", label="sentiment", task="page")
    message = r"'stars' \(rating, 4 answers\).*'topics' \(choices, 3 answers\).*label="
    with pytest.raises(ValueError, match=message):
        lo.read_annotations(SAMPLES / "label-studio.json")
    with pytest.raises(ValueError, match=r"'kind', 'sentiment', 'stars', 'topics'; got 'mood'"):
        lo.read_annotations(SAMPLES / "label-studio.json", label="mood")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "not JSON at line 1"),
        ('{"id": 1}', "JSON list of tasks; got {'id': 1}"),
        ('[{"id": 1, "annotator": 3, "mood": "x"}]', "JSON-MIN"),
        ('[{"id": 1, "mood": "x"}]', r"\['id', 'mood'\] at position 0"),
        ('[{"id": 1, "data": {}, "annotations": []}]', "got none. Were these tasks labelled yet"),
        ('[{"id": 1, "data": {}, "annotations": {"a": 1}}]', r"got {'a': 1} in task 1"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_broken_label_studio_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=rf"export\.json: .*{message}"):
        lo.read_annotations(saved(tmp_path, content, "export.json"))


def test_several_labels_are_an_error_unless_joined_or_split() -> None:
    with pytest.raises(ValueError, match=r"\['sound', 'speed'\] by worker 7 on task 101 \(1 in total\).*join"):
        lo.read_annotations(SAMPLES / "label-studio.json", label="topics")
    joined, _ = read("label-studio.json", label="topics", multiple="join")
    assert joined == {(101, 7, "sound|speed"), (101, 8, "speed"), (102, 7, "colour")}
    split, _ = read("label-studio.json", label="topics", multiple="split")
    yes = {(task, worker) for task, worker, said in split if said == "yes"}
    assert yes == {("101|sound", 7), ("101|speed", 7), ("101|speed", 8), ("102|colour", 7)}
    assert len(split) == 9


def test_mturk_is_recognised_and_leaves_out_rejected_and_empty_unless_kept() -> None:
    rows, left_out = read("mturk.csv", label="animal", multiple="join")
    assert rows == {("3HITA", "W1", "cat"), ("3HITA", "W2", "cat|dog"), ("3HITB", "W1", "dog"), ("3HITC", "W1", "cat")}
    assert left_out == {"rejected": 1, "without an answer": 1}
    rows, left_out = read("mturk.csv", label="Answer.animal", task="url", multiple="join", rejected="keep")
    assert ("cats/1.jpg", "W3", "dog") in rows
    assert left_out == {"without an answer": 1}
    rows, _ = read("mturk.csv", label="sure")
    assert ("3HITA", "W1", "yes") in rows
    assert ("3HITA", "W2", "no") in rows


def test_mturk_questions_are_listed_and_crowd_elements_read_out_of_their_json() -> None:
    with pytest.raises(ValueError, match=r"got 'animal', 'sure'. Name one with label="):
        lo.read_annotations(SAMPLES / "mturk.csv")
    with pytest.raises(ValueError, match=r"task column must be one of 'HITId', .*; got 'page'"):
        lo.read_annotations(SAMPLES / "mturk.csv", label="animal", task="page")
    path = SAMPLES / "mturk-crowd-elements.csv"
    rows = triples(lo.read_annotations(path, label="animal"))
    assert rows == {("3HITA", "W1", "cat"), ("3HITA", "W2", "dog"), ("3HITB", "W1", "dog")}
    rows, left_out = read("mturk-crowd-elements.csv", label="colour", multiple="join")
    assert rows == {("3HITA", "W1", "black"), ("3HITA", "W2", "black|white")}
    assert left_out == {"without an answer": 1}


def test_toloka_states_are_counted_arrays_are_several_labels_and_inputs_may_be_tasks() -> None:
    rows, left_out = read("toloka.tsv", label="result")
    assert rows == {("t-1", "w-1", "cat"), ("t-2", "w-1", "dog"), ("t-1", "w-2", "dog")}
    assert left_out == {"rejected": 1, "without an answer": 1, "skipped": 1}
    rows, _ = read("toloka.tsv", label="OUTPUT:seen", task="image", multiple="join", rejected="keep")
    assert ("one.jpg", "w-1", "left|right") in rows
    assert ("one.jpg", "w-3", "right") in rows


def test_toloka_without_task_ids_takes_the_only_input_and_control_tasks_are_gold(tmp_path: Path) -> None:
    path = saved(tmp_path, "INPUT:image\tOUTPUT:result\tASSIGNMENT:worker_id\n1\t0\tw\n2\t1\tw\n", "pool.tsv")
    assert triples(lo.read_annotations(path)) == {(1, "w", 0), (2, "w", 1)}
    assert lo.read_gold(SAMPLES / "toloka.tsv", label="result") == {"t-1": "cat"}
    assert lo.read_gold(TRUTHS) == {201: "positive", 202: "negative", 203: "neutral", 205: "positive"}
    (tmp_path / "gold.csv").write_text("item,truth\n7,x\n5,y\n")
    assert lo.read_gold(tmp_path / "gold.csv", task="item", label="truth") == {5: "y", 7: "x"}


def test_prodigy_choices_and_binary_decisions_are_recognised() -> None:
    rows, left_out = read("prodigy-choice.jsonl", multiple="join")
    assert rows == {(11, "news-kim", "MUSIC"), (11, "news-zoe", "MUSIC|SPORT"), (12, "news-kim", "SPORT")}
    assert left_out == {"ignored": 1, "rejected": 1, "without an answer": 1}
    assert (13, "news-kim", "SPORT") in read("prodigy-choice.jsonl", multiple="join", rejected="keep")[0]
    rows, left_out = read("prodigy-binary.jsonl")
    assert rows == {(-31, "news-kim", "accept"), (-31, "news-zoe", "reject"), (-32, "news-kim", "reject")}
    assert left_out == {"ignored": 1}


def test_prodigy_kinds_are_not_mixed_without_a_word(tmp_path: Path) -> None:
    both = [(SAMPLES / f"prodigy-{kind}.jsonl").read_text() for kind in ("choice", "binary")]
    (tmp_path / "both.jsonl").write_text("".join(both))
    with pytest.raises(ValueError, match="got 'accept', 'answer'"):
        lo.read_annotations(tmp_path / "both.jsonl")
    with pytest.warns(LeftOutWarning, match="without 'answer' 5"):
        lo.read_annotations(tmp_path / "both.jsonl", label="answer")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"answer": "accept", "_task_hash": 1', "one JSON object; got .* at line 1"),
        ('{"answer": "maybe", "_task_hash": 1}', "got 'maybe' at line 1"),
        ('{"answer": "accept", "_task_hash": 1}', "_annotator_id or _session_id; got .* at line 1"),
        ('{"answer": "accept", "_session_id": "kim"}', "_task_hash or text; got .* at line 1"),
    ],
)
def test_broken_prodigy_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lo.read_annotations(saved(tmp_path, line, "news.jsonl"), format="prodigy")


def test_matrix_has_a_row_a_task_and_a_column_a_worker() -> None:
    rows, left_out = read("matrix.csv", format="matrix")
    first = {("a", "kim", 0), ("a", "lee", 1), ("b", "kim", 1)}
    assert rows == first | {("b", "zoe", 1), ("d", "zoe", 0), ("d", "lee", 2)}
    assert left_out == {"tasks without annotations": 1}


def test_npy_matrix_is_read_compressed_and_of_strings_and_pickles_are_not(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array([[0, np.nan], [1, 0]]))
    assert triples(lo.read_annotations(tmp_path / "y.npy")) == {(0, 0, 0), (1, 0, 1), (1, 1, 0)}
    np.save(tmp_path / "bad.npy", np.array([[print, None]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"bad\.npy: a .npy matrix must hold integers or strings .*; got object"):
        lo.read_annotations(tmp_path / "bad.npy")
    np.save(tmp_path / "y.npy", np.array([["cat", "dog"], ["dog", "dog"]]).T)
    (tmp_path / "y.npy.gz").write_bytes(gzip.compress((tmp_path / "y.npy").read_bytes()))
    rows = {(0, 0, "cat"), (0, 1, "dog"), (1, 0, "dog"), (1, 1, "dog")}
    assert triples(lo.read_annotations(tmp_path / "y.npy")) == rows
    assert triples(lo.read_annotations(tmp_path / "y.npy.gz")) == rows


LARGE = (90_000_000_000, 2)


def npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy_header("<i8", LARGE) + bytes(16), r"must be whole; got 16 bytes of .* \(90000000000, 2\), 1,440"),
        (npy_header("<i8", (2, 2)) + bytes(31), "must be whole; got 31 bytes"),
        (npy_header("<i8", (-1, 2)) + bytes(32), "must be whole; got 32 bytes"),
        (npy_header("<U0", LARGE), "must hold integers or strings of one length; got <U0"),
        (b"task,ann\n1,cat\n", "must be a matrix saved by numpy.save; got b'task,ann"),
        (b"\x93NUMPY\x01\x00\x05", r"saved by numpy\.save; got b'\\x93NUMPY"),
        (b"\x93NUMPY\x01\x00\x06\x00((((((", r"saved by numpy\.save; got b'\\x93NUMPY"),
        (b"\x93NUMPY\x09\x00", r"saved by numpy\.save; got b'\\x93NUMPY"),
    ],
)
def test_npy_that_is_broken_says_so(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=rf"y\.npy: .*{message}"):
        lo.read_annotations(saved(tmp_path, content, "y.npy"))


@pytest.mark.parametrize("name", ["x.npy", "x.NPY", "x.npy.gz"])
def test_npy_is_not_written(tmp_path: Path, name: str) -> None:
    ann = lo.Annotations.from_arrays([0, 1], [0, 0], [0, 1])
    message = rf"{name} must not end in \.npy, .* write \.csv in the format matrix"
    with pytest.raises(ValueError, match=message):
        lo.write(ann, tmp_path / name)
    with pytest.raises(ValueError, match=message):
        io.check_target(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_columns_that_are_missing_or_twice_and_files_without_labels_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"m\.csv: the task column must be one of 'task', 'a', 'b'; got 'id'\."):
        lo.read_annotations(saved(tmp_path, "task,a,b\n1,0,1\n2,1,1\n", "m.csv"), format="matrix", task="id")
    path = saved(tmp_path, "HITId,WorkerId,AssignmentStatus,Answer.x\n1,w,Rejected,a\n2,w,Approved,\n", "batch.csv")
    with pytest.raises(ValueError, match=r"got none \(rejected 1, without an answer 1\)"):
        lo.read_annotations(path)
    with pytest.raises(ValueError, match="got 'kim' 2 times"):
        lo.read_annotations(saved(tmp_path, "task,kim,kim\n1,0,1\n", "matrix.csv"), format="matrix")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kind", ["strings", "integers"])
def test_annotations_survive_a_round_trip(tmp_path: Path, tool: str, kind: str) -> None:
    columns: list[list[Any]] = [[3, 1, 1, 2], [10, 10, 11, 12], [0, 1, 1, 0]]
    if kind == "strings":
        columns = [[f'{name}, "{i}"\tü' for i in ids] for name, ids in zip("twl", columns, strict=True)]
    ann = lo.Annotations.from_arrays(*columns)
    path = tmp_path / f"out{SUFFIX[tool]}"
    lo.write(ann, path, format=tool)
    again = lo.read_annotations(path, format=tool)
    if tool == "label-studio" and kind == "integers":
        again = again.relabel({"0": 0, "1": 1})  # a choice is text there
    assert again == ann


@pytest.mark.parametrize("tool", TOOLS)
def test_compressed_files_are_read(tmp_path: Path, tool: str) -> None:
    ann = lo.Annotations.from_arrays(["a", "b"], ["x", "y"], ["cat", "dog"])
    lo.write(ann, tmp_path / f"out{SUFFIX[tool]}.gz", format=tool)
    assert gzip.decompress((tmp_path / f"out{SUFFIX[tool]}.gz").read_bytes())
    assert lo.read_annotations(tmp_path / f"out{SUFFIX[tool]}.gz", format=tool) == ann


@pytest.mark.parametrize("control", ["sentiment", "stars", "kind", "topics"])
def test_label_studio_export_comes_back_into_its_own_control(tmp_path: Path, control: str) -> None:
    options: dict[str, Any] = {"label": control, "multiple": "join"}
    if control == "stars":
        del options["multiple"]
    with pytest.warns(LeftOutWarning):
        ann = lo.read_annotations(SAMPLES / "label-studio.json", **options)
    lo.write(ann, tmp_path / "out.json", format="label-studio", like=SAMPLES / "label-studio.json", **options)
    assert lo.read_annotations(tmp_path / "out.json", **options) == ann
    written = json.loads((tmp_path / "out.json").read_text())
    assert written[0]["data"]["url"] == "review-1"
    assert written[0]["annotations"][0]["result"][0]["to_name"] == "text"


@pytest.fixture
def model() -> lo.MajorityVote:
    good, bad = "positive", "negative"
    ann = lo.Annotations.from_arrays([101] * 3 + [102] * 3, [7, 8, 9] * 2, [good, good, bad, bad, bad, good])
    return lo.MajorityVote(random_state=0).fit(ann)


def test_label_studio_predictions_carry_scores(tmp_path: Path, model: lo.MajorityVote) -> None:
    options = {"label": "sentiment", "like": SAMPLES / "label-studio.json"}
    lo.write(model, tmp_path / "predictions.json", format="label-studio", **options)
    first, second = json.loads((tmp_path / "predictions.json").read_text())
    assert first["data"]["text"].startswith("The kettle")
    said = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": ["negative"]}}
    score = pytest.approx(model.confidence_[1])
    found = {"task": 102, "model_version": "labelonce", "score": score, "result": [said]}
    assert second["predictions"] == [found]


def test_label_studio_refuses_tasks_that_the_export_lacks(tmp_path: Path) -> None:
    ann = lo.Annotations.from_arrays([999], [7], ["positive"])
    options = {"label": "sentiment", "like": SAMPLES / "label-studio.json"}
    with pytest.raises(ValueError, match="got none for 999"):
        lo.write(ann, tmp_path / "out.json", format="label-studio", **options)
    assert list(tmp_path.iterdir()) == []


def test_prodigy_labels_wait_for_review_toloka_labels_are_control_tasks(tmp_path: Path, model: lo.MajorityVote) -> None:
    lo.write(model, tmp_path / "review.jsonl", format="prodigy")
    first, _ = map(json.loads, (tmp_path / "review.jsonl").read_text().splitlines())
    assert first["accept"] == ["positive"]
    assert first["score"] == pytest.approx(model.confidence_[0])
    assert [option["id"] for option in first["options"]] == ["negative", "positive"]
    assert "answer" not in first
    lo.write(model, tmp_path / "control.tsv", format="toloka")
    assert (tmp_path / "control.tsv").read_text() == "INPUT:task\tGOLDEN:label\n101\tpositive\n102\tnegative\n"


@pytest.mark.parametrize("tool", ["mturk", "matrix"])
def test_labels_without_workers_have_no_place_there(tmp_path: Path, model: lo.MajorityVote, tool: str) -> None:
    with pytest.raises(ValueError, match="got labels without workers"):
        lo.write(model, tmp_path / "out.csv", format=tool)
    assert list(tmp_path.iterdir()) == []


def test_options_that_do_nothing_are_refused(tmp_path: Path, model: lo.MajorityVote) -> None:
    with pytest.raises(TypeError, match=r"label must be left out.* got format 'csv'"):
        lo.write(model, tmp_path / "out.csv", label="x")
    with pytest.raises(TypeError, match=r"fields must be left out.* got format 'prodigy'"):
        lo.write(model, tmp_path / "out.jsonl", format="prodigy", label="x")
    with pytest.raises(ValueError, match=r"labels\.csv: .* got a csv file"):
        lo.read_annotations(saved(tmp_path, "task,worker,label\n1,2,3\n"), multiple="join")
    with pytest.raises(ValueError, match="columns task and label; got \\['x'\\]"):
        lo.write(pa.table({"x": [1]}), tmp_path / "out.json", format="label-studio")


@pytest.mark.parametrize("option", ["rejected", "multiple"])
def test_unknown_choices_are_named(option: str) -> None:
    options: dict[str, Any] = {option: "perhaps"}
    with pytest.raises(ValueError, match=f"{option} must be one of .* got 'perhaps'"):
        lo.read_annotations(SAMPLES / "label-studio.json", label="stars", **options)


@pytest.mark.parametrize(("tool", "row"), [("mturk", "1,,Approved,a"), ("mturk", ",w,Approved,a")])
def test_an_empty_id_is_an_error(tmp_path: Path, tool: str, row: str) -> None:
    path = saved(tmp_path, f"HITId,WorkerId,AssignmentStatus,Answer.x\n{row}\n", "batch.csv")
    with pytest.raises(ValueError, match="must not be empty; got"):
        lo.read_annotations(path, format=tool)


def test_plain_tables_are_not_taken_for_exports(tmp_path: Path) -> None:
    path = saved(tmp_path, "task,worker,label,HITId\n1,2,3,4\n")
    assert triples(lo.read_annotations(path)) == {(1, 2, 3)}


def test_recognition_sees_through_marks_and_compression(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + (SAMPLES / "mturk.csv").read_bytes(), mtime=0))
    with pytest.warns(LeftOutWarning, match="rejected 1"):
        assert len(lo.read_annotations(path, label="sure")) == 5
    shutil.copy(SAMPLES / "prodigy-binary.jsonl", tmp_path / "x.ndjson")
    with pytest.warns(LeftOutWarning):
        assert len(lo.read_annotations(tmp_path / "x.ndjson")) == 3


IDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(IDS, IDS, IDS), min_size=1, max_size=6, unique_by=lambda row: row[:2]))
def test_any_strings_come_back_or_are_refused(tool: str, rows: list[tuple[str, str, str]], tmp_path: Path) -> None:
    ann = lo.Annotations.from_arrays(*(list(column) for column in zip(*rows, strict=True)))
    path = tmp_path / "out"
    try:
        lo.write(ann, path, format=tool)
    except ValueError as error:
        assert "a label must" in str(error)  # noqa: PT017  # a refusal is fine, a change is not
        return
    again = lo.read_annotations(path, format=tool)
    assert {tuple(map(str, row)) for row in triples(again)} == triples(ann)


KEYS = st.sampled_from(
    ["id", "data", "annotations", "result", "completed_by", "from_name", "type", "value", "choices", "answer", "accept"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
ITEM = st.fixed_dictionaries({"from_name": JSON, "type": st.sampled_from(["choices", "rating", "x"]), "value": JSON})
TASK = st.fixed_dictionaries(
    {"id": JSON, "data": JSON},
    optional={
        "annotations": JSON | st.lists(st.fixed_dictionaries({"result": JSON | st.lists(ITEM), "completed_by": JSON}))
    },
)
LINE = st.fixed_dictionaries(
    {"answer": st.sampled_from(["accept", "reject"]), "text": JSON}, optional={"accept": JSON, "_session_id": JSON}
)


@pytest.mark.filterwarnings("ignore::labelonce.formats.LeftOutWarning")
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.lists(TASK, max_size=3) | JSON, lines=st.lists(LINE, max_size=3))
def test_any_json_is_read_or_refused_in_a_sentence(content: Any, lines: list[Any], tmp_path: Path) -> None:
    for tool, text in (("label-studio", json.dumps(content)), ("prodigy", "\n".join(map(json.dumps, lines)))):
        with contextlib.suppress(ValueError, TypeError):
            lo.read_annotations(saved(tmp_path, text, "file"), format=tool, duplicates="keep", multiple="join")


@pytest.mark.filterwarnings("ignore::labelonce.formats.LeftOutWarning", "ignore:.*Windows-1252:UserWarning")
@pytest.mark.parametrize("tool", ["mturk", "toloka", "matrix"])
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=60) | st.text('a1,\t"\n[]{}|', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused_in_a_sentence(tool: str, body: bytes, tmp_path: Path) -> None:
    header = {
        "mturk": b"HITId,WorkerId,Answer.x\n",
        "toloka": b"INPUT:x\tOUTPUT:y\tGOLDEN:y\tASSIGNMENT:worker_id\n",
        "matrix": b"task,a,b\n",
    }[tool]
    with contextlib.suppress(ValueError, TypeError):
        lo.read_annotations(saved(tmp_path, header + body, "file"), format=tool, duplicates="keep", multiple="split")


def test_labels_that_a_format_would_change_are_refused(tmp_path: Path) -> None:
    for tool, label in (("mturk", "a|b"), ("matrix", "NA")):
        with pytest.raises(ValueError, match=f"a label must .* got '{re.escape(label)}'"):
            lo.write(lo.Annotations.from_arrays([1], [1], [label]), tmp_path / "out.csv", format=tool)
    lo.write(lo.Annotations.from_arrays([1], [1], ['["a"]']), tmp_path / "out.tsv", format="toloka")
    assert lo.read_annotations(tmp_path / "out.tsv").classes.tolist() == ['["a"]']
