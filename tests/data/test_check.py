"""`check`: counts against brute force, and every problem found in data that has it and in no other."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from crowds import crowd
from hypothesis import given
from hypothesis import strategies as st

import labelonce as lo
from labelonce import simulate
from labelonce.data import _spelling
from labelonce.data._spelling import alike, blank_twins, look_missing, spellings


def good_crowd(redundancy: int = 3) -> lo.Annotations:
    return crowd(n_tasks=60, redundancy=redundancy, confusion=simulate.one_coin(np.full(6, 0.8), 3))[0]


def kinds(ann: lo.Annotations) -> set[str]:
    return {problem.kind for problem in lo.check(ann).problems}


def test_a_good_crowd_has_no_problem() -> None:
    found = lo.check(good_crowd())
    assert found.problems == ()
    assert found.notes == ()
    assert (found.n_annotations, found.n_tasks, found.n_workers, found.n_classes) == (180, 60, 6, 3)
    assert not found.needs_features


def test_counts_equal_a_brute_force_count() -> None:
    rng = np.random.default_rng(1)
    task, worker, label = rng.integers(0, 12, 40), rng.integers(0, 9, 40), rng.integers(0, 3, 40)
    ann = lo.Annotations.from_arrays(task, worker, label, duplicates="first")
    rows = [tuple(row.values()) for row in ann.to_frame().to_pylist()]
    by_task = {t: [row[2] for row in rows if row[0] == t] for t in {row[0] for row in rows}}
    pairs = [a == b for labels in by_task.values() for a, b in combinations(labels, 2)]
    found = lo.check(ann)
    assert found.agreement == pytest.approx(np.mean(pairs))
    assert found.tasks_by_redundancy == dict(sorted(Counter(map(len, by_task.values())).items()))
    assert found.classes == {str(k): n for k, n in sorted(Counter(row[2] for row in rows).items())}
    assert found.chance_agreement == pytest.approx(sum((n / len(rows)) ** 2 for n in found.classes.values()))
    assert found.overlap == np.mean([len(labels) > 1 for labels in by_task.values()])


def test_groups_repeats_and_what_nobody_used_are_counted() -> None:
    ann = lo.Annotations.from_arrays([1, 1, 2, 3, 3, 4], ["a", "b", "b", "c", "d", "e"], [0, 1, 0, 1, 0, 1])
    found = lo.check(ann)
    assert (found.n_groups, found.largest_group) == (3, 0.5)
    assert "3 groups" in next(note.sentence for note in found.notes if note.kind == "groups")
    ann = lo.Annotations.from_arrays([1, 1, 1, 2], ["x"] * 4, ["a", "a", "b", "a"], duplicates="keep")
    problem = next(problem for problem in lo.check(ann).problems if problem.kind == "duplicates")
    assert problem.count == 2
    assert "2 rows repeat a worker and a task (1 with another label), first worker 'x' on task 1" in problem.sentence
    ann = lo.Annotations.from_arrays([1, 2], ["x", "y"], ["a", "b"], classes=["a", "b", "c"]).align([1, 2, 3])
    notes = {note.kind: note.count for note in lo.check(ann).notes}
    assert notes["unlabelled tasks"] == 1
    assert notes["unused classes"] == 1
    assert lo.check(ann).tasks_by_redundancy == {0: 1, 1: 2}


def test_shares_of_workers_follow_their_labels() -> None:
    worker = np.repeat(["many", "some", "few"], [20, 19, 9])
    ann = lo.Annotations.from_arrays(np.arange(48), worker, np.arange(48) % 2)
    found = lo.check(ann)
    assert found.skill_share == pytest.approx(2 / 3)
    assert found.confusion_share == pytest.approx(1 / 3)
    assert found.labels_per_worker == {"min": 9, "median": 19.0, "max": 20}
    few = next(note.sentence for note in found.notes if note.kind == "few labels")
    assert "1 of 3 workers gave fewer than 10" in few


@pytest.mark.parametrize(("redundancy", "needed"), [(1, True), (2, False)])
def test_features_are_needed_at_redundancy_one(redundancy: int, needed: bool) -> None:
    found = lo.check(good_crowd(redundancy))
    assert found.needs_features is needed
    assert ("one label per task" in {note.kind for note in found.notes}) is needed


def test_spelling_is_doubted() -> None:
    label = ["cat"] * 40 + ["dog"] * 39 + ["cta", "Dog "]
    ann = lo.Annotations.from_arrays(np.arange(81), np.arange(81) % 7, label)
    sentences = [problem.sentence for problem in lo.check(ann).problems if problem.kind == "spelling"]
    assert sentences == [
        "2 labels are spellings of 1 class: 'Dog ' (1), 'dog' (39). Give them one spelling with normalise(), or new "
        "names with relabel(...).",
        "labels 'cta' (1) and 'cat' (40) look alike. If they are one, rename the first with relabel(...).",
    ]


@pytest.mark.parametrize(
    ("task", "worker", "label", "says"),
    [
        (["1", "2"], ["kim", "nan"], ["a", "b"], r"worker ids \['nan'\] look like missing"),
        (["1", " "], ["kim", "zoe"], ["a", "b"], r"task ids \[' '\] look like missing"),
        (["1", "2"], ["kim", "zoe"], ["a", "null"], r"label ids \['null'\] look like missing"),
        (["1", "2"], ["kim", "Kim "], ["a", "b"], "worker ids 'kim' and 'Kim ' look alike"),
        (["1", "1 "], ["kim", "zoe"], ["a", "b"], "task ids '1 ' and '1' look alike"),
    ],
)
def test_odd_ids_are_named(task: list[str], worker: list[str], label: list[str], says: str) -> None:
    problems = lo.check(lo.Annotations.from_arrays(task, worker, label)).problems
    assert [problem.kind for problem in problems] == ["odd ids"]
    with pytest.raises(ValueError, match=says):
        raise ValueError(problems[0].sentence)


def test_one_class_one_worker_chance_and_decimals_are_problems() -> None:
    assert kinds(lo.Annotations.from_arrays([1, 2], ["x", "y"], ["a", "a"])) == {"one class"}
    assert kinds(lo.Annotations.from_arrays([1, 2], ["x", "x"], ["a", "b"])) == {"one worker"}
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(200), 3), np.tile(np.arange(3), 200)
    assert kinds(lo.Annotations.from_arrays(task, worker, rng.integers(0, 4, 600))) == {"agreement by chance"}
    ann = lo.Annotations.from_arrays(["1.0", "2.0"], ["a", "b"], ["x", "y"])
    sentences = [problem.sentence for problem in lo.check(ann).problems]
    assert any("task ids such as '1.0' are whole numbers with decimals" in one for one in sentences)


def test_a_worker_who_does_nearly_all_is_named() -> None:
    worker = ["busy"] * 50 + ["other"] * 10
    ann = lo.Annotations.from_arrays(np.arange(60), worker, np.arange(60) % 2)
    problem = next(problem for problem in lo.check(ann).problems if problem.kind == "one busy worker")
    assert "'busy' gave 83% of the labels" in problem.sentence
    worker = ["busy"] * 48 + ["other"] * 12
    assert kinds(lo.Annotations.from_arrays(np.arange(60), worker, np.arange(60) % 2)) == set()


def test_workers_who_always_give_one_label_are_named_unless_luck_explains_it() -> None:
    worker = np.repeat(["lazy", "fair"], [12, 60])
    label = np.append(np.zeros(12, int), np.arange(60) % 3)
    problem = lo.check(lo.Annotations.from_arrays(np.arange(72), worker, label)).problems
    assert [(one.kind, one.count) for one in problem if one.kind == "constant workers"] == [("constant workers", 1)]
    assert "such as worker 'lazy' with 12 labels" in problem[-1].sentence
    common = np.append(np.zeros(12, int), np.arange(60) % 20 == 1)
    assert "constant workers" not in kinds(lo.Annotations.from_arrays(np.arange(72), worker, common))


def test_the_result_is_plain_json_and_nothing_of_tasks_times_workers_is_made() -> None:
    found = json.loads(json.dumps(lo.check(good_crowd()).to_dict()))
    assert found["n_annotations"] == 180
    assert found["tasks_by_redundancy"] == {"3": 60}
    n = 200_000
    ann = lo.Annotations.from_arrays(np.arange(n), np.arange(n), np.arange(n) % 1000)
    assert lo.check(ann).n_groups == n


def test_other_answers_and_scales_are_told_apart_from_classes() -> None:
    rows = ([1, 1, 2, 2], list("xyxy"), ["no", "maybe", "yes", "maybe"])
    found = lo.check(lo.Annotations.from_arrays(*rows, classes=["no", "yes"], answers=["no", "yes", "maybe", "skip"]))
    assert (found.n_classes, found.classes, found.other_answers) == (2, {"no": 1, "yes": 1}, {"maybe": 2, "skip": 0})
    notes = {note.kind: note.sentence for note in found.notes}
    assert notes["other answers"].startswith("2 of 4 labels are answers that are no class")
    assert notes["unused answers"] == "1 answers were never given."
    assert "unused classes" not in notes
    ann = lo.Annotations.from_arrays([1, 1, 2], list("xyx"), [5, 4, 1], classes=["no", "yes"], answers=[1, 2, 3, 4, 5])
    found = lo.check(ann)
    assert found.other_answers == {"1": 1, "2": 0, "3": 0, "4": 1, "5": 1}
    assert "from 1 for 'no' to 5 for 'yes'." in {note.kind: note.sentence for note in found.notes}["scale"]
    found = lo.check(lo.Annotations.from_arrays([1, 1, 2], list("xyx"), ["a", "b", "a"]))
    assert found.other_answers == {}
    assert not {"other answers", "scale", "unused answers"} & {note.kind for note in found.notes}


def ids(*names: str) -> np.ndarray:
    return np.array(names, dtype=object)


@pytest.mark.parametrize("other", ["Cat", "cat ", " CAT", "cat\u00a0", "\uff43at"])
def test_capitals_blanks_and_forms_make_labels_alike_however_frequent(other: str) -> None:
    assert alike({"cat": 10, other: 10}) == [("cat", other)]


@pytest.mark.parametrize(("one", "other"), [("off topic", "off-topic"), ("off_topic", "Off  topic")])
def test_hyphens_make_labels_alike(one: str, other: str) -> None:
    assert alike({one: 3, other: 9}) == [(one, other)]


@pytest.mark.parametrize("slip", ["cta", "ca", "cats", "bat", "act", "xcat"])
def test_a_rare_slip_of_a_frequent_label_is_alike(slip: str) -> None:
    if len(slip) < 3:
        assert alike({"cat": 40, slip: 1}) == []
    else:
        assert alike({"cat": 40, slip: 2}) == [(slip, "cat")]
        assert alike({"cat": 40, slip: 3}) == []


@pytest.mark.parametrize(
    "labels",
    [
        *(["cat", "dog"], ["class1", "class2"], ["C", "C++"], ["cat", "tac"], ["a", "b"], ["+", "-"]),
        *(["1", "-1"], ["1", "10"], ["1.5", "15"], ["2", "2.01"], ["9" * 40, "9" * 39 + "8"]),
    ],
)
def test_labels_that_mean_different_things_and_other_numbers_are_left_alone(labels: list[str]) -> None:
    assert alike({labels[0]: 1000, labels[1]: 1}) == []


@pytest.mark.parametrize("other", ["1.0", "01", "+1", "1.", " 1 ", "\uff11"])
def test_numbers_of_equal_value_are_alike(other: str) -> None:
    assert alike({other: 10, "1": 20}) == [(other, "1")]


def test_labels_of_megabytes_and_integers_have_no_slips() -> None:
    long = "x" * 3_000_000
    assert alike({long: 40, long[:-1] + "y": 1, "X" + long[1:]: 30}) == [("X" + long[1:], long)]
    assert alike({1: 1000, 11: 1}) == []


@given(st.text("abc", min_size=3, max_size=6), st.text("abc", min_size=3, max_size=6))
def test_a_slip_is_one_edit_or_one_swap(one: str, other: str) -> None:
    found = _spelling._one_slip([one, other]) != []
    assert found == (one != other and other in _edits(one))


def _edits(word: str) -> set[str]:
    """Return every word one letter or one swap away, by brute force."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    gone = {a + b[1:] for a, b in cuts if b}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    wrong = {a + c + b[1:] for a, b in cuts if b for c in "abc"}
    more = {a + c + b for a, b in cuts for c in "abc"}
    return gone | swapped | wrong | more


