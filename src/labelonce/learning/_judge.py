"""The statistics of a round: what predictions and labels say of the workers, and of each other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, Evidence, Pattern, label_slots, make_slot_evidence
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask
from labelonce.learning._calibration import (
    Calibration,
    Scores,
    calibrate,
    calibrated_log_prior,
    label_shares,
    pull_in_round,
)
from labelonce.learning._problem import Ask, Problem
from labelonce.workers import WorkerModel

_SINGLE = 10**7  # slots of all labels from which sums are in float32


@dataclass(frozen=True, eq=False)
class View:
    """What a judge looks at: predictions, and the labels as evidence about the same slots.

    `inside` marks the slots that labels are evidence for, where they stay within groups; `leaves_groups` says that they
    do not, so that predictions tell how often. `pattern` is what the factors of the workers keep apart.
    """

    problem: Problem
    evidence: Evidence
    predictions: Beliefs
    inside: Mask | None = None
    leaves_groups: bool = False
    pattern: Pattern | None = None
    most_rows: int = RULES.calibration_rows[1]

    @classmethod
    def of(cls, problem: Problem, workers: WorkerModel, ask: Ask, before: Codes | None = None) -> View:
        """Return predictions on the slots that the workers need, and the evidence; the workers are prepared for it.

        Which mistakes workers make is known by groups, or told by a model's argmax: that of the round `before`, and in
        the first round its own, for which it is asked twice. Posteriors would not do: where they side with the labels
        there are no mistakes, and then they always will.
        """
        labels, gold = problem.labels, None if problem.gold is None else problem.gold[:, None]
        few = workers.uses_slots(labels)
        if workers.needs_predictions and before is None:
            before = ask(problem.votes(few=True)[0].codes if few else None, 1).argmax()
        pattern = workers.prepare(labels, before if workers.needs_predictions else None)
        if pattern is None:
            return cls(problem, problem.evidence, ask(None, 0))
        own = label_slots(labels, pattern, gold)
        predictions = ask(own, RULES.top_classes)
        inside: Any = None
        if workers.in_groups and workers.holds(labels, predictions):
            inside = np.zeros(predictions.probability.shape, dtype=bool)
            kept, slots = min(own.shape[1], inside.shape[1]), predictions.codes
            inside[:, :kept] = (own[:, :kept] >= 0) & (slots[:, :kept] == own[:, :kept])
        size = len(labels) * (predictions.probability.shape[1] + 1)
        options: dict[str, Any] = {"dtype": "float32" if size > _SINGLE else "float64", "device": problem.device}
        evidence = make_slot_evidence(labels, predictions.codes, pattern, draws=workers.learns_from_draws, **options)
        return cls(problem, evidence, predictions, inside, workers.in_groups and inside is None, pattern)

    @cached_property
    def sample(self) -> tuple[Any, Evidence]:
        """The rows to calibrate by, those with labels or a draw of many, always the same, and their evidence."""
        labels = self.problem.labels
        labelled = np.flatnonzero(np.bincount(labels.task, minlength=labels.n_tasks))
        fewest, most = RULES.calibration_rows[0], self.most_rows
        most = int(np.clip(RULES.calibration_numbers // self.predictions.probability.shape[1], fewest, most))
        if len(labelled) == labels.n_tasks <= most:
            return slice(None), self.evidence
        if len(labelled) > most:
            labelled = np.sort(np.random.default_rng(0).choice(labelled, most, replace=False))
        return labelled, self.evidence.select(np.isin(np.arange(labels.n_tasks), labelled))

    def argmax(self) -> Beliefs:
        """Return the most probable class among those that labels are evidence for as certain; gold where known."""
        return self.predictions.one_hot(self.inside).with_gold(self.problem.gold)


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a round says: the fitted workers, how predictions were calibrated, the posteriors and the log-likelihood."""

    workers: WorkerModel
    calibration: Calibration | None
    beliefs: Beliefs
    log_likelihood: float


def judge(
    view: View,
    workers: WorkerModel,
    number: int,
    *,
    calibrates: bool = True,
    from_first: bool = False,
    prior_of_argmax: bool = False,
    start: Calibration | None = None,
) -> Judgement:
    """Return what the predictions and the labels of a round give together; the workers are fitted in place.

    The first round counts the workers against the argmax of the predictions and starts from the class prior: a model
    trained on raw labels predicts labels rather than the truth. From the second on, or `from_first` where labels stay
    within groups, predictions are calibrated, and workers are counted against the posterior that follows from them,
    until neither changes. Without `calibrates` every round is as the first: Algorithm 1 of the paper, of which
    `prior_of_argmax` is equation 7. The search for the calibration begins at `start`, where that of predictions that
    were hardly different is known, and then takes few steps on few rows.
    """
    evidence, gold = view.evidence, view.problem.gold
    argmax = view.argmax()
    workers.fit_tallies(evidence.tallies(argmax), first=not view.leaves_groups)
    calibration: Calibration | None = None
    if not calibrates or (number == 1 and not (from_first and view.inside is not None)):
        prior = view.problem.prior
        if prior_of_argmax:
            counts = evidence.total(argmax.class_counts())
            prior = counts / counts.sum()
        log_prior = evidence.log_prior(prior)
    else:
        calibration, log_prior = _calibrated(view, workers, max(number, 2), start)
    step = evidence.e_step(workers.crowd, log_prior, gold)
    return Judgement(workers, calibration, step.beliefs, step.log_likelihood)


