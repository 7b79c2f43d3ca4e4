"""The history of a fit: what changed in each round."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import Candidates, Factors, mean_total_variation
from labelonce._processes import add_up
from labelonce.data import Annotations
from labelonce.data._answers import agreement
from labelonce.learning._rounds import Round


def history_entry(
    annotations: Annotations, this: Round, before: Round | None, *, shared: bool = False
) -> dict[str, Any]:
    """Return one row of the history; `shared`: over the tasks of all processes."""
    agreed, total = agreement(annotations, this.predictions.argmax(axis=1))
    n_tasks = annotations.n_tasks
    changed = np.nan if before is None else belief_change(this.posterior, before.posterior)
    sums = np.array([n_tasks, total, agreed, this.posterior.max(axis=1).sum(), n_tasks * changed])
    tasks, labels, agreed_sum, sure, change = (add_up(sums) if shared else sums).tolist()
    return {
        "round": this.number,
        "agreement": agreed_sum / max(labels, 1e-300),
        "mean_confidence": sure / tasks,
        "log_likelihood": this.log_likelihood,
        "held_out_score": float("nan"),
        "posterior_change": change / tasks,
        "worker_change": np.nan if before is None else worker_change(this.confusion, before.confusion),
    }


def belief_change(this: Any, before: Any) -> float:
    """Return the mean total variation between two posteriors of the same tasks."""
    return this.change(before) if isinstance(this, Candidates) else mean_total_variation(this, before)


def worker_change(this: Any, before: Any) -> float:
    """Return the mean total variation between rows of confusion; of factors, that of being right."""
    if not isinstance(this, Factors):
        return mean_total_variation(this, before)
    same = this.right.shape == before.right.shape
    return float(np.abs(this.right - before.right).mean()) if same else float("nan")
