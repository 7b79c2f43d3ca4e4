import numpy as np
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations, MajorityVote


def test_posterior_is_the_vote_fraction() -> None:
    ann, _ = crowd()
    matrix = ann.to_matrix(dense=True)
    fractions = (matrix[:, :, None] == np.arange(3)).sum(axis=1) / (matrix >= 0).sum(axis=1, keepdims=True)
    assert_allclose(MajorityVote().fit(ann).posterior_, fractions)


def test_a_task_without_annotations_has_equal_fractions() -> None:
    ann = Annotations.from_arrays([0], [0], ["a"], classes=["a", "b"]).align([0, 1])
    assert_array_equal(MajorityVote().fit(ann).posterior_, [[1, 0], [0.5, 0.5]])


def test_ties_depend_on_the_seed_only() -> None:
    ann = Annotations.from_matrix(np.tile([0, 1], (100, 1)))
    first, again, other = (MajorityVote(random_state=seed).fit(ann).labels_ for seed in (0, 0, 1))
    assert_array_equal(first, again)
    assert (first != other).any()
    assert 0 < first.sum() < 100
