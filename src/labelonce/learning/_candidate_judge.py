"""What predictions on candidates and the annotations of their tasks say of the workers, and of each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import NUMPY, CandidateEngine, Candidates, make_candidate_engine, normalise
from labelonce._types import Codes, Floats, Mask
from labelonce.data import Annotations
from labelonce.learning._calibration import pull_in_round
from labelonce.learning._candidate_calibration import (
    CandidateCalibration,
    Spoken,
    calibrate_candidates,
    calibrated_log_prior,
)
from labelonce.learning._rounds import Recipe
from labelonce.workers import Grouped

_REFINEMENTS, _LAST_REFINEMENTS = 10, 2  # of workers and calibration by each other within a round at most
_MANY_ROWS = 200_000  # of all workers together: what is believed of each would take too much memory
_PLENTY = 80  # labels per row, mean, from which counting them does as well
_ENOUGH = 200_000  # annotations: of many more a draw is refined first, then all a little
_FEW_STEPS = 8  # of the search for a calibration that is nearly known
_SETTLED = 1e-3  # mean change of the chances of being right in such a step: near the fixed point
_FEW_TASKS, _MANY_TASKS = 10_000, 50_000  # to calibrate by: 30 per class, within these
_SINGLE = 10**7  # candidates of all annotations from which sums are in float32


class CandidateJudge:
    """Predictions on candidates and the annotations of their tasks: what they say of the workers and of each other."""

    def __init__(
        self,
        annotations: Annotations,
        recipe: Recipe,
        gold: Codes | None,
        workers: Grouped,
        predictions: Candidates,
        spoken: Mask | None,
    ) -> None:
        self.annotations, self.recipe, self.gold = annotations, recipe, gold
        self.workers, self.predictions, self.spoken = workers, predictions, spoken
        self.heard: Floats | None = None  # what the labels say, where each is judged by others
        self._said: Spoken | None = None  # the predictions on the engine's device
        size = len(annotations) * (predictions.classes.shape[1] + 1)
        self.sums = self.engine(annotations, predictions.classes, "float32" if size > _SINGLE else "float64")

    @classmethod
    def of(
        cls,
        annotations: Annotations,
        recipe: Recipe,
        gold: Codes | None,
        workers: Grouped,
        predictions: Candidates,
        own: Codes,
    ) -> CandidateJudge:
        """Return the judge of predictions on candidates of which the first are `own`, those that labels speak for.

        Where mistakes do not stay within the groups, labels speak for no classes in particular.
        """
        spoken: Mask | None = None
        if workers.in_groups and workers.holds(annotations, predictions):
            spoken = np.zeros_like(predictions.classes, dtype=bool)
            kept = min(own.shape[1], spoken.shape[1])
            spoken[:, :kept] = (own[:, :kept] >= 0) & (predictions.classes[:, :kept] == own[:, :kept])
        return cls(annotations, recipe, gold, workers, predictions, spoken)

    def engine(self, annotations: Annotations, classes: Codes, dtype: str = "float64") -> CandidateEngine:
        """Return the engine of tasks with candidates."""
        engine, device = self.recipe.engine, self.recipe.device
        return make_candidate_engine(
            annotations, classes, *self.workers.pattern, dtype=dtype, engine=engine, device=device
        )

    def verdict(self, number: int) -> tuple[Grouped, Floats, Candidates, float]:
        """Return the workers, the class prior, the posteriors and the log-likelihood of a round."""
        first = number == 1
        picks = self._picks()
        soft = self.recipe.counts == "soft" and not first
        counted = self.predictions.with_gold(self.gold) if soft else picks
        self.workers.fit_tallies(self.sums.m_step(counted), first=not self._is_doubted)
        prior = self._class_prior(picks)
        del picks, counted  # the posteriors of a million tasks need the room
        if self.recipe.posterior == "prior" or (first and not self._tells_apart):
            log_prior = self._with_gold(self.sums.keep(self._by_class(prior)))
        else:
            log_prior = self._calibrated(number, prior)
        if self.heard is not None:
            joint = (self.heard + log_prior).astype(self.sums.dtype, copy=False)
            log_likelihood = normalise(joint)
            return self.workers, prior, self.sums.as_candidates(joint), log_likelihood
        step = self.sums.e_step(self.workers.factors_, log_prior)
        return self.workers, prior, step.posterior, step.log_likelihood

    def opinion(self, number: int) -> tuple[Floats, Floats]:
        """Return the calibrated log prior of every task, with gold, and what its labels say, each judged by others."""
        picks = self._picks()
        self.workers.fit_tallies(self.sums.m_step(picks), first=not self._is_doubted)
        log_prior = self._calibrated(number, self._class_prior(picks))
        return log_prior, self.sums.messages(self.workers.factors_) if self.heard is None else self.heard

    def log_prior(self, tasks: Any) -> Floats:
        """Return what the predictions of some tasks say of the true label, calibrated, without gold."""
        spoken = None if self.spoken is None else self.spoken[tasks]
        return calibrated_log_prior(self.predictions[tasks], spoken, self.calibration)

    def _picks(self) -> Candidates:
        """Return the most probable class among those that the labels speak for, of every task; gold where known."""
        best = np.zeros_like(self.predictions.probability)
        for tasks in self.predictions.parts():
            some = self.predictions[tasks]
            score = np.where(some.classes >= 0, some.probability, -1.0)
            if self.spoken is not None:
                score += self.spoken[tasks]  # above all others
            best[tasks][np.arange(len(some)), score.argmax(axis=1)] = 1.0
        certain = Candidates(self.predictions.classes, best, np.zeros(len(best)), self.predictions.n_classes)
        return certain.with_gold(self.gold)

    @property
    def _tells_apart(self) -> bool:
        """Whether a first model, which has learned the labels, may already judge them.

        Within a group it tells classes apart that the labels mix up, unless it has memorised the labels, as a linear
        model of many features does: a learner says of itself that it may be asked about its own tasks. Without groups
        it would confirm the labels.
        """
        may_be_asked = self.recipe.learner.auto.get("predictions") == "in_sample"
        return may_be_asked and isinstance(self.workers, Grouped) and self.spoken is not None

    @property
    def _is_doubted(self) -> bool:
        """Whether there are groups that labels leave, so that picks tell how often."""
        return self.workers.in_groups and self.spoken is None

    def _calibrated(self, number: int, prior: Floats) -> Floats:
        """Return the calibrated log prior of every task, and refine the workers by it."""
        given = np.bincount(self.annotations.label, minlength=self.annotations.n_classes) + 1.0
        known = not isinstance(self.recipe.prior, str)
        shares = prior if known else given / given.sum()
        fitter = _Fitter(self, shares, pull_in_round(max(number, 2), known=known))
        found = fitter.fit(fitter.messages())
        if self.recipe.counts == "refined" and isinstance(self.workers, Grouped):
            found = self._refined(fitter, found)
        self.calibration = found
        return np.asarray(self.sums.arrays.get(self._log_prior(found)))

    def _refined(self, fitter: _Fitter, found: CandidateCalibration) -> CandidateCalibration:
        """Refine workers and calibration by each other; of many annotations a draw first, then all."""
        n_rows = self.workers.factors_.right.size
        if n_rows > _MANY_ROWS or len(self.annotations) > _PLENTY * n_rows:
            return self._count(fitter, found)
        steps, share = _REFINEMENTS, _ENOUGH / max(1, len(self.annotations))
        if share < 0.5:
            some = self.select(np.random.default_rng(1).random(len(self.predictions)) < share)
            found = some.listen(fitter.of(some), found, steps)
            steps = _LAST_REFINEMENTS
        return self.listen(fitter, found, steps)

    def _count(self, fitter: _Fitter, found: CandidateCalibration) -> CandidateCalibration:
        """Count right and wrong labels against the posterior that they give themselves: cheaper.

        Where rows are very many, or have so many labels each that one label hardly counts.
        """
        log_prior = self.sums.keep(self._log_prior(found))
        for _ in range(_REFINEMENTS):
            before = self.workers.factors_.right
            self.workers.fit_tallies(self.sums.sweep(self.workers.factors_, log_prior)[0])
            if float(np.abs(self.workers.factors_.right - before).mean()) < _SETTLED:
                break
        return fitter.fit(fitter.messages(), found)

    def select(self, one_of: Mask) -> CandidateJudge:
        """Return the judge of some tasks, who shares the workers."""
        gold = None if self.gold is None else self.gold[one_of]
        tasks = np.flatnonzero(one_of)
        of = (self.workers, self.predictions[tasks], None if self.spoken is None else self.spoken[tasks])
        return CandidateJudge(self.annotations.select(one_of), self.recipe, gold, *of)

    def listen(self, fitter: _Fitter, found: CandidateCalibration, most: int) -> CandidateCalibration:
        """Estimate workers and calibration by each other, near the fixed point; return the calibration.

        What a label says of its task is judged by the other labels of its worker. Else every label would vouch for
        itself through its worker, and predictions that agree with the labels would seem too sure.
        """
        evidence = self.sums.evidence()
        for _ in range(most):
            before = self.workers.factors_.right
            said = evidence.step(self.workers.chances, self.workers.factors_, self._log_prior(found))
            self.workers.fit_evidence(said)
            self.heard = said.messages
            found = fitter.fit(said.messages[fitter.tasks], found)
            if float(np.abs(self.workers.factors_.right - before).mean()) < _SETTLED:
                break
        return found

    def _log_prior(self, found: CandidateCalibration) -> Any:
        """Return what predictions say of the true label, calibrated, and gold, where the engine works."""
        if self.sums.arrays is NUMPY or self.predictions.probability.size > _SINGLE:  # in blocks: little room
            log_prior = calibrated_log_prior(self.predictions, self.spoken, found, self.sums.dtype)
            return self._with_gold(self.sums.keep(log_prior))
        if self._said is None:
            self._said = Spoken.of(self.predictions, self.spoken).on(self.sums.arrays)
        return self._with_gold(self.sums.keep(self._said.log_prior(found)))

    def _class_prior(self, picks: Candidates) -> Floats:
        """Return P(true label): given, the share of the model's picks, the one that explains the labels, or uniform."""
        n_classes, prior = self.annotations.n_classes, self.recipe.prior
        if not isinstance(prior, str):
            return np.asarray(prior, dtype=np.float64)
        if prior == "picks":
            mass = picks.shares()
            return np.asarray(mass / mass.sum())
        learned = np.full(n_classes, 1 / n_classes)
        for _ in range(20 if prior == "learned" else 0):
            mass = self.sums.e_step(self.workers.factors_, self._by_class(learned)).posterior.shares() + 1.0
            learned = mass / mass.sum()
        return learned

    def _by_class(self, prior: Floats) -> Floats:
        """Return a class prior as the log prior of every task's candidates."""
        classes = self.predictions.classes
        wide = np.zeros((len(classes), classes.shape[1] + 1), dtype=self.sums.dtype)
        np.copyto(wide[:, :-1], prior.astype(wide.dtype).take(classes, mode="wrap"), where=classes >= 0)
        wide[:, -1] = np.maximum(1 - wide[:, :-1].sum(axis=1), 0.0)
        with np.errstate(divide="ignore"):
            return np.log(wide, out=wide)

    def _with_gold(self, log_prior: Any) -> Any:
        if self.gold is None:
            return log_prior
        known, put = np.flatnonzero(self.gold >= 0), self.sums.arrays.put
        own = np.pad(self.predictions.classes[known] == self.gold[known, None], ((0, 0), (0, 1)))
        log_prior[put(known)] = put(np.where(own, 0.0, -np.inf).astype(self.sums.dtype))
        return log_prior


