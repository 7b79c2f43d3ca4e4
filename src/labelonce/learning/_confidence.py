"""Confidence that people can act on: how sure a fit may be of its labels and of its workers, without gold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from labelonce._kernels import ScipyEngine, floored_log
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.workers import WorkerModel
from labelonce.workers._intervals import beta_interval

LEVEL = 0.9
FOLDS = 5
_TRUSTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # exponents of what the labels say
_SHARED = 1.5  # power of the exponent that predicts labels best: mistakes that labels share predict each other, too
USUAL_TRUST = 0.5  # where hardly any task has two labels, so that none can be predicted from another
_FLATTER = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85)  # exponents of predictions that are too sure of themselves
_CLEARLY = 3.0  # log-likelihood that flatter predictions must gain per label of a task
_ENOUGH_TASKS = 20_000  # to choose the exponent by
_ENOUGH_GOLD = 100  # known tasks to choose the exponent by
_ENOUGH_LABELS = 200  # labels with company in their task to choose the exponent by
_SAME_MISTAKES = 2.0  # how much more labels err together than apart, as a share of their variance, without trust
_LEAST_SKILL_DOUBT = 0.015  # standard deviation of a worker's skill for what the calibration leaves out,
_SKILL_DOUBT = 0.05  # and more where the labels are not trusted
_WITHIN = 0.5  # standard deviations of the agreement between a worker and the model that are put down to chance
_UNSURE_ERRORS = 0.35  # relative doubt about the share of wrong labels
_LEAST_DOUBT = 0.01  # standard deviation of the share of right labels, however sure


@dataclass(frozen=True)
class Confidence:
    """What people are shown of a fit.

    Attributes
    ----------
    posterior : (n_tasks, n_classes)
        Calibrated P(true label).
    trust : float
        The exponent of what the labels say: 1 takes every label as independent evidence, 0 ignores the labels.
    flattened : float
        The exponent of the predictions: 1 takes them as they are, less means that labels agree with them too seldom.
    """

    posterior: Floats
    trust: float
    flattened: float


def calibrated(
    annotations: Annotations,
    predictions: Floats,
    worker_model: WorkerModel,
    gold: Codes | None,
    seed: int,
    *,
    promised: Floats | None = None,
) -> Confidence:
    """Return the confidence that predictions by models that did not see the task, and the labels, give together.

    The posterior of the rounds is too sure of itself: the model has seen the labels that it judges, predictions are
    sharpened to explain them, and workers are counted against the result. Here nothing judges itself. Predictions are
    taken as they are, or flatter where the labels say so (`flatness`); workers are counted on the other tasks, against
    the picks of the predictions, or, where tasks have several labels, which know more than weak features, against what
    the rounds `promised`; and the product of the labels' likelihoods is raised to the power `trust`, since labels of
    one task are wrong together more often than a confusion matrix says. Where tasks have several labels, the exponent
    that predicts each label best from the other labels of its task is too high if they share mistakes: `trust` is that
    exponent to the power 1.5. With gold it is the exponent that predicts the gold best.
    """
    several = share_with_company(annotations)
    flattened = flatness(annotations, predictions)
    log_predictions = _normalised(flattened * floored_log(predictions))
    against = np.eye(predictions.shape[1])[predictions.argmax(axis=1)]
    if promised is not None and several:
        against += several * (promised - against)
    said = _labels_evidence(annotations, against, worker_model, np.random.default_rng([seed, 7]))
    by_task = _sum_by_task(annotations, said)
    trust = trust_by(
        annotations,
        gold,
        lambda: _by_gold(log_predictions, by_task, gold),
        lambda: _by_labels(annotations, log_predictions, by_task, said),
    )
    posterior = np.exp(_normalised(log_predictions + trust * by_task))
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        posterior[known] = np.eye(annotations.n_classes)[gold[known]]
    return Confidence(posterior, trust, flattened)


def reconciled(posterior: Floats, labels: Codes) -> Floats:
    """Return the posterior where no class is more probable than the label of its task.

    The labels are those of the rounds. Where models that did not see the task find another class more probable, either
    is right about as often, so that both get the mean of their probabilities, and so does any third that is above it:
    such a task is undecided, and is not shown as one thing with another beside it that is more probable.

    >>> reconciled(np.array([[0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.0, 0.6, 0.4]]), np.array([0, 0, 0])).round(2)
    array([[0.45, 0.45, 0.1 ],
           [0.6 , 0.3 , 0.1 ],
           [0.33, 0.33, 0.33]])
    """
    own = posterior[np.arange(len(labels)), labels]
    rows = np.flatnonzero(posterior.max(axis=1) > own)
    some = posterior[rows]
    ranked = -np.sort(-some, axis=1)
    means = (own[rows, None] + ranked.cumsum(axis=1)) / (2 + np.arange(ranked.shape[1]))
    below = np.pad(ranked[:, 1:], ((0, 0), (0, 1))) <= means  # the next class stays as it is
    level = means[np.arange(len(rows)), below.argmax(axis=1)]
    found = posterior.copy()
    found[rows] = np.minimum(some, level[:, None])
    found[rows, labels[rows]] = level
    return found


def flatness(annotations: Annotations, predictions: Floats) -> float:
    """Return the exponent that makes predictions as sure as the labels bear out; 1 unless they are clearly too sure.

    Rounds that learn from their own predictions may confirm themselves: models that did not see a task then still
    agree about it, and are wrong together. The labels tell. If a pick of probability c is right with probability c, a
    label agrees with it with probability c s + (1 - c) (1 - s) / (K - 1), where s is the share of right labels: picks
    of high probability tell s, and how agreement falls with c tells whether c is what it says. The exponent and s are
    those of the highest likelihood.
    """
    log_predictions = floored_log(predictions)
    return flattest(
        annotations,
        predictions.argmax(axis=1),
        lambda exponent: np.exp(_normalised(exponent * log_predictions).max(axis=1)),
    )


def flattest(annotations: Annotations, picks: Codes, sureness: Callable[[float], Floats]) -> float:
    """Return `flatness` of predictions that are known by their picks and how sure these are at an exponent."""
    n_classes = annotations.n_classes
    if n_classes < 2 or annotations.is_scale or (annotations.label >= n_classes).all():
        return 1.0  # no label says yes or no to a pick
    annotations = annotations.only_classes()
    rows = np.random.default_rng(0).permutation(len(annotations))[:_ENOUGH_TASKS]
    task = annotations.task[rows]
    agreed = picks[task] == annotations.label[rows]
    skill = np.linspace(1 / n_classes, 1 - 1e-3, 40)[1:, None]

    def fit(exponent: float) -> float:
        sure = sureness(exponent)[task]
        agrees = skill * sure + (1 - skill) / (n_classes - 1) * (1 - sure)
        return float(np.log(np.where(agreed, agrees, 1 - agrees)).sum(axis=1).max())

    found = {exponent: fit(exponent) for exponent in (1.0, *_FLATTER)}
    best = max(found, key=lambda exponent: found[exponent])
    gained = (found[best] - found[1.0]) / max(1.0, annotations.redundancy)
    return best if gained > _CLEARLY else 1.0


def skills(
    annotations: Annotations,
    posterior: Floats,
    promised: Floats,
    *,
    trust: float = USUAL_TRUST,
    picks: Codes | None = None,
    level: float = LEVEL,
) -> tuple[Floats, Floats, Floats]:
    """Return the share of each worker's labels that are right, and the ends of its interval.

    It is the mean probability of the labels that the worker gave, half way between the calibrated posterior, which is
    slow to trust a worker where features are weak, and what the rounds `promised`, which is quick. The interval holds
    chance, the distance between the two, and, the less the labels are trusted, mistakes that come together and doubt
    about the calibration. The fewer labels have company in their task, the more it also holds how right the worker
    could be, judged by the `picks` of models that did not see the task (`highest_skills`). Nothing is known of a worker
    without labels. Answers that are no class do not count; on a scale, each counts as it leans.
    """
    right, promise, rows = _chances_right(annotations, posterior, promised)
    worker = annotations.worker[rows]
    n = np.bincount(worker, minlength=annotations.n_workers)

    def mean(values: Floats) -> Floats:
        total = np.bincount(worker, values, annotations.n_workers)
        return np.asarray(np.divide(total, n, out=np.full(len(n), right.mean()), where=n > 0))

    value = mean((right + promise) / 2)
    distrust = 1 - trust
    variance = (1 + _SAME_MISTAKES * distrust) * mean(right * (1 - right)) / np.maximum(n, 1)
    variance += mean((promise - right) / 2) ** 2 + (_LEAST_SKILL_DOUBT + _SKILL_DOUBT * distrust) ** 2
    low, high = _interval(value, variance, level)
    if picks is not None and annotations.is_square:
        alone = 1 - share_with_company(annotations)
        high = high + alone * np.maximum(highest_skills(annotations, picks) - high, 0.0)
    return value, np.where(n > 0, np.minimum(low, value), 0.0), np.where(n > 0, np.maximum(high, value), 1.0)


def _chances_right(annotations: Annotations, posterior: Floats, promised: Floats) -> tuple[Floats, Floats, Any]:
    """Return by two posteriors the chance of each label to be right, and which annotations these are of."""
    task, label = annotations.task, annotations.label
    if annotations.is_square:
        return posterior[task, label], promised[task, label], slice(None)
    leaning = annotations.leaning
    rows = np.flatnonzero(leaning.sum(axis=1)[label])
    right, promise = ((one[task[rows]] * leaning[label[rows]]).sum(axis=1) for one in (posterior, promised))
    return right, promise, rows


def highest_skills(annotations: Annotations, picks: Codes) -> Floats:
    """Return how right each worker could be, judged by how often its labels are the picks of a model.

    Nothing but the model says how right workers are where no task has two labels, and nothing but the workers how right
    the model is. It may be less right than it seems, and they more; but nobody is more than always right, so that the
    model is right as often, at least, as it agrees with the worker with whom it agrees most. A worker who is right with
    probability s agrees with a model that is right with probability a with probability a s + (1 - a) (1 - s) / (K - 1).
    """
    n_classes = annotations.n_classes
    agreed = picks[annotations.task] == annotations.label
    n = np.maximum(np.bincount(annotations.worker, minlength=annotations.n_workers), 1)
    share, everybody = np.bincount(annotations.worker, agreed, annotations.n_workers) / n, float(agreed.mean())
    chance = everybody * (1 - everybody) / n
    spread = max(float(np.average((share - everybody) ** 2 - chance, weights=n)), 1e-6)
    likely = everybody + spread / (spread + chance) * (share - everybody)
    doubt = _WITHIN * np.sqrt(spread * chance / (spread + chance))
    least = max(float((likely - doubt).max()), 1.05 / n_classes)  # of the model
    by_chance = (1 - least) / max(n_classes - 1, 1)
    return np.asarray(np.clip((likely + doubt - by_chance) / (least - by_chance), 0.0, 1.0))


@dataclass(frozen=True)
class Estimate:
    """A number that is not known, and the ends of its 90 % range."""

    value: float
    low: float
    high: float


def share_right(posterior: Floats, labels: Codes, promised: float) -> Estimate:
    """Return the estimated share of labels that are right: their mean calibrated probability.

    The range holds chance, a relative doubt about the share of wrong labels, and what the rounds `promised`:
    calibration without gold leans to the low side.
    """
    right = posterior[np.arange(len(labels)), labels]
    value = float(right.mean())
    variance = float((right * (1 - right)).mean()) / len(right)
    variance += ((promised - value) / 3) ** 2 + (_UNSURE_ERRORS * (1 - value)) ** 2 + _LEAST_DOUBT**2
    low, high = _interval(np.array(value), np.array(variance), LEVEL)
    return Estimate(value, min(float(low), value), max(float(high), value, promised))


def _interval(value: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Return Beta intervals; a value at an end of [0, 1] is moved inside by its doubt, since no Beta has both."""
    doubt = np.minimum(np.sqrt(variance), 0.25)
    mean = np.clip(value, doubt, 1 - doubt)
    return beta_interval(mean, np.minimum(variance, 0.99 * mean * (1 - mean)), level)


