"""The rounds: what each step must give where the answer is known."""

from itertools import islice
from typing import Any, Self

import numpy as np
import pytest
from checks import one_hot
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier

from labelonce import Annotations, MajorityVote
from labelonce._kernels import Beliefs, Matrices, make_evidence
from labelonce._types import Floats
from labelonce.learning import Learner, RepeatedRows
from labelonce.learning._choice import RECIPES
from labelonce.learning._judge import View, judge, refine, row_weight
from labelonce.learning._problem import Problem
from labelonce.learning._rounds import Fitting, Round, rounds
from labelonce.workers import ClassWise, Counted, OneCoin


class Oracle(Learner):
    """A learner that reads the true label in the first feature."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: ARG002
        self.n_classes_ = y.shape[1]
        return self

    def predict_proba(self, X: Any) -> Floats:
        return one_hot(np.asarray(X)[:, 0].astype(int), self.n_classes_)


def paper(learner: Any) -> Fitting:
    return Fitting(learner, Counted(), 0, 9, **RECIPES["paper"])


def some(n: int, X: Floats, ann: Annotations, how: Fitting) -> list[Round]:
    return list(islice(rounds(Problem(X, ann), how), n))


def seen(ann: Annotations, predictions: Floats, workers: Any) -> View:
    """Return a view of predictions that are known."""
    problem = Problem(np.zeros((ann.n_tasks, 1)), ann)
    return View.of(problem, workers, lambda slots, _: Beliefs.of(predictions).on(slots))


def test_a_model_that_knows_the_truth_gives_the_empirical_confusion() -> None:
    ann, y_true = crowd()
    (first,) = some(1, y_true[:, None].astype(float), ann, paper(Oracle()))
    counts = np.zeros((ann.n_workers, 3, 3))
    np.add.at(counts, (ann.worker, y_true[ann.task], ann.label), 1)
    assert_allclose(first.workers.confusion_, counts / counts.sum(axis=2, keepdims=True))


def test_a_model_that_repeats_single_labels_believes_every_worker() -> None:
    label = np.random.default_rng(0).integers(0, 3, 60)
    ann = Annotations.from_arrays(np.arange(60), np.arange(60) % 3, label)
    *_, last = some(3, np.arange(60.0)[:, None], ann, paper(RepeatedRows(DecisionTreeClassifier())))
    assert_array_equal(last.workers.confusion_, np.tile(np.eye(3), (3, 1, 1)))
    assert_allclose(np.asarray(last.beliefs), one_hot(ann.label, 3), atol=1e-9)


def test_numbers_go_on_after_a_round_that_was_reached_before() -> None:
    ann, y_true = crowd()
    X = y_true[:, None].astype(float)
    first, second = some(2, X, ann, paper(Oracle()))
    again = next(rounds(Problem(X, ann), paper(Oracle()), after=first))
    assert again.number == second.number == 2
    assert_array_equal(np.asarray(again.beliefs), np.asarray(second.beliefs))


def test_the_model_decides_with_the_labels_from_the_second_round_on() -> None:
    ann, y_true = crowd()
    X = (1.0 * (y_true + 1) % 3)[:, None]  # a model that is sure and wrong
    joint, alone = (some(2, X, ann, how) for how in (Fitting(Oracle(), Counted(), 0, 9), paper(Oracle())))
    assert_array_equal(np.asarray(joint[0].beliefs), np.asarray(alone[0].beliefs))
    assert joint[1].beliefs.change(alone[1].beliefs) > 0.01


def test_the_rounds_start_from_the_vote_fractions() -> None:
    ann, _ = crowd()
    beliefs, weight = Problem(None, ann).votes(few=False)
    assert_array_equal(np.asarray(beliefs), MajorityVote().fit(ann).posterior_)
    assert_array_equal(weight, 1)


@pytest.mark.parametrize("few", [False, True])
def test_a_task_without_label_waits_unless_it_has_gold(few: bool) -> None:
    ann = Annotations.from_matrix([[0, 1], [-1, -1], [-1, -1]])
    beliefs, weight = Problem(None, ann, np.array([-1, -1, 1], dtype=np.int32)).votes(few=few)
    assert np.asarray(beliefs).tolist() == [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]
    assert weight.tolist() == [1, 0, 1]


def test_the_first_round_counts_the_predicted_classes() -> None:
    ann, _ = crowd()
    predictions = np.random.default_rng(0).dirichlet(np.ones(3), ann.n_tasks)
    found = judge(seen(ann, predictions, workers := Counted()), workers, 1)
    assert found.calibration is None
    assert_allclose(workers.confusion_, Counted().fit(ann, predictions.argmax(axis=1)).confusion_)


def test_the_second_round_explains_the_annotations_better() -> None:
    ann, y_true = crowd()
    predictions = 0.5 * one_hot(y_true, 3) + 0.5 / 3
    first, second = (judge(seen(ann, predictions, one), one, n) for n, one in ((1, Counted()), (2, Counted())))
    assert second.log_likelihood > first.log_likelihood


def test_the_class_prior_is_even_given_or_that_of_the_predicted_classes() -> None:
    ann, y_true = crowd()
    for balance, options, expected in (
        (None, RECIPES["paper"], np.full(3, 1 / 3)),
        (np.array([0.2, 0.3, 0.5]), RECIPES["paper"], np.array([0.2, 0.3, 0.5])),
        (None, RECIPES["paper_equation_7"], np.bincount(y_true, minlength=3) / ann.n_tasks),
    ):
        problem, known = Problem(None, ann, balance=balance), Beliefs.of(one_hot(y_true, 3))
        view = View.of(problem, workers := Counted(), lambda *_, known=known: known)
        found = judge(view, workers, 2, **options)
        again = make_evidence(ann).e_step(workers.crowd, np.log(expected))
        assert_allclose(np.asarray(found.beliefs), np.asarray(again.beliefs), atol=1e-9)


def test_refining_ends_near_the_fixed_point() -> None:
    ann, y_true = crowd()
    evidence, log_prior = make_evidence(ann), np.log(0.5 * one_hot(y_true, 3) + 0.5 / 3)
    workers = Counted().fit(ann, y_true)
    refine(workers, evidence, log_prior, None)
    again = evidence.sweep(workers.crowd, log_prior).tallies
    assert_allclose(Counted().fit_tallies(again).confusion_, workers.confusion_, atol=5e-3)


@pytest.mark.parametrize("model", [OneCoin, ClassWise])
@pytest.mark.parametrize("number", [1, 2])
def test_slots_for_all_classes_are_judged_as_the_classes_are(
    number: int, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law that lets one judge serve both, and workers be the same below and above the size of a memory."""
    ann, y_true = crowd(n_classes=4)
    rng = np.random.default_rng(0)
    predictions = 0.5 * one_hot(y_true, 4) + 0.5 * rng.dirichlet(np.ones(4), ann.n_tasks)
    dense = judge(seen(ann, predictions, one := model()), one, number)
    monkeypatch.setattr(model, "uses_slots", lambda *_: True)
    order = np.stack([rng.permutation(4) for _ in range(ann.n_tasks)]).astype(np.int32)
    view = View.of(Problem(None, ann), other := model(), lambda *_: Beliefs.of(predictions).on(order))
    found = judge(view, other, number)
    assert view.predictions.classes is not None
    assert_allclose(np.asarray(found.beliefs), np.asarray(dense.beliefs), atol=1e-6)
    assert_allclose(other.crowd.skill(np.full(4, 0.25)), one.crowd.skill(np.full(4, 0.25)), atol=1e-6)
    assert found.log_likelihood == pytest.approx(dense.log_likelihood, abs=1e-4)


