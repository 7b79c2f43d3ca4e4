"""What TorchLearner is fed: bad inputs are one sentence, and memory depends neither on images' size nor on luck."""

import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import labelonce as lo
from labelonce import neural
from labelonce.neural import TorchLearner, _data, _learner, _steps
from labelonce.neural._data import Inputs, as_targets

CPU = torch.device("cpu")
ROUNDING = 1e-6  # of float32: batches of another size, or elsewhere in memory, may be summed in another order
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": "batches are drawn: a weight of 2 is not a row twice",
    "check_dtype_object": "numbers as objects are refused, not guessed at",
    "check_supervised_y_2d": "a column is a target of one class",
}


def table(n_tasks: int = 20, n_features: int = 4) -> Any:
    return np.random.default_rng(0).normal(size=(n_tasks, n_features)).astype(np.float32)


def images(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def with_nan(X: Any, row: int) -> Any:
    X = X.copy()
    X[row] = np.nan
    return X


def learner(module_fn: Any = neural.mlp, **options: Any) -> TorchLearner:
    few: dict[str, Any] = {"epochs": 1, "batch_size": 4, "lr": 0.01, "device": "cpu", "random_state": 0}
    return TorchLearner(module_fn, **few | options)


def fit(X: Any, module_fn: Any = neural.mlp, **options: Any) -> TorchLearner:
    return learner(module_fn, **options).fit(X, np.arange(20) % 2)


tiny = partial(neural.fast_net, widths=(4, 4, 4))


class Counted(torch.utils.data.Dataset[Any]):
    """Items of an array, or made by a function of their number, that counts how often it is read."""

    def __init__(self, item: Callable[[int], Any], n_tasks: int = 20) -> None:
        self.item, self.n_tasks, self.reads = item, n_tasks, 0

    def __len__(self) -> int:
        return self.n_tasks

    def __getitem__(self, number: int) -> Any:
        self.reads += 1
        return self.item(number)


class Stream(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(table())

    def __len__(self) -> int:
        return 20


class Ten(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(x), 10)


class Pair(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return x, x


def normed(n_classes: int) -> nn.Module:
    return nn.Sequential(nn.LazyLinear(4), nn.BatchNorm1d(4), nn.Linear(4, n_classes))


WANTED = "Networks for images want (n_tasks, 3, height, width)"
GREY = f"{WANTED}; for grey ones give np.repeat"
PAD = "pad must be smaller than the images, which are"
BAD_IMAGES = {
    "grey without a channel": (images(20, 28, 28), f"{GREY}(X[:, None], 3, axis=1)."),
    "grey, channel first": (images(20, 1, 28, 28), f"{GREY}(X, 3, axis=1)."),
    "grey, channel last": (images(20, 28, 28, 1), f"{GREY}(X, 3, axis=3)."),
    "five channels": (images(20, 5, 16, 16), f"{WANTED}."),
    "RGBA, channels first": (images(20, 4, 16, 16), f"{WANTED}; without transparency that is X[:, :3]."),
    "RGBA, channels last": (images(20, 16, 16, 4), f"{WANTED}; without transparency that is X[..., :3]."),
    "too small": (
        images(20, 3, 8, 8),
        "X must be what module_fn takes; fast_net failed on inputs of shape (2, 3, 8, 8)",
    ),
    "a table": (table(), f"{WANTED}; for a table use neural.mlp."),
}
BAD_DATA: dict[str, tuple[Any, str]] = {
    "grey for an MLP": (images(20, 28, 28, 1), f"{PAD} 28 x 1 with 28 channels; got pad=4."),
    "images smaller than pad": (images(20, 3, 4, 4), f"{PAD} 4 x 4 with 3 channels; got pad=4. Lower pad"),
    "no axis of features": (torch.zeros(20), "X must have one row of features per task; got shape (20,)."),
    "no features": (torch.zeros(20, 0), "X has 0 feature(s) (shape=(20, 0)) while a minimum of 1"),
    "sparse array": (
        sparse.csr_array(table()),
        "X must not be sparse for a network; got csr_array of shape (20, 4). Use X.toarray().",
    ),
    "sparse tensor": (torch.from_numpy(table()).to_sparse(), "of shape (20, 4). Use X.to_dense()."),
    "NaN in a tensor": (
        torch.from_numpy(with_nan(table(), 7)),
        "X must be finite; it contains NaN or infinity, first in row 7. Fill or drop such rows.",
    ),
    "complex tensor": (torch.zeros(20, 4) + 0j, "X must hold numbers for a network; got torch.complex64."),
    "items that are dicts": (
        Counted(lambda _: {"image": torch.zeros(4), "label": 1}),
        "item 0 of the data set must be a tensor of numbers, or a tuple whose first entry is; got a mapping with the "
        "keys ['image', 'label']. Return the entry to learn from.",
    ),
    "items that are no numbers": (Counted(lambda _: "a.png"), "got str. Convert it in the data set."),
    "items without an axis": (Counted(lambda _: 1.0), "got torch.float32 of shape ()."),
    "items of unequal size": (
        Counted(lambda number: torch.zeros(5 if number == 1 else 4)),
        "items of a data set must have one shape; item 0 has (4,) and item 1 (5,).",
    ),
    "NaN in an item": (
        Counted(lambda number: torch.tensor([np.nan, 1.0] if number == 1 else [0.0, 1.0])),
        "items of a data set must be finite; item 1 contains NaN or infinity.",
    ),
    "a DataLoader": (
        torch.utils.data.DataLoader(Counted(lambda _: torch.zeros(4)), batch_size=1),
        "X must be an array, a tensor or a map-style data set; got a DataLoader. Give loader.dataset.",
    ),
    "a stream": (Stream(), "with len(X) and X[number]; got Stream."),
    "a dict": (dict(enumerate(table())), "with len(X) and X[number]; got dict."),
}
BAD = [(neural.mlp, *one) for one in BAD_DATA.values()] + [(tiny, *one) for one in BAD_IMAGES.values()]


@pytest.mark.parametrize(("module_fn", "X", "sentence"), BAD, ids=[*BAD_DATA, *BAD_IMAGES])
def test_bad_inputs_are_one_sentence(module_fn: Any, X: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(sentence)):
        fit(X, module_fn)


@pytest.mark.parametrize(
    ("shape", "change"),
    [
        ((20, 16, 16), lambda X: np.repeat(X[:, None], 3, axis=1)),
        ((20, 1, 16, 16), lambda X: np.repeat(X, 3, axis=1)),
        ((20, 16, 16, 1), lambda X: np.repeat(X, 3, axis=3)),
        ((20, 4, 16, 16), lambda X: X[:, :3]),
        ((20, 16, 16, 4), lambda X: X[..., :3]),
    ],
)
def test_the_fix_that_is_named_works(shape: tuple[int, ...], change: Callable[[Any], Any]) -> None:
    X = change(images(*shape))
    assert fit(X, tiny).predict_proba(X).shape == (20, 2)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"augment": "images"}, "augment='images' needs images (n_tasks, 3, height, width); X has (4,) per task."),
        ({"device": "gpu"}, "device must be a name that torch knows, such as 'cpu', 'cuda' or 'cuda:0'; got 'gpu'."),
        ({"device": 1.5}, "such as 'cpu', 'cuda' or 'cuda:0'; got 1.5."),
        ({"epochs_by_round": 3}, "epochs_by_round must be a list or tuple such as (6, 12); got 3."),
        ({"module_fn": neural.mlp(2)}, "such as neural.mlp; got the module MLP. Give the function or class"),
        ({"module_fn": "mlp"}, "such as neural.mlp; got 'mlp'. Give the function or class that makes it."),
        ({"module_fn": lambda _: None}, "module_fn must return a torch.nn.Module; <lambda> gave None."),
        (
            {"module_fn": lambda _: Ten()},
            "must give 2 numbers per task, one for each class, so (2, 2) for 2 tasks; <lambda> gave (2, 10).",
        ),
        ({"module_fn": lambda _: Pair()}, "so (2, 2) for 2 tasks; <lambda> gave tuple."),
        ({"holdout": 0.99}, "holdout must leave tasks to train on; holdout=0.99 held out all 20 with a weight."),
        ({"holdout": 0.001}, "holdout must hold out at least one task; holdout=0.001 held out 0 of 20 with a weight."),
        (
            {"module_fn": normed, "batch_size": 1},
            "batch normalisation needs two tasks or more in a step of a process; got 1, of shape (4,).",
        ),
    ],
)
def test_bad_options_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(sentence)):
        fit(table(), **options)


