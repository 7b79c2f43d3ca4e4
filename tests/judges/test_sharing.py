"""What even agreement tells: strangers, copies, and judges who share mistakes."""

from typing import Any

import numpy as np
import pytest

import labelonce as lo
from labelonce.judges._law import GRID, Unevenness, uneven_if_copied, usual_sharing
from labelonce.judges._votes import Votes

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


def judged(shared: float, skill: float = 0.75, *, judges: int = 9, classes: int = 2, n: int = 1500) -> tuple[Any, Any]:
    """Return judges who take a share of their verdicts from one source that is as good as they are."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, classes, n)

    def verdict() -> Any:
        return np.where(rng.random(n) < skill, truth, (truth + rng.integers(1, classes, n)) % classes)

    common = verdict()
    matrix = np.stack([np.where(rng.random(n) < shared, common, verdict()) for _ in range(judges)], axis=1)
    return lo.Annotations.from_matrix(matrix, classes=range(classes)), truth


def unevenness(annotations: lo.Annotations) -> Any:
    law = lo.JudgePanel().fit(annotations)._shown.law
    panel, knows = law.panel, np.maximum(law.loading, 0.0)
    guesses = panel.votes.shares
    return Unevenness.of(panel.votes, np.ones(len(knows)), knows, guesses, panel.balance, law.rho)


@pytest.mark.parametrize("classes", [2, 4])
def test_strangers_agree_evenly_and_judges_who_share_mistakes_do_not(classes: int) -> None:
    skill = 0.75 if classes == 2 else 0.7
    found = {shared: unevenness(judged(shared, skill, classes=classes)[0]) for shared in (0.0, 0.5)}
    assert abs(found[0.0].value) < 0.04
    assert found[0.5].value > 0.05
    assert all(one.error < 0.05 for one in found.values())


@pytest.mark.parametrize("classes", [2, 5])
def test_the_unevenness_of_copies_is_that_of_their_mean_votes(classes: int) -> None:
    rng = np.random.default_rng(0)
    knows, shared, n = 0.6, 0.5, 200_000
    q2, r_rho = knows**2, shared**2
    rho = q2 + r_rho - q2 * r_rho
    wrong = rng.random(n) < (1 - knows) * (1 - 1 / classes)
    axes = np.eye(classes) - 1 / classes
    mean = shared * axes[np.where(wrong, 1, 0)] + (1 - shared) * knows * axes[0]
    size = (mean**2).sum(axis=1) / (axes[0] ** 2).sum()
    assert size.mean() == pytest.approx(rho, abs=0.01)
    expected = size.var() / (rho * (1 - rho))
    found = uneven_if_copied(np.array([r_rho / rho]), np.array([knows]), rho, classes)
    assert found[0] == pytest.approx(expected, rel=0.02)


def test_too_few_votes_say_nothing_and_the_prior_of_a_user_stands_alone() -> None:
    annotations, _ = judged(0.5, judges=3)
    assert unevenness(annotations) is None
    nothing = np.zeros(3), np.zeros(3), np.full((3, 2), 0.5), np.ones(2) / 2, 0.5
    assert Unevenness.of(Votes.of(annotations), *nothing) is None
    annotations, _ = judged(0.0)
    assert lo.JudgePanel(shared=(400.0, 100.0)).fit(annotations).shared_error_.value == pytest.approx(0.8, abs=0.02)


def test_judges_who_err_alone_are_believed() -> None:
    annotations, truth = judged(0.0)
    found = lo.JudgePanel().fit(annotations)
    right = (found.labels_ == truth).mean()
    assert right > 0.93
    assert found.confidence_.mean() > 0.87
    assert found.estimated_accuracy_.low < right < found.estimated_accuracy_.high
    assert found.shared_error_.value < 0.4


def test_copies_may_all_be_wrong() -> None:
    annotations, truth = judged(0.95)
    found = lo.JudgePanel().fit(annotations)
    right = (found.labels_ == truth).mean()
    assert found.confidence_.mean() < 0.9
    assert found.estimated_accuracy_.low < right < found.estimated_accuracy_.high
    assert found.estimated_accuracy_.high - found.estimated_accuracy_.low > 0.2  # nothing tells which


def test_without_votes_to_compare_the_kinds_are_mixed_as_they_usually_are() -> None:
    def truth(r: Any) -> Any:
        return 0.6 * (1 - r) / (1 - r * 0.6)

    even, uneven = (usual_sharing(GRID, truth, 0.6, 2, Unevenness(h, 0.01)) @ GRID for h in (0.0, 0.3))
    none = usual_sharing(GRID, truth, 0.6, 2, None)
    assert none.sum() == pytest.approx(1)
    assert abs(even - none @ GRID) < 0.2
    assert uneven == pytest.approx(0.65, abs=0.1)
