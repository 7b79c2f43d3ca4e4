"""Dawid and Skene's model for several questions: a worker's matrices are similar for all questions."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit

from labelonce._kernels import make_evidence
from labelonce._rules import RULES
from labelonce._sklearn import check_is_fitted
from labelonce._types import Floats
from labelonce._validate import check_choice, check_int, check_number, check_positive
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._base import MultiLabelAggregator, strictest_first, votes_of, warn_if_asked_once
from labelonce.multilabel._context import Context
from labelonce.multilabel._pairs import PairLabels, by_question, yes_beliefs
from labelonce.multilabel._shared_workers import SharedWorkers, shrunk_shares

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class _State:
    """One iteration: what was made of the posterior of yes before, and the posterior after.

    `chances` are P(answer | no) and P(answer | yes) of every answer, its worker judged by the other answers.
    """

    workers: SharedWorkers
    pseudo: Floats
    chances: Floats
    prior: Floats
    log_odds: Floats
    posterior: Floats
    n_iter: int
    converged: bool

    @cached_property
    def ratios(self) -> Floats:
        """The log P(answer | yes) - log P(answer | no) of every answer."""
        return np.asarray(np.log(self.chances[:, 1] / self.chances[:, 0]))


@dataclass(kw_only=True, eq=False, repr=False)
class MultiLabelDawidSkene(MultiLabelAggregator):
    """EM over true answers, a matrix per worker and question, and every question's share of yes.

    Given the true answer t of a question q about a task, worker w answers a with probability
    `confusion[w, q, t, a]`; answers need not be yes and no, so that "maybe" or "skip" says what it is found to say.
    A worker's matrix for a question is shrunk towards the worker's own matrix over all questions, and that towards the
    crowd's: whoever ticks little, ticks little of rare labels too. How strongly is chosen by the marginal likelihood of
    the counts, separately for true yes and no, so that workers who differ from question to question are left apart. A
    question's share of yes is shrunk towards that of all questions likewise. An answer is judged by what the worker's
    *other* answers say.

    Answers to one question about one task are wrong together more often than such a model says, so that its posterior
    is too sure of itself. What the answers say is therefore raised to a `power`, in the fit and in the result: the ones
    that predict each answer best from the other answers to its question, no worker being judged by the answer that is
    predicted.

    Parameters
    ----------
    sharing : {"auto", "learned", "full", "none"}
        What a worker's questions have in common. "learned": by marginal likelihood; "full": one matrix per worker for
        all questions; "none": one `DawidSkene` per question. "auto": "learned", and with a single question "none".
    power : "auto" or float in (0, 1]
        Exponent of what the answers say. "auto": by answers left out, except that it is 1 where nothing is shared.
    context : {"none", "votes"}
        Whether a question's prior depends on the votes on the other questions about the task. Measured on two crowds,
        it pays for a fixed set of 14 boxes with few judgements, not for a few candidates of 1,000 classes.
    threshold : {"half", "expected_f1"}
        Above which probability a label is a yes: one half, or for each question where F1 is expected to be highest.
    smoothing : float
        Pseudo-counts where nothing is shared, as in `DawidSkene`.
    max_iter, tol : int, float
        EM stops after `max_iter` iterations, or when the posterior changes by less than `tol` on average.

    Attributes
    ----------
    prior_ : (n_questions,)
        Every question's share of yes.
    worker_confusion_ : (n_workers, 2, n_answers)
        P(answer | true) of every worker over all questions, by true no and yes.
    crowd_confusion_ : (2, n_answers)
    question_strength_, worker_strength_ : (2,)
        How many answers a worker's overall matrix is worth for a question, and the crowd's for a worker.
    power_, fit_power_ : float
        The exponent in the result, and in the fit.
    n_iter_, converged_ : int, bool
    pair_posterior_, posterior_, labels_, thresholds_ : arrays
        As in `MultiLabelVote`.

    References
    ----------
    A. P. Dawid and A. M. Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm",
    Journal of the Royal Statistical Society, Series C, 1979.

    Examples
    --------
    >>> import labelonce as lo
    >>> ticked = [["dog", "sea"], ["dog"], ["dog", "sea"], [], ["dog"], ["dog"], ["sea"], ["sea"], []]
    >>> ann = lo.MultiLabelAnnotations.from_ticked([1, 1, 1, 2, 2, 2, 3, 3, 3], ["ann", "bob", "eve"] * 3, ticked)
    >>> model = lo.MultiLabelDawidSkene().fit(ann)
    >>> model.labels_
    array([[1, 1],
           [1, 0],
           [0, 1]], dtype=int32)
    >>> model.confusion_.shape
    (3, 2, 2, 2)
    """

    sharing: str = "auto"
    power: Any = "auto"
    context: str = "none"
    threshold: str = "half"
    smoothing: float = 1.0
    max_iter: int = 100
    tol: float = 1e-4

    prior_: Floats = field(init=False)
    worker_confusion_: Floats = field(init=False)
    crowd_confusion_: Floats = field(init=False)
    question_strength_: Floats = field(init=False)
    worker_strength_: Floats = field(init=False)
    confusion_: Floats = field(init=False)
    power_: float = field(init=False)
    fit_power_: float = field(init=False)
    n_iter_: int = field(init=False)
    converged_: bool = field(init=False)

    def _fit(self, annotations: MultiLabelAnnotations, gold: Floats) -> Floats:
        sharing = self._check_options(annotations.n_questions)
        warn_if_asked_once(annotations, type(self).__name__)
        run = _Run(self, annotations, gold, sharing)
        learns_power = self.power == "auto" and sharing != "none"
        powers = RULES.answer_powers_fit if learns_power else (1.0 if self.power == "auto" else float(self.power),)
        power, state = powers[0], run.climb(powers[0])
        for other in powers[1:]:
            found = run.climb(other)
            if run.score(found, other) <= run.score(state, power):
                break
            power, state = other, found
        shown = max(RULES.answer_powers, key=lambda one: run.score(state, one)) if learns_power else power
        workers, place = state.workers, np.argsort(run.labels.order)
        own = state.pseudo / state.pseudo.sum(axis=2, keepdims=True)
        self.confusion_ = by_question(run.labels, own, workers.worker_confusion_)
        self.worker_confusion_ = workers.worker_confusion_[:, :, place]
        self.crowd_confusion_ = workers.crowd_confusion_[:, place]
        self.question_strength_, self.worker_strength_ = workers.question_strength_, workers.worker_strength_
        self.prior_, self.power_, self.fit_power_ = state.prior, shown, power
        self.n_iter_, self.converged_ = state.n_iter, state.converged
        return np.asarray(expit(state.log_odds + shown * run.by_row(state.ratios)))

    def _check_options(self, n_questions: int) -> str:
        check_choice(self.sharing, "sharing", ("auto", "learned", "full", "none"))
        check_choice(self.context, "context", ("none", "votes"))
        if self.power != "auto":
            check_positive(self.power, "power", 1.0)
        check_number(self.smoothing, "smoothing", 0.0)
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)
        by_default = "learned" if n_questions > 1 else "none"
        return by_default if self.sharing == "auto" else self.sharing

    def workers_to_frame(self) -> pa.Table:
        """Return the table of `MultiLabelVote`, with P(yes | yes) and P(no | no) of every worker."""
        check_is_fitted(self, "worker_confusion_")
        no, yes = (int(np.flatnonzero(self.answers_ == one)[0]) for one in self._yes_no)
        right = {"yes_when_true": self.worker_confusion_[:, 1, yes], "no_when_false": self.worker_confusion_[:, 0, no]}
        return strictest_first({"worker": self.workers_, **self._worker_table, **right})


class _Run:
    """The answers to the questions, and EM on them with the options of a model."""

    def __init__(
        self, model: MultiLabelDawidSkene, annotations: MultiLabelAnnotations, gold: Floats, sharing: str
    ) -> None:
        self.model, self.gold, self.sharing = model, gold, sharing
        self.labels = PairLabels.of(annotations, each_question=sharing != "full")
        self.evidence = make_evidence(self.labels, engine="scipy")
        self.votes = np.where(gold >= 0, gold, votes_of(annotations))
        shape = annotations.n_tasks, annotations.n_questions
        self.context = Context(self.labels, self.votes, *shape) if model.context == "votes" else None

    def climb(self, power: float) -> _State:
        """Return where EM ends that starts at the votes."""
        workers, posterior = SharedWorkers(), self.votes
        workers.prepare(self.labels)
        for number in range(1, self.model.max_iter + 1):
            state = self._next(posterior, workers, power, number)
            workers, posterior = state.workers, state.posterior
            if state.converged:
                break
        return state

    def _next(self, before: Floats, workers: SharedWorkers, power: float, number: int) -> _State:
        """Return the state after an M-step and an E-step."""
        tallies = self.evidence.tallies(yes_beliefs(before))
        workers, apart = workers.refitted(tallies), self.sharing == "none"
        pseudo = tallies.values + self._pseudo_counts() if apart else workers.pseudo_counts()
        chances = self._chances(pseudo, None if apart else before)
        state = _State(workers, pseudo, chances, *self._prior(before), before, number, False)
        after = expit(state.log_odds + power * self.by_row(state.ratios))
        after = np.where(self.gold >= 0, self.gold, after)
        return replace(state, posterior=after, converged=float(np.abs(after - before).mean()) <= self.model.tol)

    def _chances(self, pseudo: Floats, own: Floats | None) -> Floats:
        """Return P(answer | no) and P(answer | yes) of every answer; `own` leaves out its own share of the counts."""
        cell, answer = self.labels.worker, self.labels.label
        given, total = pseudo[cell, :, answer], pseudo.sum(axis=2)[cell]
        if own is not None:
            share = np.stack([1 - own, own], axis=1)[self.labels.task]
            given, total = given - share, total - share
        return np.asarray(np.maximum(given, _TINY) / np.maximum(total, _TINY))

    def by_row(self, values: Floats) -> Floats:
        """Return the sums of a number per answer over the answers of every row."""
        return np.asarray(np.bincount(self.labels.task, values, self.labels.n_tasks), dtype=np.float64)

    def score(self, state: _State, power: float) -> float:
        """Return the mean log-probability of an answer given the other answers to its question."""
        ratios, row = state.ratios, self.labels.task
        yes = expit(state.log_odds[row] + power * (self.by_row(ratios)[row] - ratios))
        return float(np.log(yes * state.chances[:, 1] + (1 - yes) * state.chances[:, 0]).mean())

    def _prior(self, posterior: Floats) -> tuple[Floats, Floats]:
        n, question = self.labels.n_questions, self.labels.row_question
        total = np.bincount(question, minlength=n)
        of_yes = np.bincount(question, posterior, minlength=n)
        if self.sharing == "none":
            each = self.model.smoothing / 2
            prior = (of_yes + each) / np.maximum(total + 2 * each, _TINY)
        elif self.sharing == "full":
            prior = np.full(n, (of_yes.sum() + 0.5) / (total.sum() + 1.0))
        else:
            prior = shrunk_shares(of_yes.astype(np.float64), total.astype(np.float64))
        prior = np.clip(prior, _TINY, 1 - _TINY)
        log_odds = logit(prior)[question]
        return prior, log_odds if self.context is None else self.context.log_odds(posterior, log_odds)

    def _pseudo_counts(self) -> Floats:
        """Return what `smoothing` adds: all of it where answer and truth agree, half of it where they do not."""
        value = np.where(np.isnan(self.labels.values), 0.5, self.labels.values)
        return np.asarray(self.model.smoothing * (0.5 + 0.5 * np.stack([1 - value, value])))
