"""MBEM at many classes: rounds on candidates, what they leave behind, and that they find what dense rounds find."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

import labelonce as lo
from labelonce import Annotations, learning, simulate, workers
from labelonce._kernels import Arrays, Candidates, ScipyEngine, floored_log
from labelonce._types import Codes, Floats
from labelonce.learning import _candidate_calibration as calibration
from labelonce.learning._candidate_calibration import CandidateCalibration, Spoken, calibrate_candidates
from labelonce.learning._candidate_judge import CandidateJudge
from labelonce.learning._candidate_rounds import candidate_rounds, vote_candidates
from labelonce.learning._many_classes import candidate_workers, uses_candidates
from labelonce.learning._rounds import Recipe, vote_targets

GROUP = np.arange(60) // 6
pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


def problem(
    n_tasks: int = 2400, redundancy: int = 1, quality: float = 0.4, seed: int = 0
) -> tuple[Floats, Codes, Annotations, Any]:
    """Return features, true labels, annotations and workers of 60 classes in groups of six."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(60, 20))
    y = rng.integers(0, 60, n_tasks).astype(np.int32)
    X = mean[y] + 0.7 * rng.normal(size=(n_tasks, 20))
    true = simulate.grouped_hammer_spammer(30, GROUP, quality, rng=seed)
    return X, y, simulate.annotate(y, true, simulate.assign(n_tasks, 30, redundancy, rng=seed), rng=seed), true


def learner() -> lo.SoftmaxRegression:
    return lo.SoftmaxRegression(C=0.1, tol=1e-3)


@pytest.fixture(scope="module")
def fitted() -> tuple[lo.MBEM, Floats, Codes, Annotations, Any]:
    X, y, ann, true = problem()
    model = lo.MBEM(learner(), worker_model=workers.Grouped(GROUP), rounds=3)
    return model.fit(X, ann), X, y, ann, true


def test_groups_given_find_hammers_labels_and_classes(fitted: Any) -> None:
    clf, X, y, ann, true = fitted
    vote = learner().fit(X, ann.label).score(X, y)
    assert clf.score(X, y) > max(0.9, vote + 0.1)
    assert (clf.labels_ == y).mean() > 0.9
    assert np.corrcoef(clf.skill_, true.skill(np.full(60, 1 / 60)))[0, 1] > 0.9


def test_nothing_of_tasks_times_classes_is_left_behind(fitted: Any) -> None:
    clf, _, y, _, _ = fitted
    assert isinstance(clf.posterior_, Candidates)
    assert isinstance(clf.calibrated_, Candidates)
    assert clf.posterior_.classes.shape[1] <= 11
    frame = clf.to_frame()
    assert frame.column_names[:5] == ["task", "label", "confidence", "class_1", "posterior_class_1"]
    assert frame.num_columns == 3 + 2 * 5
    assert_allclose(frame["confidence"].to_numpy(), clf.confidence_)
    assert clf.estimated_accuracy_.low <= (clf.labels_ == y).mean() <= clf.estimated_accuracy_.high


def test_workers_and_labels_worth_checking_are_told(fitted: Any) -> None:
    clf, _, y, _, _ = fitted
    table = clf.workers_to_frame()
    assert table.column_names == ["worker", "annotations", "skill", "skill_low", "skill_high"]
    listed = clf.review(least=0.5)
    task, given = listed["task"].to_numpy(), listed["given"].to_numpy()
    assert (y[task] != given).mean() > 0.9
    assert_array_equal(clf.confusion_[3], clf.worker_model_.confusion(3))


def test_held_out_labels_are_scored_as_by_matrices(fitted: Any) -> None:
    clf, X, _, ann, _ = fitted
    by_matrices = learning.annotation_log_likelihood(ann, clf.predict_proba(X), clf.confusion_)
    assert clf.score_annotations(X, ann) == pytest.approx(by_matrices, abs=1e-9)


