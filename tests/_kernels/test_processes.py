"""The device of a process: what was asked for, a GPU each where several share the work."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from labelonce._kernels import _processes
from labelonce._kernels._processes import Processes, add_up, find_device, join_processes

torch = pytest.importorskip("torch")


@pytest.fixture
def four_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", "3")


def test_one_process_alone_sums_to_what_it_has() -> None:
    with join_processes("cpu") as processes:
        assert (processes.rank, processes.size) == (0, 1)
        value = torch.ones(2)
        for found in (processes.sum(value), processes.sum_(value), processes.gather(value)):
            assert_array_equal(found, [1.0, 1.0])
        assert processes.same(7, torch.device("cpu")) == 7
        processes.wait()
    assert_array_equal(add_up(np.float32(2)), 2.0)


@pytest.mark.usefixtures("four_gpus")
def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_device(None) == torch.device("cuda")  # nobody else is there
    monkeypatch.setattr(_processes, "n_processes", lambda: 8)
    assert find_device(None) == find_device("cuda") == torch.device("cuda:3")
    assert find_device(None, shared=False) == torch.device("cuda")
    assert find_device("cuda:1") == torch.device("cuda:1")
    assert find_device("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)  # the others are hidden
    assert find_device(None) == torch.device("cuda:0")


@pytest.mark.usefixtures("four_gpus")
def test_a_gpu_or_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one that is here; got 'cuda:4' with 4 GPUs, numbered from 0"):
        find_device("cuda:4")
    with pytest.raises(ValueError, match=r"device must be a name that torch knows, .* got 'gpu'"):
        find_device("gpu")


def test_torch_is_not_loaded_to_count_the_processes_and_unshared_ones_are_one() -> None:
    said = "print(Processes().size, 'torch' in sys.modules)"
    code = f"import sys; from labelonce._kernels._processes import Processes; {said}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "1 False\n"
    assert Processes(shared=False).size == 1
