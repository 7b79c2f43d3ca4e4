"""Questions and answers: built alike from every layout, not asked apart from no."""

import pickle

import numpy as np
import pandas as pd
import pytest
from questions import crowd

from labelonce.multilabel import MultiLabelAnnotations

LONG = [
    ("p1", "dog", "ann", "yes"),
    ("p1", "dog", "bob", "yes"),
    ("p1", "sea", "ann", "no"),
    ("p1", "sea", "bob", "yes"),
    ("p2", "dog", "ann", "no"),
    ("p2", "sea", "ann", "no"),
]


@pytest.fixture
def long() -> MultiLabelAnnotations:
    return MultiLabelAnnotations.from_arrays(*zip(*LONG, strict=True), answers=["no", "yes"])


def test_every_layout_order_frame_and_pickle_gives_the_same(long: MultiLabelAnnotations) -> None:
    ticked = MultiLabelAnnotations.from_ticked(["p1", "p1", "p2"], ["ann", "bob", "ann"], [{"dog"}, ["dog", "sea"], ()])
    assert ticked == long
    columns = {"task": ["p1", "p1", "p2"], "worker": ["ann", "bob", "ann"]}
    columns |= {"dog": ["yes", "yes", "no"], "sea": ["no", "yes", "no"]}
    assert MultiLabelAnnotations.from_wide(pd.DataFrame(columns)) == long
    frame = long.to_frame().to_pandas().iloc[[1, 0, 3, 2, 5, 4]]
    assert MultiLabelAnnotations.from_frame(frame, answers=["no", "yes"]) == long
    assert MultiLabelAnnotations.from_frame(long.to_frame()) == long
    assert pickle.loads(pickle.dumps(long)) == long  # our own bytes


def test_what_was_not_shown_or_is_empty_or_minus_one_is_not_asked() -> None:
    ann = MultiLabelAnnotations.from_ticked([1, 2], ["x", "x"], [{"a"}, set()], shown=[{"a", "b"}, {"b"}])
    assert ann.to_frame().to_pylist() == [
        {"task": 1, "question": "a", "worker": "x", "answer": "yes"},
        {"task": 1, "question": "b", "worker": "x", "answer": "no"},
        {"task": 2, "question": "b", "worker": "x", "answer": "no"},
    ]
    frame = pd.DataFrame({"task": [1, 2], "worker": [7, 7], "a": [1.0, np.nan], "b": [0, 1]})
    assert len(MultiLabelAnnotations.from_wide(frame)) == 3
    ann = MultiLabelAnnotations.from_indicator(np.array([[0, 1], [-1, 1]]), questions=["a", "b"])
    assert (ann.n_workers, len(ann), ann.questions.tolist()) == (1, 3, ["a", "b"])


def test_arrays_cannot_be_written_to_and_pairs_number_task_and_question(long: MultiLabelAnnotations) -> None:
    with pytest.raises(ValueError, match="read-only"):
        long.answer[0] = 1
    assert long.pair.tolist() == [0, 0, 1, 1, 2, 3]
    assert long.pair_start.tolist() == [0, 2, 4, 5]


def test_the_constructor_sorts_and_copies_and_known_words_need_no_declaration() -> None:
    task, zeros, answer = np.array([1, 0], np.int32), np.zeros(2, np.int32), np.array([1, 0], np.int32)
    tables = (np.array(["a", "b"]), np.array(["q"]), np.array(["w"]), np.array(["no", "yes"]), np.array([0.0, 1.0]))
    made = MultiLabelAnnotations(task, zeros, zeros, answer, *tables)
    answer[:] = 7
    assert made.task.tolist() == [0, 1]
    assert made.answer.tolist() == [0, 1]
    ann = MultiLabelAnnotations.from_arrays([1, 2, 3], ["a"] * 3, ["x"] * 3, ["yes", "skip", "yes"])
    assert ann.answers.tolist() == ["no", "yes", "skip"]


def test_align_keeps_every_answer_and_select_takes_tasks_with_theirs(long: MultiLabelAnnotations) -> None:
    aligned = long.align(["p3", "p2", "p1"])
    assert aligned.task.tolist() == [1, 1, 2, 2, 2, 2]
    with pytest.raises(ValueError, match="got none for 'p1' \\(4 annotations"):
        long.align(["p2"])
    chosen = long.select(np.array([False, True]))
    assert chosen.tasks.tolist() == ["p2"]
    assert len(chosen) == 2
    with pytest.raises(ValueError, match="shape \\(2,\\); got int64 of shape \\(1,\\)"):
        long.select(np.array([1]))


@pytest.mark.parametrize(("of", "rows"), [("judgements", 4), ("answers", 4)])
def test_a_sample_has_one_worker_a_task_or_question(long: MultiLabelAnnotations, of: str, rows: int) -> None:
    drawn = long.sample(redundancy=1, of=of, random_state=0)
    assert (len(drawn), drawn.redundancy) == (rows, 1.0)


