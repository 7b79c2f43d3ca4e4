import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import MACE, Annotations, DawidSkene, metrics
from labelonce._types import Codes, Floats


def spammers(n_tasks: int = 4000) -> tuple[Annotations, Codes, Floats, Floats]:
    """Return annotations drawn from the model, the true labels, the competences and the confusion matrices."""
    rng = np.random.default_rng(0)
    competence, habit = np.linspace(0, 0.95, 20), rng.dirichlet(np.ones(4), 20)
    confusion = competence[:, None, None] * np.eye(4) + ((1 - competence)[:, None] * habit)[:, None, :]
    ann, y_true = crowd(n_tasks=n_tasks, confusion=confusion)
    return ann, y_true, competence, confusion


@pytest.mark.parametrize("method", ["vb", "em"])
def test_recovers_simulated_spammers(method: str) -> None:
    ann, y_true, competence, confusion = spammers()
    model = MACE(method=method).fit(ann)
    assert_allclose(model.competence_, competence, atol=0.06)
    assert metrics.confusion_error(confusion, model.confusion_) < 0.03
    dawid_skene = metrics.accuracy(y_true, DawidSkene().fit(ann).posterior_)
    assert metrics.accuracy(y_true, model.posterior_) > dawid_skene - 0.005


def test_em_objective_equals_a_sum_over_classes_plus_the_pseudo_counts() -> None:
    ann, _ = crowd(n_tasks=12, n_workers=6)
    model = MACE(method="em", smoothing=(0.5, 0.2)).fit(ann)
    know = model.competence_
    habit = model.confusion_[:, [1, 2, 0], [0, 1, 2]] / (1 - know)[:, None]
    total = 0.5 * np.log(know * (1 - know)).sum() + 0.2 * np.log(habit).sum()
    for task in range(12):
        rows = np.flatnonzero(ann.task == task)
        total += np.log(model.confusion_[ann.worker[rows], :, ann.label[rows]].prod(axis=0).mean())
    assert_allclose(model.log_likelihood_[-1], total, rtol=1e-9)


@pytest.mark.parametrize("method", ["vb", "em"])
def test_objective_never_falls_on_small_crowds(method: str) -> None:
    for seed in range(8):
        path = MACE(method=method, max_iter=5000).fit(crowd(seed, n_tasks=15, n_workers=6)[0]).log_likelihood_
        assert (np.diff(path) >= -1e-9).all()


def test_bound_is_below_the_evidence_and_every_matrix_is_know_or_habit() -> None:
    ann = Annotations.from_arrays([0, 0], [0, 1], [0, 0], classes=[0, 1])
    rng = np.random.default_rng(0)
    know, habit = rng.beta(0.5, 0.5, (2, 400_000)), rng.beta(10, 10, (2, 400_000))
    right, wrong = know + (1 - know) * habit, (1 - know) * habit
    evidence = np.log((right.prod(axis=0) / 2 + wrong.prod(axis=0) / 2).mean())
    bound = MACE().fit(ann).log_likelihood_[-1]
    assert evidence - 1.5 < bound < evidence
    model = MACE().fit(crowd()[0])
    off_diagonal = model.confusion_ - model.competence_[:, None, None] * np.eye(3)
    assert_allclose(off_diagonal, off_diagonal[:, :1] * np.ones((1, 3, 1)), atol=1e-12)