def _labels_evidence(
    annotations: Annotations, against: Floats, worker_model: WorkerModel, rng: np.random.Generator
) -> Floats:
    """Return log P(given | true) of every annotation, (n_annotations, n_classes), its worker counted on other tasks.

    Workers are counted `against` probabilities of the true labels.
    """
    fold = (rng.permutation(annotations.n_tasks) % FOLDS)[annotations.task]
    everybody = ScipyEngine(annotations, "float64").m_step(against)
    leaning = None if annotations.is_square else annotations.leaning
    said = np.empty((len(annotations), against.shape[1]))
    for number in np.unique(fold):
        rows = fold == number
        worker, label = annotations.worker[rows], annotations.label[rows]
        own = np.zeros_like(everybody)
        np.add.at(own.transpose(0, 2, 1), (worker, label), against[annotations.task[rows]])
        fitted = clone(worker_model).fit_counts(np.maximum(everybody - own, 0.0), leaning)
        said[rows] = floored_log(fitted.confusion_)[worker, :, label]
    return said


def _sum_by_task(annotations: Annotations, values: Floats) -> Floats:
    n = len(annotations)
    per_task = sparse.csr_array((np.ones(n), (annotations.task, np.arange(n))), shape=(annotations.n_tasks, n))
    return np.asarray(per_task @ values)