def _calibrated(view: View, workers: WorkerModel, number: int, start: Calibration | None) -> tuple[Calibration, Any]:
    """Return the calibration and the log prior that it gives, found together with the workers."""
    search = _Search.of(view, number, warm=start is not None)
    if view.pattern is not None and workers.learns_from_draws and _few_labels(view):
        found = _drawn(search, workers, start)
        return found, log_prior_of(view, found)
    found = search.calibrate(workers.crowd, start)
    refine(workers, view.evidence, log_prior_of(view, found), view.problem.gold)
    found = search.calibrate(workers.crowd, found)
    return found, log_prior_of(view, found)


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for the calibration with which predictions and workers explain the labels of some rows best."""

    view: View
    some: Evidence
    scores: Scores
    shares: Floats
    pull: float
    steps: int

    @classmethod
    def of(cls, view: View, number: int, *, warm: bool) -> _Search:
        """Return the search in a round; where it is `warm`, few rows and few steps are enough."""
        few = replace(view, most_rows=RULES.warm_calibration_rows) if warm else view
        problem, (rows, some) = view.problem, few.sample
        shares = label_shares(problem.labels, problem.kind, view.evidence.total)
        if problem.balance is not None:
            shares = np.broadcast_to(problem.balance, shares.shape)
        kind = None if problem.kind is None else problem.kind[rows]
        scores = Scores.of(view.predictions[rows], None if view.inside is None else view.inside[rows], kind)
        steps = RULES.warm_calibration_steps if warm else RULES.calibration_steps
        return cls(view, some, scores, shares, pull_in_round(number, known=problem.balance is not None), steps)

    def calibrate(self, crowd: Any, start: Calibration | None, steps: int | None = None) -> Calibration:
        """Return the calibration that goes with these workers."""
        messages, total = self.some.messages(crowd), self.view.evidence.total
        return calibrate(
            self.scores,
            messages,
            self.shares,
            self.pull,
            start,
            total=total,
            steps=self.steps if steps is None else steps,
        )


def _few_labels(view: View) -> bool:
    """Return whether there are few labels for each chance of a worker."""
    labels, pattern = view.problem.labels, view.pattern
    assert pattern is not None
    return bool(len(labels) < RULES.few_labels * labels.n_workers * (int(pattern.row.max()) + 1))


def _drawn(search: _Search, workers: WorkerModel, start: Calibration | None) -> Calibration:
    """Return the calibration, and set the workers, as means over draws of all that is unknown: Gibbs sampling.

    With few labels for each chance, the expected counts of a fixed point mislead: all chances look alike, predictions
    are made too sure, and both confirm each other. Drawn classes count as real ones do, and drawn chances are as
    uncertain as they are.
    """
    view, rng = search.view, np.random.default_rng(0)
    crowd, found, steps = workers.crowd, start, None
    kept: list[tuple[Any, Floats]] = []
    n_left_out, n_kept = RULES.draws
    for number in range(n_left_out + n_kept):
        found = search.calibrate(crowd, found, steps)
        beliefs = view.evidence.e_step(crowd, log_prior_of(view, found), view.problem.gold).beliefs
        workers.fit_tallies(view.evidence.tallies(beliefs.drawn(rng)))
        crowd, steps = workers.drawn(rng), RULES.draw_steps
        if number >= n_left_out:
            kept.append((workers.crowd, found.point))
    first, *others = (one for one, _ in kept)
    workers.factors_ = first.mean_with(others, [1 / n_kept] * n_kept)
    return Calibration.at(np.mean([point for _, point in kept], axis=0), search.shares.shape)


def log_prior_of(view: View, found: Calibration) -> Any:
    """Return what predictions say of the true classes, calibrated, where the evidence is."""
    evidence, dtype = view.evidence, view.evidence.dtype
    return evidence.keep(calibrated_log_prior(view.predictions, view.inside, view.problem.kind, found, dtype))


def refine(workers: WorkerModel, evidence: Evidence, log_prior: Any, gold: Codes | None) -> None:
    """Count the workers against the posterior that they give themselves, near the fixed point."""
    for _ in range(RULES.refinements):
        before = workers.crowd
        workers.fit_tallies(evidence.sweep(before, log_prior, gold).tallies)
        if workers.crowd.change(before) < RULES.settled:
            break


def row_weight(problem: Problem, beliefs: Beliefs) -> Floats:
    """Return how much each row counts in the next fit: by information, 1 - H(posterior) / log K.

    With cross-entropy a uniform posterior is not neutral, it pulls predictions to uniform. The weights of each kind of
    rows are scaled to the total of the rows with labels, so that a learner's penalty means the same in every round.
    Where no posterior says anything, the labels are all there is.
    """
    weight, start, kind = beliefs.information(), problem.answered, problem.kind
    n_kinds = 1 if kind is None else int(kind.max()) + 1
    of_row = np.zeros(len(weight), dtype=np.intp) if kind is None else kind
    sums = np.stack([np.bincount(of_row, one, n_kinds) for one in (start, weight)])
    wanted, found = problem.evidence.total(sums) if problem.shared else sums
    scale = np.divide(wanted, found, out=np.zeros(n_kinds), where=found > 1e-9)
    return np.where(scale[of_row] > 0, weight * scale[of_row], start)
