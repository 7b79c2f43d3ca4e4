"""MBEM with networks: its own recipe, rounds of different length, other starts every round, images and data sets."""

from typing import Any

import numpy as np
import pytest
import torch
from crowds import Problem, crowd_with_features
from numpy.testing import assert_array_equal
from torch import nn

import labelonce as lo
from labelonce import neural
from labelonce.neural import TorchLearner

FEW: dict[str, Any] = {"epochs": 4, "batch_size": 20, "lr": 0.1, "device": "cpu"}


def tasks(n_tasks: int = 200) -> Problem:
    return crowd_with_features(n_tasks, 10, n_features=4, hammers=0.4)


def test_networks_tell_workers_apart_at_one_label_a_task() -> None:
    X, ann, y, confusion = tasks(600)
    clf = lo.MBEM(TorchLearner(neural.mlp, **FEW), rounds=4).fit(X, ann)
    hammer = confusion[:, 0, 0] == 1
    assert clf.skill_[hammer].min() > clf.skill_[~hammer].max()
    assert (clf.predict(X) == y).mean() > 0.9


def test_auto_is_the_network_s_own_recipe() -> None:
    X, ann, _, _ = tasks()
    clf = lo.MBEM(TorchLearner(neural.mlp, **FEW)).fit(X, ann)
    assert clf.n_rounds_ == TorchLearner.auto["rounds"]
    assert clf.recipe_["predictions"] == "in_sample"
    assert clf.choices_ == []


def test_the_network_s_own_rounds_stop_where_nothing_changes() -> None:
    X, _, y, _ = tasks()
    net = TorchLearner(neural.mlp, epochs_by_round=(2,), **FEW | {"epochs": np.int64(4)})
    sure = lo.MBEM(net, tol=0.5).fit(X, y)
    n_rounds = sure.n_rounds_
    assert n_rounds < TorchLearner.auto["rounds"]
    model: Any = sure.model_
    assert len(model.history_) == 4  # the last round is done
    assert sure.set_params(tol=0.0).resume(X, y, rounds=2).n_rounds_ == n_rounds + 2


def test_given_options_go_before_the_network_s_own() -> None:
    X, ann, _, _ = tasks()
    clf = lo.MBEM(TorchLearner(neural.mlp, **FEW), rounds=2, predictions="out_of_fold").fit(X, ann)
    assert (clf.n_rounds_, clf.recipe_["predictions"]) == (2, "out_of_fold")


def test_early_rounds_are_shorter_also_when_the_fit_goes_on() -> None:
    X, ann, _, _ = tasks()
    learner = TorchLearner(neural.mlp, epochs_by_round=(1, 2), **FEW)
    models: list[Any] = [clf.model_ for clf in lo.MBEM(learner, rounds=4).stages(X, ann) if clf.history_]
    epochs = [len(model.history_) for model in models]
    assert epochs == [1, 2, 2, 4]
    straight = lo.MBEM(learner, rounds=3).fit(X, ann)
    stopped = lo.MBEM(learner, rounds=3)
    stages = stopped.stages(X, ann)
    next(stages), next(stages)
    for _ in stopped.stages(X, ann, resume=True):
        pass
    assert_array_equal(stopped.posterior_, straight.posterior_)


def test_every_round_starts_elsewhere_and_the_whole_repeats() -> None:
    X, ann, _, _ = tasks()
    seeds = []

    class Noted(TorchLearner):
        def fit(self, *args: Any, **options: Any) -> Any:
            seeds.append(self.random_state)
            return super().fit(*args, **options)

    one = lo.MBEM(Noted(neural.mlp, **FEW), rounds=2, random_state=3).fit(X, ann)
    two = lo.MBEM(Noted(neural.mlp, **FEW), rounds=2, random_state=3).fit(X, ann)
    assert seeds[0] != seeds[1]
    assert seeds[: len(seeds) // 2] == seeds[len(seeds) // 2 :]
    assert_array_equal(one.posterior_, two.posterior_)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # images of noise
def test_images_and_data_sets_reach_the_network() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)
    ann = lo.Annotations.from_arrays(np.arange(30), np.arange(30) % 3, np.arange(30) % 2)

    class Set(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 30

        def __getitem__(self, number: int) -> Any:
            return torch.from_numpy(X[number].astype(np.float32) / 255).permute(2, 0, 1)

    def make(n_classes: int) -> nn.Module:
        return neural.resnet9(n_classes, width=2)

    options = FEW | {"epochs": 1}
    for data in (X, torch.from_numpy(X), Set()):
        for how in ("in_sample", "out_of_fold"):
            clf = lo.MBEM(TorchLearner(make, **options), rounds=1, predictions=how).fit(data, ann)
            assert clf.predict_proba(data).shape == (30, 2)


def test_a_table_learner_still_wants_a_table() -> None:
    with pytest.raises(ValueError, match="X must have 2 dimensions"):
        lo.MBEM().fit(np.zeros((4, 2, 2)), np.array([0, 1, 0, 1]))
