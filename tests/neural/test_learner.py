"""TorchLearner: the loss it minimises, what is random, images, data sets, early stopping and checkpoints."""

import os
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from torch import nn

import labelonce as lo
from labelonce import neural
from labelonce._kernels import Beliefs
from labelonce._kernels._processes import Processes
from labelonce._types import Floats
from labelonce.learning import SoftmaxRegression
from labelonce.neural import TorchLearner
from labelonce.neural._checkpoint import Checkpoint
from labelonce.neural._recording import check_rates
from labelonce.neural._training import Best, Training


def features(n_tasks: int = 120, n_features: int = 4) -> Any:
    return np.random.default_rng(0).normal(size=(n_tasks, n_features)).astype(np.float32)


def posteriors(n_tasks: int = 120, n_classes: int = 3) -> Floats:
    return np.random.default_rng(1).dirichlet(np.full(n_classes, 0.5), size=n_tasks)


def images(n_tasks: int = 24) -> Any:
    return np.random.default_rng(0).integers(0, 256, (n_tasks, 16, 16, 3), dtype=np.uint8)


ALONE = Processes(shared=False)
PLAIN = {"compiled": False, "recorded": False}


def linear(n_classes: int) -> nn.Module:
    return nn.LazyLinear(n_classes)


def learner(module_fn: Callable[[int], nn.Module] = neural.mlp, **options: Any) -> TorchLearner:
    few: dict[str, Any] = {"epochs": 3, "batch_size": 30, "lr": 0.1, "device": "cpu", "random_state": 0}
    return TorchLearner(module_fn, **few | options)


def test_a_linear_network_finds_the_softmax_regression_of_weighted_probability_targets() -> None:
    X, targets = features(), posteriors()
    weight = np.random.default_rng(2).uniform(0.1, 2, len(X))
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # the network's own scaling, so that both see the same features
    oracle = SoftmaxRegression(C=1e6).fit(X, targets, sample_weight=weight)
    net = learner(linear, epochs=300, batch_size=120, lr=1.0, weight_decay=0.0)
    assert_allclose(net.fit(X, targets, weight).predict_proba(X), oracle.predict_proba(X), atol=2e-3)


def test_labels_are_one_hot_targets() -> None:
    X, y = features(), np.array(["b", "a", "c"])[np.arange(120) % 3]
    by_labels = learner().fit(X, y)
    by_targets = learner().fit(X, np.eye(3)[np.array([1, 0, 2])[np.arange(120) % 3]])
    assert by_labels.classes_.tolist() == ["a", "b", "c"]
    assert_array_equal(by_labels.predict_proba(X), by_targets.predict_proba(X))


def test_only_the_ratio_of_weights_matters() -> None:
    X, targets, weight = features(), posteriors(), np.linspace(0.5, 1.5, 120)
    one = learner().fit(X, targets, weight).predict_proba(X)
    assert_allclose(one, learner().fit(X, targets, 1000 * weight).predict_proba(X), atol=1e-5)


def test_tasks_of_weight_zero_are_not_looked_at() -> None:
    X, targets = features(), posteriors()
    weight = np.r_[np.zeros(20), np.ones(100)]
    other = targets.copy()
    other[:20] = other[:20, ::-1]
    one = learner().fit(X, targets, weight).predict_proba(X)
    assert_array_equal(one, learner().fit(X, other, weight).predict_proba(X))


def test_a_seed_repeats_and_leaves_torch_s_own_generator_alone() -> None:
    X, targets = features(), posteriors()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = learner().fit(X, targets).predict_proba(X)
    assert_array_equal(torch.get_rng_state(), before)
    assert_array_equal(one, learner().fit(X, targets).predict_proba(X))
    assert np.abs(one - learner(random_state=1).fit(X, targets).predict_proba(X)).max() > 0


def test_several_networks_are_averaged() -> None:
    X, targets = features(), posteriors()
    net = learner(n_models=3).fit(X, targets)
    alone = []
    for module in net.modules_:
        one = clone(net)
        one.__dict__ |= net.__dict__ | {"modules_": [module]}
        alone.append(one.predict_proba(X))
    assert np.abs(alone[0] - alone[1]).max() > 0
    assert_allclose(net.predict_proba(X), np.mean(alone, axis=0), atol=1e-6)


