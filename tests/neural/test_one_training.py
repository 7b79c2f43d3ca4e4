"""Rounds that are stages of one training: the same steps as a fit, new targets on the way, resumed from any stage."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crowds import crowd_with_features
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import labelonce as lo
from labelonce import neural
from labelonce.multilabel import MultiLabelAnnotations, MultiLabelMBEM
from labelonce.neural import TorchLearner
from labelonce.neural._training import Teacher

FEW: dict[str, Any] = {"epochs": 6, "batch_size": 20, "lr": 0.1, "device": "cpu"}
pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # of so few tasks little can be told


def learner(**options: Any) -> TorchLearner:
    early = TorchLearner(partial(neural.mlp, width=16), batch_size=20, lr=0.05)
    joint: dict[str, Any] = {"epochs_by_round": (1, 2), "one_training": True, "early_learner": early, "ema": 0.8}
    return TorchLearner(**FEW | joint | {"module_fn": neural.mlp} | options)


def halves() -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    return X, np.eye(2)[(X[:, 0] > 0).astype(int)]


@pytest.mark.parametrize("options", [{}, {"n_models": 2}, {"optimizer": "adamw", "lr": 0.01}])
def test_stages_without_new_targets_are_a_fit(options: dict[str, Any]) -> None:
    X, y = halves()
    *before, last = learner(random_state=0, **options).stages(X, y, n=3)
    assert [len(one.history_) for one in before] == [2 * one for one in (len(last.modules_), 2 * len(last.modules_))]
    whole = learner(random_state=0, **options).fit(X, y)
    assert_array_equal(last.predict_proba(X), whole.predict_proba(X))
    assert not np.array_equal(before[0].predict_proba(X), whole.predict_proba(X))  # it is not changed afterwards


def test_targets_and_weights_that_are_sent_are_trained_on() -> None:
    X, y = halves()
    stages = learner(random_state=0, epochs=16).stages(X, y, n=4)
    assert next(stages).score(X, y.argmax(axis=1)) > 0.9
    unused = np.where(np.arange(200) < 150, 1.0, 0.0)
    wrong = np.where(unused[:, None] > 0, 1 - y, y)
    last = next(stages)
    for _ in range(2):
        last = stages.send((wrong, unused))
    assert last.score(X, y.argmax(axis=1)) < 0.1  # of those without a weight, too


def test_the_rounds_after_the_early_ones_are_one_training() -> None:
    X, ann, y, confusion = crowd_with_features(600, 10, n_features=4, hammers=0.4)
    clf: Any = lo.MBEM(learner())
    epochs = [len(one.model_.history_) for one in clf.stages(X, ann) if one.history_]
    assert epochs == [1, 2, 2, 3, 4, 5, 6]
    assert clf.n_fits_ == 2 + 1 + 2  # early rounds, the training, networks that did not see the task
    assert (clf.predict(X) == y).mean() > 0.9
    hammer = confusion[:, 0, 0] == 1
    assert clf.skill_[hammer].min() > clf.skill_[~hammer].max()
    assert next(lo.MBEM(learner(), rounds=4).stages(X, ann)).planned_rounds_ == 4


def test_networks_that_did_not_see_a_task_are_early_ones() -> None:
    net = learner(epochs=20, n_models=2, strong=0.5)
    early = net.for_folds(6)
    assert early.module_fn is net.early_learner.module_fn  # type: ignore[union-attr]
    assert (early.epochs, early.n_models, early.lr, early.device) == (8, 1, 0.05, "cpu")
    own = net.set_params(early_learner=None).for_folds(6)
    assert (own.module_fn, own.epochs, own.n_models, own.strong) == (neural.mlp, 8, 1, 0.0)


@pytest.mark.parametrize("kind", ["numbers", "images"])
def test_a_fit_resumes_from_any_stage(kind: str, tmp_path: Path) -> None:
    X: Any
    X, ann, *_ = crowd_with_features(60, 6, n_features=4, hammers=0.4)
    net: Any = learner()
    if kind == "images":
        X = np.random.default_rng(0).integers(0, 256, (60, 3, 12, 12), dtype=np.uint8)
        small = partial(neural.resnet9, width=2)
        early = TorchLearner(partial(neural.fast_net, widths=(2, 2, 2)), batch_size=20, lr=0.05, pad=1)
        net = learner(module_fn=small, early_learner=early, pad=1, cutout=3, strong=0.75)
    whole = lo.MBEM(net, rounds=5).fit(X, ann)
    for number, clf in enumerate(lo.MBEM(net, rounds=5).stages(X, ann)):
        if number > 1:
            lo.save(clf, tmp_path / str(number))
    for number in (2, 3, 4):
        again = lo.load(tmp_path / str(number))
        list(again.stages(X, ann, resume=True))
        assert again.n_fits_ == whole.n_fits_
        assert_allclose(again.posterior_, whole.posterior_, atol=1e-6)
        assert_allclose(again.predict_proba(X), whole.predict_proba(X), atol=1e-5)


def test_a_training_that_was_killed_within_a_stage_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    X, y = halves()
    seen: list[int] = []

    def stop(entry: dict[str, Any]) -> None:
        seen.append(entry["epoch"])
        if len(seen) == 4:  # in the second stage
            raise KeyboardInterrupt

    options: dict[str, Any] = {"random_state": 0, "checkpoint": tmp_path / "net"}
    stages = learner(callbacks=[stop], **options).stages(X, y, n=2)
    reached = next(stages)
    with pytest.raises(KeyboardInterrupt):
        stages.send((1 - y, None))
    seen.extend(range(9))  # nothing stops the next one
    *_, again = learner(callbacks=[stop], **options).stages(X, 1 - y, n=2, after=reached)
    assert seen[-2:] == [5, 6] or seen[-3:] == [4, 5, 6]
    straight = learner(random_state=0).stages(X, y, n=2)
    next(straight)
    assert_array_equal(again.predict_proba(X), straight.send((1 - y, None)).predict_proba(X))
    assert list(tmp_path.iterdir()) == []


def test_targets_on_slots_are_trained_on() -> None:
    rng = np.random.default_rng(0)
    groups, y = np.arange(12) // 4, rng.integers(0, 12, 400)
    X = (np.eye(12)[y] + 0.3 * rng.normal(size=(400, 12))).astype(np.float32)
    true = lo.simulate.grouped_hammer_spammer(10, groups, 0.5, rng)
    ann = lo.simulate.annotate(y, true, lo.simulate.assign(400, 10, 1, rng), rng)
    clf = lo.MBEM(learner(epochs=12), rounds=6, worker_model=lo.workers.Grouped(groups)).fit(X, ann)
    assert (clf.predict(X) == y).mean() > 0.9


def test_a_head_per_question_is_trained_in_stages() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    true, worker = (X[:, :3] > 0).astype(int), rng.integers(0, 6, 300)
    wrong = rng.random(true.shape) < np.where(worker < 4, 0.05, 0.5)[:, None]
    task, question = np.divmod(np.arange(true.size), 3)
    ann = MultiLabelAnnotations.from_arrays(task, question, worker[task], np.where(wrong, 1 - true, true).ravel())
    clf = MultiLabelMBEM(learner(epochs=12, epochs_by_round=(4, 8)), rounds=5).fit(X, ann)
    assert ((clf.predict_proba(X) > 0.5) == true).mean() > 0.95
    assert clf.n_rounds_ == 5


def test_the_teacher_is_the_average_of_the_steps() -> None:
    module = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.zero_()
        teacher, wanted = Teacher(module, 0.5), 0.0
        for step in range(1, 80):
            module.weight.fill_(float(step))
            teacher.follow(module)
            wanted += (1 - min(0.5, step / (step + 50))) * (step - wanted)
    assert_allclose(next(teacher.module.parameters()).item(), wanted, rtol=1e-5)


def test_targets_that_change_cannot_be_watched() -> None:
    with pytest.raises(ValueError, match=r"holdout must be 0 with one_training, whose targets change; got 0\.1"):
        learner(holdout=0.1).fit(*halves())
