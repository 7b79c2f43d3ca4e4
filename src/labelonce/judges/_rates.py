"""The share of every class among all tasks, with an interval, and how many items people must check."""

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import norm

from labelonce._types import Codes, Estimate, Floats, Ids, Mask
from labelonce._validate import check_number

_FEW = 10


def class_shares(
    posterior: Floats,
    gold: Codes,
    classes: Ids,
    *,
    chances: Any = None,
    level: float = 0.95,
    doubt: Floats | None = None,
) -> pa.Table:
    """Return the share of each class among all tasks, with an interval: class, share, low, high, method.

    With 10 gold tasks or more, prediction-powered inference: the mean of what the posterior says of all tasks, plus
    how far it is off on gold, as far as this makes the interval narrower. It is right whatever the posterior is.
    Where tasks were chosen for checking with unequal chances, gold counts by their inverse. Tasks chosen for sure
    stand for themselves.

    Parameters
    ----------
    posterior : (n_tasks, n_classes)
        By models that did not see the gold of a task.
    gold : (n_tasks,)
        Class codes, -1 where unknown.
    classes : (n_classes,)
    chances : (n_tasks,), optional
        The chance with which each gold task was chosen.
    level : float
    doubt : (n_classes,), optional
        The variance of the shares where there is no gold.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient Prediction-Powered Inference", 2023. T. Zrnic and
    E. J. Candes, "Active Statistical Inference", ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> says = np.tile([[0.9, 0.1], [0.2, 0.8]], (50, 1))
    >>> class_shares(says, np.tile([0, 1, -1, -1], 25), np.array(["no", "yes"]))["share"].to_numpy().round(3)
    array([0.5, 0.5])
    """
    check_number(level, "level", 0.5, 0.9999)
    z = float(norm.ppf((1 + level) / 2))
    known = np.flatnonzero(gold >= 0)
    if len(known) < _FEW:
        share = posterior.mean(axis=0)
        variance = np.full(len(classes), 0.01) if doubt is None else doubt
        method = "panel"
    else:
        chance = np.full(len(known), len(known) / len(gold)) if chances is None else np.asarray(chances)[known]
        found = [_powered(posterior[:, code], known, gold[known] == code, chance) for code in range(len(classes))]
        share, variance, method = np.array([one[0] for one in found]), np.array([one[1] for one in found]), "PPI++"
    half = z * np.sqrt(variance)
    ends = {"share": share, "low": share - half, "high": share + half}
    columns = {name: pa.array(np.clip(values, 0.0, 1.0)) for name, values in ends.items()}
    return pa.table({"class": pa.array(classes), **columns, "method": pa.array([method] * len(classes))})


def _powered(proxy: Floats, known: Ids, truth: Any, chance: Floats) -> tuple[float, float]:
    """Return the estimate and its variance; the power of the proxy is the one of least variance.

    Tasks chosen for sure are known; the others are a sample of the rest.
    """
    sure = chance >= 1 - 1e-9
    rest = np.ones(len(proxy), dtype=bool)
    rest[known[sure]] = False
    n_rest, n_all = int(rest.sum()), len(proxy)
    total = float(truth[sure].sum())
    if n_rest == 0 or (~sure).sum() < 2:
        share = (total + float(proxy[rest].sum())) / n_all
        return share, (n_rest / n_all) ** 2 * 0.25
    y, f, weight = truth[~sure].astype(float), proxy[known[~sure]], 1 / chance[~sure]
    weight = weight / weight.sum()
    n = 1 / float((weight**2).sum())
    means = float(weight @ y), float(weight @ f)
    covariance = float(weight @ ((y - means[0]) * (f - means[1])))
    power = covariance / max((1 + n / n_rest) * float(proxy[rest].var()), 1e-12)
    power = float(np.clip(power, 0.0, 1.0))
    middle = power * float(proxy[rest].mean()) + means[0] - power * means[1]
    gap = y - power * f
    variance = float(weight @ (gap - weight @ gap) ** 2) / max(n - 1, 1) + power**2 * float(proxy[rest].var()) / n_rest
    least = 0.25 / (n + 4) ** 2
    return (total + n_rest * middle) / n_all, (n_rest / n_all) ** 2 * max(variance, least)


def spread_of(posterior: Floats, gold: Codes) -> tuple[Floats, Floats]:
    """Return, of each class, the variance of truth less the powered posterior, and of the powered posterior."""
    known = np.flatnonzero(gold >= 0)
    if len(known) < _FEW:
        return (posterior * (1 - posterior)).mean(axis=0), posterior.var(axis=0)
    truth, seen = np.eye(posterior.shape[1])[gold[known]], posterior[known]
    covariance = ((truth - truth.mean(axis=0)) * (seen - seen.mean(axis=0))).mean(axis=0)
    whole = posterior.var(axis=0)
    power = np.clip(covariance / np.maximum((1 + len(known) / len(gold)) * whole, 1e-12), 0.0, 1.0)
    gap = (truth - power * seen).var(axis=0)
    return np.maximum(gap, 0.25 / (len(known) + 4)), power**2 * whole


def checks_for_width(posterior: Floats, gold: Codes, width: float, level: float) -> int:
    """Return how many more random items to check until the shares of all classes are known to plus or minus `width`.

    `posterior` is by models that did not see a task's gold. With 10 gold items or more they say how far it is off, by
    the estimate of `class_shares`; otherwise it is taken at its word.
    """
    z, n_tasks = float(norm.ppf((1 + level) / 2)), len(gold)
    checked = int((gold >= 0).sum())
    gap, proxy = spread_of(posterior, gold)
    number = np.arange(max(checked, 1), n_tasks + 1)[:, None]
    variance = gap / number + proxy / n_tasks
    enough = np.flatnonzero((z * np.sqrt(variance) <= width).all(axis=1))
    return (int(number[enough[0], 0]) if len(enough) else n_tasks) - checked


def checks_for_risk(confidence: Floats, known: Mask, accuracy: Estimate, risk: float, right: float) -> Estimate:
    """Return how many labels of people to buy, least sure items first, until a share `risk` of all labels is wrong.

    A label of a person is right with probability `right`. The range is that of the panel's accuracy.
    """
    wrong = np.sort(1 - confidence[~known])[::-1]
    says = max(1 - accuracy.value, 1e-9)
    scales = (1.0, (1 - accuracy.high) / says, (1 - accuracy.low) / says)
    value, low, high = (_until(np.minimum(wrong * scale, 1.0), len(confidence), risk, 1 - right) for scale in scales)
    return Estimate(value, low, high)


def _until(wrong: Floats, n_tasks: int, risk: float, person: float) -> float:
    """Return how many of the items, the most likely wrong first, a person must label; all, if that is not enough."""
    saved = np.append(0.0, np.cumsum(np.maximum(wrong - person, 0.0)))
    enough = np.flatnonzero(float(wrong.sum()) - saved <= risk * n_tasks)
    return float(enough[0] if len(enough) else len(wrong))
