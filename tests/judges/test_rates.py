"""Shares of classes against the package ppi_py, and against what is known."""

import numpy as np
import pytest

from labelonce._types import Estimate
from labelonce.judges import class_shares
from labelonce.judges._rates import checks_for_risk, checks_for_width

PPI = (0.2471951, 0.36162145)  # ppi_py 0.2.3: ppi_mean_ci(y[known], proxy[known], proxy[~known], alpha=0.05) of `drawn`


def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = (rng.random(1000) < 0.3).astype(int)
    proxy = np.clip(0.3 + 0.4 * (truth - 0.3) + 0.15 * rng.standard_normal(1000), 0.01, 0.99)
    return truth, proxy, np.sort(rng.choice(1000, 120, replace=False))


def shares(gold: np.ndarray, proxy: np.ndarray, chances: np.ndarray | None = None) -> tuple[float, float, float]:
    table = class_shares(np.column_stack([1 - proxy, proxy]), gold, np.array([0, 1]), chances=chances).to_pydict()
    return table["share"][1], table["low"][1], table["high"][1]


def test_the_interval_is_that_of_ppi_and_none_where_all_is_known() -> None:
    truth, proxy, known = drawn()
    gold = np.full(1000, -1)
    gold[known] = truth[known]
    _, low, high = shares(gold, proxy)
    assert high - low == pytest.approx(PPI[1] - PPI[0], rel=0.01)
    assert (low, high) == pytest.approx(PPI, abs=0.005)  # which leaves the gold tasks out of the mean of the proxy
    truth, proxy, _ = drawn()
    share, low, high = shares(truth, proxy, np.ones(1000))
    assert (share, low, high) == pytest.approx((truth.mean(),) * 3)


def test_tasks_chosen_with_unequal_chances_count_by_their_inverse() -> None:
    truth, proxy, _ = drawn()
    chance = np.where(proxy > 0.4, 0.4, 0.1)  # mostly those that are of class 1
    inside, naive = [], []
    for seed in range(100):
        known = np.random.default_rng(seed).random(1000) < chance
        gold = np.where(known, truth, -1)
        _, low, high = shares(gold, np.full(1000, 0.5), chance)
        inside.append(low <= truth.mean() <= high)
        naive.append(truth[known].mean())
    assert np.mean(inside) > 0.88
    assert np.mean(naive) > truth.mean() + 0.1


def test_as_many_items_as_are_said_to_be_needed_make_the_interval_as_narrow_as_wanted() -> None:
    truth, proxy, known = drawn()
    posterior, gold = np.column_stack([1 - proxy, proxy]), np.full(1000, -1)
    gold[known] = truth[known]
    more = checks_for_width(posterior, gold, 0.035, 0.95)
    assert 0 < more < 600
    gold[np.random.default_rng(1).choice(np.flatnonzero(gold < 0), more, replace=False)] = 0
    gold[gold >= 0] = truth[gold >= 0]
    _, low, high = shares(gold, proxy)
    assert high - low == pytest.approx(0.07, rel=0.1)
    assert checks_for_width(posterior, gold, 0.2, 0.95) == 0


def test_people_label_the_least_sure_items_until_few_enough_labels_are_wrong() -> None:
    confidence = np.array([0.5, 0.6, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    accuracy = Estimate(0.9, 0.8, 1.0)
    found = checks_for_risk(confidence, np.zeros(10, dtype=bool), accuracy, 0.055, 0.95)
    assert found == Estimate(1.0, 0.0, 2.0)  # wrong: 1 of 10, .55 after the first
    assert checks_for_risk(confidence, confidence < 0.7, accuracy, 0.02, 1.0).value == 0
    assert checks_for_risk(confidence, np.zeros(10, dtype=bool), accuracy, 0.0, 0.95).value == 10