@pytest.mark.neural
def test_rounds_find_the_same_with_both_engines() -> None:
    """The search for a calibration ends before it has converged, so that differences of rounding grow a little."""
    X, y, ann, _ = problem(n_tasks=1200)
    options: dict[str, Any] = {"worker_model": workers.Grouped(GROUP), "confidence": "posterior", "rounds": 2}
    found = [
        lo.MBEM(learner(), engine=engine, device="cpu", **options).fit(X, ann, gold=dict(enumerate(y[:5])))
        for engine in ("scipy", "torch")
    ]
    posteriors: list[Any] = [one.posterior_ for one in found]
    assert posteriors[0].change(posteriors[1]) < 0.01
    for posterior in posteriors:
        assert_allclose(posterior.confidence()[:5], 1.0, atol=1e-9)  # gold, where the engine works too
    assert (found[0].labels_ == found[1].labels_).mean() > 0.99


@pytest.mark.parametrize(("name", "value"), [("_MANY_ROWS", 10), ("_ENOUGH", 400)])
def test_very_many_rows_or_annotations_are_refined_more_cheaply(
    monkeypatch: pytest.MonkeyPatch, fitted: Any, name: str, value: int
) -> None:
    whole, X, y, ann, _ = fitted
    if name == "_ENOUGH":
        monkeypatch.setattr("labelonce.learning._candidate_judge._PLENTY", 1000)
    monkeypatch.setattr(f"labelonce.learning._candidate_judge.{name}", value)
    cheap = lo.MBEM(learner(), worker_model=workers.Grouped(GROUP), rounds=3).fit(X, ann)
    assert np.abs(cheap.skill_ - whole.skill_).max() > 1e-6
    assert (cheap.labels_ == y).mean() > (whole.labels_ == y).mean() - 0.05


def test_rounds_resume_where_they_stopped() -> None:
    X, _, ann, _ = problem(n_tasks=1200)
    options: dict[str, Any] = {"worker_model": workers.Grouped(GROUP), "confidence": "posterior", "tol": 0.0}
    whole = lo.MBEM(learner(), rounds=3, **options).fit(X, ann)
    part = lo.MBEM(learner(), rounds=2, **options).fit(X, ann).resume(X, ann, rounds=1)
    done: list[Any] = [part.posterior_, whole.posterior_]
    assert_allclose(done[0].to_dense(), done[1].to_dense(), atol=1e-9)


def test_known_factors_are_left_alone() -> None:
    X, y, ann, true = problem(n_tasks=1200)
    clf = lo.MBEM(learner(), worker_model=workers.Known(true), rounds=2, confidence="posterior").fit(X, ann)
    assert_array_equal(clf.factors_.right, true.right)
    assert (clf.labels_ == y).mean() > 0.9


def test_without_groups_mistakes_are_learned_from_the_models_picks() -> None:
    X, y, ann, _ = problem()
    clf = lo.MBEM(learner(), rounds=3, confidence="posterior", worker_model=workers.Grouped()).fit(X, ann)
    assert clf.score(X, y) > 0.85


def test_groups_are_found() -> None:
    X, y, ann, _ = problem(redundancy=3)
    clf = lo.MBEM(learner(), worker_model=workers.Grouped("auto"), rounds=2, confidence="posterior").fit(X, ann)
    assert clf.worker_model_.groups_.n_groups == 10
    assert (clf.labels_ == y).mean() > 0.9


def test_gold_stays_and_tasks_without_labels_are_predicted() -> None:
    X, y, ann, _ = problem(n_tasks=1200)
    keep = ann.task < 1000
    some = Annotations(ann.task[keep], ann.worker[keep], ann.label[keep], ann.tasks, ann.workers, ann.classes)
    gold = np.where(np.arange(1200) % 10 == 0, y, -1)
    clf = lo.MBEM(learner(), worker_model=workers.Grouped(GROUP), rounds=2).fit(X, some, gold=gold)
    assert_array_equal(clf.labels_[::10], y[::10])
    assert_allclose(clf.confidence_[::10], 1)
    assert (clf.labels_[1000:] == y[1000:]).mean() > 0.8


