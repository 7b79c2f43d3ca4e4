"""The learner and the worker model of `MBEM()`, and of every door to it: `train`, `next`, the demo, the service."""

from typing import Any

from scipy import sparse
from sklearn.pipeline import make_pipeline

from labelonce._rules import RULES
from labelonce.data import is_large
from labelonce.learning._grouped_softmax import GroupedSoftmax
from labelonce.learning._softmax import SoftmaxRegression
from labelonce.learning._standardise import Standardiser
from labelonce.workers import Full, Grouped, WorkerModel
from labelonce.workers._groups import labels_tell_groups


def default_workers(labels: Any) -> WorkerModel:
    """Return the worker model of `MBEM()`: a matrix each, unless it cannot be estimated or held.

    It cannot be estimated from too few labels for the mistakes that a worker may make. Then mistakes are the crowd's,
    within groups of classes, if there are labels enough to find these, or tasks with several labels that tell them.
    """
    n_workers, n_classes = labels.n_workers, labels.n_classes
    if not labels.is_square:
        return Full()
    enough = len(labels) >= RULES.matrix_labels * n_workers * n_classes * (n_classes - 1)
    large = is_large(labels.n_tasks, n_workers, n_classes)
    if large:
        return Grouped("auto")
    tell = enough or len(labels) >= RULES.group_labels * n_classes or labels_tell_groups(labels)
    return Full() if enough or not tell else Grouped("auto")


def behind(first: Any, choices: list[Any]) -> list[Any]:
    """Return pipelines with a transformer before all others, which is one object, so that it is fitted once."""
    return [make_pipeline(first, *(step for _, step in one.steps)) for one in choices]


def default_learner(X: Any, labels: Any = None, workers: WorkerModel | None = None) -> list[Any]:
    """Return the learners among which `MBEM()` chooses: standardised features and softmax regressions.

    With many classes in groups that are known, the regressions predict the group first.

    Examples
    --------
    >>> import numpy as np
    >>> default_learner(np.zeros((3, 2)))[0]
    Pipeline(steps=[('standardiser', Standardiser()),
                    ('softmaxregression', SoftmaxRegression(C=0.001))])
    """
    groups = None
    if workers is not None and labels.n_classes >= RULES.group_first and not workers.needs_predictions:
        workers.prepare(labels)
        groups = getattr(workers, "groups_", None)
    learners: list[Any] = [SoftmaxRegression(C=C) for C in RULES.penalties]
    if groups is not None:
        learners = [GroupedSoftmax(groups, C=C, tol=1e-4, warm_start=True) for C in RULES.penalties]
    return standardised(learners, X)


def standardised(learners: list[Any], X: Any) -> list[Any]:
    """Return pipelines that standardise the features X before each learner; sparse ones are left as they are.

    The scaler is one object in all pipelines, so that it is fitted once.
    """
    scaler = Standardiser()
    return learners if sparse.issparse(X) else [make_pipeline(scaler, learner) for learner in learners]
