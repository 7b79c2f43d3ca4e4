"""Calibration: of the posterior where gold is known, else of the labels that the fit predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.report._facts import Facts

_BINS = 10
_MOST_LABELS = 50_000
_MOST_ENTRIES = 5_000_000  # of the workers' matrices, one for every label looked at


@dataclass(frozen=True)
class Calibration:
    """Ten bins by predicted probability: the mean prediction, the observed share and the number of each.

    `error` is the mean distance over all cases, the expected calibration error.
    """

    against_gold: bool
    n: int
    error: float
    bins: list[dict[str, Any]]


def gold_calibration(facts: Facts, gold: Codes) -> Calibration:
    """Return how often the label of a gold task is right, by its probability."""
    known = np.flatnonzero(gold >= 0)
    promised = facts.posterior[known, facts.label[known]]
    return _calibration(promised, facts.label[known] == gold[known], against_gold=True)


def label_calibration(facts: Facts) -> Calibration | None:
    """Return how often workers give the label that a fit without this label expects; None if that is not known.

    Where the posterior comes from held-out models it cannot: dividing by a label's factor would not leave it out. Any
    other posterior is a product with a factor for every label, so that dividing by one factor leaves it out; the
    worker's matrix, too, is estimated without the label.
    """
    if not facts.comparable or facts.estimate is not None or facts.annotations.n_classes == 1:
        return None
    ann = facts.annotations
    n = min(_MOST_LABELS, max(1, _MOST_ENTRIES // ann.n_classes**2))
    rows = np.random.default_rng(0).permutation(len(ann))[:n]
    task, worker, label = ann.task[rows], ann.worker[rows], ann.label[rows]
    belief = without_label(facts.belief[task], facts.belief_confusion[worker], label)
    expected = np.einsum("ak,aks->as", belief, facts.counts.confusion_without(worker, label, facts.belief[task]))
    pick = expected.argmax(axis=1)
    return _calibration(expected[np.arange(len(rows)), pick], pick == label, against_gold=False)


def without_label(posterior: Floats, confusion: Floats, label: Codes) -> Floats:
    """Return the posterior of each annotation's task as it would be without this annotation.

    All arguments have one row per annotation: the posterior of its task, its worker's matrix, and its label.
    """
    without = posterior / np.maximum(confusion[np.arange(len(label)), :, label], 1e-10)
    return np.asarray(without / without.sum(axis=1, keepdims=True))


def _calibration(promised: Floats, came: Any, *, against_gold: bool) -> Calibration:
    place = np.minimum((promised * _BINS).astype(int), _BINS - 1)
    n, total, hits = (
        np.bincount(place, weights=weight, minlength=_BINS) for weight in (None, promised, came.astype(float))
    )
    bins = [
        {"n": int(n[i]), "promised": total[i] / n[i], "came": hits[i] / n[i], "low": i / _BINS, "high": (i + 1) / _BINS}
        for i in np.flatnonzero(n)
    ]
    return Calibration(against_gold, len(promised), float(np.abs(total - hits).sum() / len(promised)), bins)
