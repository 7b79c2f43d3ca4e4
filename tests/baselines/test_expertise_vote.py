"""A vote weighted by the number of classes that a worker has identified."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from labelonce import Annotations, MajorityVote, metrics, simulate
from labelonce.baselines import ExpertiseVote

KNOWN = [[k, k, k, -1, -1] for k in range(4)]


def test_weights_grow_with_the_classes_identified_each_counted_once() -> None:
    model = ExpertiseVote().fit(Annotations.from_matrix([*KNOWN, *KNOWN, [0, 0, -1, 3, 3]]))
    assert_array_equal(model.identified_, [4, 4, 4, 0, 0])
    assert_allclose(model.weight_, [*[4**0.5 - 4**0.2 + np.log(2.1)] * 3, *[np.log(2.1)] * 2])
    assert_array_equal(model.valid_, [*[True] * 8, False])
    one = ExpertiseVote().fit(Annotations.from_matrix([[0, 0, 0], [1, 1, 1]]))
    many = ExpertiseVote().fit(Annotations.from_matrix([[0, 0, 0], [1, 1, 1]] * 5))
    assert_array_equal(one.identified_, many.identified_)


def test_numbers_are_counted_against_the_present_vote_until_they_settle_or_stop() -> None:
    # The experts of the first rows turn the fifth row, and only then has it been identified by them.
    labels = [[k, k, k, -1, -1, -1] for k in range(9)]
    model = ExpertiseVote().fit(Annotations.from_matrix([*labels, [9, 9, -1, 0, 0, -1]]))
    assert model.labels_[-1] == 9
    assert model.n_iter_ == 3
    assert_array_equal(model.identified_[:3], [10, 10, 9])
    with pytest.warns(ConvergenceWarning, match="after 1 iterations while 3 workers still changed"):
        ExpertiseVote(max_iter=1).fit(Annotations.from_matrix(labels))


def test_unknown_workers_validate_no_task_and_known_labels_are_identified() -> None:
    ann = Annotations.from_matrix([[0, 0], [1, 1], [0, 1]])
    model = ExpertiseVote().fit(ann)
    assert not model.valid_.any()
    assert_allclose(model.posterior_, MajorityVote().fit(ann).posterior_)
    model = ExpertiseVote().fit(Annotations.from_matrix([[0, 1], [1, 0]]), gold=[0, 1])
    assert_array_equal(model.identified_, [2, 0])
    assert_array_equal(model.labels_, [0, 1])


def test_experts_are_found_among_many_classes() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 200, 3000)
    crowd = simulate.grouped_hammer_spammer(60, np.arange(200) // 5, 0.4, rng)
    ann = simulate.annotate(y_true, crowd, simulate.assign(3000, 60, 5, rng, replace=False), rng)
    model, vote = ExpertiseVote().fit(ann), MajorityVote().fit(ann)
    expert = crowd.right[:, 0] == 1
    assert model.weight_[expert].min() > model.weight_[~expert].max()
    assert metrics.accuracy(y_true, model.posterior_) > metrics.accuracy(y_true, vote.posterior_) + 0.02
