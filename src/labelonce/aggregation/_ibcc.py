"""Independent Bayesian classifier combination: Dawid and Skene's model with priors, by variational Bayes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

from labelonce._kernels import Matrices, normalised
from labelonce._types import Floats
from labelonce.aggregation._em import EMAggregator, Parameters, answer_pseudo_counts, pseudo_counts
from labelonce.aggregation._online import OnlineEM

_NEVER = 1e-10  # pseudo-count of an answer that nobody gave: too small to count


@dataclass(kw_only=True, eq=False, repr=False)
class IBCC(OnlineEM):
    """Variational Bayes for Dawid and Skene's model (Kim and Ghahramani 2012).

    Each confusion row has a Dirichlet prior, each worker's posterior over it is a Dirichlet with the
    expected counts added, and the E-step uses expected logs: `digamma(count) - digamma(row sum)` in the place of
    `log(confusion)`, and likewise for the class prior. A row with little evidence counts
    for less than its mean says, so workers with few labels do less harm than in `DawidSkene`. Answers that are not
    classes are columns, as there. `log_likelihood_` is the lower bound of the evidence; `confusion_` holds posterior
    means.

    The other options are those of `DawidSkene`, with the bound in the place of the objective.

    Parameters
    ----------
    smoothing : float, pair or (n_classes, n_classes) array
        Dirichlet parameters of the confusion rows, above 0. A pair: on and off the diagonal; a number s:
        s and s / n_classes. Answers other than the classes have theirs in proportion, for all classes alike.
    prior : {"learned", "uniform"} or (n_classes,) array
        P(true label). Learned: Dirichlet with parameter 1 for every class.

    References
    ----------
    H.-C. Kim and Z. Ghahramani, "Bayesian Classifier Combination", AISTATS 2012.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.IBCC().fit(ann).labels_
    array([0, 1, 0, 1])
    """

    _takes_scales = True
    _takes_weights = True

    smoothing: Any = (4.0, 1.0)

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        check_smoothing(self.smoothing, n_classes, "IBCC")

    def _m_step(self, confusion_counts: Floats, class_counts: Floats, leaning: Floats | None = None) -> Parameters:
        pseudo = answer_pseudo_counts(self.smoothing, confusion_counts, leaning)
        pseudo = pseudo if leaning is None else np.maximum(pseudo, _NEVER)
        counts = confusion_counts + pseudo
        log_confusion = expected_log(counts)
        prior, log_prior, of_prior = dirichlet_prior(self, class_counts, np.ones(len(class_counts)))
        bound = -divergence(counts, pseudo, log_confusion) - of_prior
        return Parameters(Matrices(normalised(counts), log_confusion), prior, log_prior, bound)


def check_smoothing(smoothing: Any, n_classes: int, name: str) -> None:
    if float(pseudo_counts(smoothing, n_classes).min()) == 0:
        raise ValueError(f"smoothing of {name} must be above 0 everywhere; got 0. Use DawidSkene for none.")


def dirichlet_prior(model: EMAggregator, class_counts: Floats, pseudo: Floats) -> tuple[Floats, Floats, float]:
    """Return P(true label), its expected log, and the divergence from its Dirichlet `pseudo` where it is learned."""
    if isinstance(model.prior, str) and model.prior != "uniform":
        counts = class_counts + pseudo
        log_prior = expected_log(counts)
        return normalised(counts), log_prior, divergence(counts, pseudo, log_prior)
    prior, _ = model._estimate_prior(class_counts, 0.0)
    return prior, np.log(np.maximum(prior, np.finfo(np.float64).tiny)), 0.0


def expected_log(counts: Floats) -> Floats:
    """Return E[log p] of a Dirichlet with these parameters along the last axis."""
    return np.asarray(digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True)))


def divergence(counts: Floats, pseudo: Floats, log_mean: Floats) -> float:
    """Return KL(Dirichlet(counts) || Dirichlet(pseudo)), summed over all rows; `log_mean` is its E[log p]."""
    log_norm = _log_normaliser(pseudo).sum() * (counts.size // pseudo.size) - _log_normaliser(counts).sum()
    return float(log_norm + ((counts - pseudo) * log_mean).sum())


def _log_normaliser(counts: Floats) -> Floats:
    return np.asarray(gammaln(counts).sum(axis=-1) - gammaln(counts.sum(axis=-1)))
