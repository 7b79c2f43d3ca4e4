"""What the public functions of the theory refuse, and that they are all there."""

from typing import Any

import pytest

from labelonce import simulate, theory
from labelonce._types import Floats

SETTING: dict[str, Any] = {"n_annotations": 10**8, "n_workers": 20, "redundancy": 2, "vc_dimension": 30, "delta": 0.1}
IDENTITY = [[[1.0, 0.0], [0.0, 1.0]]]


def symmetric(error_rate: float, n_workers: int = 1) -> Floats:
    return simulate.one_coin([1 - error_rate] * n_workers, n_classes=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.alpha([[0.5, 0.5]]), r"confusion must have shape .*; got \(1, 2\)\."),
        (lambda: theory.alpha([[[0.5, 0.4], [0.5, 0.5]]]), r"confusion must sum to 1; got 0\.9 at \(0, 0\)"),
        (lambda: theory.beta(IDENTITY, 0), r"redundancy must be .* at least 1; got 0\."),
        (
            lambda: theory.beta(IDENTITY, 1, estimate=IDENTITY * 2),
            r"estimate must have shape \(1, 2, 2\); got \(2, 2, 2\)",
        ),
        (
            lambda: theory.beta(symmetric(0.2), 2, estimate=IDENTITY),
            r"estimate must allow .*; got probability 0 for labels \[0, 1\] of workers \[0, 0\]\. Smooth",
        ),
        (
            lambda: theory.beta(simulate.dirichlet(50, 2, rng=0), 5),
            r"at most 16777216 terms; got 101200320: 3162510 sets of workers times 32 of labels\. Use beta_monte_carlo",
        ),
        (lambda: theory.beta(IDENTITY, 21), r"must be at most 1048576; got 2\*\*21 = 2097152\."),
        (
            lambda: theory.beta_monte_carlo(IDENTITY, 21, 0, draws=2),
            r"must be at most 1048576; got 2\*\*21 = 2097152\.",
        ),
        (lambda: theory.beta_monte_carlo(IDENTITY, 1, 0, draws=1), r"draws must be .* at least 2; got 1\."),
        (lambda: theory.beta_symmetric(0.5, 1), r"error_rate must be in \[0, 0\.5\); got 0\.5\."),
        (lambda: theory.beta_symmetric(-0.1, 1), r"error_rate must be at least 0; got -0\.1\."),
        (lambda: theory.beta_symmetric(0.2, 1, -0.05), r"epsilon must be at least 0; got -0\.05\."),
        (lambda: theory.beta_symmetric(0.45, 1, 0.1), r"error_rate \+ epsilon must be below 0\.5; got 0\.45 \+ 0\.1\."),
        (lambda: theory.beta_symmetric_bound(0.45, 1, 0.1), r"must be below 0\.5; got 0\.45 \+ 0\.1\."),
        (lambda: theory.beta_symmetric_worst_case(0.45, 1, 0.1), r"must be below 0\.5; got 0\.45 \+ 0\.1\."),
        (lambda: theory.majority_error(0.6, 1), r"error_rate must be in \[0, 0\.5\); got 0\.6\."),
        (lambda: theory.confusion_error_bound(0.5, **SETTING), r"noise must be in \[0, 0\.5\); got 0\.5\."),
        (
            lambda: theory.confusion_error_bound(0.1, **SETTING, best_risk=0.3),
            r"best_risk must be in \[0, 0\.25\]; got 0\.3\.",
        ),
        (lambda: theory.confusion_error_bound(0.1, **SETTING | {"delta": 1}), r"delta must be in \(0, 1\); got 1\."),
        (
            lambda: theory.excess_risk_bound(0.7, n_annotations=9, redundancy=1, vc_dimension=1),
            r"beta must be in \[0, 0\.5\); got 0\.7\.",
        ),
        (
            lambda: theory.lemma_1_risk_bound(0.1, n_tasks=9, vc_dimension=1, delta=0),
            r"delta must be in \(0, 1\); got 0\.",
        ),
        (
            lambda: theory.lemma_2_confusion_bound(2, n_annotations=9, n_workers=1),
            r"risk must be in \[0, 1\]; got 2\.",
        ),
        (
            lambda: theory.required_annotations(0.5, n_workers=9, redundancy=1, vc_dimension=1),
            r"alpha must be in \[0, 0\.5\); got 0\.5\.",
        ),
        (
            lambda: theory.required_annotations(0.1, n_workers=9, redundancy=1, vc_dimension=1, constant=-1),
            r"constant must be at least 0; got -1\.",
        ),
        (lambda: theory.bound_factor(0.1, 1, "soft"), r"bound must be one of .*'variance'; got 'soft'\."),  # type: ignore[arg-type]
        (lambda: theory.best_redundancy(0.1, max_redundancy=0), r"max_redundancy must be .* at least 1; got 0\."),
        (lambda: theory.crossing_skill(1), r"redundancy must be .* at least 2; got 1\."),
        (lambda: theory.label_once_threshold(1), r"max_redundancy must be .* at least 2; got 1\."),
    ],
)
def test_an_argument_out_of_range_is_named_with_its_value(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_all_is_sorted_and_documented() -> None:
    assert theory.__all__ == sorted(theory.__all__, key=lambda name: (name[0].islower(), name))
    assert all(getattr(theory, name).__doc__ for name in theory.__all__)
