import numpy as np
import pytest
from crowds import crowd, label_counts
from numpy.testing import assert_allclose

from labelonce import Annotations, DawidSkene, metrics
from labelonce._types import Codes
from labelonce.baselines import MinimaxEntropy


def brute_force(matrix: Codes, model: MinimaxEntropy) -> float:
    """The penalised log-likelihood, one annotation at a time."""
    total = float(np.log(model.prior_).sum()) - 0.5 * model.worker_strength * float((model.sigma_**2).sum())
    total -= 0.5 * model.task_strength * float((model.tau_**2).sum())
    for task, row in enumerate(matrix):
        joint = np.array(model.prior_)
        for k in range(2):
            for worker, given in enumerate(row):
                logits = model.sigma_[worker, k] + model.tau_[task, min(k, model.tau_.shape[1] - 1)]
                joint[k] *= 1.0 if given < 0 else np.exp(logits[given]) / np.exp(logits).sum()
        total += np.log(joint.sum())
    return total


@pytest.mark.parametrize("task_matrix", [True, False])
def test_the_objective_is_the_penalised_likelihood(task_matrix: bool) -> None:
    matrix = np.array([[0, 1, 0], [1, 1, -1], [-1, 0, 0], [1, -1, 1], [0, 0, 0], [1, 1, 0]], dtype=np.int32)
    model = MinimaxEntropy(task_matrix=task_matrix, tol=1e-13, max_iter=5000).fit(Annotations.from_matrix(matrix))
    assert_allclose(model.log_likelihood_[-1], brute_force(matrix, model), atol=1e-6)


@pytest.mark.parametrize("prior", ["learned", "uniform"])
def test_the_objective_never_falls_with_either_prior(prior: str) -> None:
    path = MinimaxEntropy(prior=prior, tol=1e-9).fit(crowd()[0]).log_likelihood_
    assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


def hard_and_easy() -> tuple[Annotations, Codes]:
    """Its own model: workers' and tasks' logits add up."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 1500).astype(np.int32)
    sigma = np.eye(2) * rng.uniform(0.5, 4.0, (20, 1, 1))
    tau = rng.normal(0, 1.0, (1500, 2, 2))
    worker = np.array([rng.choice(20, 6, replace=False) for _ in range(1500)])
    logits = sigma[worker, y_true[:, None]] + tau[np.arange(1500), y_true][:, None]
    says_one = 1 / (1 + np.exp(logits[..., 0] - logits[..., 1]))
    label = (rng.random((1500, 6)) < says_one).astype(int)
    return Annotations.from_arrays(np.repeat(np.arange(1500), 6), worker.ravel(), label.ravel()), y_true


def test_recovers_labels_and_workers_of_its_own_model() -> None:
    ann, y_true = hard_and_easy()
    counts = label_counts(ann, y_true)
    model = MinimaxEntropy().fit(ann)
    assert metrics.confusion_error(counts / counts.sum(axis=2, keepdims=True), model.confusion_) < 0.06
    dawid_skene = metrics.accuracy(y_true, DawidSkene().fit(ann).posterior_)
    assert metrics.accuracy(y_true, model.posterior_) > dawid_skene - 0.005


def test_blocks_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MinimaxEntropy().fit(crowd()[0])
    monkeypatch.setattr("labelonce.baselines._minimax_entropy._CELLS", 900)
    assert_allclose(MinimaxEntropy().fit(crowd()[0]).posterior_, whole.posterior_, atol=1e-9)
