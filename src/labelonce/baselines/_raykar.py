"""Raykar's EM: a classifier and every worker's confusion at once, each the other's evidence."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels import Engine, Matrices, floored_log, normalised, vote_fractions
from labelonce._types import Codes, Floats
from labelonce.aggregation import pseudo_counts
from labelonce.baselines._joint_em import JointEM
from labelonce.learning import AnnotationsScorer


@dataclass(kw_only=True, eq=False, repr=False)
class Raykar(JointEM, AnnotationsScorer):
    r"""Learn a classifier and the workers together by EM: the "two-coin" model, for any number of classes.

    A task with features x has the true label k with probability f(x)[k]; worker a then gives label s with probability
    `confusion[a, k, s]`. Starting from vote fractions, EM repeats

    * M-step: f is fitted to the posteriors as soft targets, and `confusion[a, k, s]` is proportional to pseudo-counts
      plus the sum of `posterior[i, k]` over the tasks i that worker a labelled s. With two classes the diagonal is the
      paper's sensitivity and specificity, the pseudo-counts its Beta priors;
    * E-step: `posterior[i, k]` is proportional to `f(x_i)[k]` times the product of `confusion[a, k, label]` over the
      labels of task i.

    It is `MBEM` with soft counts, and with the model's own, uncalibrated prediction in the posterior from the start.
    Where every task has one label and nothing is smoothed, the labels as given are a fixed point: use `MBEM` there.
    A model that overfits its tasks confirms itself.

    Parameters
    ----------
    learner : classifier or Pipeline, optional
        As in `MBEM`. Default: `SoftmaxRegression()`, as in the paper.
    smoothing : float, pair or (n_classes, n_classes) array
        Pseudo-counts of the confusion, as in `DawidSkene`.
    max_iter : int
        Most iterations; a fit that needs more ends with a warning.
    tol : float
        Stop when the mean total variation between the posteriors of two iterations is at most this.
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_ : fitted learner
    posterior_ : (n_tasks, n_classes)
        P(true label | annotations, features) of the training tasks.
    labels_ : (n_tasks,)
    confusion_ : (n_workers, n_classes, n_classes)
    prior_ : (n_classes,)
        Mean of the posteriors.
    skill_ : (n_workers,)
    log_likelihood_ : (n_iter_,)
        Of the annotations given the features, plus the log-density of the pseudo-counts. Together with the learner's
        penalty it never falls, if the learner finds its optimum.
    n_iter_ : int
    tasks_, workers_, classes_ : arrays

    References
    ----------
    V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni and L. Moy, "Learning From Crowds", Journal of
    Machine Learning Research 11, 2010.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); y_true = (X[:, 0] > 0).astype(int)
    >>> confusion = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 4 + [[[0.5, 0.5], [0.5, 0.5]]])
    >>> assignment = lo.simulate.assign(300, 5, 3, rng, replace=False)
    >>> clf = lo.baselines.Raykar().fit(X, lo.simulate.annotate(y_true, confusion, assignment, rng))
    >>> clf.skill_ > 0.8
    array([ True,  True,  True,  True, False])
    """

    smoothing: Any = 1.0

    def _start(self, engine: Engine, gold: Codes | None) -> Floats:
        self.log_likelihood_: Floats = np.empty(0)
        return vote_fractions(engine.vote_counts(), gold)

    def _e_step(self, engine: Engine, predictions: Floats, posterior: Floats, gold: Codes | None) -> Floats:
        pseudo = pseudo_counts(self.smoothing, predictions.shape[1])
        self.confusion_ = normalised(engine.m_step(posterior) + pseudo)
        log_confusion = floored_log(self.confusion_)
        step = engine.e_step(log_confusion, floored_log(predictions), gold)
        reached = step.log_likelihood + float((pseudo * log_confusion).sum())
        self.log_likelihood_ = np.append(self.log_likelihood_, reached)
        self.prior_: Floats = step.posterior.mean(axis=0)
        self.skill_: Floats = Matrices(self.confusion_).skill(self.prior_)
        return step.posterior
