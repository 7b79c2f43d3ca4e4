"""What labels tell: the theory's exact values, the sampled ones next to them, and laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce import planning, simulate, theory
from labelonce.planning import _curve
from labelonce.planning._crowd import Crowd
from labelonce.planning._curve import Information, information


def told(crowd: Crowd, redundancies: list[int], *, draws: int = 20_000) -> Information:
    return information(crowd, crowd.confusion, redundancies, draws=draws, rng=np.random.default_rng(0))


@pytest.mark.parametrize("error_rate", [0.05, 0.2, 0.3, 0.45])
def test_gini_of_two_classes_and_symmetric_workers_is_one_minus_two_beta(error_rate: float) -> None:
    redundancies = [1, 2, 3, 7, 40]
    found = told(planning.assume(skill=1 - error_rate), redundancies)
    beta = np.array([theory._beta_symmetric(error_rate, one) for one in redundancies])
    assert_allclose(found.gini, 1 - 2 * beta, rtol=1e-9)
    assert_allclose(found.beta, beta, rtol=1e-9, atol=1e-13)  # a difference from 1


def test_beta_is_that_of_the_theory_for_unlike_workers() -> None:
    crowd = planning.assume(skills=[0.9, 0.6], n_classes=3)
    expected = [theory.beta(simulate.one_coin([0.9, 0.6], 3), one) for one in (1, 2, 4)]
    assert_allclose(told(crowd, [1, 2, 4]).beta, expected, rtol=1e-9)


def test_accuracy_and_information_of_simple_workers_are_the_known_ones() -> None:
    found = told(planning.assume(skill=0.7), [1, 3, 5])
    assert_allclose(found.label_accuracy, [1 - theory._majority_error(0.3, one) for one in (1, 3, 5)], rtol=1e-9)
    found = told(planning.assume(quality=0.3, n_classes=5), [1])
    assert_allclose([found.gini[0], found.mutual[0]], [0.3, 0.3], rtol=1e-9)
    noise = -(0.2 * np.log2(0.2) + 0.8 * np.log2(0.8))
    assert_allclose(told(planning.assume(skill=0.8), [1]).mutual, [1 - noise], rtol=1e-9)


def test_sampled_information_is_near_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = planning.assume(quality=0.4, n_classes=3, prior=[0.5, 0.3, 0.2])
    exact = told(crowd, [1, 2, 5])
    monkeypatch.setattr(_curve, "_MAX_STATES", 0)
    sampled = told(crowd, [1, 2, 5], draws=40_000)
    for name in ("gini", "mutual", "label_accuracy"):
        assert_allclose(getattr(sampled, name), getattr(exact, name), atol=0.012)  # four standard errors


def test_more_labels_never_tell_less_and_distinct_workers_more_than_the_same() -> None:
    found = told(planning.assume(skills=[0.2, 0.5, 0.9], n_classes=4), list(range(1, 8)))
    assert (np.diff(found.gini) > 0).all()
    assert (np.diff(found.mutual) > 0).all()
    stated = planning.assume(skills=[0.95, 0.5, 0.5])
    people = Crowd(stated.confusion, stated.load, stated.prior, stated.skill_error, n_workers=3)
    assert told(people, [3]).gini[0] > told(stated, [3]).gini[0] + 0.1
