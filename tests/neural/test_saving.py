"""Networks saved and loaded, pickled and copied: the same predictions, and a fit goes on as if never stopped."""

import copy
import pickle
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crowds import crowd_with_features
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from small_files import reloaded
from torch import nn

import labelonce as lo
from labelonce import neural
from labelonce.learning import RepeatedRows
from labelonce.neural import TorchLearner
from labelonce.neural._saving import network_named

FEW: dict[str, Any] = {"epochs": 1, "batch_size": 16, "lr": 0.1}
pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # an epoch learns little
saves = pytest.mark.usefixtures("skops")
NETWORKS: dict[str, Any] = {
    "mlp": neural.mlp,
    "mlp of options": partial(neural.mlp, width=8, depth=1, dropout=0.1),
    "fast_net": partial(neural.fast_net, widths=(4, 4, 8)),
    "resnet9": partial(neural.resnet9, width=2),
    "resnet20": neural.resnet20,
}


def own_net(n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.LazyLinear(n_classes))


def noted(_: dict[str, Any]) -> None:
    pass


def tasks(images: bool) -> tuple[Any, lo.Annotations]:
    X, ann, *_ = crowd_with_features(60, 5, n_features=4, hammers=0.6)
    if not images:
        return X, ann
    colours = np.clip(128 + 40 * X[:, None, None, :3], 0, 255).repeat(16, axis=1).repeat(16, axis=2)
    return colours.astype(np.uint8), ann


@saves
@pytest.mark.parametrize("name", NETWORKS)
def test_a_saved_network_predicts_the_same(name: str, tmp_path: Path) -> None:
    X, ann = tasks(images=not name.startswith("mlp"))
    clf = lo.MBEM(TorchLearner(NETWORKS[name], n_models=2, **FEW), rounds=1).fit(X, ann)
    again = reloaded(clf, tmp_path)
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert_array_equal(again.posterior_, clf.posterior_)
    assert str(again.learner.get_params()["module_fn"]) == str(NETWORKS[name])
    model: Any = clf.model_
    assert again.model_.history_ == model.history_
    with zipfile.ZipFile(tmp_path / "model.skops") as file:
        assert sum(name.endswith(".bin") for name in file.namelist()) == 2  # each network once


@saves
def test_loaded_in_the_middle_the_fit_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    X, ann = tasks(images=True)
    learner = TorchLearner(partial(neural.fast_net, widths=(4, 4, 8)), epochs_by_round=(1, 2), **FEW | {"epochs": 3})
    whole = lo.MBEM(learner, rounds=3).fit(X, ann)
    for number, clf in enumerate(lo.MBEM(learner, rounds=3).stages(X, ann)):
        if number == 0:  # the recipe is chosen, no network is fitted
            continue
        again = reloaded(clf, tmp_path)
        for _ in again.stages(X, ann, resume=True):
            pass
        assert_array_equal(again.posterior_, whole.posterior_)
        assert_array_equal(again.predict_proba(X), whole.predict_proba(X))


@saves
def test_the_baseline_and_a_list_of_learners_are_saved_too(tmp_path: Path) -> None:
    X, ann = tasks(images=False)
    learners = [TorchLearner(neural.mlp, **FEW), TorchLearner(partial(neural.mlp, width=4), **FEW)]
    vote = lo.TrainOnAggregate(lo.MajorityVote(), learners[0]).fit(X, ann)
    for fitted in (vote, lo.MBEM(learners, rounds=1).fit(X, ann)):
        lo.save(fitted, tmp_path / "model.skops")
        assert_array_equal(lo.load(tmp_path / "model.skops").predict_proba(X), fitted.predict_proba(X))


@saves
@pytest.mark.parametrize("learner", [TorchLearner(neural.mlp, n_models=2, **FEW), RepeatedRows(GaussianNB())])
def test_a_learner_alone_is_saved(learner: Any, tmp_path: Path) -> None:
    X, _ = tasks(images=False)
    fitted = clone(learner).fit(X, np.eye(3)[np.arange(60) % 3])
    again = reloaded(fitted, tmp_path)
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(again.predict(X), fitted.predict(X))
    with pytest.raises(NotFittedError):
        lo.save(learner, tmp_path / "other.skops")


