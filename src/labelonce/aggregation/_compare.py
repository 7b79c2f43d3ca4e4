"""All aggregators on one set of annotations, side by side, and which to take."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from scipy.sparse.linalg import ArpackError

from labelonce import metrics
from labelonce._kernels import Beliefs, evidence_of_votes, label_likelihoods, normalised
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_number, check_rng
from labelonce.aggregation._base import Aggregator
from labelonce.aggregation._em import answer_pseudo_counts
from labelonce.aggregation._registry import aggregators
from labelonce.data import Annotations, Gold, _ids, check_gold, check_whole, hold_out
from labelonce.data._answers import agreement

_GUESS = 0.01  # share of uniform guesses mixed into a prediction, so that one label cannot decide a score
_NO_OVERLAP = "no task is labelled twice, so nothing tells the methods apart. With features, MBEM can: labelonce train."
_ENOUGH = 5000  # held-out annotations that settle a score
_Parts = list[tuple[Annotations, Annotations]]  # those to fit, and those held out


@dataclass(frozen=True)
class Row:
    """One method's results; None where it was not measured, `note` says why it could not run."""

    method: str
    agreement: float | None = None
    held_out: float | None = None
    held_out_error: float | None = None
    seconds: float | None = None
    accuracy: float | None = None
    log_loss: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """What `compare_aggregators` found.

    Attributes
    ----------
    rows : tuple of Row
        One per method, best held-out score first, those that could not run last. `agreement` is the share of
        annotations equal to the method's label of their task, of those that are a class; `held_out` the mean
        log-likelihood of annotations that the fit did not see, with the standard error of its difference to the best;
        `seconds` those of one fit on all annotations; `accuracy` and `log_loss` against gold, where given; `note` why
        it could not run, or its first warning.
    recommended : str or None
        The name of the method to take; None where no task has two labels, for then nothing tells the methods apart.
    reason : str
        Why, in a sentence.
    """

    rows: tuple[Row, ...]
    recommended: str | None
    reason: str

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per method."""
        return pa.Table.from_pylist([vars(row) for row in self.rows])


def compare_aggregators(
    annotations: Annotations,
    *,
    gold: Gold | None = None,
    methods: Mapping[str, Aggregator] | None = None,
    share: float = 0.2,
    random_state: RandomState = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Fit every aggregator and say which one to take, with or without gold.

    Without gold, methods are judged by annotations that they did not see: each is fitted again without a share of
    the annotations, and scored by the mean over those of log sum_k posterior[task, k] * confusion[worker, k,
    label]. The confusion is counted from the method's posterior in the same way for all, with one part in a
    hundred of uniform guesses, so that the score is about the labels and not about each method's worker model.
    The method with the best score is recommended, unless no task has two labels; gold is only shown, never used to
    choose.

    Parameters
    ----------
    annotations : Annotations
    gold : mapping or array, optional
        Known true labels, to measure accuracy and log-loss by; the methods do not see them.
    methods : mapping of name to aggregator, optional
        Default: every aggregator of `labelonce.aggregation`, each with its defaults.
    share : float in (0, 1)
        Share of the annotations held out. Small sets are split up to three times.
    random_state : int, numpy.random.Generator or None
        Draws the held-out annotations.
    progress : callable, optional
        Called before the first and after every method with the number of methods done and their total.

    Examples
    --------
    >>> import labelonce as lo
    >>> confusion = lo.simulate.hammer_spammer(20, 3, quality=0.4, rng=0, exact=True)
    >>> y_true = [0, 1, 2] * 50
    >>> ann = lo.simulate.annotate(y_true, confusion, lo.simulate.assign(150, 20, 5, rng=0, replace=False), rng=0)
    >>> methods = {"vote": lo.MajorityVote(), "one coin": lo.OneCoin()}
    >>> comparison = lo.compare_aggregators(ann, methods=methods)
    >>> comparison.recommended
    'one coin'
    """
    if not isinstance(annotations, Annotations):
        raise TypeError(f"annotations must be Annotations; got {type(annotations).__name__}.")
    if len(annotations) < 2:
        raise ValueError("compare_aggregators must have at least 2 annotations, to hold one out; got 1.")
    check_whole(annotations, "compare_aggregators")
    check_number(share, "share", 0.01, 0.9)
    y_true = None if gold is None else check_gold(gold, annotations)
    if y_true is not None and (y_true < 0).all():
        raise ValueError("gold must hold the label of one task at least; got none.")
    if methods is None:
        methods = {name: kind() for name, kind in aggregators().items()}
    seed = int(check_rng(random_state).integers(2**31))
    n_splits = int(np.clip(round(_ENOUGH / (share * len(annotations))), 1, 3))
    parts = [hold_out(annotations, share, np.random.default_rng([seed, split])) for split in range(n_splits)]
    say = progress or (lambda *_: None)
    say(0, len(methods))
    tried: list[_Trial | Row] = []
    for name, model in methods.items():
        tried.append(_tried(name, model, annotations, parts, y_true))
        say(len(tried), len(methods))
    found = _chosen(tried)
    return found if np.bincount(annotations.task).max() > 1 else replace(found, recommended=None, reason=_NO_OVERLAP)


