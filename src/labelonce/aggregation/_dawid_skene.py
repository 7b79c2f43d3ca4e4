"""Dawid and Skene's model: a full confusion matrix for every worker."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelonce._kernels import Matrices, Pattern, Sweep, first_beliefs, normalised
from labelonce._messages import show
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.aggregation._base import Fit
from labelonce.aggregation._em import Parameters, answer_pseudo_counts, check_float32_is_smooth, pseudo_counts
from labelonce.aggregation._online import OnlineEM
from labelonce.data import Annotations, label_memory
from labelonce.workers import Grouped

_SETTLED = 1e-5  # of the log-likelihood per annotation: a population is fitted in every iteration, so it jitters


@dataclass(kw_only=True, eq=False, repr=False)
class DawidSkene(OnlineEM):
    """EM over true labels, a confusion matrix per worker and the class prior (Dawid and Skene 1979).

    Given the true label k of a task, worker a gives label s with probability `confusion[a, k, s]`,
    independently of the others; a task has label k with probability `prior[k]`. Starting from vote fractions,
    EM repeats

    * M-step: `confusion[a, k, s]` is proportional to the pseudo-counts plus the sum of `posterior[i, k]` over
      the tasks i that worker a labelled s; `prior[k]` to pseudo-counts plus the sum of `posterior[i, k]`;
    * E-step: `posterior[i, k]` is proportional to `prior[k]` times the product of `confusion[a, k, label]` over
      the annotations of task i.

    The objective, the log-likelihood plus the log-density of the pseudo-counts, never falls. Answers s that are not
    classes, such as "unsure" or the steps of a scale, are columns of `confusion` like any other. They have no vote at
    the start; along a scale the votes go from the first class to the last.

    Parameters
    ----------
    smoothing : float, pair or (n_classes, n_classes) array
        Pseudo-counts. A number s: s on the diagonal and s / n_classes elsewhere; a pair: on and off the
        diagonal; 0: maximum likelihood, with probabilities of zero taken as 1e-10, where workers with
        few labels overfit. Answers other than the classes have theirs in proportion, for all classes alike.
    prior : {"learned", "uniform"} or (n_classes,) array
        P(true label). Learned is right where classes are uneven and safe where tasks have several labels.
    max_iter : int
        Most iterations; a fit that needs more ends with a warning.
    tol : float
        Stop when the objective per annotation changes by at most this.
    n_init : int
        Starts; the first from the votes, the others from votes plus noise. The best objective wins.
    dtype : {"float64", "float32"}
        float32 halves the memory; it needs smoothing.
    device : {"cpu", "cuda"}, optional
        Where the sums are done, by scipy or torch; see "GPU and scale" in the guide. Default: CUDA where there is any
        and the table is large, else the CPU.
    worker_model : workers.Grouped, optional
        Workers with few numbers instead of a matrix each, for many classes: mistakes within groups of classes, or those
        that the crowd makes. Posteriors then live on the candidate classes of each task (`Beliefs`), and
        `smoothing` and `n_init` do not apply; `log_likelihood_` is empty, `worker_model_` the fitted model.
        Default: a matrix per worker.
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_` and draws the further starts.

    References
    ----------
    A. P. Dawid and A. M. Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm",
    Journal of the Royal Statistical Society, Series C, 1979.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = lo.DawidSkene().fit(ann)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> model.skill_.round(2)
    array([0.83, 0.83, 0.58])
    """

    _takes_scales = True
    _takes_weights = True

    smoothing: Any = 1.0
    worker_model: Any = None

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        if self.worker_model is None:  # which has no smoothing, and may have too many classes for a matrix
            check_float32_is_smooth(self.dtype, float(pseudo_counts(self.smoothing, n_classes).min()))

    def _takes_answers_of(self, annotations: Annotations) -> bool:
        return self.worker_model is None and super()._takes_answers_of(annotations)

    def _memory(self, annotations: Annotations) -> float:
        if self.worker_model is None:
            return super()._memory(annotations)
        return label_memory(len(annotations), annotations.n_tasks)  # the candidates are known later

    def _best_fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        if self.worker_model is None:
            return super()._best_fit(annotations, gold, rng)
        if not isinstance(self.worker_model, Grouped):
            raise TypeError(f"worker_model must be None or workers.Grouped(...); got {show(self.worker_model)}.")
        model = clone(self).set_params(tol=max(self.tol, _SETTLED), n_init=1)
        fit = super(DawidSkene, model)._best_fit(annotations, gold, rng)
        return replace(fit, log_likelihood=np.array([]), n_iter=len(fit.log_likelihood))

    def _pattern(self, annotations: Annotations, gold: Codes | None) -> Pattern | None:
        if self.worker_model is None:
            return None
        votes = first_beliefs(annotations, gold, few=True)
        labelled = np.bincount(annotations.task, minlength=annotations.n_tasks) > 0
        self._workers = clone(self.worker_model)
        found: Pattern | None = self._workers.prepare(
            annotations, np.where(labelled, votes.drawn_argmax(np.random.default_rng(0)), -1).astype(np.int32)
        )
        return found

    def _unlearned(self, annotations: Annotations) -> Fit:
        found = super()._unlearned(annotations)
        if self.worker_model is None:
            return found
        workers = clone(self.worker_model).fit(annotations, found.posterior.argmax(axis=1))
        return replace(found, more={"worker_model_": workers})

    def _next(self, counts: Sweep, before: Parameters | None) -> Parameters:
        if self.worker_model is None:
            return super()._next(counts, before)
        workers = (self._workers if before is None else before.state).refitted(counts.tallies)
        prior, _ = self._estimate_prior(counts.class_counts, 1.0)
        return Parameters(workers.factors_, prior, more={"worker_model_": workers}, state=workers)

    def _m_step(self, confusion_counts: Floats, class_counts: Floats, leaning: Floats | None = None) -> Parameters:
        pseudo = answer_pseudo_counts(self.smoothing, confusion_counts, leaning)
        confusion = normalised(confusion_counts + pseudo)
        workers = Matrices(confusion)
        least = float(pseudo_counts(self.smoothing, len(class_counts)).min())
        prior, log_penalty = self._estimate_prior(class_counts, least)
        log_penalty += float((pseudo * workers.log_values).sum())
        return Parameters(workers, prior, None, log_penalty)
