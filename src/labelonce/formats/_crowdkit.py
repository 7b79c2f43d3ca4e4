"""crowd-kit's pandas objects: the frame of annotations, and what its aggregators return."""

from typing import Any

import numpy as np

from labelonce._messages import shorten
from labelonce._types import Duplicates
from labelonce.data import Annotations


def from_crowdkit(frame: Any, *, duplicates: Duplicates = "error") -> Annotations:
    """Return the annotations of a frame with columns task, worker (in old versions performer) and label.

    Examples
    --------
    >>> import pandas as pd
    >>> from_crowdkit(pd.DataFrame({"task": [1, 1], "performer": ["x", "y"], "label": ["cat", "dog"]}))
    Annotations(2 annotations: 1 tasks x 2 workers, 2 classes, redundancy 2)
    """
    old = "worker" not in frame.columns and "performer" in frame.columns
    return Annotations.from_frame(frame, worker="performer" if old else "worker", duplicates=duplicates)


def to_crowdkit(annotations: Annotations) -> Any:
    """Return a pandas frame with columns task, worker, label for the `fit` of any crowd-kit aggregator."""
    import pandas as pd

    task, worker = annotations.tasks[annotations.task], annotations.workers[annotations.worker]
    return pd.DataFrame({"task": task, "worker": worker, "label": annotations.classes[annotations.label]})


def to_crowdkit_labels(model: Any) -> Any:
    """Return a fitted model's labels as crowd-kit's `labels_`: a series `agg_label` by task."""
    import pandas as pd

    return pd.Series(list(model.labels_), index=pd.Index(list(model.tasks_), name="task"), name="agg_label")


def to_crowdkit_probas(model: Any) -> Any:
    """Return a fitted model's posterior as crowd-kit's `probas_`: one row per task, one column per class."""
    import pandas as pd

    tasks = pd.Index(list(model.tasks_), name="task")
    return pd.DataFrame(model.posterior_, index=tasks, columns=pd.Index(list(model.classes_), name="label"))


def gold_from_crowdkit(labels: Any) -> dict[Any, Any]:
    """Return crowd-kit's aggregated labels, `labels_` or `probas_`, as a mapping of task to label.

    It serves as `gold`, or to compare two methods.

    Examples
    --------
    >>> import pandas as pd
    >>> gold_from_crowdkit(pd.Series(["cat", "dog"], index=pd.Index([1, 2], name="task"), name="agg_label"))
    {1: 'cat', 2: 'dog'}
    """
    if not hasattr(labels, "to_numpy"):
        raise TypeError(f"labels must be crowd-kit's labels_ or probas_; got {type(labels).__name__}.")
    tasks = labels.index.tolist()
    if len(set(tasks)) < len(tasks):
        raise ValueError(f"labels must name a task once; got {shorten(tasks, 3)} with repeats.")
    if not hasattr(labels, "columns"):
        return dict(zip(tasks, labels.tolist(), strict=True))
    best = np.argmax(labels.to_numpy(), axis=1)
    return dict(zip(tasks, [labels.columns.tolist()[k] for k in best], strict=True))
