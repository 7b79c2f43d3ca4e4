"""The one-coin model: one number per worker."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelonce._kernels import Counts, Factors, Matrices, Pattern, Sweep, floored_log, normalised
from labelonce._types import Codes, Floats
from labelonce.aggregation._base import has_no_room
from labelonce.aggregation._em import AnswersEM, Parameters, check_float32_is_smooth, check_pair
from labelonce.data import Annotations
from labelonce.workers import OneCoin as OneCoinWorkers


@dataclass(kw_only=True, eq=False, repr=False)
class OneCoin(AnswersEM):
    """EM with one skill per worker: right with that probability, else each other class is as likely.

    Dawid and Skene's model with `confusion[a, k, k] = p[a]` and `(1 - p[a]) / (n_classes - 1)` off the diagonal.
    The M-step counts agreement: `p[a] = (right + agreements) / (right + wrong + labels)`, with the pseudo-counts
    `right` and `wrong`, and agreements the sum of `posterior[i, label]` over the annotations of worker a.
    Answers other than the classes, such as "unsure", have a rate per worker that does not depend on the true label.
    A scale, which has no right answer, is refused. Where `posterior_` is not an array (many classes), the same sums run
    over the classes that a task was given: all others are equally likely but for the prior.

    The other options are those of `DawidSkene`.

    Parameters
    ----------
    smoothing : pair of floats
        Pseudo-counts (right, wrong) of every worker. (0, 0) is maximum likelihood, with zeros taken as 1e-10.
    prior : {"uniform", "learned"} or (n_classes,) array
        P(true label). With one number per worker, a learned prior feeds on itself: bluebird falls from
        0.722 to 0.583 and product from 0.928 to 0.909 (`pytest tests/aggregation/test_reference.py`).

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.OneCoin().fit(ann).skill_.round(2)
    array([0.83, 0.83, 0.58])
    """

    _follows_labels = True
    _takes_weights = True

    smoothing: Any = (2.0, 1.0)
    prior: Any = "uniform"

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        check_float32_is_smooth(self.dtype, min(check_pair(self.smoothing)))

    def _takes_answers_of(self, annotations: Annotations) -> bool:
        return not has_no_room(annotations) and super()._takes_answers_of(annotations)

    def _pattern(self, annotations: Annotations, gold: Codes | None) -> Pattern | None:
        return OneCoinWorkers().prepare(annotations)

    def _next(self, counts: Sweep, before: Parameters | None) -> Parameters:
        if counts.tallies.leaning is not None:
            return self._m_step_of_answers(counts.tallies.values, counts.class_counts)
        right, wrong = (part.sum(axis=1) for part in counts.tallies.right_and_wrong())
        return self._of_agreement(right, wrong, counts.class_counts)

    def _m_step(self, confusion_counts: Floats, class_counts: Floats, leaning: Floats | None = None) -> Parameters:
        return self._next(Sweep(Counts(confusion_counts, leaning), class_counts, -np.inf), None)

    def _of_agreement(self, agreed: Floats, wrong: Floats, class_counts: Floats) -> Parameters:
        more, less = self.smoothing
        n_classes = len(class_counts)
        agreed, total = agreed + more, agreed + wrong + more + less
        skill = np.divide(agreed, total, out=np.full_like(total, 1 / n_classes), where=total > 0)
        prior, log_penalty = self._estimate_prior(class_counts, min(more, less) / n_classes)
        log_penalty += float((more * floored_log(skill) + less * floored_log(1 - skill)).sum())
        return Parameters(Factors.one_coin(skill, n_classes), prior, None, log_penalty)

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
        matrices = np.concatenate([of_classes * found.confusion.dense(), others], axis=2)
        return replace(found, confusion=Matrices(matrices))
