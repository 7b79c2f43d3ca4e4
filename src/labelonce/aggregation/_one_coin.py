"""The one-coin model: one number per worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from labelonce._kernels import Factors, floored_log, one_coin_confusion
from labelonce._types import Floats
from labelonce._validate import RandomState, check_number
from labelonce.aggregation._em import AnswersEM, Parameters, check_float32_is_smooth, normalised


class OneCoin(AnswersEM):
    """EM with one skill per worker: right with that probability, else each other class is as likely.

    Dawid and Skene's model with `confusion[a, k, k] = p[a]` and `(1 - p[a]) / (n_classes - 1)` off the diagonal.
    The M-step counts agreement: `p[a] = (right + agreements) / (right + wrong + labels)`, with the pseudo-counts
    `right` and `wrong`, and agreements the sum of `posterior[i, label]` over the annotations of worker a.
    Answers beside the classes, such as "unsure", have a rate per worker that does not depend on the true label: they
    tell nothing of the task. A scale, which has no right answer, is refused.

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

    def _m_step(self, confusion_counts: Floats, class_counts: Floats, leaning: Floats | None = None) -> Parameters:
        if leaning is not None:
            return self._m_step_of_answers(confusion_counts, class_counts)
        right, wrong = self.smoothing
        n_classes = len(class_counts)
        agreed = np.einsum("wkk->w", confusion_counts) + right
        total = confusion_counts.sum(axis=(1, 2)) + right + wrong
        skill = np.divide(agreed, total, out=np.full_like(total, 1 / n_classes), where=total > 0)
        prior, log_penalty = self._estimate_prior(class_counts, min(right, wrong) / n_classes)
        log_penalty += float((right * floored_log(skill) + wrong * floored_log(1 - skill)).sum())
        workers, log_confusion = Factors.one_coin(skill, n_classes), floored_log(one_coin_confusion(skill, n_classes))
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
