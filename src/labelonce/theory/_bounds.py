"""Theorem 4.1 and its two lemmas: binary labels, uniform prior, 0-1 loss, every step on fresh tasks.

All of it is qualitative: `constant` is a universal constant C that the paper does not give (1 shows the
shape), and the other constants are so large that the bounds say nothing at the sizes of real data: 100
workers and delta = 0.05 ask for 4.8 million annotations (`required_annotations`).
"""

from math import ceil, inf, log, sqrt
from typing import Any

from labelonce._validate import check_int, check_number
from labelonce.theory._check import check_delta, check_rate


def lemma_1_risk_bound(
    noise: float, *, n_tasks: int, vc_dimension: int, delta: float = 0.05, constant: float = 1.0
) -> float:
    """Return Lemma A.1's bound on the excess risk of a model trained in one round.

    C / (1 - 2 noise) (sqrt(V / n) + sqrt(log(1 / delta) / n)), with the lemma's own delta in the logarithm,
    where the printed proof has the theorem's. The proof holds where the noise is the same for both classes, as
    in the special case; otherwise its last step is not justified: it needs an excess loss that is nowhere negative.

    Parameters
    ----------
    noise : float in [0, 0.5)
        alpha where the targets are vote fractions, beta where they are posteriors.
    n_tasks : int of at least 1
        Tasks of this round, apart from all others.
    vc_dimension : int of at least 0
        V, of the class of models.
    delta : float in (0, 1)
        Chance that the bound fails.
    constant : float of at least 0
        C.

    Examples
    --------
    >>> round(lemma_1_risk_bound(0.18, n_tasks=10_000, vc_dimension=10), 4)
    0.0765
    """
    size = check_int(n_tasks, "n_tasks", 1)
    return _excess_risk(check_rate(noise, "noise"), size, _complexity(vc_dimension, delta), constant)


def lemma_2_confusion_bound(
    risk: float, *, n_annotations: int, n_workers: int, n_classes: int = 2, delta: float = 0.05
) -> float:
    """Return Lemma A.2's bound on the error of every entry of the estimated confusion.

    (2 risk + 16 s) / (1 / K - risk - 8 s) with s = sqrt(m log(4 m K^2 / delta) / N): the logarithm divides by
    delta in both places, where the printed lemma once multiplies by it (an error). Infinite where the
    denominator is not positive; from 1 on it says nothing.

    Parameters
    ----------
    risk : float in [0, 1]
        Upper bound of the error rate of the model whose predictions stand for the true labels.
    n_annotations : int of at least 1
        N, not used to train that model.
    n_workers : int of at least 1
        m; each annotation's worker is drawn uniformly.
    n_classes : int of at least 2
        K.
    delta : float in (0, 1)
        Chance that the bound fails.

    Examples
    --------
    >>> round(lemma_2_confusion_bound(0.01, n_annotations=10**7, n_workers=10), 4)
    0.1401
    """
    check_number(risk, "risk", 0, 1)
    share = 1 / check_int(n_classes, "n_classes", 2)
    spread = _spread(4 * n_classes**2, n_workers, delta, n_annotations)
    denominator = share - risk - 8 * spread
    return (2 * risk + 16 * spread) / denominator if denominator > 0 else inf


def required_annotations(
    alpha: float, *, n_workers: int, redundancy: int, vc_dimension: int, delta: float = 0.05, constant: float = 1.0
) -> int:
    """Return the least number of annotations for which Theorem 4.1 is stated (equation 8).

    max(C r ((sqrt(V) + sqrt(log(1 / delta))) / (1 - 2 alpha))^2, 2^12 m log(2^6 m / delta)), rounded up.
    Qualitative: the second term alone is millions for a hundred workers.

    Parameters
    ----------
    alpha : float in [0, 0.5)
        `alpha` of the workers; the error rate of symmetric ones.
    n_workers, redundancy : int of at least 1
        m and r.
    vc_dimension, delta, constant
        As in `lemma_1_risk_bound`.

    Examples
    --------
    >>> required_annotations(0.1, n_workers=100, redundancy=1, vc_dimension=10)
    4816809
    """
    margin = 1 - 2 * check_rate(alpha, "alpha")
    check_int(redundancy, "redundancy", 1)
    for_model = _check_constant(constant) * redundancy * (_complexity(vc_dimension, delta) / margin) ** 2
    workers = check_int(n_workers, "n_workers", 1)
    return ceil(max(for_model, 2**12 * workers * log(2**6 * workers / delta)))


