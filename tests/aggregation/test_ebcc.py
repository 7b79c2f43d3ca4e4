from itertools import product

import numpy as np
import pytest
from crowds import crowd, label_counts
from numpy.testing import assert_allclose
from scipy.special import digamma, gammaln

from labelonce import EBCC, IBCC, Annotations, metrics
from labelonce._types import Codes, Floats


def test_one_subtype_is_ibcc() -> None:
    ann, _ = crowd()
    ours, ibcc = EBCC(subtypes=1, prior="learned", n_init=1, tol=1e-10).fit(ann), IBCC(tol=1e-10).fit(ann)
    assert_allclose(ours.posterior_, ibcc.posterior_, atol=1e-6)
    assert_allclose(ours.confusion_, ibcc.confusion_, atol=1e-6)
    assert_allclose(ours.log_likelihood_[-1], ibcc.log_likelihood_[-1])


def subtyped(n_trapped: int) -> tuple[Annotations, Codes]:
    """Two classes of two subtypes: on the second subtype of class 0 some of seven workers all err alike."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 2000).astype(np.int32)
    trap = (y_true == 0) & (rng.random(2000) < 0.4)
    right = np.where(trap[:, None] & (np.arange(7) < n_trapped), 0.1, 0.85)
    given = np.where(rng.random((2000, 7)) < right, y_true[:, None], 1 - y_true[:, None])
    return Annotations.from_matrix(given), y_true


def test_subtypes_beat_independent_workers_whose_confusion_they_recover() -> None:
    ann, y_true = subtyped(4)
    ours, ibcc = (metrics.accuracy(y_true, model.fit(ann).posterior_) for model in (EBCC(subtypes=4, n_init=4), IBCC()))
    assert ours > ibcc + 0.02
    ann, y_true = subtyped(3)
    counts = label_counts(ann, y_true)
    empirical = counts / counts.sum(axis=2, keepdims=True)
    assert metrics.confusion_error(empirical, EBCC(subtypes=3, n_init=3).fit(ann).confusion_) < 0.06


@pytest.mark.parametrize("concentration", [0.1, 5.0])
def test_the_bound_never_falls(concentration: float) -> None:
    path = EBCC(subtypes=3, concentration=concentration, n_init=1, tol=1e-9).fit(crowd()[0]).log_likelihood_
    assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


def log_evidence(matrix: list[list[int]], concentration: float) -> float:
    """Log P(labels) summed over every class and subtype of every task: the parameters integrate out in closed form."""

    def log_polya(counts: Floats, pseudo: Floats) -> float:
        of_sum = gammaln(pseudo.sum()) - gammaln((counts + pseudo).sum())
        return float(of_sum + (gammaln(counts + pseudo) - gammaln(pseudo)).sum())

    terms = []
    for states in product(range(4), repeat=len(matrix)):
        labels = np.zeros((2, 4, 2))
        for state, row in zip(states, matrix, strict=True):
            for worker, given in enumerate(row):
                labels[worker, state, given] += 1
        by_state = np.bincount(states, minlength=4).reshape(2, 2).astype(np.float64)
        total = log_polya(by_state.sum(axis=1), np.ones(2))
        total += sum(log_polya(by_state[k], np.full(2, concentration / 2)) for k in range(2))
        pseudo = np.array([[4.0, 1.0], [1.0, 4.0]])
        total += sum(log_polya(labels[w, s], pseudo[s // 2]) for w in range(2) for s in range(4))
        terms.append(total)
    return float(np.logaddexp.reduce(terms))


@pytest.mark.parametrize("concentration", [0.1, 2.0])
def test_the_bound_is_below_the_evidence_and_near(concentration: float) -> None:
    matrix = [[0, 0], [0, 1], [1, 1], [1, 1]]
    model = EBCC(subtypes=2, concentration=concentration, prior="learned", tol=1e-10, n_init=10)
    bound = model.fit(Annotations.from_matrix(matrix)).log_likelihood_[-1]
    evidence = log_evidence(matrix, concentration)
    assert evidence - 2.0 < bound <= evidence


def one_divergence(counts: Floats, pseudo: Floats) -> float:
    """KL between two Dirichlet distributions, the textbook's formula."""
    log_ratio = gammaln(counts.sum()) - gammaln(counts).sum() - gammaln(pseudo.sum()) + gammaln(pseudo).sum()
    return float(log_ratio + ((counts - pseudo) * (digamma(counts) - digamma(counts.sum()))).sum())


def test_the_bound_pays_for_rows_subtypes_and_classes() -> None:
    rng = np.random.default_rng(0)
    labels, by_state = rng.exponential(3.0, (3, 4, 2)), rng.exponential(5.0, (2, 2))
    model = EBCC(subtypes=2, concentration=0.6, prior="learned")
    model._class_pseudo = np.ones(2)
    pseudo = np.array([[4.0, 1.0], [1.0, 4.0]])
    expected = sum(one_divergence(labels[w, s] + pseudo[s // 2], pseudo[s // 2]) for w in range(3) for s in range(4))
    expected += sum(one_divergence(by_state[k] + 0.3, np.full(2, 0.3)) for k in range(2))
    expected += one_divergence(by_state.sum(axis=1) + 1, np.ones(2))
    assert_allclose(model._m_step(labels, by_state.ravel()).log_penalty, -expected)
