"""The plan of a fit: the learner and the number of rounds, chosen by tasks that were held out, or given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._kernels import Beliefs, n_processes
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask
from labelonce._validate import check_rng
from labelonce.learning._cross_fit import CrossFit
from labelonce.learning._features import Features, GivenLearner
from labelonce.learning._fits import FitLog, counting
from labelonce.learning._problem import Problem
from labelonce.learning._rounds import Fitting, Round, folds, mean_predictions, rounds, swaps
from labelonce.learning._threads import sharing_threads
from labelonce.workers import WorkerModel

if TYPE_CHECKING:
    from labelonce.learning._mbem import MBEM


RECIPES: dict[str, dict[str, Any]] = {
    "joint": {},
    "paper": {"calibrates": False},
    "paper_equation_7": {"calibrates": False, "prior_of_argmax": True},
}
"""What `algorithm` stands for."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What a fit does, settled before its first round.

    Attributes
    ----------
    learner
        As it was given, with its transformers before it.
    how : Fitting
    rounds : int
        The number of the last round.
    averaged : tuple of int
        The rounds whose models are averaged; none: the model is that of the last round.
    stops_early : bool
        Whether rounds stop where posteriors hardly change: not where held-out tasks have chosen them.
    scores : tuple of float
        The mean log-likelihood of held-out labels after each round.
    sure_gain : float
        How much better the last round surely predicts a label left out than the first does, in nats.
    parts : int
        How many parts of the tasks are left out in turn for predictions when the rounds are over; 1: none are.
    unseen : Beliefs or None
        Predictions by out-of-fold models, where the choice has made them.
    more : bool
        Whether out-of-fold models of the last round are used as well.
    may_echo : bool
        Whether it is asked if labels echo in the last round's predictions: of learners that overfit and are cheap. That
        takes further fits, which a limit on their number or a network does not allow.
    """

    learner: Any
    how: Fitting
    rounds: int
    averaged: tuple[int, ...] = ()
    stops_early: bool = True
    scores: tuple[float, ...] = ()
    sure_gain: float = 0.0
    parts: int = 1
    unseen: Beliefs | None = None
    more: bool = False
    may_echo: bool = False

    @property
    def echoes(self) -> bool:
        """Whether rounds are all out-of-fold: from the second on, targets hold what labels left out have said."""
        return self.how.fold is not None

    @property
    def best_score(self) -> float | None:
        """The mean log-likelihood of labels that were really left out, in the best round; None if unknown."""
        return None if not self.scores else self.scores[0] if self.echoes else max(self.scores)

    @property
    def gain(self) -> float:
        """How much better the last round predicts a label left out than the first does, in nats; 0 if unknown."""
        return self.scores[-1] - self.scores[0] if self.scores and not self.echoes else 0.0

    def ending_at(self, number: int) -> Plan:
        """Return the plan with this round as its last, one that is fitted with more care."""
        whole = tuple(sorted({min(one, number) for one in self.how.whole}))
        how = replace(self.how, last=number, whole=whole)
        averaged = tuple(sorted({min(one, number) for one in self.averaged}))
        return replace(self, how=how, rounds=number, averaged=averaged, stops_early=False)


def planned_rounds(
    problem: Problem, plan: Plan, done: list[Round], after: Round | None
) -> Iterator[tuple[Round, Plan]]:
    """Yield the rounds of a plan, those after a round that was reached before, and the plan, which may end earlier.

    Of the rounds `done` by the choice none is repeated.
    """
    number = 0 if after is None else after.number
    coming = rounds(problem, plan.how, after=done[-1] if len(done) > number else after)
    while number < plan.rounds:
        alone = plan.how.joint_from is None
        if plan.stops_early and alone and after is not None and after.change < RULES.early_stop:
            if not plan.how.last_round_differs:
                return
            plan, done = plan.ending_at(number + 1), []
            coming = rounds(problem, plan.how, after=after)
        after = done[number] if number < len(done) else next(coming)
        yield after, plan
        number = after.number


@dataclass(frozen=True, eq=False)
class Preparation:
    """A plan with what was found on the way to it: transformed features, rounds done, choices, the number of fits."""

    plan: Plan
    features: Features
    problem: Problem
    done: list[Round]
    table: list[dict[str, Any]]
    n_fits: int


@dataclass(frozen=True, eq=False)
class Contender:
    """A learner that might be chosen, with the problem as its transformers show it."""

    given: GivenLearner
    problem: Problem
    how: Fitting


def settle(
    options: MBEM,
    givens: list[GivenLearner],
    problem: Problem,
    workers: WorkerModel,
    listener: Callable[[dict[str, Any]], None],
) -> Preparation:
    """Return the plan that the options of an `MBEM` give; held-out tasks choose what they leave open."""
    seed = int(check_rng(options.random_state).integers(2**31))
    done: dict[int, Any] = {}
    for given in givens:
        if id(given.features) not in done:
            done[id(given.features)] = given.features.fit(problem.X, problem.task_labels).transform(problem.X)
    contenders = [
        Contender(
            given,
            replace(problem, X=done[id(given.features)], shared=given.learner.shared),
            Fitting(given.learner, workers, seed, 1, **RECIPES[options.algorithm]),
        )
        for given in givens
    ]
    log = FitLog(listener=listener)
    with (
        counting(log),
        sharing_threads((one.given.learner for one in contenders), contenders[0].problem.X, _width(problem)),
    ):
        found = _Options.of(options, contenders).plan(log)
    return replace(found, n_fits=log.number)


def _width(problem: Problem) -> int:
    return int(problem.labels.n_classes)


@dataclass(frozen=True)
class _Options:
    """What the options leave open, and what may be spent on it.

    `rounds` is their number, or the most there may be if they are `free`; `budget` the most fits, None without limit;
    `parts` how many parts of the tasks are left out in turn, 1 if none may be.
    """

    contenders: list[Contender]
    rounds: int
    free: bool
    budget: int | None
    parts: int

    @classmethod
    def of(cls, options: MBEM, contenders: list[Contender]) -> _Options:
        """Return what the options of an `MBEM` leave open."""
        learner, one = contenders[0].given.learner, len(contenders) == 1
        shared = any(each.given.learner.shared for each in contenders)
        if shared and not one:
            raise ValueError("a learner that is shared by processes cannot be chosen from several: give one learner.")
        if shared and n_processes() > 1 and options.folds not in ("auto", 1):
            raise ValueError(f"folds must be 1 with a learner that is shared by processes; got {options.folds!r}.")
        rounds = learner.own_rounds or "auto" if one and options.rounds == "auto" else options.rounds
        free = rounds == "auto"
        problem = contenders[0].problem
        n_labelled = int(problem.labelled.sum())
        sample = min(n_labelled, RULES.choice_tasks) / max(n_labelled, 1)
        cheap = all(one.given.learner.is_cheap(_sized(one.problem.X, sample), _width(problem)) for one in contenders)
        budget = None
        if not one or free:
            budget = int(options.max_fits) if options.max_fits != "auto" else None
            if options.max_fits == "auto" and not cheap:
                budget = RULES.fits + RULES.fits_more * (len(contenders) - 1)
        parts = (learner.n_folds or RULES.folds) if options.folds == "auto" else int(options.folds)
        if shared and n_processes() > 1:
            parts = 1
        if options.algorithm != "joint":
            parts = 1
        parts = max(1, min(parts, n_labelled))
        most = RULES.rounds if free else int(rounds)
        if budget is not None:
            parts, affordable = _affordable(budget, len(contenders), parts if options.folds != "auto" else 0)
            parts, most = min(parts, n_labelled), min(most, affordable) if free else most
        return cls(contenders, most, free, budget, parts)

    def plan(self, log: FitLog) -> Preparation:
        """Return the plan, after what has to be tried."""
        first = self.contenders[0]
        to_choose = len(self.contenders) > 1 or (self.free and self.rounds > 1)
        if to_choose and self.parts > 1:
            log.planned = self.budget or self._most_fits()
            return self._chosen()
        if len(self.contenders) > 1 and first.problem.labelled.sum() > 1:
            raise ValueError(
                f"one of {len(self.contenders)} learners must be chosen by tasks that are held out; got folds=1, or "
                "learners that processes share. Give one learner, or folds of 2 or more."
            )
        how = replace(first.how, last=self.rounds)
        may_judge = how.learner.auto.get("predictions") == "in_sample" and not how.learner.may_overfit
        if self.parts == 1 or may_judge or not how.calibrates:
            return self._given(replace(first, how=how), [], None)
        return self._given(*self._after_first_round(replace(first, how=how)))

    def _after_first_round(self, one: Contender) -> tuple[Contender, list[Round], CrossFit]:
        """Return how given rounds are done, once the first has told whether the learner overfits."""
        own = one.how.learner.own_rounds is not None
        fold = folds_of(one.problem, self.parts, one.how.seed)
        whole = ((1, self.rounds) if own else (self.rounds,)) if self.rounds > 1 else (1,)
        trial = CrossFit(one.problem, replace(one.how, fold=fold, whole=whole))
        trial.step()
        if trial.overfits:
            return replace(one, how=trial.how), trial.rounds, trial
        if one.how.learner.is_cheap(one.problem.X, _width(one.problem)):
            for _ in range(self.rounds - 1):
                trial.step()
        return one, [], trial

    def _given(self, one: Contender, done: list[Round], trial: CrossFit | None) -> Preparation:
        """Return the plan of one learner and a number of rounds that need not be chosen."""
        averaged = one.how.whole if one.how.fold is not None and len(one.how.whole) > 1 else ()
        unseen, scores, gain = None, tuple[float, ...](), 0.0
        if trial is not None:
            scores, gain = tuple(_means(trial)), trial.sure_gain(self.rounds)
            if not trial.overfits and len(trial.predictions) == self.rounds:
                unseen = trial.predictions[-1]
        more = unseen is not None and self.budget is None
        plan = Plan(one.given.whole, one.how, self.rounds, averaged, True, scores, gain, self.parts, unseen, more)
        plan = replace(plan, may_echo=self._may_echo(one, plan))
        return Preparation(plan, one.given.features, one.problem, done, [], 0)

    def _may_echo(self, one: Contender, plan: Plan) -> bool:
        """Return whether it may be asked if predictions echo labels, which takes nearly another fit."""
        unlimited = self.budget is None and one.how.learner.is_cheap(one.problem.X, _width(one.problem))
        return plan.echoes and plan.rounds > 1 and unlimited

    def _chosen(self) -> Preparation:
        """Return the plan whose learner and rounds predict held-out labels best.

        All learners do one round; of many that are cheap some go on to a few more; the best one to the last.
        """
        sample = _sample(self.contenders[0].problem, self.contenders[0].how.seed)
        trials = [self._trial(one, sample) for one in self.contenders]
        for most, number in self._heats():
            best = np.argsort(-worths(trials), kind="stable")[:most]
            for place in best:
                while len(trials[place].scores) < number:
                    trials[place].step()
        return self._of_trials(trials, whole=sample is None)

    def _heats(self) -> Iterator[tuple[int, int]]:
        """Yield how many of the best learners go on to which round."""
        yield len(self.contenders), 1
        if self.budget is None and len(self.contenders) > 1:
            yield RULES.finalists, min(RULES.heats, self.rounds)
        yield 1, self.rounds

    def _trial(self, one: Contender, sample: Mask | None) -> CrossFit:
        problem = one.problem if sample is None else one.problem.part(sample)
        fold = folds_of(problem, self.parts, one.how.seed)
        whole = () if self.free else (self.rounds,)
        return CrossFit(problem, replace(one.how, last=self.rounds, fold=fold, whole=whole))

    def _of_trials(self, trials: list[CrossFit], *, whole: bool) -> Preparation:
        place = int(worths(trials).argmax())
        trial, one = trials[place], self.contenders[place]
        near = self._near(trial)
        averaged = tuple((1 + np.flatnonzero(near)).tolist()) if self.free else ()
        n_rounds = averaged[-1] if self.free else self.rounds
        if trial.overfits and self.free:  # to take the best rounds by the same labels loses more than the worse ones do
            averaged, n_rounds = tuple(range(1, self.rounds + 1)), self.rounds
        how = replace(one.how, last=n_rounds)
        if trial.overfits:
            how = replace(how, fold=folds_of(one.problem, self.parts, how.seed), whole=trial.how.whole)
        done = trial.rounds[: n_rounds if self.free else n_rounds - 1] if whole and trial.overfits else []
        kept = [trial.predictions[number - 1] for number in averaged or (n_rounds,)]
        unseen = mean_predictions(kept) if whole and not trial.overfits else None
        more, scores = unseen is not None and self.budget is None, tuple(_means(trial))
        early, gain = not self.free, trial.sure_gain(n_rounds)
        plan = Plan(one.given.whole, how, n_rounds, averaged, early, scores, gain, self.parts, unseen, more)
        plan = replace(plan, may_echo=self._may_echo(one, plan))
        table = [
            {"learner": other.how.learner, "predictions": "out_of_fold" if run.overfits else "in_sample"}
            | {"held_out_scores": _means(run), "near_best": (near if run is trial else near & False).tolist()}
            for other, run in zip(self.contenders, trials, strict=True)
        ]
        return Preparation(plan, one.given.features, one.problem, done, table, 0)

    def _near(self, trial: CrossFit) -> Mask:
        """Return the rounds near the best one that may be believed, or the last of a given number."""
        if not self.free:
            return np.asarray(np.arange(len(trial.scores)) == self.rounds - 1)
        swapped = np.logical_or.accumulate([swaps(trial.problem, this.argmax()) for this in trial.predictions])
        near: Mask = near_best(trial.values()) & ~swapped
        if near[0] or not near.any():  # nothing shows that later rounds learn more than the votes, so they may drift
            near = np.asarray(np.arange(len(near)) == 0)
        return near

    def _most_fits(self) -> int:
        fits, before = 0, 0
        for most, number in self._heats():
            fits += self.parts * min(most, len(self.contenders)) * (number - before)
            before = number
        return fits + self.rounds


def _affordable(budget: int, n_learners: int, parts: int) -> tuple[int, int]:
    """Return how many parts and rounds N fits are enough for: one round of all, then the best, then its run.

    >>> _affordable(15, 1, 0), _affordable(20, 2, 0), _affordable(7, 1, 0), _affordable(15, 1, 3)
    ((4, 3), (4, 3), (2, 2), (3, 3))
    """
    for n in (parts,) if parts else range(RULES.folds, 1, -1):
        rounds = (budget - n_learners * n + n) // (n + 1)
        if rounds >= 2 or n == 2:
            break
    return n, int(np.clip(rounds, 1, RULES.rounds))


def near_best(values: Floats) -> Mask:
    """Return which rounds are within one standard error of the best mean; values are (n_rounds, n_held).

    The standard error is that of the difference, task by task: what all find hard does not count.

    Examples
    --------
    >>> values = -np.array([[1.0, 1, 1, 1], [2, 1, 1, 1], [3, 1, 0, 1]])
    >>> near_best(values)  # the second is only worse, the third at times better
    array([ True, False,  True])
    """
    behind = values[values.mean(axis=1).argmax()] - values
    return np.asarray(behind.mean(axis=1) <= behind.std(axis=1) / np.sqrt(behind.shape[1]))


def _means(trial: CrossFit) -> list[float]:
    """Return the mean log-likelihood of held-out labels after each round."""
    n = max(len(trial.problem.labels), 1)
    return [float(scores.sum() / n) for scores in trial.scores]


def worths(trials: list[CrossFit]) -> Floats:
    """Return what each learner is worth: the best score of one that does not overfit.

    Later rounds of one that overfits hear of held-out labels, the more the later. It is worth its second score less
    what may be an echo, or its first and as much more as later rounds were worth to the best of the others.
    """
    means = [_means(trial) for trial in trials]
    overfits = np.array([trial.overfits for trial in trials])
    found = np.array(
        [max(one[:1] if trial.overfits else one, default=-np.inf) for one, trial in zip(means, trials, strict=True)]
    )
    others = [place for place, trial in enumerate(trials) if not trial.overfits and means[place]]
    gain = 0.0
    if others:
        best = max(others, key=lambda place: found[place])
        gain = found[best] - means[best][0]
    second = np.array([one[1] - RULES.echo if len(one) > 1 else -np.inf for one in means])
    return np.where(overfits, np.maximum(found + gain, second), found)


def folds_of(problem: Problem, parts: int, seed: int) -> Codes:
    """Return the fold of every task: those with labels are spread evenly, and so are the others."""
    fold = np.empty(problem.n_tasks, dtype=np.int32)
    for some in (problem.labelled, ~problem.labelled):
        fold[some] = folds(int(some.sum()), parts, seed)
    return fold


def _sample(problem: Problem, seed: int) -> Mask | None:
    """Return the tasks that a choice is made by, a draw of many; None: all."""
    labelled = np.flatnonzero(problem.labelled)
    if len(labelled) <= RULES.choice_tasks:
        return None
    drawn = np.random.default_rng([seed, 13]).choice(labelled, RULES.choice_tasks, replace=False)
    return np.isin(np.arange(problem.n_tasks), drawn)


def _sized(X: Any, share: float) -> Any:
    """Return features of the size of a sample."""
    return X if share >= 1 or not hasattr(X, "shape") else X[: max(1, int(X.shape[0] * share))]