@pytest.mark.parametrize("name", ["fast_net", "resnet9", "resnet20", "resnet18", "mlp"])
def test_every_network_learns_images_in_either_layout(name: str) -> None:
    X = images(8)
    widths: dict[str, Any] = {"fast_net": {"widths": (8, 8, 8)}, "resnet9": {"width": 4}, "mlp": {"width": 8}}

    def make(n_classes: int) -> nn.Module:
        return getattr(neural, name)(n_classes, **widths.get(name, {}))  # type: ignore[no-any-return]

    net = learner(make, epochs=1, batch_size=4, cutout=4, label_smoothing=0.1, mixup=0.5)
    probabilities = net.fit(X, np.arange(8) % 2).predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    turned = net.fit(X.transpose(0, 3, 1, 2), np.arange(8) % 2)
    assert_allclose(turned.predict_proba(X.transpose(0, 3, 1, 2)), probabilities, atol=1e-6)


def test_resnet20_has_the_published_number_of_parameters() -> None:
    assert sum(p.numel() for p in neural.resnet20(10).parameters()) == 269_722  # 0.27 M in He et al., Table 6


def test_predictions_of_an_image_and_its_mirror_image_are_equal() -> None:
    X = images()
    net = learner(lambda n: neural.resnet9(n, width=4), epochs=1, batch_size=12).fit(X, np.arange(24) % 2)
    assert_allclose(net.predict_proba(X), net.predict_proba(X[:, :, ::-1].copy()), atol=1e-5)


