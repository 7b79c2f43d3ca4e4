"""Enhanced Bayesian classifier combination: classes made of subtypes, so that workers' errors may go together."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, Evidence, Matrices, Sweep, normalised
from labelonce._types import Codes, Floats
from labelonce._validate import check_int, check_number
from labelonce.aggregation._base import Fit
from labelonce.aggregation._em import EMAggregator, Parameters, pseudo_counts
from labelonce.aggregation._ibcc import check_smoothing, dirichlet_prior, divergence, expected_log
from labelonce.data import Annotations

_TINY = 1e-6  # tasks: a class that nobody gave must still have a Dirichlet parameter


@dataclass(kw_only=True, eq=False, repr=False)
class EBCC(EMAggregator):
    """Variational Bayes with subtypes inside every class (Li, Rubinstein and Cohn 2019).

    A task of true label k has one of `subtypes` kinds m, with probability `pi[k, m]`, and worker a gives label s with
    probability `confusion[a, (k, m), s]`: workers are independent given the subtype, so given the class
    alone their errors go together, as on pictures that many mistake in the same way. Every distribution has a
    Dirichlet prior: `smoothing` for confusion rows, `concentration / subtypes` for the subtypes of a
    class (small: few are used), 1 for the classes. With `subtypes=1` it is `IBCC`. `log_likelihood_` is the lower
    bound of the evidence; `confusion_` is the mean over subtypes.

    The other options are those of `DawidSkene`, with the bound in the place of the objective.

    Parameters
    ----------
    subtypes : int
        Subtypes of each class.
    concentration : float
        Total pseudo-count of a class's subtypes, above 0.
    smoothing : float, pair or (n_classes, n_classes) array
        Dirichlet parameters of the confusion rows, above 0. A pair: on and off the diagonal; a number s:
        s and s / n_classes.
    prior : {"learned", "votes", "uniform"} or (n_classes,) array
        P(true label). Learned: Dirichlet with parameter 1 for every class; votes: with the class's total of vote
        fractions, as in the authors' runs.
    n_init : int
        Starts: the votes, spread over the subtypes at random. The best bound wins.
    random_state : int, numpy.random.Generator or None
        Draws the starts and breaks ties of `labels_`.

    References
    ----------
    Y. Li, B. I. P. Rubinstein and T. Cohn, "Exploiting Worker Correlation for Label Aggregation in Crowdsourcing",
    ICML 2019.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.EBCC().fit(ann).labels_
    array([0, 1, 0, 1])
    """

    subtypes: int = 10
    concentration: float = 0.1
    smoothing: Any = (4.0, 1.0)
    prior: Any = "votes"
    tol: float = 1e-6
    n_init: int = 5

    _named_priors = ("learned", "votes", "uniform")

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        check_int(self.subtypes, "subtypes", 1)
        check_number(self.concentration, "concentration", 1e-9)
        check_smoothing(self.smoothing, n_classes, "EBCC")

    def _starts(
        self, annotations: Annotations, votes: Beliefs, gold: Codes | None, rng: np.random.Generator
    ) -> Iterator[Beliefs]:
        fractions = votes.to_dense()
        for _ in range(self.n_init):
            shares = rng.exponential(size=(*fractions.shape, self.subtypes)).astype(self.dtype, copy=False)
            shares *= (fractions / shares.sum(axis=2))[:, :, None]
            yield Beliefs.of(shares.reshape(len(shares), -1))

    def _memory(self, annotations: Annotations) -> float:
        return super()._memory(annotations) * self.subtypes

    def _climb(self, evidence: Evidence, start: Beliefs, gold: Codes | None, n_annotations: int) -> Fit:
        fit = super()._climb(evidence, start, gold, n_annotations)
        by_subtype = fit.prior.reshape(-1, self.subtypes)
        prior, share = by_subtype.sum(axis=1), normalised(by_subtype)
        states = fit.confusion.dense()
        confusion = states.reshape(len(states), *by_subtype.shape, -1)
        workers = Matrices(np.einsum("wkms,km->wks", confusion, share))
        posterior = normalised(fit.posterior.reshape(len(fit.posterior), *by_subtype.shape).sum(axis=2))
        return replace(fit, posterior=posterior, confusion=workers, prior=prior)

    def _next(self, counts: Sweep, before: Parameters | None) -> Parameters:
        class_pseudo = None if before is None else before.state
        if before is None and isinstance(self.prior, str) and self.prior == "votes":  # the first counts are theirs
            class_pseudo = counts.class_counts.reshape(-1, self.subtypes).sum(axis=1) + _TINY
        return self._m_step(counts.tallies.values, counts.class_counts, class_pseudo)

    def _m_step(self, confusion_counts: Floats, class_counts: Floats, class_pseudo: Floats | None = None) -> Parameters:
        """Return the parameters; `class_pseudo` is the Dirichlet parameter of each class, by default 1."""
        pseudo = pseudo_counts(self.smoothing, confusion_counts.shape[2])
        counts = confusion_counts + np.repeat(pseudo, self.subtypes, axis=0)
        log_confusion = expected_log(counts)
        bound = -divergence(counts, np.repeat(pseudo, self.subtypes, axis=0), log_confusion)
        by_subtype = class_counts.reshape(-1, self.subtypes)
        weak = np.full(by_subtype.shape, self.concentration / self.subtypes)
        log_share = expected_log(by_subtype + weak)
        bound -= divergence(by_subtype + weak, weak, log_share)
        class_pseudo = np.ones(len(by_subtype)) if class_pseudo is None else class_pseudo
        prior, log_prior, divergence_of_prior = dirichlet_prior(self, by_subtype.sum(axis=1), class_pseudo)
        joint = normalised(by_subtype + weak) * prior[:, None]
        log_joint = log_share + log_prior[:, None]
        bound -= divergence_of_prior
        workers = Matrices(normalised(counts), log_confusion)
        return Parameters(workers, joint.ravel(), log_joint.ravel(), bound, state=class_pseudo)
