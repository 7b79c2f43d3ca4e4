import numpy as np
from crowds import crowd
from engines import brute_force_votes
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations, MajorityVote, Wawa


def test_posterior_is_the_vote_fraction_and_equal_without_annotations() -> None:
    ann, _ = crowd()
    matrix = ann.to_matrix(dense=True)
    fractions = (matrix[:, :, None] == np.arange(3)).sum(axis=1) / (matrix >= 0).sum(axis=1, keepdims=True)
    assert_allclose(MajorityVote().fit(ann).posterior_, fractions)
    ann = Annotations.from_arrays([0], [0], ["a"], classes=["a", "b"]).align([0, 1])
    assert_array_equal(MajorityVote().fit(ann).posterior_, [[1, 0], [0.5, 0.5]])


def test_ties_depend_on_the_seed_only_and_gold_takes_the_place_of_the_vote() -> None:
    ann = Annotations.from_matrix(np.tile([0, 1], (100, 1)))
    first, again, other = (MajorityVote(random_state=seed).fit(ann).labels_ for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert (first != other).any()
    assert 0 < first.sum() < 100
    ann = Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 1]])
    assert_allclose(Wawa().fit(ann, gold=[1, 0, 1]).skill_, [0, 0, 1])


def test_equals_the_three_steps_done_by_hand() -> None:
    ann, _ = crowd(n_tasks=30)
    votes = brute_force_votes(ann)
    wins = votes == votes.max(axis=1, keepdims=True)
    agreed = [(wins[i, s] / wins[i].sum(), a) for i, a, s in zip(ann.task, ann.worker, ann.label, strict=True)]
    skill = np.array([np.mean([share for share, worker in agreed if worker == a]) for a in range(12)])
    weighted = np.zeros((30, 3))
    np.add.at(weighted, (ann.task, ann.label), skill[ann.worker])
    model = Wawa().fit(ann)
    assert_allclose(model.skill_, skill)
    assert_allclose(model.posterior_, weighted / weighted.sum(axis=1, keepdims=True))
