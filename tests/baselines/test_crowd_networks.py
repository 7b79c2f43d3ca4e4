"""Networks trained on annotations: the laws of learning from crowds for every method, and what each layer computes."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from crowds import Problem, crowd_with_features, rearranged, with_empty_columns
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import labelonce as lo
from labelonce import Annotations, baselines, neural
from labelonce.neural import TorchLearner

EXPORTED = [getattr(baselines, name) for name in baselines.__all__]
METHODS: dict[str, Any] = {
    one.__name__: one
    for one in EXPORTED
    if isinstance(one, type) and issubclass(one, baselines.CrowdNetwork) and one is not baselines.CrowdNetwork
} | {
    "DoctorNet, equal weights": partial(baselines.DoctorNet, weights="equal"),
    "CrowdLayer VW": partial(baselines.CrowdLayer, kind="VW"),
    "CrowdLayer VW+B": partial(baselines.CrowdLayer, kind="VW+B"),
    "GeoCrowdNet W": partial(baselines.GeoCrowdNet, term="W"),
    "CCEM": partial(baselines.GeoCrowdNet, term="none"),
}
NOT_RANDOM: dict[str, dict[str, float]] = {"DropoutNoiseLayer": {"dropout": 0.0}, "AnnotMix": {"alpha": 0.0}}
ONE_MATRIX = {"NoiseLayer", "DropoutNoiseLayer"}  # for the whole crowd
every_method = pytest.mark.parametrize("name", METHODS)


class Zero(nn.Module):
    """A linear model that starts at zero, where all classes are alike."""

    def __init__(self, n_classes: int) -> None:
        super().__init__()
        self.linear = nn.LazyLinear(n_classes)

    def start(self, _: torch.Tensor) -> None:
        """Forget the random start."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.linear(x)  # type: ignore[no-any-return]


def network(**options: Any) -> TorchLearner:
    """Return a small network that is trained in a second."""
    few: dict[str, Any] = {"epochs": 30, "batch_size": 64, "optimizer": "adamw", "lr": 0.01, "device": "cpu"}
    few["module_fn"] = partial(neural.mlp, width=32, depth=1)
    return TorchLearner(random_state=0, **few | options)


def exact() -> TorchLearner:
    """Return a linear model that is trained on all annotations in every step: only sums can differ."""
    return TorchLearner(Zero, epochs=20, batch_size=10_000, lr=0.5, device="cpu", random_state=0)


def spammed(redundancy: int = 3) -> Problem:
    return crowd_with_features(600, 10, redundancy=redundancy, hammers=0.5)


@every_method
def test_one_worker_who_is_always_right_is_the_truth(name: str) -> None:
    X, _, y_true, _ = crowd_with_features(300)
    plain = network().fit(X, y_true)
    clf = METHODS[name](network()).fit(X, y_true)
    assert (clf.predict(X) == plain.predict(X)).mean() > 0.97
    assert_array_equal(clf.labels_, y_true)


@every_method
def test_predictions_follow_permutations_of_workers_tasks_and_labels(name: str) -> None:
    X, ann, *_ = crowd_with_features(redundancy=2)
    X_other, ann_other, worker, label = rearranged(X, ann)
    clf = METHODS[name](exact(), **NOT_RANDOM.get(name, {})).fit(X, ann)
    other = clone(clf).fit(X_other, ann_other)
    assert_allclose(other.predict_proba(X)[:, label], clf.predict_proba(X), atol=1e-4)
    assert_allclose(other.confusion_[worker][:, label][:, :, label], clf.confusion_, atol=1e-4)
    assert np.ptp(clf.predict_proba(X)) > 0.1


@every_method
def test_a_worker_and_a_class_without_labels_are_fine(name: str) -> None:
    X, ann, y_true, _ = spammed()
    clf = METHODS[name](network()).fit(X, with_empty_columns(ann))
    assert clf.predict_proba(X).shape == (600, 4)
    assert (clf.predict(X) == y_true).mean() > 0.8
    assert np.isfinite(clf.skill_).all()


