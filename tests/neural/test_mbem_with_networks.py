"""MBEM with networks: its own recipe, rounds of different length, other starts every round, images and data sets."""

import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crowds import Problem, crowd_with_features
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import labelonce as lo
from labelonce import neural
from labelonce._kernels import ScipyEngine, vote_fractions
from labelonce._rules import RULES
from labelonce.learning import _choice
from labelonce.neural import TorchLearner
from labelonce.runs._images import network_for

FEW: dict[str, Any] = {"epochs": 4, "batch_size": 20, "lr": 0.1, "device": "cpu"}
MANY = FEW | {"epochs": 40, "batch_size": 50, "optimizer": "adamw", "lr": 0.01}  # so that labels are memorised


def tasks(n_tasks: int = 200) -> Problem:
    return crowd_with_features(n_tasks, 10, n_features=4, hammers=0.4)


def memorising(**options: Any) -> TorchLearner:
    return TorchLearner(partial(neural.mlp, width=64, depth=1), **MANY | options)


def test_networks_tell_workers_apart_at_one_label_a_task() -> None:
    X, ann, y, confusion = tasks(600)
    clf = lo.MBEM(TorchLearner(neural.mlp, **FEW), rounds=4).fit(X, ann)
    hammer = confusion[:, 0, 0] == 1
    assert clf.skill_[hammer].min() > clf.skill_[~hammer].max()
    assert (clf.predict(X) == y).mean() > 0.9


def test_auto_is_the_network_s_own_recipe() -> None:
    X, ann, _, _ = tasks()
    clf = lo.MBEM(TorchLearner(neural.mlp, **FEW)).fit(X, ann)
    assert clf.n_rounds_ == TorchLearner().own_rounds
    assert clf.recipe_["predictions"] == "in_sample"
    assert clf.choices_ == []


def stop_at(change: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_choice, "RULES", replace(RULES, early_stop=change))


def test_the_network_s_own_rounds_stop_where_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, y, _ = tasks()
    net = TorchLearner(neural.mlp, epochs_by_round=(2,), **FEW | {"epochs": np.int64(4)})
    stop_at(0.5, monkeypatch)
    sure = lo.MBEM(net).fit(X, y)
    assert sure.n_rounds_ < TorchLearner().own_rounds
    model: Any = sure.model_
    assert len(model.history_) == 4  # the last round is done


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # a hundred labels, of which little can be told
def test_a_network_that_memorises_is_judged_by_networks_that_did_not_see_the_task() -> None:
    X, ann, _, _ = tasks(100)
    learner = memorising(random_state=0)
    found: Any = None
    for clf in lo.MBEM(learner).stages(X, ann):
        found = clf._last or found
    assert (clf.recipe_["predictions"], clf.recipe_["averaged"], clf.n_rounds_) == ("out_of_fold", (1, 9), 9)
    assert clf.n_fits_ == 1 + 2 * 9 + 1  # the first model, the folds, the last model
    first, last = clf.model_.models_
    votes = vote_fractions(ScipyEngine(ann, "float64").vote_counts(), None)
    assert_allclose(first.predict_proba(X), learner.fit(X, votes).predict_proba(X), atol=1e-4)
    again = learner.fit(X, np.asarray(found.targets), found.target_weight)
    assert_allclose(last.predict_proba(X), again.predict_proba(X), atol=1e-4)
    assert_array_equal(clf.predictions_, np.asarray(found.predictions))


def test_a_network_beats_the_same_network_trained_on_the_votes_though_it_memorises() -> None:
    X, ann, y, confusion = crowd_with_features(600, 10, n_features=12, hammers=0.4)
    seen = ann.task < 300
    ann = lo.Annotations.from_arrays(ann.task[seen], ann.worker[seen], ann.label[seen], classes=[0, 1, 2])
    votes = lo.TrainOnAggregate(lo.MajorityVote(), memorising(random_state=0), targets="soft").fit(X[:300], ann)
    clf = lo.MBEM(memorising(random_state=0)).fit(X[:300], ann)
    assert (clf.predict(X[300:]) == y[300:]).mean() > (votes.predict(X[300:]) == y[300:]).mean() + 0.15
    hammer = confusion[:, 0, 0] == 1
    assert clf.skill_[hammer].min() > clf.skill_[~hammer].max()


