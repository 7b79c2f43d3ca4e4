"""What a panel says is what is so, on panels that are made."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce.judges import alternative_annotator_test

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


def panel(
    shared: float, *, judges: int = 4, people: int = 2, classes: int = 2, n: int = 800, seed: int = 0
) -> tuple[lo.Annotations, Any]:
    """Return models that are right four times in five and share verdicts, with people on a tenth of the tasks."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, n)

    def verdict(skill: float) -> Any:
        return np.where(rng.random(n) < skill, truth, (truth + rng.integers(1, classes, n)) % classes)

    common = verdict(0.8)
    matrix = [np.where(rng.random(n) < shared, common, verdict(0.8)) for _ in range(judges)]
    matrix += [np.where(rng.random(n) < 0.1, verdict(0.95), -1) for _ in range(people)]
    workers = [f"model{j}" for j in range(judges)] + [f"person{j}" for j in range(people)]
    return lo.Annotations.from_matrix(np.stack(matrix, axis=1), workers=workers, classes=range(classes)), truth


def gold_of(annotations: lo.Annotations, truth: Any, n: int) -> dict[Any, Any]:
    chosen = np.random.default_rng(5).choice(annotations.n_tasks, n, replace=False)
    return {annotations.tasks[i]: annotations.classes[truth[i]] for i in chosen}


@pytest.mark.parametrize("classes", [2, 4])
def test_a_panel_with_shared_mistakes_is_not_sure(classes: int) -> None:
    annotations, truth = panel(0.7, classes=classes)
    found = lo.JudgePanel().fit(annotations)
    right = (found.labels_ == truth).mean()
    naive = lo.DawidSkene().fit(annotations).posterior_.max(axis=1).mean()
    assert found.estimated_accuracy_.low <= right <= found.estimated_accuracy_.high
    assert abs(found.confidence_.mean() - right) < 0.1 < naive - right
    assert found.effective_workers_.value < 3
    assert found.skill_[found.people_].min() > found.skill_[~found.people_].max()


def test_gold_says_how_much_is_shared() -> None:
    shares = []
    for shared in (0.0, 0.9):
        annotations, truth = panel(shared, judges=6, people=0)
        found = lo.JudgePanel().fit(annotations, gold=gold_of(annotations, truth, 200))
        right = (found.labels_ == truth).mean()
        assert abs(found.confidence_.mean() - right) < 0.05
        shares.append(found.shared_error_.value)
    assert shares[0] < 0.45 < 0.75 < shares[1]


def test_gold_finds_the_judge_among_those_who_err_together() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    wrong = np.where(rng.random((400, 1)) < 0.35, truth[:, None], 1 - truth[:, None])
    crowd = np.where(rng.random((400, 5)) < 0.9, wrong, 1 - wrong)
    good = np.where(rng.random(400) < 0.9, truth, 1 - truth)
    annotations = lo.Annotations.from_matrix(np.column_stack([crowd, good]))
    without = (lo.JudgePanel().fit(annotations).labels_ == truth).mean()
    found = lo.JudgePanel().fit(annotations, gold=gold_of(annotations, truth, 40))
    assert without < 0.5
    assert (found.labels_ == truth).mean() > 0.85
    assert found.versus_best_judge().judge == 5


