"""What is fitted: features, the labels of the rows, and what is known of them; a part of it, and models of parts."""

import warnings
from collections.abc import Callable, Generator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.exceptions import DataConversionWarning

from labelonce._kernels import Beliefs, Evidence, first_beliefs, make_evidence
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats, Mask
from labelonce.data import MOST_NUMBERS
from labelonce.learning._fits import count_fit
from labelonce.learning._learner import Learner
from labelonce.learning._predict import predict_beliefs, take_rows

Ask = Callable[[Codes | None, int], Beliefs]
"""Predictions for all rows on slots, and on the most probable classes; None: on all classes."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Tasks with features, and the labels of their rows.

    A *row* has one unknown class. Here it is a task; a subclass may have several rows per task.

    Attributes
    ----------
    X : any features, one row per task
    labels : Annotations
        Of the rows, which are its tasks.
    gold : (n_rows,), optional
        Class codes of known true labels, -1 where unknown.
    balance : (n_classes,) or (n_kinds, n_classes), optional
        The class balance, where it is known.
    confusion : (n_workers, n_classes, n_answers), optional
        What is known of the workers before the first round.
    device : str, optional
        Where sums are done.
    shared : bool
        Whether processes share the rows.
    """

    X: Any
    labels: Any
    gold: Codes | None = None
    balance: Floats | None = None
    confusion: Floats | None = None
    device: str | None = None
    shared: bool = False

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.labels.n_tasks)

    @property
    def task_labels(self) -> Any:
        """The labels of the tasks, for transformers that want some; None where tasks have none of their own."""
        return self.labels

    @property
    def task(self) -> Codes:
        """The task of every row."""
        return np.arange(self.n_tasks, dtype=np.int32)

    @cached_property
    def labelled(self) -> Mask:
        """Which tasks have labels."""
        found = np.zeros(self.n_tasks, dtype=bool)
        found[self.task[self.labels.task]] = True
        return found

    @property
    def kind(self) -> Codes | None:
        """The kind of every row, such as its question; None: all are of one kind."""
        return None

    @property
    def worker_kind(self) -> Codes | None:
        """The kind of the rows that every worker labels; None: all are of one kind."""
        return None

    @cached_property
    def evidence(self) -> Evidence:
        """The labels as evidence about all classes."""
        return make_evidence(self.labels, device=self.device, shared=self.shared)

    @cached_property
    def answered(self) -> Floats:
        """1 for rows with an answer, a vote or not, or gold, else 0.

        After the first round rows that were only skipped count too: without them, what is left would not be a fair
        sample of the classes.
        """
        number = np.bincount(self.labels.task, minlength=self.labels.n_tasks)
        return np.asarray((number > 0) if self.gold is None else (number > 0) | (self.gold >= 0), dtype=np.float64)

    @cached_property
    def prior(self) -> Floats:
        """P(class) if there is no prediction, by row if rows are of several kinds: as given, or uniform."""
        n_classes = self.labels.n_classes
        if self.balance is None:
            return np.full(n_classes, 1 / n_classes)
        return self.balance if self.kind is None else self.balance[self.kind]

    def votes(self, *, few: bool) -> tuple[Beliefs, Floats]:
        """Return the vote fractions, and weight 1 where there are any; rows without votes wait with weight 0."""
        found = first_beliefs(self.labels, self.gold, few=few, device=self.device)
        leaning = 1.0 if self.labels.is_square else self.labels.leaning.sum(axis=1)[self.labels.label]
        voted = np.bincount(self.labels.task, np.broadcast_to(leaning, len(self.labels)), self.labels.n_tasks) > 0
        weight = np.asarray(voted if self.gold is None else voted | (self.gold >= 0), dtype=np.float64)
        return found, weight

    def part(self, tasks: Mask) -> Self:
        """Return the problem of some of the tasks."""
        gold = None if self.gold is None else self.gold[tasks]
        X = take_rows(self.X, np.flatnonzero(tasks))
        return replace(self, X=X, labels=self.labels.select(tasks), gold=gold)

    def rows_of(self, tasks: Mask) -> Mask:
        """Return which rows are of some of the tasks."""
        return np.asarray(tasks[self.task])

    def fit(
        self,
        learner: Learner,
        targets: Beliefs,
        weight: Floats,
        *,
        tasks: Mask | None = None,
        before: Learner | None = None,
    ) -> Learner:
        """Return a learner fitted to the rows that have a weight, all or those of some tasks.

        It starts where a model `before` ended, if it can.
        """
        X, (shown, weight) = self.X, self.shown_to(learner, targets, weight)
        asked = weight > 0 if weight.ndim == 1 else (weight > 0).any(axis=1)
        used = np.flatnonzero(asked if tasks is None else asked & tasks)
        if len(used) < len(weight):
            X, shown, weight = take_rows(X, used), shown[used], weight[used]
        return fitted(learner, X, shown, weight, before)

    def train(
        self, learner: Any, targets: Beliefs, weight: Floats, n_stages: int, after: Learner | None
    ) -> Generator[Learner, tuple[Beliefs, Floats]]:
        """Yield what predicts after each stage of one training of a learner on all tasks, and take new targets.

        Training continues `after` what it yielded before, if that is given.
        """
        stages = clone(learner).stages(self.X, *self.shown_to(learner, targets, weight), n=n_stages, after=after)
        if after is None:
            count_fit()
        model = next(stages)
        while True:
            sent = yield model
            model = stages.send(self.shown_to(learner, *sent))

    def shown_to(self, learner: Learner, targets: Beliefs, weight: Floats) -> tuple[Any, Floats]:
        """Return targets and weights as a learner takes them; arrays that would be too large are an error."""
        if learner.takes_slots:
            return targets.shown(), weight
        n_tasks, n_classes = targets.shape
        if n_tasks * n_classes > MOST_NUMBERS:
            raise ValueError(
                f"{type(learner).__name__} must have at most {MOST_NUMBERS:,} targets, one per task and class; got "
                f"{n_tasks:,} tasks x {n_classes:,} classes. Use SoftmaxRegression(), learning.GroupedSoftmax(groups) "
                "or a network, which take the few classes in question of each task."
            )
        return targets.to_dense(), weight

    def predict(self, model: Learner, slots: Codes | None, top: int, tasks: Mask | None = None) -> Beliefs:
        """Return what a model says of the rows, of all or those of some tasks; see `Ask`."""
        rows = None if tasks is None else np.flatnonzero(tasks)
        X = self.X if rows is None else take_rows(self.X, rows)
        return predict_beliefs(model, X, slots if rows is None or slots is None else slots[rows], top)


