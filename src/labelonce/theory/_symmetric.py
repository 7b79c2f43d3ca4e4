"""Alpha and beta of the special case: binary labels, all workers wrong with the same chance for both classes.

Here alpha is `error_rate` itself. "Identical workers with confusion[k, s] = rho for k != s" is a
distribution for two classes only.
"""

import numpy as np
from scipy.special import expit, gammaln, xlog1py, xlogy

from labelonce._types import Floats
from labelonce._validate import check_int, check_number
from labelonce.theory._check import check_rate


def beta_symmetric(error_rate: float, redundancy: int, epsilon: float = 0.0) -> float:
    """Return the mean weight of the wrong class in a task's posterior.

    The posterior takes every worker's error rate for `error_rate + epsilon`: the first line of the
    appendix's display of beta_epsilon, and the exact value for noise that is over-estimated alike for
    all workers and both classes. An estimate that errs by epsilon in opposite directions for the two
    classes can do worse, though the paper writes "at most": see `beta_symmetric_worst_case`.

    Parameters
    ----------
    error_rate : float in [0, 0.5)
        Chance of a worker to be wrong, the paper's rho.
    redundancy : int of at least 1
        Labels per task.
    epsilon : float of at least 0
        How far the noise is over-estimated; `error_rate + epsilon` must be below 0.5.

    Examples
    --------
    >>> [round(beta_symmetric(0.2, redundancy), 4) for redundancy in (1, 3, 5)]
    [0.32, 0.1694, 0.0952]
    >>> round(beta_symmetric(0.2, 3, epsilon=0.05), 4)
    0.194
    """
    assumed = _check_estimate(error_rate, redundancy, epsilon)
    odds = assumed / (1 - assumed)
    return _wrong_weight(error_rate, redundancy, odds, 1 / odds if odds else np.inf)


def beta_symmetric_bound(error_rate: float, redundancy: int, epsilon: float = 0.0) -> float:
    """Return the paper's closed form for beta_epsilon, an upper bound of `beta_symmetric`.

    It is p^r sum_u C(r, u) / (tau^u + tau^(r-u)) with p = error_rate + epsilon and tau = p / (1 - p)
    (section 4.4), which is `beta_symmetric` of workers as bad as they are taken for. The appendix derives
    it with "="; that holds only at epsilon = 0. The simpler sum up to ceil(r / 2) that follows there is not a bound
    for even r, such as r = 28 and an error rate of 0.32, and is not offered.

    Parameters
    ----------
    error_rate, redundancy, epsilon
        As in `beta_symmetric`.

    Examples
    --------
    >>> round(beta_symmetric_bound(0.2, 3, epsilon=0.05), 4)
    0.2411
    """
    return beta_symmetric(_check_estimate(error_rate, redundancy, epsilon), redundancy)


def beta_symmetric_worst_case(error_rate: float, redundancy: int, epsilon: float = 0.0) -> float:
    """Return a bound of beta that holds for every estimate whose entries are within epsilon.

    This is what Theorem 4.1 needs of beta_epsilon, and what the paper's closed form does not give: with
    an error rate of 0.1 estimated as 0.05 for one class and 0.15 for the other, seven labels per task have
    beta 0.024, above the closed form's 0.021. Here every right label counts for as little and every wrong
    label for as much as epsilon allows, each apart, so that no estimate can be worse; at epsilon = 0 it
    is `beta_symmetric`.

    Parameters
    ----------
    error_rate, redundancy, epsilon
        As in `beta_symmetric`; epsilon is the largest error of an entry of the estimate.

    Examples
    --------
    >>> round(beta_symmetric_worst_case(0.1, 7, epsilon=0.05), 4)
    0.0301
    """
    assumed = _check_estimate(error_rate, redundancy, epsilon)
    least = max(error_rate - epsilon, 0.0)
    wrong = min(1 - error_rate + epsilon, 1.0) / least if least else np.inf
    return _wrong_weight(error_rate, redundancy, assumed / (1 - assumed), wrong)


def majority_error(error_rate: float, redundancy: int) -> float:
    """Return the chance that the majority of a task's labels is wrong, a tie counting half.

    For equal workers this is also the least error that any rule reaches, and
    majority_error <= beta_symmetric <= 2 majority_error (1 - majority_error) (Cover and Hart, "Nearest neighbor
    pattern classification", IEEE Transactions on Information Theory, 1967).

    Parameters
    ----------
    error_rate, redundancy
        As in `beta_symmetric`.

    Examples
    --------
    >>> round(majority_error(0.2, 3), 4)
    0.104
    """
    _check_estimate(error_rate, redundancy, 0.0)
    n_wrong = np.arange(redundancy + 1.0)
    lost = (np.sign(2 * n_wrong - redundancy) + 1) / 2
    return float(_binomial(n_wrong, error_rate) @ lost)


def _check_estimate(error_rate: float, redundancy: int, epsilon: float) -> float:
    """Return the error rate that the estimate assumes."""
    check_int(redundancy, "redundancy", 1)
    assumed = check_rate(error_rate, "error_rate") + check_number(epsilon, "epsilon", 0)
    if assumed >= 0.5:
        raise ValueError(f"error_rate + epsilon must be below 0.5; got {error_rate!r} + {epsilon!r}.")
    return assumed


def _wrong_weight(error_rate: float, redundancy: int, odds_right: float, odds_wrong: float) -> float:
    """Return the mean posterior of the wrong class when each label multiplies its odds so."""
    if odds_right == 0:
        return 0.0  # perfect workers known as such; below, 0 * inf would be nan
    n_wrong = np.arange(redundancy + 1.0)
    log_odds = xlogy(redundancy - n_wrong, odds_right) + xlogy(n_wrong, odds_wrong)
    return float(_binomial(n_wrong, error_rate) @ expit(log_odds))


def _binomial(n_wrong: Floats, error_rate: float) -> Floats:
    """Return the probability of each number of wrong labels among 0, ..., redundancy."""
    n_right = n_wrong[::-1]
    log_ways = gammaln(len(n_wrong)) - gammaln(n_wrong + 1) - gammaln(n_right + 1)
    probability: Floats = np.exp(log_ways + xlogy(n_wrong, error_rate) + xlog1py(n_right, -error_rate))
    return probability