@pytest.mark.parametrize("again", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy], ids=["pickle", "copy"])
@pytest.mark.parametrize("module_fn", [neural.mlp, partial(neural.mlp, width=4), own_net])
def test_pickle_and_copies_keep_everything(again: Any, module_fn: Any) -> None:
    X, _ = tasks(images=False)
    net = TorchLearner(module_fn, callbacks=[noted], **FEW)
    assert str(again(net).get_params()) == str(net.get_params())
    net.fit(X, np.arange(60) % 3)
    other = again(net)
    assert other.callbacks == [noted]
    assert_array_equal(other.predict_proba(X), net.predict_proba(X))
    assert other.modules_[0] is not net.modules_[0]
    assert clone(other).fit(X, np.arange(60) % 3).predict_proba(X).shape == (60, 3)


@saves
def test_neither_callbacks_nor_a_path_to_write_to_are_saved(tmp_path: Path) -> None:
    X, ann = tasks(images=False)
    learner = TorchLearner(neural.mlp, callbacks=[noted], checkpoint=tmp_path / "epoch", **FEW)
    lo.save(lo.MBEM(learner, rounds=1).fit(X, ann), tmp_path / "model.skops")
    again = lo.load(tmp_path / "model.skops").learner
    assert (again.callbacks, again.checkpoint) == ((), None)


class OwnModule(TorchLearner):
    def make_module(self, n_classes: int, example: torch.Tensor) -> nn.Module:
        return super().make_module(n_classes + 0, example)


@saves
@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (TorchLearner(own_net, **FEW), r"module_fn is one of labelonce.neural, .*; got <function own_net .*save_model"),
        (TorchLearner(lambda k: neural.mlp(k), **FEW), "got <function <lambda>"),
        (
            TorchLearner(partial(neural.mlp, dropout=np.float32(0.5)), **FEW),
            r"given by name; got 0.5 of type float32 for mlp",
        ),
        (OwnModule(neural.mlp, **FEW), "does not override make_module; OwnModule does"),
    ],
)
def test_a_network_of_your_own_is_not_saved_and_the_sentence_says_what_to_do(
    learner: TorchLearner, message: str, tmp_path: Path
) -> None:
    X, ann = tasks(images=False)
    clf = lo.MBEM(learner, rounds=1).fit(X, ann)
    with pytest.raises(ValueError, match=message):
        lo.save(clf, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


def test_a_file_can_only_name_our_networks() -> None:
    with pytest.raises(ValueError, match="got 'system'"):
        network_named("system", {})


@saves
def test_loading_draws_no_numbers_from_torch(tmp_path: Path) -> None:
    X, ann = tasks(images=False)
    lo.save(lo.MBEM(TorchLearner(neural.mlp, **FEW), rounds=1).fit(X, ann), tmp_path / "model.skops")
    before = torch.get_rng_state()
    lo.load(tmp_path / "model.skops")
    assert torch.equal(torch.get_rng_state(), before)


@saves
def test_a_model_trained_on_a_gpu_loads_without_one(tmp_path: Path) -> None:
    X, ann = tasks(images=False)
    clf = lo.MBEM(TorchLearner(neural.mlp, **FEW), rounds=1).fit(X, ann)
    model: Any = clf.model_
    model.set_params(device="cuda:0")
    again = reloaded(clf, tmp_path)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device must be one that is here; got 'cuda:0'"):
            again.predict(X)
    again.model_.set_params(device=None)
    assert again.predict_proba(X).shape == (60, 3)


@saves
def test_without_torch_other_files_load_and_a_network_s_says_what_is_missing(tmp_path: Path) -> None:
    X, ann = tasks(images=False)
    lo.save(lo.MBEM(TorchLearner(neural.mlp, **FEW), rounds=1).fit(X, ann), tmp_path / "network")
    lo.save(lo.MajorityVote().fit(ann), tmp_path / "table")
    code = """
import sys
class Absent:
    def find_spec(self, name, *rest):
        if name == "torch":
            raise ImportError("absent")
sys.meta_path.insert(0, Absent())
import labelonce as lo
lo.load(sys.argv[2])
try:
    lo.load(sys.argv[1])
except ValueError as error:
    print(error)
"""
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "network"), str(tmp_path / "table")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "needs a library that is not here: labelonce.neural needs PyTorch; install it with: pip" in done.stdout