@every_method
def test_spammers_are_told_apart_and_predictions_beat_the_labels(name: str) -> None:
    X, ann, y_true, confusion = spammed(redundancy=1)
    clf = METHODS[name](network(epochs=60)).fit(X, ann)
    assert clf.score(X, y_true) > (ann.label == y_true).mean() + 0.1
    hammer = confusion[:, 0, 0] == 1
    if name in ONE_MATRIX:
        assert np.ptp(clf.skill_) == 0
    else:
        assert clf.skill_[hammer].mean() > clf.skill_[~hammer].mean() + 0.02
    assert_allclose(clf.confusion_.sum(axis=2), 1, atol=1e-6)


@every_method
def test_gold_counts_as_labels_that_are_right(name: str) -> None:
    X, ann, y_true, _ = crowd_with_features(300, redundancy=1, hammers=0.0)
    gold = {task: y_true[task] for task in range(150)}
    clf = METHODS[name](network()).fit(X, ann, gold=gold)
    assert_array_equal(clf.labels_[:150], y_true[:150])
    assert clf.score(X, y_true) > 0.6


@pytest.mark.usefixtures("skops")
@every_method
def test_a_saved_network_predicts_the_same(name: str, tmp_path: Path) -> None:
    X, ann, *_ = crowd_with_features(60, redundancy=2)
    clf = METHODS[name](network(epochs=2, n_models=2)).fit(X, ann)
    lo.save(clf, tmp_path / "model.skops")
    loaded = lo.load(tmp_path / "model.skops")
    assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert_array_equal(loaded.confusion_, clf.confusion_)


@every_method
def test_the_same_seed_gives_the_same_network(name: str) -> None:
    X, ann, *_ = crowd_with_features(60, redundancy=2)
    clf = METHODS[name](network(epochs=3))
    assert_array_equal(clf.fit(X, ann).predict_proba(X), clone(clf).fit(X, ann).predict_proba(X))


@every_method
def test_half_precision_as_on_a_gpu_learns_as_well(name: str) -> None:
    X, ann, y_true, _ = crowd_with_features(300, redundancy=3, hammers=1.0)
    clf = METHODS[name](network(epochs=15, precision="bfloat16")).fit(X, ann)
    assert clf.score(X, y_true) > 0.9


def test_other_learners_and_steps_that_may_wait_are_refused() -> None:
    X, ann, *_ = crowd_with_features(60)
    with pytest.raises(ValueError, match=r"record of the learner must be None or False for CoNAL.*got True"):
        baselines.CoNAL(network(record=True)).fit(X, ann)
    with pytest.raises(TypeError, match=r"must be a neural.TorchLearner.*SoftmaxRegression"):
        baselines.CoNAL(lo.SoftmaxRegression()).fit(X, ann)


def test_one_matrix_for_all_makes_predictions_sure_where_the_noise_is_the_same_for_all() -> None:
    X, ann, y_true, _ = crowd_with_features(600, confusion=np.tile(0.4 / 3 + 0.6 * np.eye(3), (4, 1, 1)))
    raw = TorchLearner(Zero, epochs=60, lr=0.5, device="cpu", random_state=0)
    seen = baselines.NoiseLayer(raw, penalty=0.3).fit(X, ann)
    right = np.arange(600), y_true
    assert np.log(seen.predict_proba(X)[right]).mean() > np.log(raw.fit(X, ann.label).predict_proba(X)[right]).mean()
    assert seen.confusion_[0].diagonal().mean() == pytest.approx(0.73, abs=0.12)


