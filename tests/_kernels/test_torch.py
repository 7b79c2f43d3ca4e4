"""The torch engine against sums written as loops and against scipy; on CUDA too where there is any."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from checks import annotations, one_hot
from crowds import crowd
from engines import brute_force_e_step, brute_force_m_step, brute_force_votes, random_parameters
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations
from labelonce._kernels import ScipyEngine, _blocks
from labelonce._kernels._torch import TorchEngine

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
device = pytest.mark.parametrize("device", DEVICES)


@device
@given(ann=annotations(other_answers=True), block=st.integers(1, 9))
@settings(max_examples=50)
def test_e_step_equals_the_sum_over_annotations(device: str, ann: Annotations, block: int) -> None:
    log_confusion, log_prior = random_parameters(ann)
    posterior, log_likelihood = TorchEngine.of(ann, "float64", device, block=block).e_step(log_confusion, log_prior)
    expected, expected_likelihood = brute_force_e_step(ann, log_confusion, log_prior)
    assert_allclose(posterior, expected, atol=1e-9)
    assert log_likelihood == pytest.approx(expected_likelihood, abs=1e-9)


@device
@given(ann=annotations(other_answers=True), block=st.integers(1, 9), piece=st.integers(1, 5))
@settings(max_examples=50)
def test_m_step_equals_the_sum_over_annotations(device: str, ann: Annotations, block: int, piece: int) -> None:
    posterior = np.random.default_rng(0).dirichlet(np.ones(ann.n_classes), ann.n_tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_blocks, "_PIECE", piece)
        counts = TorchEngine.of(ann, "float64", device, block=block).m_step(posterior)
    assert_allclose(counts, brute_force_m_step(ann, posterior), atol=1e-9)


@device
@given(ann=annotations(other_answers=True), block=st.integers(1, 9))
@settings(max_examples=50)
def test_votes_are_counted_as_answers_lean(device: str, ann: Annotations, block: int) -> None:
    votes = TorchEngine.of(ann, "float64", device, block=block).vote_counts()
    assert_allclose(votes, brute_force_votes(ann), atol=1e-12)


@device
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize("n_classes", [1, 2, 10, 17, 1000])
def test_both_engines_give_the_same(device: str, dtype: str, atol: float, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    task, y_true = np.repeat(np.arange(300), 4), rng.integers(0, n_classes, 300)
    label = np.where(rng.random(1200) < 0.7, y_true[task], rng.integers(0, n_classes, 1200))
    ann = Annotations.from_arrays(task, np.tile(np.arange(4), 300), label, classes=range(n_classes))
    ann = ann.align(np.arange(-5, 310))  # tasks without labels at both ends
    gold = np.full(ann.n_tasks, -1, dtype=np.int32)
    gold[[0, 7, 310]] = y_true[:3]
    ours, scipys = TorchEngine.of(ann, dtype, device, block=500), ScipyEngine(ann, dtype)
    assert len(ours.blocks) > 1
    assert_array_equal(ours.vote_counts(), scipys.vote_counts())
    for known in (None, gold):
        parameters = (*random_parameters(ann), known)
        step, expected = ours.e_step(*parameters), scipys.e_step(*parameters)
        assert step.posterior.dtype == expected.posterior.dtype
        assert_allclose(step.posterior, expected.posterior, atol=atol)
        assert step.log_likelihood == pytest.approx(expected.log_likelihood, rel=atol)
        sweep, expected_sweep = ours.sweep(*parameters), scipys.sweep(*parameters)
        assert_allclose(sweep.tallies.values, expected_sweep.tallies.values, rtol=atol, atol=atol)
        assert_allclose(sweep.class_counts, expected_sweep.class_counts, rtol=atol)
        assert sweep.log_likelihood == pytest.approx(step.log_likelihood, rel=1e-12)


@device
def test_a_prior_for_every_task_goes_with_its_block(device: str) -> None:
    ann, _ = crowd()
    log_prior = np.log(np.random.default_rng(1).dirichlet(np.ones(3), ann.n_tasks))
    log_confusion, _ = random_parameters(ann)
    ours = TorchEngine.of(ann, "float64", device, block=64).e_step(log_confusion, log_prior)
    assert_allclose(ours.posterior, ScipyEngine(ann, "float64").e_step(log_confusion, log_prior).posterior, atol=1e-9)


@device
def test_gold_is_one_hot(device: str) -> None:
    ann, _ = crowd(n_tasks=4)
    gold = np.array([-1, 2, -1, 0], dtype=np.int32)
    posterior = TorchEngine.of(ann, "float64", device).e_step(*random_parameters(ann), gold).posterior
    assert_array_equal(posterior[[1, 3]], one_hot(gold[[1, 3]], 3))


@device
def test_long_float32_sums_keep_their_digits(device: str) -> None:
    n = 3_000_000
    row, start = torch.zeros(n, dtype=torch.int32), torch.arange(n + 1, dtype=torch.int32)
    engine = TorchEngine(row, start, (1, 1, 1), "float32", device, block=n)
    assert engine.m_step(np.full((n, 1), 0.1))[0, 0, 0] == pytest.approx(0.1 * n, rel=1e-4)


@device
def test_a_run_twice_is_the_same_to_the_bit(device: str) -> None:
    ann, _ = crowd(n_tasks=2000)
    engine = TorchEngine.of(ann, "float32", device)
    first, second = (engine.sweep(*random_parameters(ann)) for _ in range(2))
    assert_array_equal(first.tallies.values, second.tallies.values)


def test_arguments_that_must_not_be_written_stay_whole() -> None:
    ann, _ = crowd()
    log_confusion, log_prior = random_parameters(ann)
    kept = log_confusion.copy()
    log_confusion.flags.writeable = log_prior.flags.writeable = False
    TorchEngine.of(ann, "float64", "cpu").e_step(log_confusion, log_prior)
    assert_array_equal(log_confusion, kept)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_kernel_needs_torch_and_numpy_alone() -> None:
    absent = "import sys; sys.modules.update(dict.fromkeys(['scipy', 'pyarrow', 'sklearn']));"
    code = "from labelonce._kernels._torch import TorchEngine; print(TorchEngine.__name__)"
    assert run(absent + code) == "TorchEngine\n"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_a_gpu_is_an_error() -> None:
    with pytest.raises(ValueError, match="device must be one that is here; got 'cuda' without a GPU"):
        TorchEngine.of(crowd()[0], "float64", "cuda")


def test_rows_beyond_32_bits_are_counted_in_64() -> None:
    class Wide:
        """Annotations of more (worker, label) pairs than an int32 counts, without their tables."""

        task, worker, label = (np.array(codes, dtype=np.int32) for codes in ([0, 1], [0, 2**30], [0, 3]))
        n_tasks, n_workers, n_classes, n_answers = 2, 2**30 + 1, 4, 4
        is_square = True

    wide: Any = Wide()
    assert TorchEngine.of(wide, "float32", "cpu").blocks[0].seen.tolist() == [0, 2**32 + 3]
