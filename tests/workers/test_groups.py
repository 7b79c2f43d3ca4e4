"""Groups of classes: read from a table or a taxonomy, or found in the labels."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from labelonce import Annotations, simulate
from labelonce._kernels import Beliefs
from labelonce._types import Floats, Ids
from labelonce.workers import Grouped
from labelonce.workers._communities import communities
from labelonce.workers._groups import Groups, find_groups, groups_hold, read_groups, taxonomy_groups

CLASSES = np.array(["beagle", "poodle", "siamese", "tabby"], dtype=object)
TABLE = {"tabby": "cat", "poodle": "dog", "siamese": "cat", "beagle": "dog"}


@pytest.mark.parametrize(
    "groups",
    [
        TABLE,
        list(TABLE.items()),
        pa.table({"class": list(TABLE), "group": list(TABLE.values()), "note": [1, 2, 3, 4]}),
        {"class": list(TABLE), "group": list(TABLE.values())},
    ],
    ids=["mapping", "pairs", "table", "columns"],
)
def test_every_form_of_a_table_gives_the_same_groups(groups: Any) -> None:
    found = read_groups(groups, CLASSES)
    assert found.names.tolist() == ["cat", "dog"]
    assert_array_equal(found.group, [1, 1, 0, 0])
    assert_array_equal(found.position, [1, 0, 1, 0])  # the order of the table


def test_codes_and_the_parents_of_paths_are_groups() -> None:
    found = read_groups(np.array([7, 3, 7, 7]), CLASSES)
    assert_array_equal(found.group, [1, 0, 1, 1])
    assert_array_equal(found.position, [0, 0, 1, 2])
    assert_array_equal(found.members(1), [0, 2, 3])
    assert read_groups(found, CLASSES) is found
    classes = np.array(["a/b/x", "a/b/y", "a/c/x", "d/x"], dtype=object)
    found = read_groups("taxonomy", classes)
    assert found.names.tolist() == ["a/b", "a/c", "d"]
    assert_array_equal(found.group, [0, 0, 1, 2])


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([*TABLE.items(), ("tabby", "dog")], r"one group; got 'tabby' in 'cat' and 'dog' \(1 in total\)"),
        ([("tabby", "cat"), ("poodle", "dog")], r"have a group; got none for 'beagle' \(2 in total\)"),
        (TABLE | {"wolf": "dog"}, r"among \['beagle'.*got 'wolf' \(1 in total\)"),
        ("taxonomy", r"path such as animal/dog/beagle .* got 'beagle' \(4 in total\)"),
        (np.array([0, 1, 1]), r"one entry per class, 4 .* got 3"),
        ({0: "cat", 1: "dog"}, r"must be strings, .* got integers"),
        ("found", r"one of 'taxonomy', 'auto'; got 'found'"),
        ("auto", "which needs annotations: use fit"),
        (5, r"one whole number per class, 'taxonomy' or 'auto'; got 5 \(int\)"),
        (np.array([0.0, 0.5, 1.0, 1.5]), r"one whole number per class.* \(ndarray\)"),
        ([("tabby", "cat", 1)], r"pairs of a class and its group; got \[\('tabby', 'cat', 1\)\]"),
    ],
)
def test_a_table_that_is_no_partition_is_refused_in_one_sentence(groups: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        read_groups(groups, CLASSES)


def test_positions_do_not_depend_on_the_names_of_the_classes() -> None:
    renamed = np.array(["z", "b", "y", "a"], dtype=object)
    table = [(dict(zip(CLASSES, renamed, strict=True))[name], group) for name, group in TABLE.items()]
    order = np.argsort(renamed)
    found, before = read_groups(table, renamed[order]), read_groups(TABLE, CLASSES)
    assert_array_equal(found.group, before.group[order])
    assert_array_equal(found.position, before.position[order])


SETTINGS = {  # groups, crowd, quality, labels per task, tasks, whether a model answers too
    "hammer-spammer r=2": (np.arange(100) // 10, "hammer_spammer", 0.2, 2, 20_000, None),
    "class-wise r=3": (np.arange(100) // 10, "class_wise_hammer_spammer", 0.6, 3, 20_000, None),
    "one label and predictions": (np.arange(100) // 10, "hammer_spammer", 0.2, 1, 20_000, 0.6),
    "weak predictions": (np.arange(60) % 6, "class_wise_hammer_spammer", 0.6, 1, 60_000, 0.45),
    "uneven groups": (np.repeat(np.arange(6), [2, 3, 5, 10, 15, 25]), "hammer_spammer", 0.5, 2, 30_000, None),
    "a thousand classes": (np.arange(1000) // 10, "class_wise_hammer_spammer", 0.2, 2, 150_000, None),
}


def labelled(setting: str, *, bridges: float, seed: int = 0) -> tuple[Ids, Annotations, Ids | None]:
    """Return true groups, labels of which a share is of any class at all, and predictions."""
    group, crowd, quality, redundancy, n_tasks, accuracy = SETTINGS[setting]
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, len(group), n_tasks).astype(np.int32)
    workers = getattr(simulate, f"grouped_{crowd}")(200, group, quality, rng)
    ann = simulate.annotate(y_true, workers, simulate.assign(n_tasks, 200, redundancy, rng), rng)
    label = np.where(rng.random(len(ann)) < bridges, rng.integers(0, len(group), len(ann)), ann.label)
    ann = Annotations(ann.task, ann.worker, label.astype(np.int32), ann.tasks, ann.workers, ann.classes)
    if accuracy is None:
        return group, ann, None
    return group, ann, np.where(rng.random(n_tasks) < accuracy, y_true, rng.integers(0, len(group), n_tasks))


@pytest.mark.parametrize("setting", SETTINGS)
def test_groups_are_found_exactly(setting: str) -> None:
    group, ann, predictions = labelled(setting, bridges=0.0)
    assert adjusted_rand_score(group, find_groups(ann, predictions).group) == 1


@pytest.mark.parametrize("setting", SETTINGS)
def test_groups_survive_one_bridging_label_in_twenty(setting: str) -> None:
    group, ann, predictions = labelled(setting, bridges=0.05)
    assert adjusted_rand_score(group, find_groups(ann, predictions).group) >= 0.99


@pytest.mark.parametrize("sparse", [False, True])
def test_a_model_that_takes_other_classes_for_each_other_than_people_do_counts_where_it_is_sure(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    group, y_true = np.arange(100) // 10, rng.integers(0, 100, 50_000)
    workers = simulate.grouped_hammer_spammer(200, group, 0.2, rng)
    ann = simulate.annotate(y_true, workers, simulate.assign(50_000, 200, 1, rng), rng)
    points = rng.standard_normal((100, 8))
    points /= np.linalg.norm(points, axis=1, keepdims=True)  # their neighbours are of any group
    scores = (points[y_true] + 0.25 * rng.standard_normal((50_000, 8))) @ points.T / 0.25**2
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    soft = odds / odds.sum(axis=1, keepdims=True)
    found = find_groups(ann, Beliefs.from_dense(soft, 10) if sparse else soft)
    assert adjusted_rand_score(group, found.group) == 1
    assert adjusted_rand_score(group, find_groups(ann, soft.argmax(axis=1)).group) == 1


def test_agreement_one_task_and_one_label_each_tell_no_groups() -> None:
    ann = Annotations.from_arrays([0, 1, 2], [0, 0, 0], [0, 1, 2])
    assert find_groups(ann, [0, 1, 2]).n_groups == 3
    one_task = Annotations.from_matrix(np.array([[0] * 10 + [1] * 10, [2] * 20, [3] * 20]))
    assert find_groups(one_task).n_groups == 4
    with pytest.raises(ValueError, match="got 3 tasks of one label each"):
        find_groups(ann)
    with pytest.raises(ValueError, match="one entry per task, 3; got 2"):
        find_groups(ann, [0, 1])


def test_mistakes_without_structure_join_nothing_and_members_are_all_classes() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 50, 20_000)
    workers = simulate.one_coin(np.full(20, 0.5), 50)
    ann = simulate.annotate(y_true, workers, simulate.assign(20_000, 20, 3, rng), rng)
    assert find_groups(ann).n_groups == 50
    groups = Groups.of(np.array([2, 0, 1, 0, 2], dtype=np.int32))
    assert_array_equal(np.concatenate([groups.members(g) for g in range(3)]), groups.by_group)
    assert_array_equal(np.sort(groups.by_group), np.arange(5))
    assert taxonomy_groups(np.array(["a/b"], dtype=object)).n_groups == 1


def test_groups_found_ignore_the_order_of_tasks_and_workers_and_follow_a_renaming() -> None:
    _, ann, predictions = labelled("one label and predictions", bridges=0.05)
    rng = np.random.default_rng(1)
    task, worker, name = (rng.permutation(n).astype(np.int32) for n in (ann.n_tasks, ann.n_workers, ann.n_classes))
    moved = Annotations(task[ann.task], worker[ann.worker], name[ann.label], ann.tasks, ann.workers, ann.classes)
    assert predictions is not None
    again = np.empty_like(predictions)
    again[task] = name[predictions]
    before, after = find_groups(ann, predictions), find_groups(moved, again)
    assert adjusted_rand_score(before.group, after.group[name]) == 1


@pytest.mark.parametrize(("model", "leaving", "holds"), [(0.6, 0.0, True), (0.9, 0.2, True), (0.9, 0.9, False)])
def test_groups_hold_where_labels_that_sure_predictions_deny_stay(model: float, leaving: float, holds: bool) -> None:
    """A weak model is wrong about the group more often than the labels, but not where it is sure."""
    rng = np.random.default_rng(0)
    group = np.arange(60) // 6
    y = rng.integers(0, 60, 4000)
    inside, anywhere = 6 * group[y] + rng.integers(0, 6, 4000), rng.integers(0, 60, 4000)
    label = np.where(rng.random(4000) < 0.5, y, np.where(rng.random(4000) < leaving, anywhere, inside))
    right = rng.random(4000) < model
    pick, sure = np.where(right, y, rng.integers(0, 60, 4000)), np.where(right, 0.5, 0.3) + 0.4 * rng.random(4000)
    predictions = Beliefs(sure[:, None], 60, pick[:, None].astype(np.int32), 1 - sure)
    ann = Annotations.from_matrix(label[:, None], classes=np.arange(60))
    assert groups_hold(ann, predictions, Groups.of(group)) is holds


@pytest.mark.parametrize(
    ("predictions", "sentence"),
    [
        (np.zeros(3, int), "one entry per task, 4; got 3"),
        (np.full(4, 0.5), r"integer array; got float64 of shape \(4,\)"),
        (np.array(3), r"integer array; got int64 of shape \(\)"),
        (np.full(4, 9), r"in \[0, 4\); got 9 at position 0"),
        (np.full((4, 7), 1 / 7), r"shape \(4, 4\); got \(4, 7\)"),
        (Beliefs.certain(np.zeros(5, np.int32), 4, few=True), r"shape \(4, 4\); got \(5, 4\)"),
    ],
)
def test_predictions_of_other_tasks_or_classes_are_refused_in_one_sentence(predictions: Any, sentence: str) -> None:
    ann = Annotations.from_matrix(np.arange(4)[:, None])
    with pytest.raises((TypeError, ValueError), match=sentence):
        find_groups(ann, predictions)
    with pytest.raises((TypeError, ValueError), match=sentence):
        Grouped().fit(ann, predictions)


def test_a_group_too_large_to_hold_its_pairs_is_refused_before_the_memory_is_asked_for() -> None:
    classes = np.arange(60_000)
    ann = Annotations.from_matrix(np.array([[3, 4], [5, 5]]), classes=classes)
    with pytest.raises(ValueError, match=r"got 3,600,000,000 and 120,000: the largest group has 60,000 classes"):
        Grouped(np.zeros(60_000, int)).fit(ann, np.array([3, 5]))
    assert Grouped(classes // 10).fit(ann, np.array([3, 5])).factors_.shape == (2, 60_000, 60_000)


def planted(group: Any, inside: float, between: float, seed: int = 0) -> Floats:
    """Return counts of meetings: of each node so many within its group, and so many with all others."""
    rng = np.random.default_rng(seed)
    size = np.bincount(group)[group]
    rate = np.where(group[:, None] == group, inside / (size - 1), between / (len(group) - size))
    upper = np.triu(rng.poisson(rate), 1)
    return np.asarray(upper + upper.T, dtype=np.float64)


@pytest.mark.parametrize("between", [0.0, 10.0, 30.0])
def test_planted_groups_of_different_sizes_are_found(between: float) -> None:
    group = np.repeat(np.arange(8), [3, 5, 8, 10, 10, 12, 15, 20])
    assert adjusted_rand_score(group, communities(planted(group, 100.0, between))) > 0.99


def test_a_few_strong_bridges_do_not_join_groups() -> None:
    group = np.arange(60) // 6
    graph = planted(group, 50.0, 10.0)
    for one in range(0, 54, 6):
        graph[one, one + 6] = graph[one + 6, one] = 30.0
    assert adjusted_rand_score(group, communities(graph)) == 1


def test_a_graph_has_its_components_whatever_the_names_of_its_nodes() -> None:
    apart = np.zeros((7, 7))
    for one, two in ((0, 1), (1, 2), (4, 5)):
        apart[one, two] = apart[two, one] = 5.0
    assert_array_equal(communities(apart), [0, 0, 0, 1, 2, 2, 3])
    assert_array_equal(communities(np.zeros((3, 3))), [0, 1, 2])
    group = np.arange(40) // 5
    graph, order = planted(group, 50.0, 30.0), np.random.default_rng(1).permutation(40)
    found = communities(graph)
    assert adjusted_rand_score(communities(graph[np.ix_(order, order)]), found[order]) == 1
