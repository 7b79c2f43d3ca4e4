"""One network with a head per question: its loss, questions not asked, MBEM with it, saved and on the right device."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from questions import crowd
from torch.nn import functional as F

import labelonce as lo
from labelonce import neural
from labelonce.multilabel import MultiLabelMBEM
from labelonce.neural import SigmoidHeads, TorchLearner

SMALL: dict[str, Any] = {"epochs": 12, "batch_size": 32, "random_state": 0}
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def table(n_tasks: int = 200) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(n_tasks, 4)).astype(np.float32)
    return X, (X[:, :3] + 0.5 * X[:, 1:] > 0).astype(float)


def test_the_loss_of_one_question_is_the_binary_cross_entropy() -> None:
    logits, yes = torch.tensor([[0.3], [-1.2], [2.0]]), torch.tensor([0.2, 0.9, 1.0])
    found = SigmoidHeads().loss(logits, torch.stack([1 - yes, yes], dim=1))
    both = torch.cat([torch.zeros_like(logits), logits], dim=1)
    wanted = -(torch.stack([1 - yes, yes], dim=1) * F.log_softmax(both, dim=1)).sum()
    assert_allclose(float(found), float(wanted), rtol=1e-6)


def test_a_question_that_was_not_asked_has_no_loss_and_no_gradient() -> None:
    logits = torch.zeros((2, 3), requires_grad=True)
    targets = torch.zeros((2, 6))
    targets[:, [0, 4]] = 1.0  # no to the first question, yes to the second; the third was not asked
    SigmoidHeads().loss(logits, targets).backward()  # type: ignore[no-untyped-call]
    gradient = logits.grad
    assert gradient is not None
    assert (gradient[:, 0] > 0).all()
    assert (gradient[:, 1] < 0).all()
    assert (gradient[:, 2] == 0).all()


def test_smoothing_moves_both_targets_towards_even_chances() -> None:
    logits, sure = torch.tensor([[1.5]]), torch.tensor([[0.0, 1.0]])
    smoothed = SigmoidHeads(label_smoothing=0.2).loss(logits, sure)
    assert_allclose(float(smoothed), float(SigmoidHeads().loss(logits, torch.tensor([[0.1, 0.9]]))), rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_heads_learn_their_questions(device: str) -> None:
    X, y = table()
    net = SigmoidHeads(**SMALL, device=device).fit(X, y)
    assert net.predict_proba(X).shape == (200, 3)
    assert (net.predict(X) == y).mean() > 0.95


def test_targets_without_weight_do_not_matter() -> None:
    X, y = table()
    weight = np.ones_like(y)
    weight[100:, 1] = 0
    other = y.copy()
    other[100:, 1] = 1 - other[100:, 1]
    first, second = (SigmoidHeads(**SMALL, device="cpu").fit(X, one, weight).predict_proba(X) for one in (y, other))
    assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("y", "weight", "sentence"),
    [
        (np.zeros(5), None, r"for 5 tasks; got \(5,\)"),
        (np.full((5, 2), 1.5), None, "got 1.5 to 1.5"),
        (np.zeros((5, 2)), np.zeros((5, 2)), "above 0 for a question about a task at least; got none"),
    ],
)
def test_wrong_targets_are_named(y: Any, weight: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        SigmoidHeads(device="cpu").fit(np.zeros((5, 2), dtype=np.float32), y, weight)


@pytest.mark.parametrize("device", DEVICES)
def test_mbem_gives_a_network_a_head_per_question_and_it_is_saved(device: str, tmp_path: Path) -> None:
    X, y = table(300)
    made = crowd(y_true=y, redundancy=1, n_workers=8)
    learner = TorchLearner(neural.mlp, **SMALL, device=device)
    clf = MultiLabelMBEM(learner, rounds=2).fit(X, made.annotations)
    assert isinstance(clf.model_, SigmoidHeads)
    assert len(clf.model_.modules_) == 1
    assert (clf.predict(X) == y).mean() > 0.8
    lo.save(clf, tmp_path / "model.skops")
    assert_allclose(lo.load(tmp_path / "model.skops").predict_proba(X), clf.predict_proba(X), atol=1e-6)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # nothing is held out
def test_one_question_with_a_network_is_the_binary_case() -> None:
    X, y = table(120)
    made = crowd(y_true=y[:, :1], redundancy=1, n_workers=5)
    learner = TorchLearner(neural.mlp, **SMALL, device="cpu")
    fixed: dict[str, Any] = {"rounds": 2, "folds": 1}
    clf = MultiLabelMBEM(learner, **fixed).fit(X, made.annotations)
    binary = lo.MBEM(learner, **fixed).fit(X, made.annotations.of_question("q0"))
    assert_array_equal(clf.predict_proba(X)[:, 0], binary.predict_proba(X)[:, 1])


def test_early_stopping_watches_held_out_questions() -> None:
    X, y = table()
    net = SigmoidHeads(**SMALL, holdout=0.2, patience=1, device="cpu").fit(X, y)
    assert all(0 < entry["held_out_loss"] < 2 for entry in net.history_)
