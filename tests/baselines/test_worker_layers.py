"""The layers of workers against the formulas of their publications, written out one annotation at a time."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.nn import functional as F

from labelonce import Annotations, baselines
from labelonce._types import Floats
from labelonce.baselines._networks._worker_layer import GOLD, nearly_identity

N_WORKERS, N_CLASSES = 3, 4
WORKER = torch.tensor([0, 2, 1, 1, 0])
LABEL = torch.tensor([3, 0, 1, 2, 2])
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(5, N_CLASSES, generator=GENERATOR)
BATCH = torch.randn(5, 6, generator=GENERATOR)
METHODS: list[Any] = [
    baselines.NoiseLayer(burn_in=0.0, penalty=0.0),
    baselines.DropoutNoiseLayer(),
    baselines.CrowdLayer(),
    baselines.CrowdLayer(kind="VW"),
    baselines.CrowdLayer(kind="VW+B"),
    baselines.CoNAL(penalty=0.0),
    baselines.UnionNet(),
    baselines.GeoCrowdNet(penalty=0.0),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=str)


def shaken(method: Any) -> Any:
    """Return a layer of the method whose parameters are far from their start, as when predicting."""
    torch.manual_seed(1)
    layer = method._layer(N_WORKERS, N_CLASSES).eval()
    with torch.no_grad():
        layer(LOGITS, *layer.mixed(BATCH, WORKER, LABEL))  # sizes of lazy layers
        for parameter in layer.parameters():
            parameter += torch.randn(parameter.shape)
            parameter.requires_grad_(False)
    return layer


def softmax(scores: Floats, axis: int = -1) -> Floats:
    odds = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return np.asarray(odds / odds.sum(axis=axis, keepdims=True))


def array(tensor: torch.Tensor) -> Floats:
    return np.asarray(tensor.detach().double())


def by_hand(layer: Any, method: Any) -> Floats:
    """Return P(label given) of every annotation by the formula of the publication."""
    rows = []
    for f, x, a in zip(softmax(array(LOGITS)), BATCH, WORKER.tolist(), strict=True):
        if isinstance(method, baselines.NoiseLayer):
            rows.append(f @ softmax(array(layer.scores)))
        elif isinstance(method, baselines.DropoutNoiseLayer):
            rows.append(softmax(array(layer.scores).T @ f))
        elif isinstance(method, baselines.CrowdLayer) and method.kind == "MW":
            rows.append(softmax(array(layer.scores)[a].T @ f))
        elif isinstance(method, baselines.CrowdLayer):
            rows.append(softmax(array(layer.scores)[a] * f + array(layer.bias)[a]))
        elif isinstance(method, baselines.CoNAL):
            v = array(layer.task(x[None]))[0]
            c = 1 / (1 + np.exp(-array(layer.worker)[a] @ v / np.linalg.norm(v)))
            rows.append(softmax(c * (array(layer.common).T @ f) + (1 - c) * (array(layer.scores)[a].T @ f)))
        elif isinstance(method, baselines.UnionNet):
            union = softmax(array(layer.scores).swapaxes(0, 1).reshape(N_CLASSES, -1))
            rows.append(f @ union.reshape(N_CLASSES, N_WORKERS, N_CLASSES)[:, a])
        else:
            rows.append(f @ softmax(array(layer.scores))[a])
    return np.array(rows)


@every_method
def test_labels_have_the_published_probability(method: Any) -> None:
    layer = shaken(method)
    assert_allclose(array(layer.log_given(LOGITS, BATCH, WORKER).exp()), by_hand(layer, method), atol=1e-6)


@every_method
def test_the_loss_is_the_mean_of_minus_the_log(method: Any) -> None:
    layer = shaken(method)
    given = by_hand(layer, method)[np.arange(5), LABEL]
    assert float(layer(LOGITS, BATCH, WORKER, LABEL)) == pytest.approx(-np.log(given).mean(), abs=1e-5)


@every_method
def test_gold_is_compared_with_the_network_itself(method: Any) -> None:
    loss = shaken(method)(LOGITS, BATCH, torch.full((5,), GOLD), LABEL)
    assert float(loss) == pytest.approx(float(F.cross_entropy(LOGITS, LABEL)), abs=1e-6)


def test_gold_of_annot_mix_is_compared_with_the_network_itself() -> None:
    layer = shaken(baselines.AnnotMix())
    _, shares, labels = layer.mixed(BATCH, torch.full((5,), GOLD), LABEL)
    assert float(layer(LOGITS, BATCH, shares, labels)) == pytest.approx(float(F.cross_entropy(LOGITS, LABEL)), abs=1e-4)


@every_method
def test_confusion_is_what_is_said_where_the_network_is_sure(method: Any) -> None:
    layer = shaken(method)
    if isinstance(method, baselines.CoNAL):  # on average over tasks: the gate is set to what it is when u_a is 0
        torch.nn.init.zeros_(layer.worker)
    sure = 100 * torch.eye(N_CLASSES)
    said = [layer.log_given(sure, BATCH[:N_CLASSES], torch.full((N_CLASSES,), a)).softmax(dim=1) for a in range(3)]
    assert_allclose(array(layer.confusion()), array(torch.stack(said)), atol=1e-6)


def test_the_noise_layer_is_switched_on_after_the_burn_in() -> None:
    layer = shaken(baselines.NoiseLayer(burn_in=0.5))
    plain = F.cross_entropy(LOGITS, LABEL)
    layer.done = 0.49
    assert float(layer(LOGITS, BATCH, WORKER, LABEL)) == pytest.approx(float(plain))
    layer.done = 0.5
    assert float(layer(LOGITS, BATCH, WORKER, LABEL)) != pytest.approx(float(plain), abs=0.01)


@pytest.mark.parametrize("term", ["F", "W"])
def test_the_term_of_geo_crowd_net_is_a_log_determinant(term: str) -> None:
    layer = shaken(baselines.GeoCrowdNet(term=term, penalty=0.3))
    stacked = softmax(array(LOGITS))
    if term == "W":
        stacked = np.concatenate([matrix.T for matrix in softmax(array(layer.scores))])
    wanted = -0.3 * np.linalg.slogdet(stacked.T @ stacked)[1]
    assert float(layer.penalty(LOGITS)) == pytest.approx(wanted, rel=1e-4)


def test_penalties_are_distances_and_diagonals_or_left_out_where_not_finite() -> None:
    layer = shaken(baselines.GeoCrowdNet(penalty=0.3))
    assert float(layer.penalty(LOGITS[:1])) == 0  # one task cannot span four classes
    layer = shaken(baselines.CoNAL(penalty=0.3))
    apart = np.linalg.norm(array(layer.scores) - array(layer.common), axis=(1, 2)).sum()
    assert float(layer.penalty(LOGITS)) == pytest.approx(-0.3 * apart, rel=1e-5)
    layer = shaken(baselines.NoiseLayer(penalty=0.3, burn_in=0.0))
    assert float(layer.penalty(LOGITS)) == pytest.approx(0.3 * softmax(array(layer.scores)).diagonal().mean(), rel=1e-5)


def test_annot_mix_mixes_features_workers_and_labels_alike() -> None:
    layer = baselines.AnnotMix(alpha=1.0)._layer(N_WORKERS, N_CLASSES).train()
    whole = torch.cat([F.one_hot(WORKER, N_WORKERS + 1), F.one_hot(LABEL, N_CLASSES)], dim=1).float()
    batch, shares, labels = layer.mixed(whole, WORKER, LABEL)  # features that repeat the other two
    assert_allclose(array(torch.cat([shares, labels], dim=1)), array(batch), atol=1e-6)
    assert_allclose(array(shares.sum(dim=1)), 1, atol=1e-6)
    assert not torch.equal(batch, whole)


def information_gain() -> Any:
    """Return the layer of MaxMIG for three tasks with 2, 1 and 2 labels, far from its start."""
    matrix = np.full((3, N_WORKERS), -1)
    matrix[[0, 0, 1, 2, 2], WORKER] = LABEL
    layer: Any = baselines.MaxMIG()._layer(N_WORKERS, N_CLASSES)
    layer.look(Annotations.from_matrix(matrix, classes=np.arange(N_CLASSES)), None)
    torch.manual_seed(1)
    for parameter in layer.parameters():
        parameter.requires_grad_(False).add_(torch.randn(parameter.shape))
    return layer


def test_the_loss_of_max_mig_is_minus_the_bound_of_the_information() -> None:
    layer = information_gain()
    weight, bias, share = array(layer.weight), array(layer.bias), np.exp(array(layer.log_shares))
    given = [[(0, 3), (2, 0)], [(1, 1)], [(1, 2), (0, 2)]]
    g = np.array([softmax(bias + sum(weight[a, s] for a, s in labels)) for labels in given])
    g[1] = [0, 0, 1, 0]  # gold
    h = softmax(array(LOGITS[:3]))
    k = np.array([[(h[i] * g[j] / share).sum() for j in range(3)] for i in range(3)])
    apart = [k[i, j] for i in range(3) for j in range(3) if i != j]
    wanted = np.mean(apart) - 1 - np.log(k.diagonal()).mean()
    loss = layer(LOGITS[:3], BATCH[:3], torch.arange(3), torch.tensor([-1, 2, -1]))
    assert float(loss) == pytest.approx(wanted, abs=1e-4)
    assert_allclose(array(layer.confusion())[1, :, 2], softmax(weight[1], axis=0)[2], atol=1e-6)


def test_max_mig_starts_from_how_workers_agree_with_others() -> None:
    rng = np.random.default_rng(0)
    ann = Annotations.from_matrix(np.column_stack([*[rng.integers(0, 3, 90)] * 3, rng.integers(0, 3, 90)]))
    layer: Any = baselines.MaxMIG()._layer(4, 3)
    layer.look(ann, None)
    right = array(layer.confusion()).diagonal(axis1=1, axis2=2).mean(axis=1)
    assert right[:3].min() > 0.6
    assert right[3] < 0.45
    assert_allclose(array(layer.weight.exp().sum(dim=1)), 1, atol=1e-5)  # over labels, for each class
    one_label = Annotations.from_matrix(rng.integers(0, 3, 90)[:, None], classes=[0, 1, 2])
    layer.look(one_label, None)  # says nothing of the workers
    assert_allclose(array(layer.confusion()).diagonal(axis1=1, axis2=2), 0.9, atol=1e-6)


@pytest.mark.parametrize("right", [0.25, 0.9])
def test_workers_start_nearly_right(right: float) -> None:
    assert_allclose(array(nearly_identity(N_CLASSES, right).softmax(dim=1).diagonal()), right, atol=1e-6)