def test_bad_epochs_by_round_are_named_before_the_first_round() -> None:
    ann = lo.Annotations.from_arrays(np.arange(20), np.arange(20) % 3, np.arange(20) % 2)
    with pytest.raises(ValueError, match="epochs_by_round must be a list or tuple"):
        lo.MBEM(learner(epochs_by_round=3), rounds=2).fit(table(), ann)


@pytest.mark.parametrize(
    ("fitted", "given", "sentence"),
    [
        (table(), table(3, 5), "X has 5 features, but TorchLearner is expecting 4 features as input"),
        (table(), torch.zeros(3, 4, 4), "X must have 1 axes per task, like the tasks of the fit; got 2: (4, 4)"),
        (images(20, 3, 8, 8), images(3, 1, 8, 8), "X has 1 channels, but TorchLearner is expecting 3 channels"),
        (images(20, 3, 8, 8), images(3, 3, 9, 9), "mlp failed on inputs of shape (3, 3, 9, 9)"),
        (
            Counted(lambda _: torch.zeros(4)),
            Counted(lambda _: torch.zeros(5)),
            "Give tasks of the shape that it was fitted to.",
        ),
    ],
)
def test_predictions_for_other_shapes_are_refused(fitted: Any, given: Any, sentence: str) -> None:
    net = fit(fitted)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        net.predict_proba(given)


