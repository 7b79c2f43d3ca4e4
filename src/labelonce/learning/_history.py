"""The history of a fit: what changed in each round."""

from typing import Any

import numpy as np

from labelonce.data._answers import agreement
from labelonce.learning._problem import Problem
from labelonce.learning._rounds import Round


def history_entry(problem: Problem, this: Round) -> dict[str, Any]:
    """Return one row of the history, over the rows of all processes."""
    agreed, total = agreement(problem.labels, this.predictions.argmax())
    n_rows = problem.labels.n_tasks
    sums = np.array([n_rows, total, agreed, this.beliefs.max().sum(), n_rows * this.change])
    rows, labels, agreed_sum, sure, change = np.asarray(
        problem.evidence.total(sums) if problem.shared else sums
    ).tolist()
    return {
        "round": this.number,
        "agreement": agreed_sum / max(labels, 1e-300),
        "mean_confidence": sure / rows,
        "log_likelihood": this.log_likelihood,
        "held_out_score": float("nan"),
        "posterior_change": change / rows,
    }
