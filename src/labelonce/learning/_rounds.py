"""The rounds: fit the model, re-estimate the workers, recompute every row's posterior, fit again."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, Pattern, confusion_of, mean_beliefs
from labelonce._rules import RULES
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.data._answers import agreement
from labelonce.learning._average import average_models
from labelonce.learning._calibration import Calibration
from labelonce.learning._judge import View, judge, row_weight
from labelonce.learning._learner import Learner
from labelonce.learning._problem import Ask, Problem, learner_of_round, seeded
from labelonce.workers import WorkerModel


@dataclass(frozen=True, eq=False)
class Fitting:
    """How rounds are done.

    `last` is the number of the round that is meant to be the last: some learners take more care then. With `fold`, the
    fold of every task, every round is out-of-fold: models of the other folds judge the workers, and their
    average is the model, unless the round is in `whole`, where one is fitted to all tasks. `calibrates` is False in
    Algorithm 1 of the paper, whose rows all count alike.
    """

    learner: Learner
    workers: WorkerModel
    seed: int
    last: int
    fold: Codes | None = None
    whole: tuple[int, ...] = ()
    calibrates: bool = True
    prior_of_argmax: bool = False  # equation 7 of the paper

    @property
    def joint_from(self) -> int | None:
        """The first of the rounds that are stages of one training; None: every round is a fit, or several."""
        return None if self.fold is not None else self.learner.joint_from(self.last)

    @property
    def last_round_differs(self) -> bool:
        """Whether the model of the last round is fitted with more care than those before it."""
        return self.learner.last_round_differs or self.last in self.whole


@dataclass(frozen=True, eq=False)
class Round:
    """What one round found: the model, and the workers and posteriors as its predictions see them.

    `change` is the mean total variation to the posteriors of the round before, `targets` and `target_weight` what the
    model was fitted to, `parts` the models of the folds, if there are any.
    """

    number: int
    model: Learner
    predictions: Beliefs
    workers: WorkerModel
    beliefs: Beliefs
    weight: Floats
    log_likelihood: float
    change: float
    targets: Beliefs
    target_weight: Floats
    pattern: Pattern | None = None
    parts: list[Learner] = field(default_factory=list)
    calibration: Calibration | None = None


def rounds(
    problem: Problem, how: Fitting, *, after: Round | None = None, first_parts: list[Learner] | None = None
) -> Iterator[Round]:
    """Yield rounds without end, from the votes, or after a round that was reached before.

    `first_parts` are models of the folds of the first round, where they were fitted already.
    """
    if after is not None:
        targets, weight = after.beliefs, after.weight
    else:
        targets, weight = first_targets(problem, how.workers)
    training: Any = None
    while True:
        number = 1 if after is None else after.number + 1
        if how.joint_from is None or number < how.joint_from:
            model, parts, ask = _fit(problem, how, number, targets, weight, after, first_parts if number == 1 else None)
        else:
            if training is None:
                training = _training(problem, how, number, targets, weight, after)
                model, parts = next(training), []
            else:
                model = training.send((targets, weight))
            ask = partial(problem.predict, model)
        workers: WorkerModel = clone(how.workers)
        view = View.of(problem, workers, ask, None if after is None else after.predictions.argmax())
        in_sample = how.learner.auto.get("predictions") == "in_sample"
        asked: dict[str, Any] = {"calibrates": how.calibrates, "prior_of_argmax": how.prior_of_argmax}
        if how.joint_from is not None and after is not None and after.number >= how.joint_from:
            asked["start"] = after.calibration
        found = judge(view, workers, number, from_first=in_sample, **asked)
        next_weight = row_weight(problem, found.beliefs) if how.calibrates else problem.answered
        change = float("nan") if after is None else _change(problem, found.beliefs, after.beliefs)
        seen = (view.predictions, workers, found.beliefs, next_weight, found.log_likelihood, change)
        after = Round(number, model, *seen, targets, weight, view.pattern, parts, found.calibration)
        targets, weight = after.beliefs, after.weight
        del view, found, seen, model  # what only they hold would lie next to what the next round makes
        yield after


def _change(problem: Problem, beliefs: Beliefs, before: Beliefs) -> float:
    """Return the mean change of the beliefs, over the rows of all processes that share them."""
    sums = np.array([beliefs.change(before) * len(beliefs), len(beliefs)])
    changed, n_rows = problem.evidence.total(sums) if problem.shared else sums
    return float(changed / n_rows)


def history_entry(problem: Problem, this: Round) -> dict[str, Any]:
    """Return the entry of a round in the history of a fit, over the rows of all processes."""
    agreed, total = agreement(problem.labels, this.predictions.argmax())
    n_rows = problem.labels.n_tasks
    sums = np.array([n_rows, total, agreed, this.beliefs.max().sum(), n_rows * this.change])
    sums = problem.evidence.total(sums) if problem.shared else sums
    rows, labels, agreed_sum, sure, change = sums.tolist()
    return {
        "round": this.number,
        "agreement": agreed_sum / max(labels, 1e-300),
        "mean_confidence": sure / rows,
        "log_likelihood": this.log_likelihood,
        "held_out_score": float("nan"),
        "posterior_change": change / rows,
    }


def first_targets(problem: Problem, workers: WorkerModel) -> tuple[Beliefs, Floats]:
    """Return what the first model is fitted to, and its weight: the votes, or half of them and half what workers say.

    Workers of whom something is known tell which votes to believe. The votes stay, because a mistake about the workers
    would confirm itself: a class whose workers are believed too little would not be learned again.
    """
    votes, counted = problem.votes(few=workers.uses_slots(problem.labels))
    if problem.confusion is None:
        return votes, counted
    evidence = problem.evidence
    n_classes = problem.labels.n_classes
    even = evidence.log_prior(np.full(n_classes, 1 / n_classes))
    said = evidence.e_step(confusion_of(problem.confusion), even, problem.gold).beliefs
    told = problem.answered * row_weight(problem, said)
    weight = counted + told
    share = np.divide(told, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
    return Beliefs.of((1 - share) * votes.to_dense() + share * said.to_dense()), weight / 2


def _fit(
    problem: Problem,
    how: Fitting,
    number: int,
    targets: Beliefs,
    weight: Floats,
    before: Round | None,
    first_parts: list[Learner] | None,
) -> tuple[Learner, list[Learner], Ask]:
    """Return the model of a round, those of its folds, and what they say of all rows."""
    learner = learner_of_round(how.learner, number, how.last, np.random.default_rng([how.seed, number]))
    last = None if before is None else before.model
    if how.fold is None:
        model = problem.fit(learner, targets, weight, before=last)
        return model, [], partial(problem.predict, model)
    if first_parts is not None:
        parts = first_parts
    else:
        earlier: list[Any] = [None] * (int(how.fold.max()) + 1) if before is None else before.parts
        parts = fit_parts(problem, learner, targets, weight, how.fold, earlier)
    if number in how.whole or not parts:
        model = problem.fit(learner, targets, weight, before=last if number - 1 in how.whole else None)
    else:
        model = average_models(parts)
    return model, parts, asker(problem, parts, how.fold)


def _training(
    problem: Problem, how: Fitting, number: int, targets: Beliefs, weight: Floats, before: Round | None
) -> Generator[Learner, tuple[Beliefs, Floats]]:
    """Return the one training that the rounds from `joint_from` on are stages of, begun or continued."""
    first = how.joint_from
    assert first is not None
    learner = learner_of_round(how.learner, first, how.last, np.random.default_rng([how.seed, first]))
    reached = before.model if before is not None and number > first else None
    return problem.train(learner, targets, weight, how.last - first + 1, reached)


def fit_parts(
    problem: Problem, learner: Learner, targets: Beliefs, weight: Floats, fold: Codes, before: list[Any]
) -> list[Learner]:
    """Return a model for each fold, fitted to the tasks of the others; none where a fold leaves nothing."""
    parts = []
    for number, earlier in zip(range(int(fold.max()) + 1), before, strict=True):
        if not (problem.rows_of(fold != number) & (weight > 0)).any():
            return []
        parts.append(problem.fit(learner, targets, weight, tasks=fold != number, before=earlier))
    return parts


def asker(problem: Problem, parts: list[Learner], fold: Codes) -> Ask:
    """Return what models of folds say of the tasks that they did not see; nothing is known where there are none."""

    def ask(slots: Codes | None, top: int) -> Beliefs:
        if not parts:
            even = Beliefs.of(np.full((problem.labels.n_tasks, problem.labels.n_classes), 1 / problem.labels.n_classes))
            return even.on(slots)
        return gathered(problem, fold, [problem.predict(one, slots, top, fold == k) for k, one in enumerate(parts)])

    return ask


def gathered(problem: Problem, fold: Codes, parts: list[Beliefs]) -> Beliefs:
    """Return the beliefs about the rows of each fold as one, in the order of the rows."""
    rows = np.concatenate([np.flatnonzero(problem.rows_of(fold == number)) for number in range(len(parts))])
    found: Beliefs = Beliefs.joined(parts)[np.argsort(rows, kind="stable")]
    return found


def unseen_predictions(problem: Problem, how: Fitting, last: Round, fold: Codes) -> Beliefs:
    """Return predictions for all rows by models like that of the last round, fitted without the task."""
    if last.parts:
        return last.predictions
    rng = np.random.default_rng([how.seed, last.number, 1])
    learner = seeded(how.learner.for_folds(last.number), rng)
    parts = fit_parts(problem, learner, last.targets, last.target_weight, fold, [None] * (int(fold.max()) + 1))
    own = None if last.predictions.classes is None else last.predictions.codes
    return asker(problem, parts, fold)(own, 0)


def drifted(problem: Problem, last: Round, shown: Codes) -> bool:
    """Return whether the rounds change many of the labels and hardly any of these changes is shown in the end."""
    votes, weight = problem.votes(few=last.beliefs.classes is not None)
    given, rows = votes.argmax(), weight > 0
    wanted, believed = (float((one != given)[rows].mean()) for one in (last.beliefs.argmax(), shown))
    many, few = RULES.drifted
    return wanted > many and believed < few * wanted


def swaps(problem: Problem, found: Codes) -> bool:
    """Return whether some label is given to rows of another class than its own, and clearly more often than to its own.

    Unless most labels are from people who mislead, of all classes it is that of a label to which it is given most
    often. Rounds that find classes of their own, such as two that features tell apart in place of two that they do not,
    break this. Known workers or classes may show that people do mislead; then rounds may, too.
    """
    labels = problem.labels
    if not labels.is_square or (problem.kind is not None and problem.kind.any()) or problem.confusion is not None:
        return False
    if problem.gold is not None and misplaced(labels, problem.gold) > RULES.gold_says:
        return False
    return misplaced(labels, found) > RULES.swapped


def misplaced(labels: Any, found: Codes) -> float:
    """Return by how many standard errors some label is given more often to another class than to its own.

    `found` are the classes of the rows, -1 where they are not known.
    """
    n, known = labels.n_classes, found[labels.task] >= 0
    of_label, label = found[labels.task[known]].astype(np.int64), labels.label[known]
    rows = np.maximum(np.bincount(of_label, minlength=n), 1)
    pairs, counts = np.unique(of_label * n + label, return_counts=True)
    row, label = np.divmod(pairs, n)
    own = np.bincount(label[row == label], counts[row == label], n)[label]
    share, own_share = counts / rows[row], own / rows[label]
    both = (counts + own) / (rows[row] + rows[label])
    error = np.sqrt(both * (1 - both) * (1 / rows[row] + 1 / rows[label])) + 1e-12
    return float(((share - own_share) / error)[row != label].max(initial=0.0))


def folds(n_tasks: int, n_parts: int, seed: int) -> Codes:
    """Return the fold of every task, drawn."""
    return (np.random.default_rng([seed, 11]).permutation(n_tasks) % n_parts).astype(np.int32)


def mean_predictions(found: list[Beliefs]) -> Beliefs:
    """Return the mean of predictions of several rounds, on the slots of the last."""
    classes = found[-1].classes
    return mean_beliefs([one.on(classes) for one in found], [1 / len(found)] * len(found))