def test_rows_are_matched_by_task_ids_and_a_pipeline_may_come_first() -> None:
    X, ann, *_ = crowd_with_features(60, redundancy=2)
    order = np.random.default_rng(0).permutation(60)
    clf = baselines.CoNAL(make_pipeline(StandardScaler(), exact()))
    matched = clone(clf).fit(X[order], ann, tasks=ann.tasks[order])
    assert_allclose(matched.predict_proba(X), clf.fit(X, ann).predict_proba(X), atol=1e-4)
    assert np.isfinite(clf.score_annotations(X, ann))


def test_images_and_matrices_of_labels_are_taken() -> None:
    X, ann, *_ = crowd_with_features(40, redundancy=2)
    images = np.clip(128 + 40 * X[:, None, None, :3], 0, 255).repeat(16, axis=1).repeat(16, axis=2).astype(np.uint8)
    clf = baselines.CoNAL(network(module_fn=partial(neural.fast_net, widths=(4, 4, 8)), epochs=1)).fit(images, ann)
    assert clf.predict_proba(images).shape == (40, 3)
    X, ann, *_ = crowd_with_features(60, redundancy=2)
    matrix = ann.to_matrix(dense=True)
    same = Annotations.from_matrix(matrix)
    first, second = (baselines.CrowdLayer(exact()).fit(X, one).predict_proba(X) for one in (matrix, same))
    assert_array_equal(first, second)


def test_heads_are_trained_on_their_own_workers_alone_and_weighed_by_agreement() -> None:
    X, _, y_true, _ = crowd_with_features(300)
    labels = np.column_stack([y_true, (y_true + 1) % 3])  # the second names the next class
    clf = baselines.DoctorNet(network()).fit(X, labels)
    heads = clf.model_.predict_heads(X).argmax(axis=2)
    assert (heads[:, 0] == y_true).mean() > 0.95
    assert (heads[:, 1] == (y_true + 1) % 3).mean() > 0.95
    nonsense = np.random.default_rng(0).integers(0, 3, 300)
    labels = np.column_stack([y_true, y_true, y_true, nonsense])
    labels[np.arange(300), np.arange(300) % 4] = -1  # two of them did not label it
    labels[np.arange(300), np.arange(300) // 4 % 4] = -1
    clf = baselines.DoctorNet(network()).fit(X, labels)
    assert clf.weights_.sum() == pytest.approx(1)
    assert clf.weights_[3] < clf.weights_[:3].min() / 2


@pytest.mark.parametrize(
    ("options", "value"),
    [({"holdout": 0.2}, "0.2"), ({"mixup": 1.0}, "1.0"), ({"label_smoothing": 0.1}, "0.1"), ({"shared": True}, "True")],
)
def test_options_that_need_whole_tasks_are_refused(options: dict[str, Any], value: str) -> None:
    X, ann, *_ = crowd_with_features(60)
    with pytest.raises(ValueError, match=f"{next(iter(options))} of the learner must be .*; got {value}"):
        baselines.CoNAL(network(**options)).fit(X, ann)


@pytest.mark.parametrize(
    ("clf", "value"),
    [
        (baselines.CrowdLayer(kind="WM"), "'WM'"),
        (baselines.CoNAL(penalty=-1.0), "-1"),
        (baselines.CoNAL(embedding=0), "0"),
        (baselines.GeoCrowdNet(term="G"), "'G'"),
        (baselines.GeoCrowdNet(start=1.0), "1.0"),
        (baselines.UnionNet(start=0.0), "0.0"),
        (baselines.MaxMIG(start=0.0), "0.0"),
        (baselines.AnnotMix(alpha=-0.5), "-0.5"),
        (baselines.NoiseLayer(burn_in=1.0), "1.0"),
        (baselines.DropoutNoiseLayer(dropout=1.0), "1.0"),
        (baselines.DoctorNet(weights="some"), "'some'"),
    ],
)
def test_options_out_of_range_are_refused(clf: Any, value: str) -> None:
    X, ann, *_ = crowd_with_features(60)
    with pytest.raises(ValueError, match=f"got {value}"):
        clf.fit(X, ann)
