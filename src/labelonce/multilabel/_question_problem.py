"""The problem of several questions: a row is a task and a question, and one model has a head for each question."""

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce._sklearn import count_rows
from labelonce._types import Codes, Floats, Mask
from labelonce.learning import Learner, Problem, as_learner, standardised, take_rows
from labelonce.multilabel._pairs import yes_beliefs
from labelonce.multilabel._per_question import PerQuestion
from labelonce.multilabel._sigmoid import SigmoidRegression


class QuestionProblem(Problem):
    """Tasks with features, and answers to questions about them."""

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(count_rows(self.X))

    @property
    def task_labels(self) -> None:
        """Tasks have no labels of their own."""
        return

    @property
    def task(self) -> Codes:
        """The task of every row."""
        return cast(Codes, self.labels.row_task)

    @property
    def kind(self) -> Codes:
        """The question of every row."""
        return cast(Codes, self.labels.row_question)

    @property
    def worker_kind(self) -> Codes:
        """The question of every cell."""
        return cast(Codes, self.labels.cell_question)

    def part(self, tasks: Mask) -> Self:
        """Return the problem of some of the tasks."""
        rows = self.rows_of(tasks)
        labels = self.labels.select(rows)
        place = (np.cumsum(tasks) - 1).astype(np.int32)
        gold = None if self.gold is None else self.gold[rows]
        X = take_rows(self.X, np.flatnonzero(tasks))
        return replace(self, X=X, labels=replace(labels, row_task=place[labels.row_task]), gold=gold)

    def shown_to(self, learner: Learner, targets: Beliefs, weight: Floats) -> tuple[Floats, Floats]:
        """Return targets and weights by task and question; what is not asked has no weight."""
        shape = self.n_tasks, self.labels.n_questions
        wanted, amount = np.full(shape, 0.5), np.zeros(shape)
        place = self.task, self.kind
        wanted[place], amount[place] = targets.to_dense()[:, 1], weight
        return wanted, amount

    def predict(self, model: Learner, slots: Codes | None, top: int, tasks: Mask | None = None) -> Beliefs:
        """Return the predictions of the heads for all rows, or for those of some tasks."""
        if tasks is None:
            return yes_beliefs(model.predict_proba(self.X)[self.task, self.kind])
        rows, place = self.rows_of(tasks), np.cumsum(tasks) - 1
        found = model.predict_proba(take_rows(self.X, np.flatnonzero(tasks)))
        return yes_beliefs(found[place[self.task[rows]], self.kind[rows]])


def default_heads(X: Any) -> list[Any]:
    """Return the learners among which `MultiLabelMBEM()` chooses: standardised features and logistic regressions."""
    return standardised([SigmoidRegression(C=C, warm_start=True) for C in RULES.head_penalties], X)


def with_heads(learner: Any, n_questions: int) -> Learner:
    """Return a learner for all questions: itself, a network with a head for each, or one model for each.

    For the only question a network is that of two classes.
    """
    is_instance = not isinstance(learner, type)
    if is_instance and getattr(learner, "fits_questions", False):
        return cast(Learner, learner)
    if is_instance and hasattr(learner, "with_sigmoid_heads") and n_questions > 1:
        return cast(Learner, learner.with_sigmoid_heads())
    as_learner(learner)  # which says so where it is a class, or no classifier
    return PerQuestion(learner)
