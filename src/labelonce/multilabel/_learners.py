"""What is fitted to questions: heads for all of them, or a model for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from labelonce._sklearn import clone
from labelonce.learning import MBEM
from labelonce.learning._adapter import as_learner
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._per_question import PerQuestion
from labelonce.multilabel._sigmoid import SigmoidRegression

PENALTIES = (0.001, 0.01, 0.1, 1.0)
"""What `C` of the default learner is chosen from."""


def learners_of(learner: Any, X: Any) -> tuple[list[Any], Any]:
    """Return the learners to choose from, and the fitted transformer before them, None where there is none."""
    if learner is None:
        return [SigmoidRegression(C=C) for C in PENALTIES], None
    given = list(learner) if isinstance(learner, list | tuple) else [learner]
    if not given:
        raise ValueError("learner must not be an empty list; got [].")
    features = None
    if any(hasattr(one, "steps") for one in given):
        before = {repr(one[:-1]) if hasattr(one, "steps") else type(one).__name__ for one in given}
        if len(before) > 1:
            raise ValueError(f"learners must have the same steps before the last; got {' and '.join(sorted(before))}.")
        features, given = clone(given[0][:-1]).fit(X), [one[-1] for one in given]
    return [_with_heads(one) for one in given], features


def _with_heads(learner: Any) -> Any:
    """Return a learner for all questions: itself, a network with a head for each, or one model for each."""
    if isinstance(learner, type):
        as_learner(learner)  # which says that it must be an instance
    if getattr(learner, "fits_questions", False):
        return learner
    if hasattr(learner, "with_sigmoid_heads"):
        return learner.with_sigmoid_heads()
    as_learner(learner)  # which says so where it is no classifier
    return PerQuestion(learner)


def _for_one(learner: Any) -> Any:
    """Return a learner for the `MBEM` of one question: heads of several questions become their model of one."""
    if isinstance(learner, list | tuple):
        return [_for_one(one) for one in learner]
    if hasattr(learner, "steps"):
        return make_pipeline(*(step for _, step in learner.steps[:-1]), _for_one(learner[-1]))
    return learner.for_one_question() if hasattr(learner, "for_one_question") else learner


def fit_one(
    learner: Any,
    options: Mapping[str, Any],
    X: Any,
    annotations: MultiLabelAnnotations,
    number: int,
    gold: Any,
    yes: int,
) -> Any:
    """Return the `MBEM` of one question, or its share of yes where all answers to it are the same."""
    one = annotations.of_question(annotations.questions[number]) if (annotations.question == number).any() else None
    if one is None or len(np.unique(one.label)) < 2:
        n = 0 if one is None else len(one)
        n_yes = 0 if one is None else int((one.label == yes).sum())
        return float((n_yes + 0.5) / (n + 1.0))
    known = gold >= 0
    codes = np.where(gold > 0, yes, 1 - yes)
    given = {task: annotations.answers[code] for task, code in zip(one.tasks[known], codes[known], strict=True)}
    return MBEM(_for_one(learner), **options).fit(X, one, gold=given or None)