@dataclass(frozen=True)
class _Trial:
    row: Row
    n_options: int
    scores: Floats  # log-likelihood of every held-out annotation


def _tried(name: str, model: Aggregator, annotations: Annotations, parts: _Parts, y_true: Codes | None) -> _Trial | Row:
    """Return what a method reached; of one that refuses to run, a row with its reason."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        started = time.perf_counter()
        try:
            full = clone(model).fit(annotations)
            seconds = time.perf_counter() - started
            scores = np.concatenate([_scores(clone(model).fit(seen), seen, held) for seen, held in parts])
        except (ValueError, ArpackError) as error:
            return Row(name, note=str(error))
    agreed, total = agreement(annotations, _ids.lookup(full.labels_, annotations.classes))
    row = Row(
        name,
        agreement=agreed / max(total, 1e-300),
        held_out=float(scores.mean()),
        seconds=seconds,
        accuracy=None if y_true is None else metrics.accuracy(y_true, full.posterior_),
        log_loss=None if y_true is None else metrics.log_loss(y_true, full.posterior_),
        note=str(caught[0].message) if caught else "",
    )
    return _Trial(row, len(model.get_params()), scores)


def _scores(fitted: Aggregator, seen: Annotations, held: Annotations) -> Floats:
    """Return the log-likelihood of each held-out annotation, through confusion counted from the posterior.

    Without room for matrices, by one number per worker, in the same way for all.
    """
    posterior = Beliefs.of(fitted.posterior_)
    evidence, votes = evidence_of_votes(seen)
    tallies = evidence.tallies(posterior.on(votes.classes))
    workers = tallies.confusion(lambda counts: normalised(counts + answer_pseudo_counts(1.0, counts, tallies.leaning)))
    probability = label_likelihoods(held, posterior, workers)
    return np.asarray(np.log((1 - _GUESS) * probability + _GUESS / seen.n_answers))


def _chosen(tried: list[_Trial | Row]) -> Comparison:
    """Return the rows, best first, of equal scores the method with fewer options; and the choice."""
    refused = [one for one in tried if isinstance(one, Row)]
    ran = [one for one in tried if isinstance(one, _Trial)]
    if not ran:
        raise ValueError(f"no method could run: {'; '.join(f'{row.method}: {row.note}' for row in refused)}")
    ran.sort(key=lambda one: (-round(float(one.scores.mean()), 6), one.n_options, one.row.method))
    rows = [replace(one.row, held_out_error=_error(one, ran[0])) for one in ran]
    return Comparison((*rows, *refused), ran[0].row.method, _reason(ran[0], ran[1:]))


def _error(one: _Trial, best: _Trial) -> float:
    """Return the standard error of the difference of two mean scores on the same annotations."""
    difference = best.scores - one.scores
    return float(difference.std() / np.sqrt(len(difference)))


def _reason(best: _Trial, others: list[_Trial]) -> str:
    sentence = (
        f"{best.row.method} predicts {len(best.scores):,} held-out annotations best: mean log-likelihood "
        f"{best.row.held_out:.4f}"
    )
    if others:
        second = others[0].row
        sentence += f", {second.method} {second.held_out:.4f} (difference ± {_error(others[0], best):.4f})"
    return sentence + "."