def confusion_error_bound(
    noise: float,
    *,
    n_annotations: int,
    n_workers: int,
    redundancy: int,
    vc_dimension: int,
    best_risk: float = 0.0,
    delta: float = 0.05,
    constant: float = 1.0,
) -> float:
    """Return epsilon of Theorem 4.1 where `noise` is alpha, and epsilon_1 where it is beta_epsilon.

    2^4 gamma + 2^8 sqrt(m log(2^6 m / delta) / N), gamma being `best_risk` plus the excess risk of the
    round: with delta as divisor in the logarithm, where the printed theorem has a product (an
    error). It bounds the error of every entry of the estimated confusion, if `n_annotations` is at
    least `required_annotations`. Qualitative: below 1 only if gamma is below 1/16.

    Parameters
    ----------
    noise : float in [0, 0.5)
        alpha, or beta_epsilon for the second round.
    n_annotations, n_workers, redundancy : int of at least 1
        N, m and r.
    best_risk : float in [0, 0.25]
        Error rate of the best model of the class.
    vc_dimension, delta, constant
        As in `lemma_1_risk_bound`.

    Examples
    --------
    >>> round(confusion_error_bound(0.1, n_annotations=10**9, n_workers=10, redundancy=1, vc_dimension=10), 4)
    0.0818
    """
    check_rate(noise, "noise")
    tasks = _tasks(n_annotations, redundancy)
    gamma = check_number(best_risk, "best_risk", 0, 0.25)
    gamma += _excess_risk(noise, tasks, _complexity(vc_dimension, delta), constant)
    return 2**4 * gamma + 2**8 * _spread(2**6, n_workers, delta, n_annotations)


def excess_risk_bound(
    beta: float,
    *,
    n_annotations: int,
    redundancy: int,
    vc_dimension: int,
    delta: float = 0.05,
    constant: float = 1.0,
) -> float:
    """Return Theorem 4.1's bound on the excess risk after two rounds (equation 9).

    C sqrt(r) / (1 - 2 beta) (sqrt(V / N) + sqrt(log(1 / delta) / N)): Lemma A.1 for N / r tasks, its
    quarters of tasks and of delta taken into C. Qualitative, and stated only from
    `required_annotations` on.

    Parameters
    ----------
    beta : float in [0, 0.5)
        beta_epsilon: a bound of `beta` for every estimate within epsilon (`confusion_error_bound`) of the
        true confusion, such as `beta_symmetric_worst_case`.
    n_annotations, redundancy : int of at least 1
        N and r.
    vc_dimension, delta, constant
        As in `lemma_1_risk_bound`.

    Examples
    --------
    >>> round(excess_risk_bound(0.18, n_annotations=10_000, redundancy=1, vc_dimension=10), 4)
    0.0765
    """
    tasks = _tasks(n_annotations, redundancy)
    return _excess_risk(check_rate(beta, "beta"), tasks, _complexity(vc_dimension, delta), constant)


def _complexity(vc_dimension: int, delta: float) -> float:
    return sqrt(check_int(vc_dimension, "vc_dimension", 0)) + sqrt(log(1 / check_delta(delta)))


def _excess_risk(noise: float, n_tasks: float, complexity: float, constant: float) -> float:
    return _check_constant(constant) * complexity / ((1 - 2 * noise) * sqrt(n_tasks))


def _spread(factor: int, n_workers: int, delta: float, n_annotations: int) -> float:
    workers = check_int(n_workers, "n_workers", 1)
    return sqrt(workers * log(factor * workers / check_delta(delta)) / check_int(n_annotations, "n_annotations", 1))


def _tasks(n_annotations: int, redundancy: int) -> float:
    return check_int(n_annotations, "n_annotations", 1) / check_int(redundancy, "redundancy", 1)


def _check_constant(constant: Any) -> float:
    return check_number(constant, "constant", 0)