def test_networks_with_short_early_rounds_have_the_plan_that_was_measured_on_images() -> None:
    X = np.zeros((6000, 2, 2, 3), dtype=np.uint8)
    ann = lo.Annotations.from_arrays(np.arange(6000), np.arange(6000) % 7, np.arange(6000) % 10)
    for learner, n_rounds in ((neural.image_learner(), 19), (network_for(6000), 19), (network_for(600), 9)):
        clf = next(lo.MBEM(learner).stages(X, ann))
        plan: Any = clf._plan
        assert (clf.n_fits_, clf._done, clf.choices_) == (0, [], [])  # nothing is measured before the first round
        assert (plan.rounds, plan.averaged, plan.scores, plan.parts) == (n_rounds, (), (), 2)
        assert plan.how.fold is None
        assert plan.how.last_round_differs


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # of 60 labels little can be told
@pytest.mark.parametrize("kind", ["pickle", "file"])
def test_a_network_that_memorises_resumes_from_any_stage(kind: str, tmp_path: Path) -> None:
    X, ann, _, _ = tasks(60)
    one = lo.MBEM(memorising(), rounds=3, random_state=1)
    whole = lo.MBEM(memorising(), rounds=3, random_state=1).fit(X, ann)
    assert whole.recipe_["averaged"] == (1, 3)
    for number, clf in enumerate(one.stages(X, ann)):
        if kind == "file" and number > 0:  # there is no model before the first round
            lo.save(clf, tmp_path / str(number))
        else:
            (tmp_path / str(number)).write_bytes(pickle.dumps(clf))
    for number in range(1 if kind == "file" else 0, 4):
        path = tmp_path / str(number)
        clf = lo.load(path) if kind == "file" else pickle.loads(path.read_bytes())
        list(clf.stages(X, ann, resume=True))
        assert_allclose(clf.posterior_, whole.posterior_, atol=1e-9)
        assert_allclose(clf.predict_proba(X), whole.predict_proba(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # of 60 labels little can be told
def test_rounds_of_folds_that_stop_early_end_with_a_model_of_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, ann, _, _ = tasks(60)
    stop_at(0.9, monkeypatch)
    clf: Any = lo.MBEM(memorising(), rounds=6).fit(X, ann)
    assert clf.n_rounds_ < 6
    assert clf.recipe_["averaged"] == (1, clf.n_rounds_)
    assert [type(one) for one in clf.model_.models_] == [TorchLearner] * 2


def test_given_options_go_before_the_network_s_own() -> None:
    X, ann, _, _ = tasks()
    clf = lo.MBEM(TorchLearner(neural.mlp, **FEW), rounds=2).fit(X, ann)
    assert clf.n_rounds_ == 2


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


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # nothing is held out
def test_every_round_starts_elsewhere_and_the_whole_repeats() -> None:
    X, ann, _, _ = tasks()
    seeds = []

    class Noted(TorchLearner):
        def fit(self, *args: Any, **options: Any) -> Any:
            seeds.append(self.random_state)
            return super().fit(*args, **options)

    one = lo.MBEM(Noted(neural.mlp, **FEW), rounds=2, folds=1, random_state=3).fit(X, ann)
    two = lo.MBEM(Noted(neural.mlp, **FEW), rounds=2, folds=1, random_state=3).fit(X, ann)
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
        for folds in (1, 2):
            clf = lo.MBEM(TorchLearner(make, **options), rounds=1, folds=folds).fit(data, ann)
            assert clf.predict_proba(data).shape == (30, 2)


def test_a_table_learner_still_wants_a_table() -> None:
    with pytest.raises(ValueError, match="X must have 2 dimensions"):
        lo.MBEM().fit(np.zeros((4, 2, 2)), np.array([0, 1, 0, 1]))