class _Fitter:
    """Fits calibrations to a draw of a judge's tasks, always the same, in order."""

    def __init__(self, judge: CandidateJudge, shares: Floats, pull: float) -> None:
        self._judge, self._shares, self._pull = judge, shares, pull
        annotations = judge.annotations
        labelled = np.flatnonzero(np.bincount(annotations.task, minlength=annotations.n_tasks))
        most = int(np.clip(30 * annotations.n_classes, _FEW_TASKS, _MANY_TASKS))
        if len(labelled) > most:
            labelled = np.sort(np.random.default_rng(0).choice(labelled, most, replace=False))
        self.tasks = labelled
        spoken = None if judge.spoken is None else judge.spoken[labelled]
        self._said = Spoken.of(judge.predictions[labelled], spoken).on(judge.sums.arrays)

    def of(self, judge: CandidateJudge) -> _Fitter:
        """Return one for another judge's tasks."""
        return _Fitter(judge, self._shares, self._pull)

    def messages(self) -> Floats:
        """Return what the labels of these tasks say, by the workers as they are now."""
        judge = self._judge
        one_of = np.isin(np.arange(len(judge.predictions)), self.tasks)
        sums = judge.engine(judge.annotations.select(one_of), judge.predictions.classes[self.tasks])
        return sums.messages(judge.workers.factors_)

    def fit(self, messages: Floats, near: CandidateCalibration | None = None) -> CandidateCalibration:
        """Return the calibration that explains the labels best, or a better one than one that is near."""
        if near is None:
            none = CandidateCalibration.none(len(self._shares))
            return calibrate_candidates(self._said, messages, self._shares, self._pull, none)
        return calibrate_candidates(self._said, messages, self._shares, self._pull, near, steps=_FEW_STEPS)