def test_predictions_may_be_out_of_fold() -> None:
    X, y, ann, _ = problem()
    options: dict[str, Any] = {"rounds": 2, "predictions": "out_of_fold"}
    clf = lo.MBEM(learner(), worker_model=workers.Grouped(GROUP), **options).fit(X, ann)
    assert (clf.labels_ == y).mean() > 0.85


def test_votes_are_those_of_the_dense_engine() -> None:
    _, y, ann, _ = problem(n_tasks=200, redundancy=3)
    gold = np.where(np.arange(200) < 20, y, -1).astype(np.int32)
    dense, weight = vote_targets(ScipyEngine(ann, "float64"), gold)
    found, found_weight = vote_candidates(ann, gold)
    assert_allclose(found.to_dense(), dense)
    assert_array_equal(found_weight, weight)


def test_one_round_with_all_classes_as_candidates_is_the_dense_one() -> None:
    X, _, ann, _ = problem(n_tasks=400)
    model = learner().fit(X, ann.label)
    dense = np.zeros((400, 60))
    dense[:, model.classes_] = model.predict_proba(X)
    one_group = workers.Grouped(np.zeros(60, int), errors="uniform")
    recipe = Recipe(model, one_group, posterior="prior", candidates=True)
    crew = workers.Grouped(np.zeros(60, int), errors="uniform").prepare(ann)
    judge = CandidateJudge(ann, recipe, None, crew, Candidates.from_dense(dense, 60), np.ones((400, 60), bool))
    found, prior, posterior, log_likelihood = judge.verdict(1)
    plain = workers.OneCoin().fit(ann, dense.argmax(axis=1))
    step = ScipyEngine(ann, "float64").e_step(floored_log(plain.confusion_), np.log(prior))
    assert_allclose(found.factors_.right[:, 0], plain.confusion_[:, 0, 0], atol=1e-9)
    assert_allclose(posterior.to_dense(), step.posterior, atol=1e-9)
    assert log_likelihood == pytest.approx(step.log_likelihood, abs=1e-6)


def predictions_of(n_tasks: int = 40, n_classes: int = 7) -> tuple[Candidates, Spoken]:
    rng = np.random.default_rng(0)
    classes = np.stack([rng.permutation(n_classes)[:4] for _ in range(n_tasks)]).astype(np.int32)
    mass = rng.dirichlet(np.ones(5), n_tasks)
    classes[:5, 3], mass[:5, 3] = -1, 0.0
    mass /= mass.sum(axis=1, keepdims=True)
    found = Candidates(classes, mass[:, :4], mass[:, 4], n_classes)
    return found, Spoken.of(found, rng.random((n_tasks, 4)) < 0.6)


def test_no_calibration_leaves_predictions_alone() -> None:
    found, said = predictions_of()
    wide = np.concatenate([found.probability, found.rest[:, None]], axis=1)
    assert_allclose(np.exp(said.log_prior(CandidateCalibration.none(7))), wide, atol=1e-5)


@pytest.mark.neural
def test_calibration_is_the_same_where_torch_works() -> None:
    import torch

    _, said = predictions_of()
    there = said.on(Arrays(torch, torch.as_tensor, lambda tensor: tensor.numpy()))
    rng = np.random.default_rng(1)
    messages, shares = 2 * rng.normal(size=(40, 5)), rng.dirichlet(np.full(7, 5.0))
    none = CandidateCalibration.none(7)
    found, same = (calibrate_candidates(one, messages, shares, 0.5, none, steps=10) for one in (said, there))
    assert same.inside == pytest.approx(found.inside, rel=1e-5)
    assert same.between == pytest.approx(found.between, rel=1e-5)
    assert_allclose(same.shift, found.shift, atol=1e-5)
    assert_allclose(there.log_prior(found).numpy(), said.log_prior(found), atol=1e-12)