def test_gold_does_not_turn_what_all_judges_say() -> None:
    """Of 20 gold tasks of a panel right seven times in ten, only eleven are right now and then."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 1000)
    common = np.where(rng.random(1000) < 0.7, truth, 1 - truth)
    matrix = np.where(rng.random((1000, 30)) < 0.97, common[:, None], 1 - common[:, None])
    annotations = lo.Annotations.from_matrix(matrix)
    wrong, right = np.flatnonzero(common != truth)[:9], np.flatnonzero(common == truth)[:11]
    gold = {int(task): int(truth[task]) for task in (*wrong, *right)}
    found = lo.JudgePanel().fit(annotations, gold=gold)
    assert (found.labels_ == common).mean() > 0.75


def test_a_ridge_speaks_where_judges_differ_in_skill_and_share_the_rest() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 800)
    common = np.where(rng.random(800) < 0.75, truth, 1 - truth)
    own = np.where(rng.random((800, 40)) < rng.uniform(0.55, 0.95, 40), truth[:, None], 1 - truth[:, None])
    annotations = lo.Annotations.from_matrix(np.where(rng.random((800, 40)) < 0.6, common[:, None], own))
    found = lo.JudgePanel().fit(annotations, gold=gold_of(annotations, truth, 100))
    vote = (lo.MajorityVote().fit(annotations).labels_ == truth).mean()
    assert (found.labels_ == truth).mean() > vote + 0.05


@pytest.mark.parametrize("shared", [0.2, 0.8])
def test_gold_tells_the_effective_number(shared: float) -> None:
    annotations, truth = panel(shared, judges=8, people=0, n=2000)
    wrong = annotations.to_matrix(dense=True) != truth[:, None]
    both = np.corrcoef(wrong.T)[np.triu_indices(8, 1)].mean()
    found = lo.JudgePanel().fit(annotations, gold=gold_of(annotations, truth, 150))
    assert found.effective_workers_.value == pytest.approx(8 / (1 + 7 * both), rel=0.2)


def test_steady_judges_count_more_where_choices_are_swapped() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 300)
    task: list[Any] = []
    worker: list[Any] = []
    label: list[Any] = []
    bias = rng.random((300, 2)) < 0.75  # of the majority, in either order: together, and against the swapped one
    for judge in range(5):
        for order in (0, 1):
            says = np.where(bias[:, order], order, truth)
            if judge == 0:
                before, steady = (label[-1], 0.95) if order else (truth, 0.92)
                says = np.where(rng.random(300) < steady, before, 1 - before)
            task, worker, label = [*task, np.arange(300)], [*worker, np.full(300, judge)], [*label, says]
    orders = np.repeat(np.tile([0, 1], 5), 300)
    annotations = lo.Annotations.from_arrays(*map(np.concatenate, (task, worker, label)), order=orders)
    found = lo.JudgePanel().fit(annotations)
    assert np.argmax(found.consistency_) == 0
    assert (found.labels_ == truth).mean() > 0.85


def test_labels_follow_a_relabelling_of_the_classes_and_the_order_of_the_judges() -> None:
    annotations, _ = panel(0.5, people=0, classes=3)
    matrix = annotations.to_matrix(dense=True)
    found = lo.JudgePanel().fit(annotations).posterior_
    turned = lo.Annotations.from_matrix((matrix[:, ::-1] + 1) % 3, classes=range(3))
    assert_allclose(lo.JudgePanel().fit(turned).posterior_[:, [1, 2, 0]], found, atol=1e-8)


def test_refusals_are_no_votes() -> None:
    annotations, _ = panel(0.5, people=0)
    frame = annotations.to_frame().to_pydict()
    label = [str(value) for value in frame["label"]]
    refused = lo.Annotations.from_arrays(
        [*frame["task"], 0, 1], [*frame["worker"], "other", "other"], [*label, "sorry", "sorry"], classes=["0", "1"],
        answers=["0", "1", "sorry"],
    )  # fmt: skip
    found = lo.JudgePanel().fit(refused)
    assert found.refusals_.tolist() == [0, 0, 0, 0, 2]
    assert_allclose(found.posterior_, lo.JudgePanel().fit(annotations).posterior_, atol=0.02)


def test_a_family_counts_little_more_than_one_of_it() -> None:
    annotations, truth = panel(0.5, judges=3, people=0)
    matrix = annotations.to_matrix(dense=True)
    copied = lo.Annotations.from_matrix(
        matrix[:, [0, 0, 0, 0, 0, 1, 2]], workers=[*[f"a/{i}" for i in range(5)], "b/0", "c/0"]
    )
    alone = (lo.JudgePanel().fit(copied).labels_ == truth).mean()
    assert alone > (lo.MajorityVote().fit(copied).labels_ == truth).mean() + 0.01


def test_stated_probabilities_count_by_their_rank() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 600)
    sure = rng.random((600, 5))
    right = rng.random((600, 5)) < 0.5 + 0.45 * sure
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    rows = np.arange(3000)
    task, worker = rows // 5, rows % 5
    plain = lo.Annotations.from_arrays(task, worker, label.ravel())
    stated = lo.Annotations.from_arrays(task, worker, label.ravel(), probability=0.9 + 0.1 * sure.ravel() ** 3)
    found = [(lo.JudgePanel().fit(one).labels_ == truth).mean() for one in (plain, stated)]
    assert found[1] > found[0] + 0.02


def test_rates_hold_the_truth_and_are_narrower_than_gold_alone() -> None:
    inside, widths = [], []
    for seed in range(30):
        annotations, truth = panel(0.6, judges=5, people=0, n=500, seed=seed)
        gold = gold_of(annotations, truth, 80)
        share = lo.JudgePanel().fit(annotations, gold=gold).class_shares().to_pydict()
        inside.append(share["low"][1] <= truth.mean() <= share["high"][1])
        classical = 2 * 1.96 * np.sqrt(0.25 / 80)
        widths.append((share["high"][1] - share["low"][1]) / classical)
    assert np.mean(inside) > 0.85
    assert np.mean(widths) < 0.85


def test_next_tasks_are_the_unsure_ones_and_some_at_random() -> None:
    annotations, truth = panel(0.5)
    gold = gold_of(annotations, truth, 20)
    found = lo.JudgePanel().fit(annotations, gold=gold)
    table = found.next_tasks(30).to_pydict()
    assert len(set(table["task"])) == 30
    assert set(table["task"]).isdisjoint(gold)
    assert table["reason"].count("unsure") == 15
    open_tasks = np.array([task not in gold for task in annotations.tasks])
    assert max(table["confidence"][:15]) <= np.sort(found.confidence_[open_tasks])[15]


def test_a_copy_of_a_judge_is_the_first_to_be_dropped() -> None:
    annotations, truth = panel(0.2, judges=4, people=0)
    matrix = annotations.to_matrix(dense=True)
    copied = lo.Annotations.from_matrix(matrix[:, [0, 0, 1, 2, 3]])
    found = lo.JudgePanel().fit(copied, gold=gold_of(copied, truth, 100))
    assert found.useless_judges()[0] in (0, 1)
    assert found.pairs_to_frame(1)["worker"].to_pylist() == [0]
    assert found.adds_[:2].max() < found.adds_[2:].min()


def test_only_a_judge_as_good_as_people_may_replace_them() -> None:
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 3, 150)

    def verdict(skill: float) -> Any:
        return np.where(rng.random(150) < skill, truth, (truth + rng.integers(1, 3, 150)) % 3)

    matrix = np.stack([verdict(0.85) for _ in range(3)] + [verdict(0.92), verdict(0.4)], axis=1)
    annotations = lo.Annotations.from_matrix(matrix, workers=["person1", "person2", "person3", "good", "bad"])
    found = alternative_annotator_test(annotations).to_pydict()
    assert found["judge"] == ["good", "bad"]
    assert found["passes"] == [True, False]
    with pytest.raises(ValueError, match=r"at least 3 of the workers, .*; got 0"):
        alternative_annotator_test(lo.Annotations.from_matrix(matrix))


def test_a_panel_is_an_aggregate_to_train_on() -> None:
    annotations, truth = panel(0.5, people=0)
    X = np.random.default_rng(6).normal(size=(len(truth), 3)) + truth[:, None]
    fitted = lo.TrainOnAggregate(lo.JudgePanel(), lo.SoftmaxRegression(), targets="soft").fit(X, annotations)
    assert (fitted.predict(X) == truth).mean() > 0.78


def test_people_are_bought_until_the_risk_is_small_enough() -> None:
    annotations, truth = panel(0.5, people=0)
    found = lo.JudgePanel().fit(annotations, gold=gold_of(annotations, truth, 50))
    needed = found.checks_needed(risk=0.05, right=1.0)
    assert 0 < needed.low <= needed.value <= needed.high < 800
    unsure = np.argsort(found.confidence_)[: int(needed.value)]
    labels = found.labels_.copy()
    labels[unsure] = truth[unsure]
    assert (labels != truth).mean() == pytest.approx(0.05, abs=0.03)
    assert found.checks_needed(width=0.5).value == 0
    with pytest.raises(ValueError, match="either width or risk must be given; got both"):
        found.checks_needed(width=0.1, risk=0.1)


@pytest.mark.parametrize(("options", "message"), [({"shared": (0, 1)}, "shared must be at least 1e-06; got 0")])
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lo.JudgePanel(**options).fit(panel(0.5)[0])
