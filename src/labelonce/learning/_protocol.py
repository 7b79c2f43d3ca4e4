"""What a round needs of a learner: `fit` on probability targets with weights, and `predict_proba`."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from labelonce._types import Floats


@runtime_checkable
class Learner(Protocol):
    """A classifier that takes probability targets.

    `fit(X, targets, sample_weight)` gets targets of shape (n_tasks, n_classes) whose rows sum to 1;
    `predict_proba(X)` returns P(class) for the same classes. `soft_targets` is True: it is what tells such a
    learner from a scikit-learn classifier, which is wrapped instead. A learner must also work with
    scikit-learn's `clone`.

    A learner may also have `for_round(number, last)`, which returns the learner for one round of `MBEM`, with other
    settings in the last if it is to take more care there; `auto`, a dict of what `MBEM`'s "auto" stands for with it;
    and `any_shape`, if it takes more than tables of features.
    """

    soft_targets: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to probability targets."""

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes)."""