def fitted(learner: Learner, X: Any, targets: Any, weight: Floats, before: Learner | None) -> Learner:
    """Return a learner fitted to targets, from where the model `before` ended if it is one that can."""
    warm = before is not None and getattr(learner, "warm_start", False)
    fresh: Learner = copy(before).set_params(**learner.get_params(deep=False)) if warm else clone(learner)  # type: ignore[union-attr]
    with warnings.catch_warnings():
        one_class = isinstance(targets, np.ndarray) and targets.shape[1:] == (1,)
        if one_class:  # taken for labels, which does as well
            warnings.simplefilter("ignore", DataConversionWarning)
        model: Learner = fresh.fit(X, targets, sample_weight=weight)
    count_fit()
    return model


def learner_of_round(learner: Learner, number: int, last: int, rng: np.random.Generator) -> Learner:
    """Return a copy of the learner for a round: what it leaves to chance is drawn from the round's generator."""
    return seeded(learner.for_round(number, last), rng)


def seeded(chosen: Learner, rng: np.random.Generator) -> Learner:
    """Return the learner with what it leaves to chance drawn from a generator."""
    open_to_chance = {
        name: int(rng.integers(2**31))
        for name, value in sorted(chosen.get_params().items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    found: Learner = chosen.set_params(**open_to_chance)
    return found
