"""The one-coin model: one number per worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from labelonce._kernels import Factors, LabelCells, Sweep, floored_log, one_coin_confusion
from labelonce._memory import is_large
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_number
from labelonce.aggregation._base import Fit
from labelonce.aggregation._em import (
    AnswersEM,
    Parameters,
    check_float32_is_smooth,
    normalised,
)
from labelonce.data import Annotations


class OneCoin(AnswersEM):
    """EM with one skill per worker: right with that probability, else each other class is as likely.

    Dawid and Skene's model with `confusion[a, k, k] = p[a]` and `(1 - p[a]) / (n_classes - 1)` off the diagonal.
    The M-step counts agreement: `p[a] = (right + agreements) / (right + wrong + labels)`, with the pseudo-counts
    `right` and `wrong`, and agreements the sum of `posterior[i, label]` over the annotations of worker a.
    Answers beside the classes, such as "unsure", have a rate per worker that does not depend on the true label: they
    tell nothing of the task. A scale, which has no right answer, is refused.

    With so many classes that `posterior_` is not an array, the same sums run over the classes that a task was given:
    all others are equally likely but for the prior.

    Parameters
    ----------
    smoothing : pair of floats
        Pseudo-counts (right, wrong), added to every worker. (0, 0) is
        maximum likelihood, with probabilities of zero taken as 1e-10.
    prior : {"uniform", "learned"} or (n_classes,) array
        P(true label). With one number per worker, a learned prior feeds on itself: bluebird falls from
        0.722 to 0.583 and product from 0.928 to 0.909 (`pytest tests/aggregation/test_reference.py`).
    max_iter : int
        Stop after so many iterations, with a warning.
    tol : float
        Stop when the objective per annotation changes by at most this.
    n_init : int
        Starts; the first from the votes, the others from votes plus noise. The best objective wins.
    dtype : {"float64", "float32"}
        float32 halves the memory; it needs smoothing.
    engine : {"auto", "scipy", "torch"}
        What does the sums. "auto" takes torch, if it is installed, for large tables; see "GPU and scale" in the guide.
    device : {"cpu", "cuda"}, optional
        Where torch works. Default: CUDA where there is any.
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_` and draws the further starts.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.OneCoin().fit(ann).skill_.round(2)
    array([0.83, 0.83, 0.58])
    """

    _follows_labels = True

    def __init__(
        self,
        *,
        smoothing: Any = (2.0, 1.0),
        prior: Any = "uniform",
        max_iter: int = 500,
        tol: float = 1e-7,
        n_init: int = 1,
        dtype: str = "float64",
        engine: str = "auto",
        device: str | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.smoothing = smoothing
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.dtype = dtype
        self.engine = engine
        self.device = device
        self.random_state = random_state

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        if np.shape(self.smoothing) != (2,):
            raise ValueError(f"smoothing must be a pair of pseudo-counts (right, wrong); got {self.smoothing!r}.")
        right, wrong = (check_number(count, "smoothing", 0.0) for count in self.smoothing)
        check_float32_is_smooth(self.dtype, min(right, wrong))

    def _takes_answers_of(self, annotations: Annotations) -> bool:
        large = is_large(annotations.n_tasks, annotations.n_workers, annotations.n_classes)
        return not large and super()._takes_answers_of(annotations)

    def _best_fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        if not is_large(annotations.n_tasks, annotations.n_workers, annotations.n_classes):
            return super()._best_fit(annotations, gold, rng)
        cells = LabelCells(annotations, gold)
        fits = (self._climb_cells(cells, noise, len(annotations)) for noise in [None, *[rng] * (self.n_init - 1)])
        return max(fits, key=lambda fit: fit.log_likelihood[-1])

    def _climb_cells(self, cells: LabelCells, noise: np.random.Generator | None, n_annotations: int) -> Fit:
        """Return the fit that EM reaches from the votes, mixed half and half with noise if there is a generator."""
        share, rest = cells.fractions(cells.votes())
        if noise is not None:
            other, _ = cells.fractions(noise.exponential(size=len(share)))
            share, rest = (share + other) / 2, rest
        start = _counted(cells, share, rest, np.full(cells.shape[1], 1 / cells.shape[1]))
        for last in self.iterations(Sweep(*start, -np.inf), lambda found: _sweep(cells, found), n_annotations):  # noqa: B007
            pass
        found = last.parameters
        share, rest, _ = _posterior(cells, found)
        return Fit(cells.posterior(share, rest), found.confusion, found.prior, np.array(last.path), last.converged)

    def _m_step(self, confusion_counts: Floats, class_counts: Floats, leaning: Floats | None = None) -> Parameters:
        if leaning is not None:
            return self._m_step_of_answers(confusion_counts, class_counts)
        right, wrong = self.smoothing
        n_classes = len(class_counts)
        agreed, labels = _agreement(confusion_counts)
        agreed, total = agreed + right, labels + right + wrong
        skill = np.divide(agreed, total, out=np.full_like(total, 1 / n_classes), where=total > 0)
        prior, log_penalty = self._estimate_prior(class_counts, min(right, wrong) / n_classes)
        log_penalty += float((right * floored_log(skill) + wrong * floored_log(1 - skill)).sum())
        workers = Factors.one_coin(skill, n_classes)
        dense = confusion_counts.ndim == 3
        log_confusion = floored_log(one_coin_confusion(skill, n_classes)) if dense else np.empty(0)
        return Parameters(workers, prior, log_confusion, floored_log(prior), log_penalty)

    def _m_step_of_answers(self, confusion_counts: Floats, class_counts: Floats) -> Parameters:
        """Return the parameters of the answers that are classes, and each worker's rates of the others.

        A rate is that of the worker with one more annotation at the rates of all; it is the same in every step.
        """
        n_classes = len(class_counts)
        found = self._m_step(confusion_counts[:, :, :n_classes], class_counts)
        given = confusion_counts.sum(axis=1)
        rates = normalised(given + normalised(given.sum(axis=0)))
        others = np.repeat(rates[:, None, n_classes:], n_classes, axis=1)
        of_classes = rates[:, :n_classes].sum(axis=1)[:, None, None]
        assert isinstance(found.confusion, Factors)
        confusion = np.concatenate([of_classes * found.confusion.dense(), others], axis=2)
        return replace(found, confusion=confusion, log_confusion=floored_log(confusion))


def _agreement(counts: Floats) -> tuple[Floats, Floats]:
    """Return the expected right labels and all labels of each worker: counts [worker, true, given], or these two."""
    if counts.ndim == 2:
        return counts[0], counts[1]
    return np.asarray(np.einsum("wkk->w", counts)), counts.sum(axis=(1, 2))


def _sweep(cells: LabelCells, found: Parameters) -> Sweep:
    share, rest, log_likelihood = _posterior(cells, found)
    return Sweep(*_counted(cells, share, rest, found.prior), log_likelihood)


def _posterior(cells: LabelCells, found: Parameters) -> tuple[Floats, Floats, float]:
    """Return posteriors by cell and of the rest, and the log-likelihood."""
    right = found.confusion.right[:, 0]
    log_right, log_wrong = floored_log(right), floored_log((1 - right) / (cells.shape[1] - 1))
    every_wrong = cells.by_task(cells.votes(log_wrong[cells.worker]))
    log_cells = every_wrong[cells.task] + cells.votes((log_right - log_wrong)[cells.worker])
    left = 1 - cells.by_task(found.prior[cells.label])
    return cells.normalise(log_cells + found.log_prior[cells.label], every_wrong + np.log(np.maximum(left, 1e-300)))


def _counted(cells: LabelCells, share: Floats, rest: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return (2, n_workers) right labels and all labels, and the tasks of each class: the rest by its prior."""
    counts = np.stack([cells.by_worker(share[cells.cell]), cells.by_worker()])
    each = rest / np.maximum(1 - cells.by_task(prior[cells.label]), 1e-300)  # per unit of prior
    own: Any = np.bincount(cells.label, share - each[cells.task] * prior[cells.label], cells.shape[1])
    return counts, own + each.sum() * prior
