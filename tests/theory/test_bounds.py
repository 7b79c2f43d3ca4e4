"""Theorem 4.1 and its lemmas, with the errors in them corrected."""

from itertools import product
from math import ceil, log, sqrt
from typing import Any

import numpy as np
import pytest

from labelonce import simulate, theory

SETTING: dict[str, Any] = {"n_annotations": 10**8, "n_workers": 20, "redundancy": 2, "vc_dimension": 30, "delta": 0.1}


def test_epsilon_divides_by_delta() -> None:  # erratum 1
    gamma = 0.01 + 3 * (sqrt(30) + sqrt(log(10))) / ((1 - 0.4) * sqrt(10**8 / 2))
    expected = 16 * gamma + 256 * sqrt(20 * log(64 * 20 / 0.1) / 10**8)
    assert theory.confusion_error_bound(0.2, **SETTING, best_risk=0.01, constant=3) == pytest.approx(
        expected, rel=1e-12
    )


def test_epsilon_exists_where_the_printed_logarithm_would_be_negative() -> None:  # erratum 1: 2^6 m delta < 1
    setting = SETTING | {"n_workers": 1, "delta": 0.01}
    assert theory.confusion_error_bound(0.2, **setting) > 0


def test_epsilon_is_what_lemma_2_gives_at_its_smallest_denominator() -> None:
    """The proof: a quarter of the tasks and of delta, and a denominator of 1/8, which a risk of 1/8 leaves."""
    n_workers, delta, risk = 50, 0.05, 0.125
    n_annotations = 2**12 * n_workers * log(2**6 * n_workers / delta)
    lemma = theory.lemma_2_confusion_bound(
        risk, n_annotations=ceil(n_annotations / 4), n_workers=n_workers, delta=delta / 4
    )
    setting = {"n_annotations": ceil(n_annotations), "n_workers": n_workers, "redundancy": 1, "vc_dimension": 0}
    epsilon = theory.confusion_error_bound(0.0, **setting, delta=delta, best_risk=risk, constant=0.0)
    assert lemma == pytest.approx(epsilon, rel=1e-4)


@pytest.mark.parametrize("n_workers", [1, 10, 1000])
def test_enough_annotations_make_the_theorem_no_better_than_lemma_2(n_workers: int) -> None:
    needed = theory.required_annotations(0.1, n_workers=n_workers, redundancy=1, vc_dimension=0)
    for n_annotations, risk in product([needed, 10 * needed, 1000 * needed], [0.0, 0.01, 0.125]):
        lemma = theory.lemma_2_confusion_bound(
            risk, n_annotations=n_annotations // 4, n_workers=n_workers, delta=0.05 / 4
        )
        setting = {"n_annotations": n_annotations, "n_workers": n_workers, "redundancy": 1, "vc_dimension": 0}
        assert theory.confusion_error_bound(0.1, **setting, best_risk=risk, constant=0) >= lemma * (1 - 1e-4)


def test_required_annotations_are_millions_for_a_hundred_workers() -> None:
    found = theory.required_annotations(0.2, n_workers=100, redundancy=1, vc_dimension=100)
    assert found == ceil(4096 * 100 * log(128_000))
    assert 4.8e6 < found < 4.85e6


def test_required_annotations_grow_with_the_model_once_it_is_large() -> None:
    found = theory.required_annotations(0.2, n_workers=1, redundancy=3, vc_dimension=10**6, delta=0.1, constant=2)
    assert found == ceil(2 * 3 * ((1000 + sqrt(log(10))) / 0.6) ** 2)


def test_the_excess_risk_is_the_formula_of_the_theorem() -> None:
    setting = {"n_annotations": 10_000, "redundancy": 4, "vc_dimension": 25, "delta": 0.2, "constant": 3}
    expected = 3 * 2 / (1 - 0.5) * (sqrt(25 / 10_000) + sqrt(log(5) / 10_000))
    assert theory.excess_risk_bound(0.25, **setting) == pytest.approx(expected, rel=1e-12)  # type: ignore[arg-type]


def test_lemma_1_is_the_theorem_at_one_label_a_task() -> None:  # erratum 9: its own delta in the logarithm
    common: dict[str, Any] = {"vc_dimension": 25, "delta": 0.2, "constant": 3}
    lemma = theory.lemma_1_risk_bound(0.25, n_tasks=10_000, **common)
    assert lemma == pytest.approx(3 / 0.5 * (5 + sqrt(log(5))) / 100, rel=1e-12)
    assert lemma == theory.excess_risk_bound(0.25, n_annotations=10_000, redundancy=1, **common)


def test_lemma_2_divides_by_delta_twice() -> None:  # erratum 2
    spread = sqrt(10 * log(4 * 10 * 9 / 0.1) / 10**7)
    expected = (2 * 0.02 + 16 * spread) / (1 / 3 - 0.02 - 8 * spread)
    found = theory.lemma_2_confusion_bound(0.02, n_annotations=10**7, n_workers=10, n_classes=3, delta=0.1)
    assert found == pytest.approx(expected, rel=1e-12)


def test_lemma_2_bounds_nothing_with_few_annotations() -> None:
    assert theory.lemma_2_confusion_bound(0.02, n_annotations=1000, n_workers=10) == np.inf


def test_lemma_2_holds_for_simulated_workers() -> None:
    rng = np.random.default_rng(0)
    n_workers, n_annotations, risk = 2, 200_000, 0.05
    y_true = rng.integers(2, size=n_annotations)
    predicted = np.where(rng.random(n_annotations) < risk, 1 - y_true, y_true)
    confusion = simulate.one_coin([0.9, 0.6], n_classes=2)
    annotations = simulate.annotate(y_true, confusion, simulate.assign(n_annotations, n_workers, 1, rng), rng)
    counts = np.zeros((n_workers, 2, 2))
    np.add.at(counts, (annotations.worker, predicted[annotations.task], annotations.label), 1)
    error = np.abs(counts / counts.sum(axis=2, keepdims=True) - confusion).max()
    bound = theory.lemma_2_confusion_bound(risk, n_annotations=n_annotations, n_workers=n_workers)
    assert 0.02 < error <= bound < 1
