import numpy as np
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import Annotations, Wawa


def test_equals_the_three_steps_done_by_hand() -> None:
    ann, _ = crowd(n_tasks=30)
    votes = np.zeros((30, 3))
    np.add.at(votes, (ann.task, ann.label), 1)
    wins = votes == votes.max(axis=1, keepdims=True)
    agreed = [(wins[i, s] / wins[i].sum(), a) for i, a, s in zip(ann.task, ann.worker, ann.label, strict=True)]
    skill = np.array([np.mean([share for share, worker in agreed if worker == a]) for a in range(12)])
    weighted = np.zeros((30, 3))
    np.add.at(weighted, (ann.task, ann.label), skill[ann.worker])
    model = Wawa().fit(ann)
    assert_allclose(model.skill_, skill)
    assert_allclose(model.posterior_, weighted / weighted.sum(axis=1, keepdims=True))


def test_gold_takes_the_place_of_the_vote() -> None:
    ann = Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 1]])
    assert_allclose(Wawa().fit(ann, gold=[1, 0, 1]).skill_, [0, 0, 1])
