"""Simulated populations are found again, and intervals cover."""

import numpy as np
import pytest

from labelonce import simulate
from labelonce._types import Floats
from labelonce.workers import ClassWise, Full, OneCoin, WorkerModel


def draw_counts(confusion: Floats, n_labels: int, rng: np.random.Generator) -> Floats:
    n_classes = confusion.shape[1]
    per_class = rng.multinomial(n_labels, np.full(n_classes, 1 / n_classes), len(confusion))
    return np.asarray(rng.multinomial(per_class, confusion), dtype=np.float64)


def class_wise(n_workers: int, n_classes: int, strength: float, rng: np.random.Generator) -> Floats:
    overall = np.repeat(rng.beta(6, 2, n_workers), n_classes)
    right = rng.beta(strength * overall, strength * (1 - overall)).reshape(n_workers, n_classes, 1)
    return np.where(np.eye(n_classes, dtype=bool), right, (1 - right) / (n_classes - 1))


@pytest.mark.parametrize("n_labels", [20, 200])
def test_the_population_of_one_coin_workers_is_found(n_labels: int) -> None:
    rng = np.random.default_rng(0)
    counts = draw_counts(simulate.one_coin(rng.beta(6, 2, 300), 4), n_labels, rng)
    a, b = OneCoin().fit_counts(counts).population_
    assert a / (a + b) == pytest.approx(0.75, abs=0.03)
    assert 4 < a + b < 16


@pytest.mark.parametrize("strength", [0.5, 3.0, 20.0])
def test_the_strength_of_a_workers_own_probability_is_found_within_a_factor_two(strength: float) -> None:
    rng = np.random.default_rng(1)
    counts = draw_counts(class_wise(200, 4, strength, rng), 100, rng)
    assert strength / 2 < ClassWise().fit_counts(counts).strength_ < 2 * strength


@pytest.mark.parametrize("strength", [0.5, 5.0, 40.0])
def test_the_strength_of_any_mistake_alike_is_found_within_a_factor_two(strength: float) -> None:
    rng = np.random.default_rng(2)
    each = strength / 4
    confusion = simulate.dirichlet(200, 5, rng, diagonal=strength, off_diagonal=each)
    found = Full().fit_counts(draw_counts(confusion, 200, rng)).error_strength_
    assert strength / 2 < found < 2 * strength


def test_strengths_are_large_and_populations_narrow_where_all_are_alike() -> None:
    rng = np.random.default_rng(3)
    model = Full().fit_counts(draw_counts(simulate.one_coin(rng.beta(6, 2, 200), 5), 500, rng))
    assert model.strength_ > 300
    assert model.error_strength_ > 300
    rng = np.random.default_rng(4)
    counts = draw_counts(simulate.one_coin(np.full(200, 0.7), 3), 200, rng)
    assert sum(OneCoin().fit_counts(counts).population_) > 300


def test_class_wise_hammers_and_spammers_are_told_apart() -> None:
    rng = np.random.default_rng(5)
    confusion = simulate.class_wise_hammer_spammer(50, 5, 0.5, rng)
    model = Full().fit_counts(draw_counts(confusion, 150, rng))
    hammer = np.einsum("wkk->wk", confusion) == 1
    found = np.einsum("wkk->wk", model.confusion_)
    assert found[hammer].min() > found[~hammer].max()


@pytest.mark.parametrize(("model", "crowd"), [(OneCoin, "one_coin"), (ClassWise, "class_wise"), (Full, "dirichlet")])
def test_intervals_of_skills_cover_at_their_level(model: type[WorkerModel], crowd: str) -> None:
    inside = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        confusion = {
            "one_coin": lambda rng: simulate.one_coin(rng.beta(6, 2, 200), 4),
            "class_wise": lambda rng: class_wise(200, 4, 8.0, rng),
            "dirichlet": lambda rng: simulate.dirichlet(200, 4, rng),
        }[crowd](rng)
        low, high = model().fit_counts(draw_counts(confusion, 50, rng)).skill_interval()
        skill = np.einsum("wkk->w", confusion) / 4
        inside.append((low <= skill) & (skill <= high))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)  # 1,200 workers: a standard error of 0.009


@pytest.mark.parametrize("model", [OneCoin, ClassWise, Full])
def test_shrinking_beats_counting_with_few_labels(model: type[WorkerModel]) -> None:
    rng = np.random.default_rng(6)
    confusion = class_wise(100, 4, 8.0, rng)
    counts = draw_counts(confusion, 10, rng)
    plain = (counts + 1e-9) / (counts + 1e-9).sum(axis=2, keepdims=True)
    error, plain_error = (np.abs(found - confusion).sum() for found in (model().fit_counts(counts).confusion_, plain))
    assert error < 0.7 * plain_error
