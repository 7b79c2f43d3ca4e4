"""Data programming's generative model: sources that vote right or wrong, or abstain."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels import Matrices, floored_log, one_coin_confusion
from labelonce._types import Floats
from labelonce._validate import check_choice
from labelonce.aggregation import EMAggregator, Parameters, check_float32_is_smooth, check_pair


@dataclass(kw_only=True, eq=False, repr=False)
class DataProgramming(EMAggregator):
    """EM over sources with an accuracy and a coverage (Ratner and others 2016).

    A source, here a worker, votes on a task with probability `coverage` and else abstains (no annotation); a
    vote is right with probability `accuracy`, else each other class is as likely. All parameters maximise the
    likelihood of the whole matrix of votes and abstentions, `log_likelihood_`. With `coverage="source"`, as in the
    paper, a source's silence says nothing about the label and the posterior is that of `OneCoin`. With
    `coverage="class"` a source may vote more often on some classes than on others, as rules written to find one
    class do, and its silence is evidence against that class.

    The other options are those of `DawidSkene`.

    Parameters
    ----------
    coverage : {"source", "class"}
        One chance to vote per source, or one per source and true class.
    smoothing : pair of floats
        Pseudo-votes (right, wrong) of every source; for `coverage` by class as many (votes, abstentions).
        (0, 0) is maximum likelihood, with probabilities of zero taken as 1e-10.
    prior : {"uniform", "learned"} or (n_classes,) array
        P(true label).

    Attributes
    ----------
    accuracy_ : (n_workers,)
        Chance that a source's vote is right.
    coverage_ : (n_workers, n_classes)
        P(source votes | true label).

    References
    ----------
    A. Ratner, C. De Sa, S. Wu, D. Selsam and C. Ré, "Data Programming: Creating Large Training Sets, Quickly", NIPS
    2016.

    Examples
    --------
    Three rules: the third finds class 1 and is silent elsewhere.

    >>> import labelonce as lo
    >>> rules = lo.Annotations.from_matrix([[0, 0, -1], [1, 1, 1], [0, 1, -1], [1, 0, 1]] * 25)
    >>> model = lo.baselines.DataProgramming(coverage="class").fit(rules)
    >>> model.labels_[:4]
    array([0, 1, 0, 1])
    >>> model.coverage_[2].round(2)
    array([0.04, 0.98])
    """

    coverage: str = "source"
    smoothing: Any = (2.0, 1.0)
    prior: Any = "uniform"

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        check_choice(self.coverage, "coverage", ("source", "class"))
        check_float32_is_smooth(self.dtype, min(check_pair(self.smoothing, "pseudo-votes (right, wrong)")))

    def _m_step(self, confusion_counts: Floats, class_counts: Floats) -> Parameters:
        more, less = self.smoothing
        n_classes = len(class_counts)
        votes = confusion_counts.sum(axis=2)
        right = np.einsum("wkk->w", confusion_counts) + more
        accuracy = _ratio(right, votes.sum(axis=1) + more + less, 1 / n_classes)
        if self.coverage == "class":
            coverage = _ratio(votes + more, class_counts + more + less, 0.5)
        else:
            covered = _ratio(votes.sum(axis=1, keepdims=True) + more, class_counts.sum() + more + less, 0.5)
            coverage = np.tile(covered, n_classes)
        confusion = one_coin_confusion(accuracy, n_classes)
        log_votes, log_silence = floored_log(coverage), floored_log(1 - coverage)
        log_confusion = floored_log(confusion) + (log_votes - log_silence)[:, :, None]
        prior, log_penalty = self._estimate_prior(class_counts, min(more, less) / n_classes)
        log_penalty += float((more * floored_log(accuracy) + less * floored_log(1 - accuracy)).sum())
        each = slice(None) if self.coverage == "class" else slice(1)  # one coverage stands in every column
        log_penalty += float((more * log_votes + less * log_silence)[:, each].sum())
        log_prior = floored_log(prior) + log_silence.sum(axis=0)
        found = {"accuracy_": accuracy, "coverage_": coverage}
        return Parameters(Matrices(confusion, log_confusion), prior, log_prior, log_penalty, found)


def _ratio(part: Floats, whole: Floats, empty: float) -> Floats:
    """Return part / whole, at most 1 (a source may vote twice on a task), `empty` where both are zero."""
    whole = np.broadcast_to(whole, part.shape)
    ratio = np.divide(part, whole, out=np.full(part.shape, empty), where=whole > 0)
    return np.asarray(np.minimum(ratio, 1.0))
