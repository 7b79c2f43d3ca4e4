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
from labelonce._kernels import ScipyEngine
from labelonce._types import Floats
from labelonce.learning import Learner, RepeatedRows
from labelonce.learning._rounds import (
    Recipe,
    Round,
    class_prior,
    estimate_workers,
    information,
    refine,
    run_rounds,
    task_weight,
    vote_targets,
    with_gold,
)
from labelonce.workers import Counted


class Oracle(Learner):
    """A learner that reads the true label in the first feature."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: ARG002
        self.n_classes_ = y.shape[1]
        return self

    def predict_proba(self, X: Any) -> Floats:
        return one_hot(np.asarray(X)[:, 0].astype(int), self.n_classes_)


def paper(learner: Any, **options: Any) -> Recipe:
    return Recipe(learner, Counted(), counts="hard", posterior="prior", weighting="none", **options)


def rounds(X: Floats, ann: Annotations, recipe: Recipe, n: int) -> list[Round]:
    return list(islice(run_rounds(X, ann, recipe, gold=None, seed=0, last=n), n))


def test_a_model_that_knows_the_truth_gives_the_empirical_confusion() -> None:
    ann, y_true = crowd()
    (first,) = rounds(y_true[:, None].astype(float), ann, paper(Oracle()), 1)
    counts = np.zeros((ann.n_workers, 3, 3))
    np.add.at(counts, (ann.worker, y_true[ann.task], ann.label), 1)
    assert_allclose(first.confusion, counts / counts.sum(axis=2, keepdims=True))


def test_a_model_that_repeats_single_labels_believes_every_worker() -> None:
    label = np.random.default_rng(0).integers(0, 3, 60)
    ann = Annotations.from_arrays(np.arange(60), np.arange(60) % 3, label)
    *_, last = rounds(np.arange(60.0)[:, None], ann, paper(RepeatedRows(DecisionTreeClassifier())), 3)
    assert_array_equal(last.confusion, np.tile(np.eye(3), (3, 1, 1)))
    assert_allclose(last.posterior, one_hot(ann.label, 3), atol=1e-9)


def test_numbers_go_on_after_a_round_that_was_reached_before() -> None:
    ann, y_true = crowd()
    X = y_true[:, None].astype(float)
    first, second = rounds(X, ann, paper(Oracle()), 2)
    again = next(run_rounds(X, ann, paper(Oracle()), gold=None, seed=0, last=2, after=first))
    assert again.number == second.number == 2
    assert_array_equal(again.posterior, second.posterior)


def test_the_model_speaks_for_a_task_from_the_second_round_on() -> None:
    ann, y_true = crowd()
    X = (1.0 * (y_true + 1) % 3)[:, None]  # a model that is sure and wrong
    joint, prior = (rounds(X, ann, Recipe(Oracle(), Counted(), posterior=kind), 2) for kind in ("joint", "prior"))
    assert_array_equal(joint[0].posterior, prior[0].posterior)
    assert not np.allclose(joint[1].posterior, prior[1].posterior)


def test_the_rounds_start_from_the_vote_fractions() -> None:
    ann, _ = crowd()
    posterior, weight = vote_targets(ScipyEngine(ann, "float64"), None)
    assert_array_equal(posterior, MajorityVote().fit(ann).posterior_)
    assert_array_equal(weight, 1)


def test_a_task_without_label_waits_unless_it_has_gold() -> None:
    engine = ScipyEngine(Annotations.from_matrix([[0, 1], [-1, -1], [-1, -1]]), "float64")
    posterior, weight = vote_targets(engine, np.array([-1, -1, 1], dtype=np.int32))
    assert posterior.tolist() == [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]
    assert weight.tolist() == [1, 0, 1]


@pytest.mark.parametrize("counts", ["hard", "soft", "refined"])
def test_the_first_round_counts_picks(counts: str) -> None:
    ann, _ = crowd()
    predictions = np.random.default_rng(0).dirichlet(np.ones(3), ann.n_tasks)
    recipe = Recipe(Oracle(), Counted(), counts=counts)
    workers, _, _ = estimate_workers(ScipyEngine(ann, "float64"), recipe, predictions, None, number=1)
    assert_allclose(workers.confusion_, Counted().fit(ann, predictions.argmax(axis=1)).confusion_)


def test_soft_counts_are_the_probabilities() -> None:
    ann, _ = crowd()
    predictions = np.random.default_rng(0).dirichlet(np.ones(3), ann.n_tasks)
    recipe = Recipe(Oracle(), Counted(), counts="soft")
    workers, _, _ = estimate_workers(ScipyEngine(ann, "float64"), recipe, predictions, None, number=2)
    assert_allclose(workers.confusion_, Counted().fit(ann, predictions).confusion_)


def test_refined_counts_explain_the_annotations_better() -> None:
    ann, y_true = crowd()
    predictions = 0.5 * one_hot(y_true, 3) + 0.5 / 3
    engine = ScipyEngine(ann, "float64")
    likelihood = {}
    for counts in ("hard", "refined"):
        recipe = Recipe(Oracle(), Counted(), counts=counts)
        workers, log_prior, _ = estimate_workers(engine, recipe, predictions, None, number=2)
        likelihood[counts] = engine.e_step(np.log(np.maximum(workers.confusion_, 1e-10)), log_prior).log_likelihood
    assert likelihood["refined"] > likelihood["hard"]


def test_the_class_prior_is_given_flat_picked_or_learned() -> None:
    ann, y_true = crowd(n_tasks=2000)
    ann, y_true = ann.select((y_true == 0) | (np.arange(2000) < 600)), y_true
    engine, picks = ScipyEngine(ann, "float64"), np.eye(3)[np.array([0, 0, 0, 1])]
    confusion = np.tile(np.full((3, 3), 0.05) + 0.85 * np.eye(3), (ann.n_workers, 1, 1))
    assert class_prior([0.2, 0.3, 0.5], picks, engine, confusion).tolist() == [0.2, 0.3, 0.5]
    assert class_prior("uniform", picks, engine, confusion).tolist() == [1 / 3] * 3
    assert class_prior("picks", picks, engine, confusion).tolist() == [0.75, 0.25, 0.0]
    learned = class_prior("learned", picks, engine, confusion)
    assert learned.sum() == pytest.approx(1)
    assert learned[0] > 0.5


def test_refining_ends_near_the_fixed_point() -> None:
    ann, y_true = crowd()
    engine, log_prior = ScipyEngine(ann, "float64"), np.log(0.5 * one_hot(y_true, 3) + 0.5 / 3)
    workers = refine(Counted().fit(ann, y_true), engine, log_prior, None)
    again = engine.sweep(np.log(np.maximum(workers.confusion_, 1e-10)), log_prior).confusion_counts
    assert_allclose(Counted().fit_counts(again).confusion_, workers.confusion_, atol=5e-3)


def test_information_is_one_for_certainty_and_falls_to_zero() -> None:
    sure = np.linspace(1 / 3, 1, 20)
    posterior = np.column_stack([sure, (1 - sure) / 2, (1 - sure) / 2])
    assert (np.diff(information(posterior)) > 0).all()
    assert_allclose(information(posterior)[[0, -1]], [0, 1], atol=1e-12)
    assert information(np.ones((2, 1))).tolist() == [1, 1]


def test_tasks_without_labels_count_once_the_model_speaks_for_them() -> None:
    start, posterior = np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.8, 0.2]])
    joint = Recipe(Oracle(), Counted(), posterior="joint", weighting="none")
    assert task_weight(joint, posterior, start, first=True).tolist() == [1, 0]
    assert task_weight(joint, posterior, start, first=False).tolist() == [1, 1]
    assert task_weight(paper(Oracle()), posterior, start, first=False).tolist() == [1, 0]


@pytest.mark.parametrize("first", [True, False])
def test_information_weights_keep_the_total_so_that_a_penalty_keeps_its_meaning(first: bool) -> None:
    start, posterior = np.array([1.0, 1.0, 0.0]), np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2]])
    weight = task_weight(Recipe(Oracle(), Counted()), posterior, start, first=first)
    assert weight.sum() == pytest.approx(2)
    assert_allclose(weight / weight[0], information(posterior) / information(posterior)[0])


def test_weights_fall_back_on_the_labels_where_nothing_is_known() -> None:
    recipe, start = Recipe(Oracle(), Counted()), np.array([1.0, 0.0])
    assert task_weight(recipe, np.full((2, 4), 0.25), start, first=True).tolist() == [1, 0]


def test_gold_replaces_rows_of_a_copy() -> None:
    given = np.full((2, 2), 0.5)
    assert with_gold(given, np.array([-1, 1], dtype=np.int32)).tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert given.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert with_gold(given, None) is given
