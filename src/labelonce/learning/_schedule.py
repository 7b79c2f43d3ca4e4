"""The schedule of a fit: the recipe and the rounds that the options leave open, settled before the first round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._processes import n_processes
from labelonce._types import Codes, Floats
from labelonce._validate import check_rng
from labelonce.data import Annotations
from labelonce.learning._contenders import Contender, alike, begun, memorises
from labelonce.learning._features import Features, GivenLearner, given_learners
from labelonce.learning._fits import (
    FRUGAL_FITS,
    FRUGAL_FITS_MORE,
    FitLog,
    affordable_rounds,
    counting,
    frugal_folds,
    most_fits,
)
from labelonce.learning._learner import Learner
from labelonce.learning._rounds import N_FOLDS, Recipe, Round
from labelonce.learning._selection import Choice, choose_recipe
from labelonce.learning._threads import sharing_threads
from labelonce.workers import Full, Grouped

if TYPE_CHECKING:
    from labelonce.learning._mbem import MBEM


@dataclass(frozen=True)
class Schedule:
    """What a fit has settled on, chosen or given, before its first round.

    `learner` has its transformers before it, as it was given. `rounds` is the number of the last round;
    `rounds_chosen` says that held-out tasks chose it. `scores` are the held-out scores after each round. The model is
    the average of those of the rounds `averaged`; none: that of the last round.
    """

    learner: Any
    recipe: Recipe
    seed: int
    rounds: int
    rounds_chosen: bool
    scores: list[float]
    averaged: tuple[int, ...] = ()


@dataclass(frozen=True)
class Settled:
    """A schedule with what was found on the way to it.

    `X` holds the features as `features` transformed them; `done` are the rounds that the run need not do again;
    `table` has one row per contender; `n_fits` counts the fits made.
    """

    schedule: Schedule
    features: Features
    X: Any
    done: list[Round]
    table: list[dict[str, Any]]
    n_fits: int


def settle(
    options: MBEM,
    X: Any,
    annotations: Annotations,
    gold: Codes | None,
    *,
    listener: Callable[[dict[str, Any]], None],
    confusion: Floats | None = None,
) -> Settled:
    """Return the schedule that the options of an `MBEM` give; held-out tasks choose what they leave open."""
    seed = int(check_rng(options.random_state).integers(2**31))
    log = FitLog(listener=listener)
    givens = given_learners(options.learner)
    with counting(log), sharing_threads((given.learner for given in givens), X, annotations.n_classes):
        contenders, budget = open_contenders(options, givens, X, annotations, gold, seed, confusion)
        own = contenders[0].recipe.learner.auto if len(contenders) == 1 else {}
        rounds = own.get("rounds", "auto") if options.rounds == "auto" else options.rounds
        free = rounds == "auto"
        longest = options.max_rounds if free else rounds
        to_choose = len(contenders) > 1 or (free and longest > 1)
        check_shared(contenders, to_choose=to_choose)
        best = Choice(0, longest)
        if to_choose and len(np.unique(annotations.task)) > 1:
            in_folds = any(one.recipe.predictions == "out_of_fold" for one in contenders)
            if budget is not None and free:
                n_open, n_folds = sum(one.first is None for one in contenders), contenders[0].recipe.n_folds
                longest = affordable_rounds(budget - log.number, n_open, longest, in_folds=in_folds, n_folds=n_folds)
            log.planned = budget or log.number + most_fits(len(contenders), longest, in_folds=in_folds)
            how: dict[str, Any] = {"max_rounds": longest, "free": free, "frugal": budget is not None}
            best = choose_recipe(contenders, annotations, gold, share=options.holdout, seed=seed, **how)
    chosen = contenders[best.number]
    recipe = chosen.recipe if free else replace(chosen.recipe, fits_last=True)
    if chosen.first is not None and not to_choose and best.rounds > 1:
        best = replace(best, done=[chosen.first], averaged=(1, best.rounds))
    schedule = Schedule(chosen.given.whole, recipe, seed, best.rounds, free, best.scores, best.averaged)
    return Settled(schedule, chosen.given.features, chosen.X, best.done, best.table, log.number)


def open_contenders(
    options: MBEM,
    givens: list[GivenLearner],
    X: Any,
    annotations: Annotations,
    gold: Codes | None,
    seed: int,
    confusion: Floats | None,
) -> tuple[list[Contender], int | None]:
    """Return every way to fit that the options leave open, and how many fits may be made.

    Transformers that are shared are fitted once.
    """
    posteriors = ("joint", "prior") if options.posterior == "auto" else (options.posterior,)
    workers = Full() if options.worker_model is None else options.worker_model
    if isinstance(workers, Grouped):
        workers = workers.with_groups_of(annotations.classes)
    done: dict[int, Any] = {}
    for given in givens:
        if id(given.features) not in done:
            done[id(given.features)] = given.features.fit(X, annotations).transform(X)
    features = [done[id(given.features)] for given in givens]
    budget = fit_budget(options, givens, features, annotations.n_classes)
    n_folds = N_FOLDS if budget is None else frugal_folds(budget, len(givens))
    where: dict[str, Any] = {"engine": options.engine, "device": options.device, "n_folds": n_folds}
    where["first_confusion"] = confusion
    found = []
    for given, transformed in zip(givens, features, strict=True):
        learner = given.learner
        how = judged_by(options, learner)
        recipe = Recipe(learner, workers, how, options.counts, posteriors[0], options.weighting, options.prior, **where)
        contender = Contender(given, transformed, recipe)
        if how == "auto" and budget is None and not learner.may_memorise:
            memorised = memorises(learner, transformed, annotations, gold, seed, n_folds)
            how = "out_of_fold" if memorised else "in_sample"
            contender = replace(contender, recipe=replace(recipe, predictions=how))
        elif how == "auto":
            folds = n_folds if budget is not None else learner.n_folds
            contender = replace(contender, recipe=replace(recipe, n_folds=folds))
            contender = begun(contender, annotations, gold, seed, options.max_rounds, keep=budget is None)
        found += [replace(contender, recipe=replace(contender.recipe, posterior=kind)) for kind in posteriors]
    unlimited = budget is None and all(one.first is None for one in found)
    return (found if unlimited else alike(found)), budget


def judged_by(options: MBEM, learner: Learner) -> str:
    """Return whose predictions judge the workers; "auto": its first round is to tell whether the learner memorises."""
    if options.predictions != "auto":
        return options.predictions
    return "auto" if learner.may_memorise else str(learner.auto.get("predictions", "auto"))


def fit_budget(options: MBEM, givens: list[GivenLearner], features: list[Any], n_classes: int) -> int | None:
    """Return how many fits there may be; None: no limit, as with cheap learners and where nothing is chosen."""
    one = len(givens) == 1 and options.posterior != "auto"
    if one and (options.rounds != "auto" or "rounds" in givens[0].learner.auto):
        return None
    if options.max_fits != "auto":
        return int(options.max_fits)
    if all(given.learner.is_cheap(X, n_classes) for given, X in zip(givens, features, strict=True)):
        return None
    return FRUGAL_FITS + FRUGAL_FITS_MORE * (len(givens) - 1)


def check_shared(contenders: list[Contender], *, to_choose: bool) -> None:
    """Raise if a learner that is shared by processes would have to be chosen, or fitted to folds."""
    if not any(contender.recipe.learner.shared for contender in contenders):
        return
    if to_choose:
        raise ValueError(
            "a learner that is shared by processes cannot be chosen from several: give one learner, rounds=... and "
            'posterior="joint" or "prior".'
        )
    if contenders[0].recipe.predictions == "out_of_fold" and n_processes() > 1:
        raise ValueError('a learner that is shared by processes needs predictions="in_sample"; got "out_of_fold".')
