"""Mean field for the one-coin model with a Beta prior on every worker."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels import Matrices, one_coin_confusion
from labelonce._types import Floats
from labelonce.aggregation import EMAggregator, Parameters, divergence, expected_log
from labelonce.baselines._assignment import check_beta


@dataclass(kw_only=True, eq=False, repr=False)
class MeanField(EMAggregator):
    """Variational Bayes for one skill per worker (Liu, Peng and Ihler 2012).

    Worker a is right with probability p[a], which has a Beta prior, else gives each other class with equal
    probability. Mean field approximates the posterior by independent tasks and workers: p[a] has the distribution
    `Beta(right + agreements, wrong + labels - agreements)`, and a label of worker a counts by the expected
    logs, `digamma(right + agreements) - digamma(wrong + labels - agreements) + log(n_classes - 1)`. A worker
    with few labels counts for less than in `OneCoin`, which takes the best single p[a].
    `log_likelihood_` is the lower bound of the evidence; `skill_` holds posterior means.

    The other options are those of `DawidSkene`, with the bound in the place of the objective.

    Parameters
    ----------
    smoothing : pair of floats
        The Beta prior (right, wrong), above 0. The paper's is (2, 1).
    prior : {"uniform", "learned"} or (n_classes,) array
        P(true label).

    References
    ----------
    Q. Liu, J. Peng and A. Ihler, "Variational Inference for Crowdsourcing", NIPS 2012.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.baselines.MeanField().fit(ann).skill_.round(2)
    array([0.85, 0.85, 0.57])
    """

    smoothing: Any = (2.0, 1.0)
    prior: Any = "uniform"
    device: str | None = None

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        check_beta(self.smoothing)

    def _m_step(self, confusion_counts: Floats, class_counts: Floats) -> Parameters:
        pseudo, n_classes = np.asarray(self.smoothing, dtype=np.float64), len(class_counts)
        agreed = np.einsum("wkk->w", confusion_counts)
        counts = np.column_stack([agreed, confusion_counts.sum(axis=(1, 2)) - agreed]) + pseudo
        log_right, log_wrong = expected_log(counts).T
        bound = -divergence(counts, pseudo, np.column_stack([log_right, log_wrong]))
        log_wrong = log_wrong - np.log(max(n_classes - 1, 1))
        log_confusion = np.where(np.eye(n_classes, dtype=bool), log_right[:, None, None], log_wrong[:, None, None])
        confusion = one_coin_confusion(counts[:, 0] / counts.sum(axis=1), n_classes)
        prior, log_penalty = self._estimate_prior(class_counts, 1.0)
        return Parameters(Matrices(confusion, log_confusion), prior, None, bound + log_penalty)
