"""Aggregators where answers are more than the classes, or a scale."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from checks import annotations, permuted
from crowds import crowd
from engines import all_by
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import average_precision_score

import labelonce as lo
from labelonce import IBCC, Annotations, DawidSkene, MajorityVote, OneCoin, simulate
from labelonce._types import Codes, Floats, Ids
from labelonce.aggregation import Aggregator
from labelonce.aggregation._em import answer_pseudo_counts, pseudo_counts
from labelonce.aggregation._registry import aggregators
from labelonce.baselines import SpectralDawidSkene
from labelonce.data import OtherAnswersWarning


class TorchDawidSkene(DawidSkene):
    """All sums by torch."""

    def _evidence(self, annotations: Annotations, gold: Codes | None) -> Any:
        with all_by("torch"):
            return super()._evidence(annotations, gold)


Make = Callable[[], Aggregator]
EM: dict[str, Make] = {
    "DawidSkene": DawidSkene,
    "DawidSkene maximum likelihood": lambda: DawidSkene(smoothing=0.0, max_iter=5000),
    "DawidSkene torch": lambda: TorchDawidSkene(device="cpu"),
    "IBCC": IBCC,
    "OneCoin": OneCoin,
}
SCALES = {name: make for name, make in EM.items() if name != "OneCoin"}
em = pytest.mark.parametrize("name", EM)
scales = pytest.mark.parametrize("name", SCALES)


def skipping_confusion(n_workers: int = 15) -> Floats:
    """Return [worker, class, answer] of workers who give the classes 0 and 1 or skip, class 1 four times as often."""
    square = simulate.one_coin(np.linspace(0.6, 0.8, n_workers), 2)
    skip = np.array([0.15, 0.6])[None, :, None]
    return np.concatenate([(1 - skip) * square, np.broadcast_to(skip, (n_workers, 2, 1))], axis=2)


def scale_confusion(n_workers: int = 15) -> Floats:
    """Return [worker, class, answer] on a scale of five: workers differ in how far and in where they lean."""
    rng = np.random.default_rng(7)
    places = np.arange(5)
    centre = np.stack([1.2 + rng.normal(0, 0.4, n_workers), 2.8 + rng.normal(0, 0.4, n_workers)], axis=1)
    weight = np.exp(-((places - centre[:, :, None]) ** 2) / 2)
    return np.asarray(weight / weight.sum(axis=2, keepdims=True))


def saying(ann: Annotations, answers: Ids, classes: Ids | None = None) -> Annotations:
    """Return the annotations with other names of the answers, and perhaps of the classes."""
    named = ann.classes if classes is None else classes
    return Annotations(ann.task, ann.worker, ann.label, ann.tasks, ann.workers, named, answers)


def scale_crowd() -> tuple[Annotations, Codes]:
    ann, y_true = crowd(n_tasks=1500, confusion=scale_confusion(), redundancy=5)
    return saying(ann, np.arange(1, 6), np.array(["no", "yes"], dtype=object)), y_true


def with_unused(ann: Annotations) -> Annotations:
    """Return the annotations with one answer more, which nobody gave."""
    return saying(ann, np.append(ann.answers, ann.answers.max() + 1))


def to_the_end(model: Aggregator) -> Aggregator:
    """Return the model with its steps repeated until they change nothing: more annotations stop it earlier."""
    return model.set_params(tol=1e-14, max_iter=20_000)  # type: ignore[no-any-return]


@em
def test_an_answer_that_nobody_gave_changes_nothing(name: str) -> None:
    ann, _ = crowd()
    plain, more = EM[name]().fit(ann), EM[name]().fit(with_unused(ann))
    assert_allclose(more.posterior_, plain.posterior_, atol=1e-8)
    assert_allclose(more.skill_, plain.skill_, atol=1e-8)
    assert_allclose(more.confusion_[:, :, 3], 0, atol=1e-9)


@em
def test_an_answer_given_alike_for_every_class_carries_nothing(name: str) -> None:
    ann, _ = crowd()
    task, worker = np.tile(ann.task, 2), np.tile(ann.worker, 2)
    label = np.concatenate([ann.label, np.full(len(ann), 3)])  # everybody says 3 as well as their label
    both = Annotations.from_arrays(task, worker, label, classes=range(3), answers=range(4), duplicates="keep")
    with_it, plain = (to_the_end(EM[name]()).fit(each) for each in (both, ann))
    # a chance of zero is taken as 1e-10 of twice as many; expected logs of twice as many are a little larger
    atol = {"DawidSkene maximum likelihood": 1e-4, "IBCC": 0.05}.get(name, 1e-6)
    assert_allclose(with_it.posterior_, plain.posterior_, atol=atol)
    assert_allclose(with_it.workers_to_frame()["other_answers"].to_numpy(), 0.5, atol=1e-9)


@em
def test_permuted_answers_change_nothing_but_names(name: str) -> None:
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=300)
    said = np.array(["no", "yes", "skip"], dtype=object)[ann.label]
    models = [
        EM[name]().fit(Annotations.from_arrays(ann.task, ann.worker, said, classes=["no", "yes"], answers=answers))
        for answers in (["no", "yes", "skip"], ["skip", "no", "yes"])
    ]
    assert_array_equal(models[0].posterior_, models[1].posterior_)
    renamed = np.array(["no", "yes", "pass"], dtype=object)[ann.label]
    other = Annotations.from_arrays(ann.task, ann.worker, renamed, classes=["no", "yes"], answers=["pass", "yes", "no"])
    assert_array_equal(EM[name]().fit(other).posterior_, models[0].posterior_)


@scales
def test_a_scale_may_have_any_names_in_its_order_and_is_square_with_as_many_as_classes(name: str) -> None:
    ann, _ = scale_crowd()
    letters = saying(ann, np.array(list("abcde"), dtype=object))
    assert_array_equal(SCALES[name]().fit(letters).posterior_, SCALES[name]().fit(ann).posterior_)
    ann, _ = crowd()
    renamed = saying(ann, np.array(list("abc"), dtype=object))
    assert renamed.is_scale
    assert_allclose(SCALES[name]().fit(renamed).posterior_, SCALES[name]().fit(ann).posterior_, atol=1e-9)


@em
def test_tasks_and_workers_may_be_permuted(name: str) -> None:
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=300)
    rng = np.random.default_rng(1)
    task, worker = (rng.permutation(n).astype(np.int32) for n in (ann.n_tasks, ann.n_workers))
    plain, shuffled = EM[name]().fit(ann), EM[name]().fit(permuted(ann, task=task, worker=worker))
    assert_allclose(shuffled.posterior_[task], plain.posterior_, atol=1e-6)
    assert_allclose(shuffled.confusion_[worker], plain.confusion_, atol=1e-6)


@em
def test_the_objective_never_falls(name: str) -> None:
    for seed in range(3):
        ann, _ = crowd(seed, confusion=skipping_confusion(), n_tasks=300)
        path = EM[name]().fit(ann).log_likelihood_
        assert len(path) > 2
        assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


@scales
def test_the_objective_never_falls_on_a_scale(name: str) -> None:
    path = SCALES[name]().fit(scale_crowd()[0]).log_likelihood_
    assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


@em
@given(ann=annotations(other_answers=True))
@settings(max_examples=60)
def test_any_annotations_give_finite_probabilities(name: str, ann: Annotations) -> None:
    with warnings.catch_warnings(action="ignore"):  # odd crowds are warned about, and must still give numbers
        if ann.is_scale and name == "OneCoin":
            return
        model = EM[name]().fit(ann)
    assert model.confusion_.shape == (ann.n_workers, ann.n_classes, ann.n_answers)
    for values in (model.posterior_, model.confusion_, model.prior_):
        assert np.isfinite(values).all()
        assert_allclose(values.sum(axis=-1), 1, rtol=1e-6)
    assert ((model.skill_ >= 0) & (model.skill_ <= 1 + 1e-9)).all()


@pytest.mark.parametrize("name", ["DawidSkene", "IBCC"])
def test_skipping_one_class_more_often_tells_something(name: str) -> None:
    ann, y_true = crowd(confusion=skipping_confusion(), n_tasks=2000, redundancy=5)
    with_skips = EM[name]().fit(ann)
    without = EM[name]().fit(ann.only_classes())
    accuracy = [(model.labels_ == y_true).mean() for model in (with_skips, without)]
    assert accuracy[0] > accuracy[1] + 0.03
    assert_allclose(with_skips.confusion_[:, :, 2].mean(axis=0), [0.15, 0.6], atol=0.03)
    assert_allclose(with_skips.confusion_, skipping_confusion(), atol=0.12)


def test_one_coin_learns_the_rate_of_other_answers_and_no_more() -> None:
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=500)
    model, without = (to_the_end(OneCoin()).fit(each) for each in (ann, ann.only_classes()))
    assert_allclose(model.posterior_, without.posterior_, atol=1e-6)
    assert_allclose(model.skill_, without.skill_, atol=1e-6)
    given = np.bincount(ann.worker), np.bincount(ann.worker[ann.label == 2])
    assert_allclose(model.confusion_[:, 0, 2], given[1] / given[0], atol=0.02)


@em
def test_a_worker_who_only_says_unsure_is_harmless(name: str) -> None:
    ann, y_true = crowd()
    matrix = np.column_stack([ann.to_matrix(dense=True), np.full(ann.n_tasks, 3)])
    more = Annotations.from_matrix(matrix, classes=range(3), answers=range(4))
    model, plain = EM[name]().fit(more), EM[name]().fit(ann)
    assert (model.labels_ == y_true).mean() == pytest.approx((plain.labels_ == y_true).mean(), abs=0.02)
    others = dict(zip(*(model.workers_to_frame()[c].to_pylist() for c in ("worker", "other_answers")), strict=True))
    assert others[12] > 0.9
    assert max(others[w] for w in range(12)) < 0.1


@scales
def test_a_scale_is_recovered(name: str) -> None:
    ann, y_true = scale_crowd()
    model, vote = SCALES[name]().fit(ann), MajorityVote().fit(ann)
    right, voted = ((one.labels_ == np.array(["no", "yes"])[y_true]).mean() for one in (model, vote))
    assert right > max(0.9, voted)
    assert_allclose(model.confusion_, scale_confusion(), atol=0.1)


def test_the_vote_along_a_scale_is_the_mean_of_its_places_and_unsure_is_none() -> None:
    ann = Annotations.from_matrix([[1, 2], [5, 3]], classes=["no", "yes"], answers=[1, 2, 3, 4, 5])
    assert_allclose(MajorityVote().fit(ann).posterior_[:, 1], [0.125, 0.75])
    ann = Annotations.from_matrix([[0, 0, 2], [2, 1, 2], [2, 2, 2]], classes=[0, 1], answers=[0, 1, 2])
    with pytest.warns(OtherAnswersWarning, match="MajorityVote counts only .*; 6 of 9 annotations, such as 2,"):
        vote = MajorityVote().fit(ann)
    assert_allclose(vote.posterior_, np.array([[1, 0], [0, 1], [0.5, 0.5]]))
    assert vote.answers_.tolist() == [0, 1]


def test_skill_and_the_table_of_workers_are_about_the_answers_that_are_classes() -> None:
    ann, y_true = crowd(confusion=skipping_confusion(), n_tasks=3000)
    model = DawidSkene(prior="uniform").fit(ann, gold=y_true)
    assert_allclose(model.skill_, np.linspace(0.6, 0.8, 15), atol=0.05)
    assert_allclose(model.workers_to_frame()["other_answers"].to_numpy(), 0.375, atol=0.05)
    assert model.answers_.tolist() == [0, 1, 2]
    for ann in (crowd()[0], scale_crowd()[0]):
        assert DawidSkene().fit(ann).workers_to_frame().column_names == ["worker", "annotations", "skill"]


REFUSE_SCALES = sorted(aggregators().keys() - {"DawidSkene", "IBCC", "MajorityVote"})


@pytest.mark.parametrize("name", REFUSE_SCALES)
def test_methods_for_classes_refuse_a_scale(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must have answers that are classes; got the scale \[1, 2, 3,"):
        aggregators()[name]().fit(scale_crowd()[0])


@pytest.mark.parametrize("name", ["Wawa", "MeanField", "KOS", "GLAD"])
def test_methods_for_classes_leave_other_answers_out(name: str) -> None:
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=300)
    with pytest.warns(OtherAnswersWarning, match=f"{name} counts only answers that are classes"):
        model = aggregators()[name]().fit(ann)
    assert_array_equal(model.posterior_, aggregators()[name]().fit(ann.only_classes()).posterior_)


def test_the_spectral_start_uses_the_answers_that_are_classes() -> None:
    ann, y_true = crowd(confusion=skipping_confusion(), n_tasks=1000)
    model = SpectralDawidSkene(n_splits=2).fit(ann)
    assert model.confusion_.shape == (15, 2, 3)
    assert (model.labels_ == y_true).mean() > 0.75


def test_nothing_is_known_where_no_answer_leans() -> None:
    unsure = Annotations.from_matrix([[2, 2], [2, 2]], classes=[0, 1], answers=[0, 1, 2])
    with pytest.warns(OtherAnswersWarning, match=r"answers that lean to a class, or gold; got only \[2\]"):
        model = DawidSkene().fit(unsure)
    assert_allclose(model.posterior_, 0.5)
    middle = Annotations.from_matrix([[3, 3], [3, 3]], classes=["no", "yes"], answers=[1, 2, 3, 4, 5])
    with pytest.warns(OtherAnswersWarning, match=r"got only \[3\] for the classes \['no', 'yes'\]"):
        IBCC().fit(middle)


def test_gold_is_an_anchor_too() -> None:
    ann, y_true = scale_crowd()
    with warnings.catch_warnings(action="error"):
        DawidSkene().fit(Annotations.from_matrix([[2, 2], [2, 2]], classes=[0, 1], answers=[0, 1, 2]), gold=[0, 1])
    backwards = saying(ann, np.arange(5, 0, -1))
    gold = np.array(["no", "yes"], dtype=object)[1 - y_true]
    with pytest.warns(OtherAnswersWarning, match="got the opposite, so which class is which is not known"):
        DawidSkene().fit(backwards, gold=gold)


def test_the_order_of_the_scale_says_which_class_is_which() -> None:
    ann, _ = scale_crowd()
    swapped = saying(ann, ann.answers, np.array(["yes", "no"], dtype=object))
    plain, other = DawidSkene().fit(ann), DawidSkene().fit(swapped)
    assert_array_equal(plain.posterior_, other.posterior_)
    assert_array_equal(plain.labels_ == "no", other.labels_ == "yes")


@pytest.mark.parametrize("name", ["DawidSkene", "IBCC"])
def test_batches_of_answers_come_to_what_a_fit_finds(name: str) -> None:
    for ann, low in ((crowd(confusion=skipping_confusion(), n_tasks=600)[0], 0.95), (scale_crowd()[0], 0.95)):
        parts = np.arange(ann.n_tasks) % 3
        model = EM[name]()
        for part in range(3):
            model.partial_fit(ann.select(parts == part))
        full = EM[name]().fit(ann)
        order = np.argsort(parts, kind="stable")
        assert (model.labels_ == full.labels_[order]).mean() > low
        assert model.confusion_.shape == full.confusion_.shape
        assert model.answers_.tolist() == ann.answers.tolist()


def test_batches_and_later_fits_have_the_answers_of_the_first_batch_or_fit() -> None:
    first = Annotations.from_matrix([[0, 2], [1, 1]], classes=[0, 1], answers=[0, 1, 2])
    second = Annotations.from_arrays([7], [0], [3], classes=[0, 1], answers=[0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"among the answers of the first batch, \[0, 1, 2\]; got 3"):
        DawidSkene().partial_fit(first).partial_fit(second)
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=300)
    half = np.arange(300) < 150
    model = DawidSkene().fit(ann.select(half)).partial_fit(ann.select(~half))
    assert model.confusion_.shape == (15, 2, 3)
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=100)
    model = DawidSkene().fit(ann).fit(ann.only_classes())
    assert (model.answers_.tolist(), model.confusion_.shape) == ([0, 1], (15, 2, 2))


def test_compare_scores_every_answer_and_says_who_refuses_a_scale() -> None:
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=1000)
    methods = {"vote": MajorityVote(), "em": DawidSkene()}
    comparison = lo.compare_aggregators(ann, methods=methods)
    assert comparison.recommended == "em"
    notes = {row.method: row.note for row in comparison.rows}
    assert notes["vote"].startswith("MajorityVote counts only answers that are classes;")
    agreed = {row.method: row.agreement for row in comparison.rows}
    square = ann.only_classes()
    expected = (MajorityVote().fit(square).labels_[square.task] == square.label).mean()
    assert agreed["vote"] == pytest.approx(expected)
    ann, _ = scale_crowd()
    comparison = lo.compare_aggregators(ann, methods={"coin": OneCoin(), "vote": MajorityVote(), "em": DawidSkene()})
    rows = {row.method: row for row in comparison.rows}
    assert comparison.recommended == "em"
    assert rows["coin"].note.startswith("OneCoin must have answers that are classes")
    place = np.array([0, 0.25, 0.5, 0.75, 1])[ann.label]
    leans = np.where(MajorityVote().fit(ann).labels_[ann.task] == "yes", place, 1 - place)
    assert rows["vote"].agreement == pytest.approx(leans.mean())


@pytest.mark.usefixtures("skops")
@pytest.mark.parametrize("name", ["DawidSkene", "IBCC", "OneCoin"])
def test_a_saved_fit_has_its_answers(name: str, tmp_path: Path) -> None:
    ann, _ = crowd(confusion=skipping_confusion(), n_tasks=100)
    lo.save(EM[name]().fit(ann), tmp_path / "model.skops")
    loaded = lo.load(tmp_path / "model.skops")
    assert loaded.answers_.tolist() == [0, 1, 2]
    assert loaded.workers_to_frame().column_names[-1] == "other_answers"


def test_pseudo_counts_are_those_of_classes_or_lean_with_the_scale() -> None:
    counts = np.ones((2, 3, 3))
    assert_array_equal(answer_pseudo_counts(2.0, counts, None), pseudo_counts(2.0, 3))
    assert_array_equal(answer_pseudo_counts(2.0, counts, np.eye(3)), pseudo_counts(2.0, 3))
    counts = np.zeros((1, 2, 5))
    counts[0, 0] = [10, 20, 0, 20, 10]
    leaning = np.linspace([1, 0], [0, 1], 5)
    pseudo = answer_pseudo_counts((4.0, 1.0), counts, leaning)
    assert_allclose(pseudo.sum(axis=1), 5)
    assert pseudo[0, 2] == pseudo[1, 2] == 0  # nobody gave it
    assert (np.diff(pseudo[0, [0, 4]]) < 0).all()
    assert_allclose(pseudo[0], pseudo[1, ::-1])


@pytest.mark.data
@pytest.mark.parametrize("method", [DawidSkene, IBCC])
def test_maybe_of_imagenet_raters_is_learned(method: type[Aggregator], data_root: Path) -> None:
    folder = data_root / "imagenet_real"
    votes, expert = (pq.read_table(folder / f"{name}.parquet") for name in ("annotations", "expert"))
    said = np.array(["no", "maybe", "yes"], dtype=object)[votes["answer"].to_numpy()]
    rows = (votes["question"], votes["rater"], said)
    ann = Annotations.from_arrays(*rows, classes=["no", "yes"], answers=["no", "maybe", "yes"])
    model = method().fit(ann)
    assert model.confusion_.shape == (85, 2, 3)
    place = dict(zip(ann.tasks.tolist(), range(ann.n_tasks), strict=True))
    asked = [place[question] for question in expert["question"].to_pylist()]
    yes, gold = model.posterior_[asked, 1], expert["gold"].to_numpy()
    assert average_precision_score(gold, yes) > 0.89  # share of yes .807, maybe left out .890: README of the data
    assert np.mean((yes > 0.5) == gold) > 0.92
    maybe = model.confusion_[:, :, 2].mean(axis=0)
    assert maybe[1] > maybe[0]  # maybe is said where it is yes, mostly