def test_a_map_style_data_set_gives_the_same_as_its_array() -> None:
    class Set(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(X)

        def __getitem__(self, number: int) -> Any:
            return torch.from_numpy(X[number]), -1  # its own label is not looked at

    X = features()
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # a data set's inputs are taken as they are
    one = learner(lr=0.01).fit(X, posteriors()).predict_proba(X)
    assert_allclose(learner(lr=0.01).fit(Set(), posteriors()).predict_proba(Set()), one, atol=1e-5)


def test_small_sets_get_more_epochs_up_to_the_steps_asked_for() -> None:
    net = learner(epochs=2, batch_size=30, min_steps=21).fit(features(), posteriors())
    assert len(net.history_) == 6  # of four steps each


def test_early_stopping_watches_noisy_targets_and_keeps_the_best_epoch() -> None:
    X = np.random.default_rng(0).normal(size=(60, 20)).astype(np.float32)
    noise = np.random.default_rng(1).integers(0, 2, 60)  # nothing to learn: the loss on held-out labels must rise
    net = learner(epochs=60, batch_size=10, lr=0.1, holdout=0.3, patience=4).fit(X, noise)
    losses = [row["held_out_loss"] for row in net.history_]
    assert len(losses) < 60
    assert int(np.argmin(losses)) == len(losses) - 1 - 4
    again = learner(epochs=60, batch_size=10, lr=0.1).fit(X, noise)
    assert np.abs(again.predict_proba(X)).max() > net.predict_proba(X).max()


def test_a_stopped_fit_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    X, targets = features(), posteriors()
    file = tmp_path / "net.safetensors"

    def stop(entry: dict[str, Any]) -> None:
        if entry["epoch"] == 3:
            raise KeyboardInterrupt

    straight = learner(epochs=5, mixup=0.3).fit(X, targets).predict_proba(X)
    with pytest.raises(KeyboardInterrupt):
        learner(epochs=5, mixup=0.3, checkpoint=file, callbacks=[stop]).fit(X, targets)
    assert file.exists()
    net = learner(epochs=5, mixup=0.3, checkpoint=file).fit(X, targets)
    assert [row["epoch"] for row in net.history_] == [3, 4, 5]  # two epochs were on disk
    assert_array_equal(net.predict_proba(X), straight)
    assert not file.exists()


def stopped_fit(epoch: int, X: Any, targets: Any, *, model: int = 0, **options: Any) -> None:
    """Fit until an epoch of a network, then be stopped before it is written."""

    def stop(entry: dict[str, Any]) -> None:
        if (entry["model"], entry["epoch"]) == (model, epoch):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner(callbacks=[stop], **options).fit(X, targets)


@pytest.mark.parametrize(
    "others",
    [{"random_state": 1}, {"lr": 0.2}, {"module_fn": partial(neural.mlp, width=8)}, {"targets": posteriors()[::-1]}],
)
def test_a_checkpoint_of_another_fit_is_not_used(tmp_path: Path, others: dict[str, Any]) -> None:
    X, targets = features(), posteriors()
    options: dict[str, Any] = {"epochs": 5, "checkpoint": tmp_path / "net.safetensors"}
    stopped_fit(4, X, others.pop("targets", targets).copy(), **options, **others)
    net = learner(**options).fit(X, targets)
    assert_array_equal(net.predict_proba(X), learner(epochs=5).fit(X, targets).predict_proba(X))


@pytest.mark.parametrize("epoch", range(2, 9))
def test_early_stopping_goes_on_with_its_best_epoch(tmp_path: Path, epoch: int) -> None:
    X = features()
    noisy = (X[:, 0] > 0) ^ (np.arange(120) % 5 == 0)
    options: dict[str, Any] = {"epochs": 60, "batch_size": 10, "lr": 0.02, "holdout": 0.3, "patience": 3}
    straight = learner(**options).fit(X, noisy)
    losses = [entry["held_out_loss"] for entry in straight.history_]
    assert 2 < np.argmin(losses) < len(losses) - 1
    stopped_fit(epoch, X, noisy, checkpoint=tmp_path / "net", **options)
    again = learner(checkpoint=tmp_path / "net", **options).fit(X, noisy)
    assert again.history_[-1] == straight.history_[-1]
    assert_array_equal(again.predict_proba(X), straight.predict_proba(X))


def test_networks_that_were_finished_are_not_trained_again(tmp_path: Path) -> None:
    X, targets = features(), posteriors()
    options: dict[str, Any] = {"epochs": 3, "n_models": 3, "checkpoint": tmp_path / "net"}
    stopped_fit(2, X, targets, model=2, **options)
    again = learner(**options).fit(X, targets)
    assert [(row["model"], row["epoch"]) for row in again.history_] == [(2, 2), (2, 3)]
    assert_array_equal(again.predict_proba(X), learner(**options).fit(X, targets).predict_proba(X))
    assert list(tmp_path.iterdir()) == []


def test_a_fit_with_dropout_is_decided_by_its_seed_and_goes_on(tmp_path: Path) -> None:
    X, targets = features(), posteriors()
    options: dict[str, Any] = {"module_fn": partial(neural.mlp, dropout=0.5), "epochs": 4}
    before = torch.get_rng_state()
    straight = learner(**options).fit(X, targets).predict_proba(X)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    assert_array_equal(learner(**options).fit(X, targets).predict_proba(X), straight)
    stopped_fit(3, X, targets, checkpoint=tmp_path / "net", **options)
    assert_array_equal(learner(checkpoint=tmp_path / "net", **options).fit(X, targets).predict_proba(X), straight)


def test_averages_come_back_in_the_layout_of_their_parameters(tmp_path: Path) -> None:
    module = neural.resnet20(3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    jobs = []
    for net in (module, deepcopy(module)):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        jobs.append(Training(net, optimizer, torch.Generator(), 0, 1, 1, ALONE, **PLAIN))
    images = torch.zeros(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    jobs[0].module(images).sum().backward()
    jobs[0].optimizer.step()
    checkpoint = Checkpoint(tmp_path / "net", {}, ALONE)
    checkpoint.save(jobs[0], Best(1))
    checkpoint.load(jobs[1], Best(1))
    state = jobs[1].optimizer.state
    assert len(state) == len(list(module.parameters()))
    for parameter, before in zip(jobs[1].module.parameters(), module.parameters(), strict=True):
        average = state[parameter]["momentum_buffer"]
        assert average.stride() == parameter.stride()
        assert torch.equal(average, jobs[0].optimizer.state[before]["momentum_buffer"])


def test_a_learner_with_its_own_make_module_needs_no_module_fn(tmp_path: Path) -> None:
    class Own(TorchLearner):
        def make_module(self, n_classes: int, example: torch.Tensor) -> nn.Module:
            return nn.Linear(example.shape[1], n_classes)

    nothing: Any = None
    for checkpoint in (None, tmp_path / "net"):
        net = Own(nothing, epochs=1, device="cpu", checkpoint=checkpoint).fit(features(), posteriors())
        assert net.predict_proba(features()).shape == (120, 3)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # its labels mean nothing
def test_mbem_is_not_led_astray_by_the_checkpoint_of_another_round(tmp_path: Path) -> None:
    X, y = features(), np.arange(len(features())) % 3
    straight = lo.MBEM(learner(epochs=3), rounds=3).fit(X, y)
    epochs = iter(range(9))

    def stop(entry: dict[str, Any]) -> None:  # noqa: ARG001
        if next(epochs) == 7:  # the second epoch of the third round
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lo.MBEM(learner(epochs=3, checkpoint=tmp_path / "net", callbacks=[stop]), rounds=3).fit(X, y)
    assert (tmp_path / "net").exists()
    again = lo.MBEM(learner(epochs=3, checkpoint=tmp_path / "net"), rounds=3).fit(X, y)
    assert_array_equal(again.posterior_, straight.posterior_)


def test_a_checkpoint_is_on_the_disk_before_it_takes_the_place_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name, real in (("fsync", os.fsync), ("replace", os.replace)):

        def noted(*args: Any, _real: Any = real, _name: str = name) -> None:
            calls.append(_name)
            _real(*args)

        monkeypatch.setattr(os, name, noted)
    learner(epochs=2, checkpoint=tmp_path / "net").fit(features(), posteriors())
    assert calls == ["fsync", "replace", "fsync"] * (len(calls) // 3)
    assert len(calls) == 6


def test_a_checkpoint_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "net").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"must be a file that a fit wrote; '.*net' is damaged or something else"):
        learner(checkpoint=tmp_path / "net").fit(features(), posteriors())
    assert (tmp_path / "net").read_bytes() == b"something else"
    with pytest.raises(ValueError, match=r"checkpoint must be in a folder that exists; got '.*none/net'"):
        learner(checkpoint=tmp_path / "none" / "net").fit(features(), posteriors())


class Noting:
    """A callback that is an object, as a progress bar is; it cannot be copied."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.lock = Lock()

    def __call__(self, entry: dict[str, Any]) -> None:
        self.seen.append(entry["epoch"])


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # its labels mean nothing
@pytest.mark.parametrize("bound", [False, True])
def test_callbacks_hear_of_every_epoch_within_mbem(bound: bool) -> None:
    noting = Noting()
    callback = noting.__call__ if bound else noting
    net = learner(epochs=2, callbacks=[callback])
    clf = lo.MBEM(net, rounds=3).fit(features(), np.arange(len(features())) % 3)
    assert clf.n_fits_ >= 3 + TorchLearner.n_folds  # three rounds, and the fits that its confidence takes
    assert noting.seen == [1, 2] * clf.n_fits_


def test_epochs_by_round() -> None:
    net = learner(epochs=30, epochs_by_round=(6, 12), min_steps=300)
    assert [net.for_round(number, 5).epochs for number in range(1, 7)] == [6, 12, 12, 12, 30, 30]
    assert [net.for_round(number, 5).min_steps for number in (1, 5)] == [60, 300]
    assert learner(epochs=7).for_round(1, 5).epochs == 7
    assert net.last_round_differs
    assert not learner(epochs=7).last_round_differs
    assert not learner(epochs=7, epochs_by_round=(7, 7)).last_round_differs


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"epochs": 0}, "epochs must be an integer of at least 1; got 0."),
        ({"epochs_by_round": (3, 0)}, "epochs_by_round must be an integer of at least 1; got 0."),
        ({"optimizer": "adam"}, "optimizer must be one of 'sgd', 'adamw'; got 'adam'."),
        ({"mixup": -1}, "mixup must be at least 0; got -1."),
        ({"holdout": 1.0}, r"holdout must be in \[0, 0.99\]; got 1.0."),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        learner(**options).fit(features(), posteriors())


@pytest.mark.parametrize(
    ("X", "y", "sentence"),
    [
        (features(), posteriors()[:5], "X and y must have the same number of rows; got 120 and 5."),
        (np.full((120, 2), np.nan), posteriors(), "X must be finite; it contains NaN or infinity."),
        (np.array(["a"] * 120), posteriors(), "X must hold numbers for a network"),
        (np.zeros(120), posteriors(), r"X must have one row of features per task; got shape \(120,\)."),
        (features(), 2 * posteriors(), r"targets must sum to 1; got 2 at \(0,\)"),
        (features(), None, "give labels or targets"),
    ],
)
def test_bad_data_are_named(X: Any, y: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        learner().fit(X, y)


def test_a_network_that_diverges_is_an_error() -> None:
    said = r"the network diverged: its loss is (nan|inf) after epoch \d+ with lr=1000. Lower lr."
    with pytest.raises(ValueError, match=said):
        learner(lr=1000.0, epochs=20).fit(features(), posteriors())


class OwnLoss(TorchLearner):
    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return super().loss(logits, targets)


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        (TorchLearner(neural.resnet20), True),
        (TorchLearner(partial(neural.fast_net, widths=(8, 8, 8))), True),
        (TorchLearner(linear), False),  # may wait for the card
        (OwnLoss(neural.mlp), False),
        (OwnLoss(linear, record=True), True),
        (TorchLearner(neural.mlp, record=False), False),
    ],
)
def test_steps_are_recorded_where_nothing_can_wait_for_the_card(net: TorchLearner, expected: bool) -> None:
    assert net._records() is expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="only a GPU records steps")
@pytest.mark.parametrize("options", [{}, {"mixup": 0.5, "cutout": 4}, {"optimizer": "adamw", "lr": 0.01}])
def test_a_recorded_step_is_the_step(options: dict[str, Any]) -> None:
    X, y = images(400), np.arange(400) % 3
    found = [
        learner(neural.resnet20, device="cuda", batch_size=20, record=record, **options).fit(X, y).history_
        for record in (False, True)
    ]
    for step_by_step, recorded in zip(*found, strict=True):
        assert recorded["loss"] == pytest.approx(step_by_step["loss"], rel=0.02)


def test_a_rate_that_a_recording_cannot_read_is_named() -> None:
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.25)
    with pytest.raises(ValueError, match=r"make_optimizer gave lr=0\.25\. Give a tensor, or record=False\."):
        check_rates(optimizer)


def test_tensor_rates_are_set_in_place() -> None:
    module = neural.mlp(2)
    module(torch.zeros(1, 3))
    rate = torch.tensor(0.0)
    optimizer = torch.optim.SGD([{"params": module.parameters(), "lr": rate, "rate": 2.0}])
    job = Training(module, optimizer, torch.Generator(), 0, 1, 1, ALONE, **PLAIN)
    job.set_rate(0.25)
    assert float(rate) == 0.5


def test_targets_on_candidates_train_as_dense_ones_do() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)).astype(np.float32)
    mass = rng.dirichlet(np.ones(3), 120)
    classes = np.stack([rng.permutation(5)[:2] for _ in range(120)]).astype(np.int32)
    targets = Beliefs(mass[:, :2], 5, classes, mass[:, 2])
    options: dict[str, Any] = {"epochs": 2, "batch_size": 16, "device": "cpu", "random_state": 0, "holdout": 0.2}
    net, weight = neural.TorchLearner(neural.mlp, **options), np.linspace(0.5, 1.5, 120)
    dense, sparse = (clone(net).fit(X, one, weight) for one in (targets.to_dense(), targets))
    assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-5)