def test_an_error_of_the_machine_is_not_blamed_on_x() -> None:
    class Full(nn.Module):
        def forward(self, _: torch.Tensor) -> torch.Tensor:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(torch.OutOfMemoryError):
        fit(table(), lambda _: Full())


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int64])
def test_images_with_channels_last_are_those_with_channels_first(dtype: Any) -> None:
    X = images(20, 16, 16, 3).astype(dtype)
    first = fit(X.transpose(0, 3, 1, 2), tiny).predict_proba(X.transpose(0, 3, 1, 2))
    assert_allclose(fit(X, tiny).predict_proba(X), first, atol=1e-6)


def test_feature_maps_of_3_x_3_are_left_as_they_are() -> None:
    assert Inputs(np.zeros((2, 8, 3, 3), np.float32), CPU, torch.float32).shape == (8, 3, 3)


def test_one_task_is_enough() -> None:
    assert learner().fit(table(1), np.eye(2)[:1]).predict_proba(table(1)).shape == (1, 2)


def test_scikit_learns_checks_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks of unusual inputs warn
        check_estimator(learner(epochs=8, batch_size=16, lr=0.1), on_skip=None, expected_failed_checks=EXPECTED)


@pytest.mark.parametrize(
    ("shape", "at_once", "examples"),
    [((32, 32, 3), 4096, 5000), ((10,), 4096, 5000), ((3, 320, 320), 40, 50), ((3, 10_000, 10_000), 1, 1)],
)
def test_fewer_tasks_are_taken_at_once_where_they_are_larger(
    shape: tuple[int, ...], at_once: int, examples: int
) -> None:
    inputs = Inputs(Counted(lambda _: torch.empty(1).expand(shape)), CPU, torch.float32)
    assert (inputs.at_most(4096), inputs.at_most(5000)) == (at_once, examples)


