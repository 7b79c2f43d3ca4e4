"""EM with a worker model of few numbers, on the candidate classes of each task: memory follows the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import Candidates, LabelCells, candidate_classes, make_candidate_engine
from labelonce._memory import check_memory
from labelonce._messages import show
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.aggregation._base import Fit, picks_of
from labelonce.data import Annotations
from labelonce.workers import Grouped
from labelonce.workers._grouped import moved

_SETTLED = 1e-5  # of the log-likelihood per annotation: a population is fitted in every iteration, so it jitters


def fit_with_worker_model(
    worker_model: Any,
    annotations: Annotations,
    gold: Codes | None,
    *,
    prior: Any,
    max_iter: int,
    tol: float,
    dtype: str,
    engine: str,
    device: str | None,
    rng: np.random.Generator,
) -> Fit:
    """Return posteriors and workers, each fitted to the other from the votes on."""
    if not isinstance(worker_model, Grouped):
        raise TypeError(f"worker_model must be None or workers.Grouped(...); got {show(worker_model)}.")
    model = clone(worker_model)
    cells = LabelCells(annotations, gold)
    votes = cells.candidates(*cells.fractions(cells.votes()))
    picks = np.where(cells.number > 0, picks_of(votes, rng), -1).astype(np.int32)
    model.prepare(annotations, picks)
    known = None if gold is None else gold[:, None]
    classes = candidate_classes(annotations, model._mistakes, known)
    check_memory(
        classes.shape[1] * (24 * len(annotations) + 48 * annotations.n_tasks),
        f"{annotations.n_tasks:,} tasks with up to {classes.shape[1]:,} candidate classes each",
        "Use smaller groups, or Grouped() without groups, which keeps the commonest mistakes.",
    )
    sums = make_candidate_engine(annotations, classes, *model.pattern, dtype=dtype, engine=engine, device=device)
    posterior, converged = moved(votes, classes), False
    path: list[float] = []
    while not converged and len(path) < max_iter:
        model.fit_tallies(sums.m_step(posterior))
        shares = _prior(prior, posterior)
        step = sums.e_step(model.factors_, _log_prior(shares, classes, gold))
        posterior = step.posterior
        path.append(step.log_likelihood)
        converged = len(path) > 1 and abs(path[-1] - path[-2]) <= max(tol, _SETTLED) * len(annotations)
    more = {"worker_model_": model}
    return Fit(posterior, model.factors_, shares, np.array([]), converged, len(path), more)


def _prior(prior: Any, posterior: Candidates) -> Floats:
    n_classes = posterior.n_classes
    if not isinstance(prior, str):
        return np.asarray(prior, dtype=np.float64)
    if prior == "uniform":
        return np.full(n_classes, 1 / n_classes)
    shares = posterior.shares() + 1.0
    return np.asarray(shares / shares.sum())


def _log_prior(prior: Floats, classes: Codes, gold: Codes | None) -> Floats:
    """Return log P(true label) by candidate, (n_tasks, width + 1), last of all other classes; gold is certain."""
    own = np.where(classes >= 0, prior[classes], 0.0)
    wide = np.concatenate([own, np.maximum(1 - own.sum(axis=1, keepdims=True), 0.0)], axis=1)
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        wide[known, :-1] = classes[known] == gold[known, None]
        wide[known, -1] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(wide))
