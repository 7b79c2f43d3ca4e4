"""The list to act on: given labels that are probably wrong, the most likely first."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._kernels import Beliefs
from labelonce._messages import shorten
from labelonce._rules import RULES
from labelonce._types import Codes, Ids
from labelonce._validate import check_number
from labelonce.data import Annotations, _ids

REPLACE, CHECK, KEEP = "replace", "check", "keep"


def review_table(
    annotations: Annotations,
    posterior: Any,
    labels: Codes,
    *,
    least: float | None = None,
    shown: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Return one row per given label whose chance of being wrong is at least `least`, the most likely wrong first.

    `posterior` is P(true label), an array or `Beliefs`, and `labels` our label of every task. `shown` are further
    columns with one entry per task, such as texts. What to do: "replace" where another label is at least as probable
    as the rule `review_replace` says, "keep" where the given one is ours and has at least `review_keep`, otherwise
    "check". Answers that are no class cannot be wrong and are not listed.
    """
    least = RULES.review_least if least is None else check_number(least, "least", 0.0, 1.0)
    if annotations.is_scale:
        raise ValueError(
            f"a review must be of answers that are classes, which can be wrong; got the scale "
            f"{shorten(annotations.answers)}. Look at the tasks of low confidence instead."
        )
    annotations = annotations.only_classes()
    wrong = 1 - Beliefs.of(posterior).at(annotations.task, annotations.label)
    order = np.argsort(-wrong, kind="stable")
    order = order[wrong[order] >= least]
    task, given = annotations.task[order], annotations.label[order]
    columns: dict[str, Any] = {"task": pa.array(annotations.tasks[task])}
    columns |= {name: _taken(values, task) for name, values in (shown or {}).items()}
    columns |= {
        "given": _ids.decode(given, annotations.classes),
        "worker": pa.array(annotations.workers[annotations.worker[order]]),
        "label": _ids.decode(labels[task], annotations.classes),
        "chance_wrong": wrong[order],
        "action": pa.array(what_to_do(posterior, labels, task, given)),
    }
    return pa.table(columns)


def what_to_do(posterior: Any, labels: Codes, task: Codes, given: Codes) -> Ids:
    """Return "replace", "check" or "keep" for every given label.

    >>> posterior = np.array([[0.95, 0.05], [0.6, 0.4], [0.9, 0.1]])
    >>> what_to_do(posterior, np.zeros(3, np.int32), np.arange(3), np.array([1, 1, 0])).tolist()
    ['replace', 'check', 'keep']
    """
    ours = labels[task]
    right = Beliefs.of(posterior).at(task, ours)
    kept = (ours == given) & (right >= RULES.review_keep)
    replaced = (ours != given) & (right >= RULES.review_replace)
    return np.where(kept, KEEP, np.where(replaced, REPLACE, CHECK)).astype(object)


def _taken(values: Any, task: Codes) -> Any:
    taken = values if isinstance(values, pa.ChunkedArray | pa.Array) else pa.array(values)
    return taken.take(pa.array(task))
