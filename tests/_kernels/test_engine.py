"""Which engine is taken."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from commands import Patch
from crowds import crowd
from engines import all_by
from numpy.testing import assert_allclose

from labelonce import IBCC, Annotations, DawidSkene, OneCoin
from labelonce._kernels import ScipyEngine, _engine, make_engine
from labelonce._sklearn import clone


@pytest.fixture
def small_pays(monkeypatch: Patch) -> None:
    monkeypatch.setattr(_engine, "_PAYS", 10)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


def test_small_tables_and_all_without_torch_are_left_to_scipy(monkeypatch: Patch) -> None:
    assert isinstance(make_engine(crowd()[0], "float32"), ScipyEngine)
    monkeypatch.setattr(_engine, "_PAYS", 10)
    monkeypatch.setattr(_engine, "find_spec", lambda name: None)  # noqa: ARG005
    assert isinstance(make_engine(crowd()[0], "float32"), ScipyEngine)
    with pytest.raises(ImportError, match=r"device='cuda' needs PyTorch; .* pip install 'labelonce\[neural\]'"):
        make_engine(crowd()[0], "float32", device="cuda")


@pytest.mark.neural
@pytest.mark.usefixtures("small_pays")
@pytest.mark.parametrize(
    ("dtype", "threads", "kind"),
    [("float32", 2, "TorchEngine"), ("float32", 1, "ScipyEngine"), ("float64", 2, "ScipyEngine")],
)
def test_large_ones_go_to_torch_where_it_is_faster(monkeypatch: Patch, dtype: str, threads: int, kind: str) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: threads)
    assert type(make_engine(crowd()[0], dtype)).__name__ == kind


@pytest.mark.neural
@pytest.mark.usefixtures("small_pays")
def test_torch_is_not_loaded_before_loading_pays(monkeypatch: Patch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    assert isinstance(make_engine(crowd()[0], "float32"), ScipyEngine)


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="device must be None, 'cpu' or 'cuda'; got 'tpu'"):
        DawidSkene(device="tpu").fit(crowd()[0])


def by_each(model: Any, ann: Annotations, **options: Any) -> Iterator[Any]:
    """Yield the fits by torch and by scipy."""
    for engine in ("torch", "scipy"):
        with all_by(engine):
            yield clone(model).fit(ann, **options)


@pytest.mark.neural
@pytest.mark.parametrize("model", [DawidSkene, OneCoin, IBCC])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 1e-4)])
def test_aggregators_give_the_same_with_both_engines(model: Any, dtype: str, atol: float) -> None:
    ann, y_true = crowd()
    gold = {0: y_true[0], 9: (y_true[9] + 1) % 3}
    tol = 2e-5  # 40 % away from the change of every iteration: rounding does not move the last one
    ours, scipys = by_each(model(device="cpu", dtype=dtype, tol=tol), ann, gold=gold)
    assert ours.n_iter_ == scipys.n_iter_
    assert_allclose(ours.posterior_, scipys.posterior_, atol=atol)
    assert_allclose(ours.confusion_, scipys.confusion_, atol=atol)


@pytest.mark.neural
def test_further_starts_draw_the_same_noise() -> None:
    ann, _ = crowd(1, n_tasks=40, n_classes=4)
    ours, scipys = by_each(DawidSkene(device="cpu", n_init=3), ann)
    assert_allclose(ours.posterior_, scipys.posterior_, atol=1e-9)
