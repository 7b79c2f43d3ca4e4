"""MACE: a worker either knows the answer or ignores the task and follows a habit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from labelonce._kernels import Matrices, Sweep, floored_log, normalised
from labelonce._types import Floats
from labelonce._validate import check_choice
from labelonce.aggregation._em import EMAggregator, Parameters, check_float32_is_smooth, check_pair
from labelonce.aggregation._ibcc import divergence, expected_log

_SPLITS = 5  # times an M-step splits labels into known and spam


@dataclass(kw_only=True, eq=False, repr=False)
class MACE(EMAggregator):
    """Multi-annotator competence estimation (Hovy and others 2013), by EM or variational Bayes.

    With probability `competence[a]` worker a gives the true label; else the label is spam, drawn from the worker's
    own distribution `habit[a]` whatever the task: `confusion[a, k, s]` is `competence[a] * (s == k)
    + (1 - competence[a]) * habit[a, s]`. So 2 n_classes numbers describe a worker, and one who always gives the same
    class is seen through. The E-step is Dawid and Skene's with these matrices; the M-step splits each worker's
    labels into known and spam: one that differs from the true label is spam, one that equals it is spam with
    probability `spam / (known + spam)` under the last parameters. The objective never falls.

    The other options are those of `DawidSkene`.

    Parameters
    ----------
    method : {"vb", "em"}
        Variational Bayes with a Beta prior on competence and a Dirichlet prior on the habit, the paper's
        better variant, or EM with pseudo-counts.
    smoothing : pair of floats, optional
        (competence, habit). For "vb" the parameters of the symmetric Beta and Dirichlet, above 0,
        default (0.5, 10); for "em" pseudo-counts, default 0.01 / n_classes both. The defaults are the paper's.
    prior : {"uniform", "learned"} or (n_classes,) array
        P(true label). The paper's is uniform.

    Attributes
    ----------
    competence_ : (n_workers,)
        The chance that a worker's label is no spam. `skill_` also counts spam that happens to be right.

    References
    ----------
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy, "Learning Whom to Trust with MACE", NAACL-HLT 2013.

    Examples
    --------
    >>> import labelonce as lo
    >>> yes_man = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 1]])
    >>> lo.MACE().fit(yes_man).competence_.round(2)
    array([0.9 , 0.9 , 0.11])
    """

    method: str = "vb"
    smoothing: Any = None
    prior: Any = "uniform"
    device: str | None = None

    @property
    def competence_(self) -> Floats:
        """The chance that a worker's label is no spam, shape (n_workers,)."""
        confusion = self.confusion_
        return np.asarray(confusion[:, 0, 0] - (confusion[:, 1, 0] if confusion.shape[1] > 1 else 0.0))

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        check_choice(self.method, "method", ("vb", "em"))
        smallest = min(check_pair(self._pseudo_counts(n_classes), "pseudo-counts (competence, habit)"))
        check_float32_is_smooth(self.dtype, smallest)
        if self.method == "vb" and smallest == 0:
            raise ValueError(f"smoothing of method 'vb' must be above 0; got {self.smoothing!r}. Use method='em'.")

    def _pseudo_counts(self, n_classes: int) -> Any:
        if self.smoothing is not None:
            return self.smoothing
        return (0.5, 10.0) if self.method == "vb" else (0.01 / n_classes, 0.01 / n_classes)

    def _next(self, counts: Sweep, before: Parameters | None) -> Parameters:
        share = 0.5 if before is None else before.state
        return self._m_step(counts.tallies.values, counts.class_counts, share)

    def _m_step(self, confusion_counts: Floats, class_counts: Floats, spam_share: Any = 0.5) -> Parameters:
        """Return the parameters; `spam_share` of each worker's right labels, by class, were spam in the last step."""
        n_classes = len(class_counts)
        competence, habit = self._pseudo_counts(n_classes)
        competence, habit = np.full(2, competence), np.full(n_classes, habit)
        right = np.einsum("wkk->wk", confusion_counts)
        wrong = confusion_counts.sum(axis=1) - right
        for _ in range(_SPLITS):
            spam = wrong + right * spam_share
            know_or_spam = np.column_stack([(right * (1 - spam_share)).sum(axis=1), spam.sum(axis=1)]) + competence
            mean_log = self._mean_log(know_or_spam)
            log_habit = self._mean_log(spam + habit)
            log_know, log_given = mean_log[:, :1], mean_log[:, 1:] + log_habit
            spam_share = expit(log_given - log_know)
        identity = np.eye(n_classes, dtype=bool)
        log_confusion = np.where(identity, np.logaddexp(log_know, log_given)[:, None, :], log_given[:, None, :])
        share = normalised(know_or_spam)[:, :, None]
        confusion = share[:, :1] * identity + share[:, 1:] * normalised(spam + habit)[:, None, :]
        prior, log_penalty = self._estimate_prior(class_counts, 1.0)
        if self.method == "vb":
            log_penalty -= divergence(know_or_spam, competence, mean_log) + divergence(spam + habit, habit, log_habit)
        else:
            log_penalty += float(competence[0] * mean_log.sum() + habit[0] * log_habit.sum())
        return Parameters(Matrices(confusion, log_confusion), prior, None, log_penalty, state=spam_share)

    def _mean_log(self, counts: Floats) -> Floats:
        return expected_log(counts) if self.method == "vb" else floored_log(normalised(counts))