def test_rows_without_labels_count_once_the_model_has_seen_the_labels() -> None:
    ann = Annotations.from_matrix([[0, 1], [-1, -1]])
    weight = row_weight(Problem(None, ann), Beliefs.of([[0.9, 0.1], [0.8, 0.2]]))
    assert (weight > 0).all()
    assert Problem(None, ann).answered.tolist() == [1, 0]


def test_weights_are_information_and_keep_the_total_so_that_a_penalty_keeps_its_meaning() -> None:
    ann, beliefs = Annotations.from_matrix([[0], [1], [-1]]), Beliefs.of([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]])
    weight = row_weight(Problem(None, ann), beliefs)
    assert weight.sum() == pytest.approx(2)
    assert_allclose(weight / weight[0], beliefs.information() / beliefs.information()[0])


def test_weights_fall_back_on_the_labels_where_nothing_is_known() -> None:
    ann = Annotations.from_matrix([[0], [-1]], classes=range(4))
    assert row_weight(Problem(None, ann), Beliefs.of(np.full((2, 4), 0.25))).tolist() == [1, 0]


def test_what_is_known_of_workers_tells_which_votes_the_first_model_believes() -> None:
    ann, y_true = crowd()
    X = y_true[:, None].astype(float)
    confusion = Counted().fit(ann, y_true).confusion_
    (known,) = islice(rounds(Problem(X, ann, confusion=confusion), paper(Oracle())), 1)
    (open_,) = some(1, X, ann, paper(Oracle()))
    right = [float(one.targets.at(np.arange(ann.n_tasks), y_true).mean()) for one in (known, open_)]
    assert right[0] > right[1]
    assert isinstance(known.workers.crowd, Matrices)