def test_the_slopes_of_calibration_are_those_of_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = predictions_of()
    rng = np.random.default_rng(1)
    kept: dict[str, Any] = {}

    class Found:
        x = np.zeros(9)

    def keep(loss: Any, *_: Any, **__: Any) -> type[Found]:
        kept["loss"] = loss
        return Found

    monkeypatch.setattr(calibration, "minimize", keep)
    messages, shares = 2 * rng.normal(size=(40, 5)), rng.dirichlet(np.full(7, 5.0))
    calibrate_candidates(said, messages, shares, 0.5, CandidateCalibration.none(7))
    point = 0.3 * rng.normal(size=9)
    by_differences = approx_fprime(point, lambda one: kept["loss"](one)[0], 1e-6)
    assert_allclose(kept["loss"](point)[1], by_differences, atol=1e-4)


def test_a_wrong_group_is_flattened_without_flattening_what_is_said_inside_the_right_one() -> None:
    rng = np.random.default_rng(0)
    n = 4000
    classes = np.tile(np.arange(4, dtype=np.int32), (n, 1))
    pick = rng.integers(0, 2, n)  # of the first group, which all labels speak for
    y = np.where(rng.random(n) < 0.9, pick, 1 - pick)
    inside = np.where(np.arange(2) == pick[:, None], 0.9, 0.1)
    sure_of_the_other = rng.random(n) < 0.5
    mass = np.where(sure_of_the_other, 0.001, 0.999)[:, None]
    probability = np.concatenate([mass * inside, (1 - mass) / 2 * np.ones((n, 2))], axis=1)
    said = Spoken.of(Candidates(classes, probability, np.zeros(n), 4), np.tile([True, True, False, False], (n, 1)))
    label = np.where(rng.random(n) < 0.8, y, 1 - y)
    message = np.log(np.where(np.arange(2) == label[:, None], 0.8, 0.2))
    message = np.concatenate([message, np.full((n, 3), np.log(1e-4))], axis=1)
    found = calibrate_candidates(said, message, np.array([0.5, 0.5, 0, 0]), 0.1, CandidateCalibration.none(4))
    assert found.between < 0.4
    assert found.inside == pytest.approx(1.0, abs=0.15)