def test_a_sample_keeps_a_form_together_and_draws_every_worker_as_likely() -> None:
    drawn = crowd(redundancy=5).annotations.sample(redundancy=2, random_state=3)
    forms = drawn.to_frame().to_pandas().groupby(["task", "worker"]).size()
    assert set(forms) == {4}
    assert drawn.redundancy == 2
    ann = MultiLabelAnnotations.from_wide(pd.DataFrame({"task": [0] * 4, "worker": range(4), "a": [1] * 4}))
    workers = [int(ann.sample(random_state=seed).worker[0]) for seed in range(400)]
    assert np.bincount(workers, minlength=4).min() > 70  # 100 expected, standard deviation 8.7


def test_relabel_renames_merges_and_drops() -> None:
    ann = MultiLabelAnnotations.from_arrays([1, 2, 3], ["a"] * 3, ["x"] * 3, ["no", "maybe", "yes"])
    assert ann.relabel({"maybe": "yes"}).answer.tolist() == [0, 1, 1]
    assert len(ann.relabel({"maybe": None})) == 2
    assert ann.relabel({"yes": "ja"}).answers.tolist() == ["no", "maybe", "ja"]
    with pytest.raises(ValueError, match="got 'nein' \\(1 in total\\)"):
        ann.relabel({"nein": "no"})


def test_one_question_is_annotations_of_one_label(long: MultiLabelAnnotations) -> None:
    dog = long.of_question("dog")
    assert dog.classes.tolist() == ["no", "yes"]
    assert dog.label.tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match="one of \\['dog', 'sea'\\]; got 'cat'"):
        long.of_question("cat")


@pytest.mark.parametrize(
    ("answers", "values"),
    [
        (["no", "yes"], [0, 1]),
        (["no", "maybe", "yes"], [0, 0.5, 1]),
        ({"no": 0, "skip": None, "yes": 1}, [0, np.nan, 1]),
    ],
)
def test_answers_have_a_value_from_no_to_yes(answers: object, values: list[float]) -> None:
    ann = MultiLabelAnnotations.from_arrays([1, 2], ["a"] * 2, ["x"] * 2, ["no", "yes"], answers=answers)
    np.testing.assert_array_equal(ann.values, values)


def test_other_answers_must_be_declared() -> None:
    with pytest.raises(ValueError, match="got 'ja' \\(1 in total\\)"):
        MultiLabelAnnotations.from_arrays([1], ["a"], ["x"], ["ja"])
    with pytest.raises(ValueError, match="got 2 \\(1 in total\\)"):
        MultiLabelAnnotations.from_arrays([1, 2, 3], ["a"] * 3, ["x"] * 3, [0, 1, 2])
    with pytest.raises(ValueError, match="got \\['ja'\\]"):
        MultiLabelAnnotations.from_arrays([1], ["a"], ["x"], ["ja"], answers={"ja": 1})
    with pytest.raises(ValueError, match=r"got 2\.0 for 'ja'"):
        MultiLabelAnnotations.from_arrays([1], ["a"], ["x"], ["ja"], answers={"nein": 0, "ja": 2})


def test_a_question_answered_twice_is_an_error_or_chosen() -> None:
    rows = ([1, 1], ["a", "a"], ["x", "x"], ["yes", "no"])
    with pytest.raises(ValueError, match="worker 'x' on question 'a' about task 1 again \\(1 repeated"):
        MultiLabelAnnotations.from_arrays(*rows)
    assert MultiLabelAnnotations.from_arrays(*rows, duplicates="last").answer.tolist() == [0]
    assert len(MultiLabelAnnotations.from_arrays(*rows, duplicates="keep")) == 2


def test_a_ticked_label_must_have_been_shown() -> None:
    with pytest.raises(ValueError, match="got 'b' at row 0"):
        MultiLabelAnnotations.from_ticked([1], ["x"], [{"b"}], shown=[{"a"}])
    with pytest.raises(TypeError, match="got 'dog' at row 0"):
        MultiLabelAnnotations.from_ticked([1], ["x"], ["dog"])
    with pytest.raises(ValueError, match="got empty sets in all 1 rows"):
        MultiLabelAnnotations.from_ticked([1], ["x"], [set()])


def test_check_names_what_cannot_be_learned() -> None:
    n = 40
    columns = {"task": list(range(n)) * 2, "worker": ["x"] * n + ["y"] * n}
    columns |= {"never": [0] * 2 * n, "always": [1] * 2 * n, "some": [1] * n + [0] * n}
    found = MultiLabelAnnotations.from_wide(pd.DataFrame(columns)).check()
    assert [one.kind for one in found.problems] == ["never ticked", "always ticked"]
    assert found.yes_share == {"never": 0.0, "always": 1.0, "some": 0.5}
    assert found.agreement == pytest.approx(2 / 3)


def test_check_names_workers_who_always_say_no() -> None:
    n = 40
    columns = {"task": list(range(n)) * 2, "worker": ["x"] * n + ["lazy"] * n, "a": [0, 1] * (n // 2) + [0] * n}
    (problem,) = MultiLabelAnnotations.from_wide(pd.DataFrame(columns)).check().problems
    assert problem.sentence == "1 workers always answer no, such as worker 'lazy' with 40 answers. Look at their work."
