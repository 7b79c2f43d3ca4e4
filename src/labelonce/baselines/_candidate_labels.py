"""Learning with candidate labels: each task has a set of labels, one of which is right."""

from dataclasses import dataclass

import numpy as np

from labelonce._kernels import Beliefs, Engine, normalised
from labelonce._types import Codes, Floats
from labelonce._validate import check_choice
from labelonce.baselines._joint_em import JointEM


@dataclass(kw_only=True, eq=False, repr=False)
class CandidateLabels(JointEM):
    """Learn from a set of candidate labels per task: the distinct labels that its workers gave.

    Starting from equal shares of the candidates S of a task, EM repeats

    * M-step: fit f to the shares Q as soft targets, which minimises the sum over tasks of KL(Q || f(x));
    * E-step: Q[k] is proportional to w[k] f(x)[k] for the candidates k in S, and 0 for every other class, with w = 1 or
      the share of the task's labels that are k (the paper's "EM + prior").

    It knows nothing of workers: a spammer's label is a candidate like any other. Where each task has one label, it is
    training on the labels; where the right label is not among the candidates, it can only be wrong.

    The other options are those of `Raykar`.

    Parameters
    ----------
    learner : classifier or Pipeline, optional
        As in `MBEM`. Default: `SoftmaxRegression()`.
    weighting : {"votes", "none"}
        Whether candidates that more workers named weigh more.

    Attributes
    ----------
    posterior_ : (n_tasks, n_classes)
        The shares Q of the training tasks; equal where a task has neither labels nor gold.
    model_, labels_, n_iter_, tasks_, workers_, classes_
        As in `Raykar`.

    References
    ----------
    R. Jin and Z. Ghahramani, "Learning with Multiple Labels", NIPS 2002 (Advances in Neural Information Processing
    Systems 15, 2003).

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.arange(-3.0, 4.0, 2.0)[:, None]
    >>> sets = lo.Annotations.from_matrix([[0, -1], [0, 1], [1, 0], [1, -1]])
    >>> clf = lo.baselines.CandidateLabels(lo.SoftmaxRegression(C=10.0)).fit(X, sets)
    >>> clf.labels_
    array([0, 0, 1, 1])
    """

    weighting: str = "votes"

    def _start(self, engine: Engine, gold: Codes | None) -> Floats:
        check_choice(self.weighting, "weighting", ("votes", "none"))
        candidates = engine.vote_counts() > 0
        return Beliefs.of(normalised(candidates.astype(np.float64))).with_gold(gold).to_dense()

    def _e_step(self, engine: Engine, predictions: Floats, posterior: Floats, gold: Codes | None) -> Floats:
        counts = engine.vote_counts()
        weight = counts if self.weighting == "votes" else (counts > 0).astype(np.float64)
        return Beliefs.of(normalised(weight * np.maximum(predictions, 1e-300))).with_gold(gold).to_dense()