def share_with_company(annotations: Annotations) -> float:
    """Return the share of the labels whose task has another label.

    >>> share_with_company(Annotations.from_matrix([[0, 1], [0, -1], [1, -1]]))
    0.5
    """
    return float((np.bincount(annotations.task)[annotations.task] > 1).mean())


def rows_with_company(annotations: Annotations) -> Codes:
    """Return the annotations of tasks with several labels, of a draw of tasks where there are many."""
    several = np.flatnonzero(np.bincount(annotations.task) > 1)
    drawn = np.random.default_rng(0).permutation(several)[:_ENOUGH_TASKS]
    return np.flatnonzero(np.isin(annotations.task, drawn)).astype(np.int32)


def trust_by(
    annotations: Annotations,
    gold: Codes | None,
    by_gold: Callable[[], Callable[[float], Floats]],
    by_labels: Callable[[], Callable[[float], Floats]],
    *,
    usual: float = USUAL_TRUST,
) -> float:
    """Return the exponent of what the labels say, by gold, or by labels with company; the usual one with neither.

    Each way is asked for its log-likelihoods as a function of the exponent.
    """
    if gold is not None and (gold >= 0).sum() >= _ENOUGH_GOLD:
        return best_trust(by_gold())
    if share_with_company(annotations) * len(annotations) >= _ENOUGH_LABELS:
        return float(best_trust(by_labels(), errors=0.0) ** _SHARED)
    return usual


