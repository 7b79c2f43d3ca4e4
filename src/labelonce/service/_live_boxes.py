"""Several labels per task: every class is a question, which each answer says yes or no to by a check box."""

from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._types import Floats
from labelonce.service._boxes import ANSWERS, answers_of, ticked
from labelonce.service._live import Live


class LiveBoxes(Live):
    """A project in which any of the classes may be true of a task.

    The router's rows are the boxes, with two classes each. A task is settled when the error
    probability of each box is at most `settled_risk`.
    """

    def is_label(self, label: str) -> bool:
        """Return whether everything ticked is one of the classes."""
        return set(ticked(label)) <= set(self.settings.classes)

    def labels(self, start: int, end: int) -> list[dict[str, Any]]:
        """Return the labels found so far of some tasks, with their confidence: that of the least sure box."""
        part, classes = slice(start, min(end, len(self.tasks))), self.settings.classes
        rows = zip(self.tasks.names[part], self._chances(part), self.labels_per_task[part].tolist(), strict=True)
        risk, is_open = self.router.belief.risk[part].tolist(), self.router.open[part].tolist()
        return [
            {
                "task": task,
                "label": [one for one, chance in zip(classes, chances, strict=True) if chance > 0.5],
                "confidence": 1 - risk[place],
                "labels": n_labels,
                "settled": not is_open[place],
                "probabilities": dict(zip(classes, chances.tolist(), strict=True)),
            }
            for place, (task, chances, n_labels) in enumerate(rows)
        ]

    def labels_table(self) -> pa.Table:
        """Return one row per task and class: whether it is true of the task, with its probability."""
        chances, classes = self._chances(slice(None)), self.settings.classes
        of_tasks = (self.tasks.ids, self.labels_per_task, self.router.open)
        task, labels, is_open = (np.repeat(one, len(classes)) for one in of_tasks)
        columns = {"task": pa.array(task), "question": pa.array([*classes] * len(self.tasks))}
        columns |= {"label": (chances > 0.5).astype(np.int8).ravel(), "probability": chances.ravel()}
        return pa.table(columns | {"labels": labels, "settled": ~is_open})

    def _chances(self, part: slice) -> Floats:
        """Return P(yes) of every box of some tasks, (n_tasks, n_classes)."""
        return self.router.belief.posterior(part)[:, 1].reshape(-1, len(self.settings.classes))

    def _answers(self) -> list[str]:
        return [*ANSWERS]

    def _questions(self) -> list[str]:
        return [*self.settings.classes]

    def _answer(self, label: str) -> Any:
        return answers_of([label], self.settings.classes)[0]