def test_predictions_are_made_for_that_many(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    class Noted(TorchLearner):
        def predict_batch(self, module: nn.Module, batch: torch.Tensor) -> torch.Tensor:
            sizes.append(len(batch))
            return super().predict_batch(module, batch)

    monkeypatch.setattr(_data, "_IMAGE", 1)
    monkeypatch.setattr(_learner, "_AT_ONCE", 20)
    net = Noted(neural.mlp, epochs=1, batch_size=4, device="cpu", holdout=0.6, random_state=0)
    net.fit(table(), np.arange(20) % 2)
    assert max(sizes) == 5  # of 4 features each
    sizes.clear()
    net.predict_proba(table())
    assert sizes == [5, 5, 5, 5]


@pytest.mark.parametrize(("module_fn", "examples"), [(neural.mlp, 2), (tiny, 2 + 100)])
def test_a_data_set_is_read_once_an_epoch(module_fn: Any, examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_steps, "_EXAMPLES", 100)
    X = torch.zeros(3, 16, 16)
    data = Counted(lambda _: X, 120)
    learner(module_fn, n_models=2, epochs=3).fit(data, np.arange(120) % 2)
    assert data.reads == 1 + 2 * (examples + 3 * 120)  # one to know its size, then two networks


def test_moments_in_parts_are_those_of_the_whole() -> None:
    X = torch.from_numpy(table(50, 3)).double()
    mean, deviation = _data._moments(X, CPU, lambda numbers: numbers, 7)
    assert_allclose(mean[0], X.mean(dim=0), rtol=1e-6)
    assert_allclose(deviation[0], X.std(dim=0, correction=0), rtol=1e-6)


@pytest.mark.parametrize("X", [table(), images(20, 16, 16, 3), images(20, 3, 16, 16)])
def test_what_does_not_fit_stays_on_the_host_with_the_same_results(X: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module_fn = neural.mlp if X.ndim == 2 else tiny
    near, here = Inputs(X, CPU, torch.float32), fit(X, module_fn, holdout=0.3).predict_proba(X)
    monkeypatch.setattr(_data, "free_memory", lambda _: 2 * 4 * X.size - 1)
    far = Inputs(X, CPU, torch.float32)
    assert (near._raw, far._scaled) == (None, None)
    rows = torch.tensor([3, 0, 19])
    assert_array_equal(far.take(rows), near.take(rows))
    assert far.take(rows).stride() == near.take(rows).stride()
    assert_array_equal(fit(X, module_fn, holdout=0.3).predict_proba(X), here)
    monkeypatch.setattr(_data, "free_memory", lambda _: 2 * 4 * X.size)
    assert Inputs(X, CPU, torch.float32)._raw is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same_with_arrays_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    X = images(400, 16, 16, 3)
    y = np.arange(400) % 2
    assert 0 < _data.free_memory(torch.device("cuda")) < float("inf")
    near = learner(tiny, device="cuda", batch_size=50).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(_data, "free_memory", lambda _: 0.0)
        far = learner(tiny, device="cuda", batch_size=50).fit(X, y)
        rows = torch.arange(9, device="cuda")
        batch = Inputs(X, torch.device("cuda"), torch.bfloat16).take(rows)
    assert batch.is_cuda
    assert torch.equal(batch, Inputs(X, torch.device("cuda"), torch.bfloat16).take(rows))
    assert far.history_[0]["loss"] == pytest.approx(near.history_[0]["loss"], rel=0.02)


def test_what_was_fitted_to_an_array_predicts_for_a_data_set_alike() -> None:
    X, y = 5 + 3 * table(), np.arange(20) % 2
    items = Counted(lambda number: X[number])
    net = learner(epochs=3).fit(X, y)
    assert_allclose(net.predict_proba(items), net.predict_proba(X), atol=ROUNDING)
    with pytest.raises(ValueError, match="X has 3 features, but TorchLearner is expecting 4 features"):
        net.predict_proba(Counted(lambda number: X[number, :3]))


def test_what_was_fitted_to_a_data_set_predicts_for_an_array_alike() -> None:
    X, y = 5 + 3 * table(), np.arange(20) % 2
    items = Counted(lambda number: X[number])
    net = learner(epochs=3).fit(items, y)
    assert_allclose(net.predict_proba(X), net.predict_proba(items), atol=ROUNDING)
    assert_allclose(net.predict_proba(X[:5]), net.predict_proba(X)[:5], atol=ROUNDING)


def test_a_module_s_own_error_for_one_task_is_not_called_batch_normalisation() -> None:
    class Refusing(nn.Linear):
        def forward(self, batch: Any) -> Any:
            if len(batch) == 1:
                raise ValueError("no single tasks, please")
            return super().forward(batch)

    with pytest.raises(ValueError, match="no single tasks, please"):
        learner(lambda n_classes: Refusing(4, n_classes), batch_size=1).fit(table(), np.arange(20) % 2)


def test_clones_keep_what_was_asked_of_metadata_routing() -> None:
    with config_context(enable_metadata_routing=True):
        asked = learner().set_fit_request(sample_weight=True)
        assert clone(asked).get_metadata_routing().fit.requests["sample_weight"] is True


def test_targets_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 2.0**20)
    with pytest.raises(ValueError, match="targets of 1,000 tasks and 400 classes must fit"):
        as_targets(np.zeros((1000, 2)), np.arange(1000) % 400, None)
