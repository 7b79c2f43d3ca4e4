"""The torch engine of tasks with candidates gives what the numpy one gives."""

from typing import Any

import numpy as np
import pytest
from grouped_crowd import GROUP, ROWS, crowd, factors
from numpy.testing import assert_allclose, assert_array_equal

from labelonce._kernels import (
    CandidateSums,
    Chances,
    Mistakes,
    Tallies,
    _engine,
    candidate_classes,
    make_candidate_engine,
)
from labelonce._types import Codes, Floats

pytestmark = pytest.mark.neural

TOLERANCE = {"float64": 1e-12, "float32": 1e-4}


def both(row: Codes, redundancy: int, dtype: str) -> tuple[Any, Any, Floats]:
    """Return the two engines of a crowd, and a log prior; the candidates of some tasks are padded."""
    ann, picks = crowd(redundancy), np.random.default_rng(4).integers(0, 6, (60, 2)).astype(np.int32)
    mistakes = Mistakes.inside(GROUP)
    classes = candidate_classes(ann, mistakes, picks)
    assert (classes < 0).any()
    engines = [
        make_candidate_engine(ann, classes, mistakes, row, dtype=dtype, engine=engine, device="cpu")
        for engine in ("scipy", "torch")
    ]
    mass = np.random.default_rng(3).dirichlet(np.ones(classes.shape[1] + 1), 60)
    mass[:, :-1][classes < 0] = 0.0
    with np.errstate(divide="ignore"):
        return *engines, np.log(mass / mass.sum(axis=1, keepdims=True)).astype(dtype)


def assert_same(found: Tallies, expected: Tallies, atol: float) -> None:
    for name in ("right", "wrong", "mistakes", "others", "unknown"):
        assert_allclose(getattr(found, name), getattr(expected, name), atol=atol)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("redundancy", [1, 3])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_both_engines_give_the_same(row: Codes, redundancy: int, dtype: str) -> None:
    numpy_sums, torch_sums, log_prior = both(row, redundancy, dtype)
    atol, workers = TOLERANCE[dtype], factors(row)
    expected, found = numpy_sums.e_step(workers, log_prior), torch_sums.e_step(workers, torch_sums.keep(log_prior))
    assert_allclose(found.posterior.to_dense(), expected.posterior.to_dense(), atol=atol)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=100 * atol)
    there = np.isfinite(log_prior)
    assert_allclose(torch_sums.messages(workers)[there], numpy_sums.messages(workers)[there], atol=10 * atol)
    weight = np.random.default_rng(5).random(60)
    posterior = expected.posterior
    assert_same(torch_sums.m_step(posterior, weight), numpy_sums.m_step(posterior, weight), atol)
    (wanted, log_likelihood), (tallies, total) = (one.sweep(workers, log_prior) for one in (numpy_sums, torch_sums))
    assert_same(tallies, wanted, atol)
    assert total == pytest.approx(log_likelihood, abs=100 * atol)
    if dtype == "float64":
        assert_array_equal(tallies.drawn_right, wanted.drawn_right)
        assert_array_equal(tallies.drawn_wrong, wanted.drawn_wrong)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("labelonce._kernels._torch_candidates", fromlist=["_BLOCK"])._BLOCK, "cpu", 50)
    monkeypatch.setattr("labelonce._kernels._candidate_sums._DRAWN", 20)
    numpy_sums, torch_sums, log_prior = both(ROWS["class"], 3, "float64")
    workers = factors(ROWS["class"])
    assert len(torch_sums.parts) > 5
    wanted, tallies = (one.sweep(workers, log_prior)[0] for one in (numpy_sums, torch_sums))
    assert_same(tallies, wanted, 1e-12)
    assert_array_equal(tallies.drawn_right, wanted.drawn_right)
    assert 0 < tallies.drawn_right.sum() + tallies.drawn_wrong.sum() < len(crowd(3)) / 2


@pytest.mark.parametrize(("cuda", "kind"), [(False, "CandidateSums"), (True, "TorchCandidateSums")])
def test_candidates_go_to_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch, cuda: bool, kind: str) -> None:
    monkeypatch.setattr(_engine, "_PAYS_ON_CUDA", 10)
    monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)  # found, but none that the engine can take
    ann, mistakes = crowd(2), Mistakes.inside(GROUP)
    made = make_candidate_engine(ann, candidate_classes(ann, mistakes), mistakes, ROWS["worker"])
    assert type(made).__name__ == kind


def test_small_ones_stay_with_numpy() -> None:
    ann, mistakes = crowd(2), Mistakes.inside(GROUP)
    made = make_candidate_engine(ann, candidate_classes(ann, mistakes), mistakes, ROWS["worker"])
    assert isinstance(made, CandidateSums)


@pytest.mark.parametrize("redundancy", [1, 3])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_both_engines_hear_the_same(row: Codes, redundancy: int) -> None:
    numpy_sums, torch_sums, log_prior = both(row, redundancy, "float64")
    workers, grid = factors(row), np.linspace(0.05, 0.95, 7)
    one, other = numpy_sums.evidence(), torch_sums.evidence()
    belief = np.random.default_rng(6).dirichlet(np.ones(7), (7, int(row.max()) + 1))
    for _ in range(3):
        wanted = one.step(Chances(grid, belief), workers, log_prior)
        found = other.step(Chances(grid, belief), workers, log_prior)
        there = np.isfinite(log_prior)
        assert_allclose(found.messages[there], wanted.messages[there], atol=1e-9)
        assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=1e-9)
        assert_same(found.tallies, wanted.tallies, 1e-9)
        belief = np.exp(wanted.log_likelihood - wanted.log_likelihood.max(axis=2, keepdims=True))
        belief /= belief.sum(axis=2, keepdims=True)