def test_few_labels_of_many_classes_lose_nothing_by_default() -> None:
    """Groups found among few disagreements would leave classes alone, and then every label is taken to be right."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 200, 3000)
    X = (1.2 * rng.normal(size=(200, 24)))[y] + rng.normal(size=(3000, 24))
    confusion = simulate.grouped_hammer_spammer(40, np.arange(200) // 10, quality=0.4, rng=0)
    ann = simulate.annotate(y, confusion, simulate.assign(3000, 40, 1, rng), rng)
    vote = (ann.label == y[ann.task]).mean()
    for model in (None, workers.Grouped("auto")):
        found = lo.MBEM(lo.SoftmaxRegression(C=0.1), worker_model=model, rounds=3, confidence="posterior").fit(X, ann)
        assert (found.labels_ == y).mean() > vote + 0.3


def test_the_rule_for_candidates() -> None:
    _, _, ann, true = problem(n_tasks=200)
    few = simulate.annotate(
        np.zeros(50, int), simulate.one_coin([0.8] * 5, 10), simulate.assign(50, 5, 1, rng=0), rng=0
    )
    _, _, some, _ = problem(n_tasks=12_500)
    assert uses_candidates(None, some)
    assert not uses_candidates(None, ann)  # three labels of a class: whom it is taken for cannot be found
    _, _, several, _ = problem(n_tasks=1200, redundancy=3)  # sixty labels of a class, of which those of a task tell
    assert uses_candidates(None, several)
    assert not uses_candidates(None, problem(n_tasks=11_500)[2])
    assert str(candidate_workers(None)) == "Grouped(groups='auto')"
    _, _, enough, _ = problem(n_tasks=18_000)  # ten labels of each of 30 workers for each of 60 classes
    assert not uses_candidates(None, enough)
    many = Annotations(ann.task, ann.worker, ann.label, ann.tasks, ann.workers, np.arange(3000))
    assert uses_candidates(None, many)
    assert uses_candidates(workers.OneCoin(), many)
    assert uses_candidates(workers.Grouped(), ann)
    assert uses_candidates(workers.Known(true), ann)
    assert not uses_candidates(workers.Full(), ann)
    assert not uses_candidates(workers.OneCoin(), ann)
    assert not uses_candidates(workers.Grouped(), few)
    assert uses_candidates(workers.Grouped("auto"), few)
    assert candidate_workers(workers.OneCoin()).get_params()["rows"] == "worker"


def few_named_classes() -> tuple[Floats, Any, Annotations, Any]:
    """Return features, true labels and annotations of six animals in two groups, and the group of each."""
    rng = np.random.default_rng(0)
    group, names = np.arange(6) // 3, np.array(["ape", "bat", "cow", "dab", "eel", "ray"], dtype=object)
    y = rng.integers(0, 6, 600)
    X = rng.normal(size=(6, 8))[y] + 0.7 * rng.normal(size=(600, 8))
    true = simulate.grouped_hammer_spammer(12, group, 0.4, rng)
    ann = simulate.annotate(y, true, simulate.assign(600, 12, 1, rng), rng)
    return X, names[y], Annotations(ann.task, ann.worker, ann.label, ann.tasks, ann.workers, names), group


def test_groups_of_few_classes_may_be_named_or_found() -> None:
    X, y, ann, group = few_named_classes()
    options: dict[str, Any] = {"rounds": 2, "confidence": "posterior"}
    by_code = lo.MBEM(learner(), worker_model=workers.Grouped(group), **options).fit(X, ann)
    table = dict(zip(ann.classes.tolist(), np.array(["land", "sea"])[group].tolist(), strict=True))
    by_name = lo.MBEM(learner(), worker_model=workers.Grouped(table), **options).fit(X, ann)
    assert_array_equal(by_name.posterior_, by_code.posterior_)
    found = lo.MBEM(learner(), worker_model=workers.Grouped("auto"), **options).fit(X, ann)
    assert (found.labels_ == y).mean() > 0.9


def test_of_several_learners_the_one_that_predicts_held_out_labels_best_is_taken() -> None:
    X, _, ann, _ = problem()
    both = [lo.SoftmaxRegression(C=1e-6, tol=1e-3), learner()]
    clf = lo.MBEM(both, rounds=1, confidence="posterior", worker_model=workers.Grouped(GROUP)).fit(X, ann)
    assert clf.recipe_["learner"].C == 0.1
    assert [row["learner"].C for row in clf.choices_] == [1e-6, 0.1]
    assert clf.n_fits_ == 3


def test_rounds_do_not_depend_on_the_names_of_classes() -> None:
    X, _, ann, _ = problem(n_tasks=900)
    order = np.random.default_rng(3).permutation(60).astype(np.int32)
    renamed = Annotations(ann.task, ann.worker, order[ann.label], ann.tasks, ann.workers, ann.classes)
    group = np.empty(60, int)
    group[order] = GROUP
    tight = lo.SoftmaxRegression(C=0.1, tol=1e-8)
    for kind in ("prior", "joint"):
        found: list[Any] = []
        for labels, crew in ((ann, workers.Grouped(GROUP)), (renamed, workers.Grouped(group))):
            recipe = Recipe(tight, crew, posterior=kind, candidates=True)
            found.append(next(candidate_rounds(X, labels, recipe, gold=None, seed=0, last=1)).posterior)
        assert_allclose(found[1].to_dense()[:, order], found[0].to_dense(), atol=1e-4)


class AsksItself(lo.SoftmaxRegression):
    """A learner that says that it may be asked about the tasks that it was fitted to."""

    auto: ClassVar[Mapping[str, Any]] = {"predictions": "in_sample"}


@pytest.mark.parametrize(("kind", "same"), [(lo.SoftmaxRegression, True), (AsksItself, False)])
def test_a_first_model_judges_labels_only_if_it_may_be_asked_about_its_own_tasks(kind: Any, same: bool) -> None:
    X, _, ann, _ = problem(n_tasks=600)
    found: list[Any] = [
        next(
            candidate_rounds(
                X,
                ann,
                Recipe(kind(C=0.1), workers.Grouped(GROUP), posterior=how, candidates=True),
                gold=None,
                seed=0,
                last=1,
            )
        ).posterior
        for how in ("prior", "joint")
    ]
    assert (found[0].change(found[1]) < 1e-12) == same
