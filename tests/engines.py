"""What every engine is checked against: sums written as loops."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from labelonce import Annotations
from labelonce._kernels import _engine
from labelonce._types import Floats


@contextmanager
def all_by(engine: str) -> Iterator[None]:
    """Have "scipy" or "torch" do all sums that may be done by either, whatever the size."""
    with patch.object(_engine, "_engine_that_pays", lambda *_: engine):
        yield


def random_parameters(ann: Annotations) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    confusion = rng.dirichlet(np.ones(ann.n_answers), (ann.n_workers, ann.n_classes))
    return np.log(np.maximum(confusion, 1e-12)), np.log(rng.dirichlet(np.full(ann.n_classes, 5.0)))


def brute_force_e_step(ann: Annotations, log_confusion: Floats, log_prior: Floats) -> tuple[Floats, float]:
    log_joint = np.tile(log_prior, (ann.n_tasks, 1))
    for task, worker, label in zip(ann.task, ann.worker, ann.label, strict=True):
        log_joint[task] += log_confusion[worker, :, label]
    evidence = np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    return np.exp(log_joint - evidence), float(evidence.sum())


def brute_force_votes(ann: Annotations) -> Floats:
    votes = np.zeros((ann.n_tasks, ann.n_classes))
    for task, label in zip(ann.task, ann.label, strict=True):
        votes[task] += ann.leaning[label]
    return votes


def brute_force_m_step(ann: Annotations, posterior: Floats) -> Floats:
    counts = np.zeros((ann.n_workers, ann.n_classes, ann.n_answers))
    for task, worker, label in zip(ann.task, ann.worker, ann.label, strict=True):
        counts[worker, :, label] += posterior[task]
    return counts