def test_words_for_nothing_and_twins_that_differ_in_blanks_are_found() -> None:
    assert look_missing(ids("kim", " ", "NaN", "None", "null")) == [" ", "NaN", "None", "null"]
    assert look_missing(ids("None", "nan"), strict=True) == ["nan"]
    assert look_missing(np.array([1, 2])) == []
    assert blank_twins(ids("kim", "Kim", "kim "), case=False) == [("kim ", "kim")]
    assert blank_twins(ids("kim", "Kim", "kim "), case=True) == [("Kim", "kim"), ("kim ", "kim")]
    assert blank_twins(np.array([1, 2]), case=True) == []


@pytest.mark.parametrize("other", ["Book", " book", "book.", "\u201cbook\u201d", "BOOK!"])
def test_case_blanks_and_punctuation_around_are_spellings_of_one_label(other: str) -> None:
    assert spellings({"book": 9, other: 3, "film": 5}) == {other: "book"}


def test_one_spelling_stands_for_labels_but_slips_are_left_to_a_person() -> None:
    assert spellings({"book": 9, "Book": 1}, declared=["Book", "Film"]) == {"book": "Book"}
    assert spellings({"book": 90, "bok": 1, "C": 3, "C++": 3, "+": 1, "-": 1, "?": 1}) == {}
    assert spellings({"book ": 9, "1.0": 3, "1": 1, "01": 3}) == {"book ": "book", "1": "1.0", "01": "1.0"}