def _by_gold(log_predictions: Floats, by_task: Floats, gold: Any) -> Callable[[float], Floats]:
    """Return the log-probabilities of the known true labels by prediction and labels, as a function of the trust."""
    known = np.flatnonzero(gold >= 0)
    places = np.arange(len(known)), gold[known]
    return lambda one: np.asarray(_normalised(log_predictions[known] + one * by_task[known])[places])


def _by_labels(
    annotations: Annotations, log_predictions: Floats, by_task: Floats, said: Floats
) -> Callable[[float], Floats]:
    """Return the log-likelihoods of labels by the other labels of their task, as a function of the trust."""
    rows = rows_with_company(annotations)
    task = annotations.task[rows]
    others = by_task[task] - said[rows]
    return lambda one: np.logaddexp.reduce(_normalised(log_predictions[task] + one * others) + said[rows], axis=1)


def best_trust(log_likelihoods: Callable[[float], Floats], *, errors: float = 1.0) -> float:
    """Return the smallest exponent whose log-likelihoods are within so many standard errors of the best."""
    found = np.stack([log_likelihoods(one) for one in _TRUSTS])
    behind = found[found.mean(axis=1).argmax()] - found
    near = behind.mean(axis=1) <= errors * behind.std(axis=1) / np.sqrt(behind.shape[1])
    return _TRUSTS[int(near.argmax())]


def _normalised(log_joint: Floats) -> Floats:
    return np.asarray(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True))
