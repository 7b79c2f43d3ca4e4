import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import IBCC, DawidSkene, MajorityVote, metrics, simulate


@pytest.mark.parametrize("model", [DawidSkene(), IBCC()])
def test_recovers_the_confusion_of_simulated_workers(model: DawidSkene | IBCC) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 4, 4000)
    confusion = simulate.dirichlet(20, 4, rng, diagonal=6.0, off_diagonal=1.0)
    ann = simulate.annotate(y_true, confusion, simulate.assign(4000, 20, 5, rng, replace=False), rng)
    assert metrics.confusion_error(confusion, model.fit(ann).confusion_) < 0.05
    assert_allclose(model.prior_, 0.25, atol=0.03)


def test_beats_majority_vote_where_workers_differ() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 4, 2000)
    confusion = simulate.hammer_spammer(20, 4, 0.3, rng, exact=True)
    ann = simulate.annotate(y_true, confusion, simulate.assign(2000, 20, 5, rng, replace=False), rng)
    ours, vote = (metrics.accuracy(y_true, model.fit(ann).posterior_) for model in (DawidSkene(), MajorityVote()))
    assert ours > vote + 0.05


def test_strong_smoothing_pulls_every_worker_to_the_pseudo_counts() -> None:
    model = DawidSkene(smoothing=(8e6, 1e6)).fit(crowd()[0])
    assert_allclose(model.confusion_, np.tile(np.where(np.eye(3), 0.8, 0.1), (12, 1, 1)), atol=1e-3)
