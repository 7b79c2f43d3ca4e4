"""Questions as rows: a row is a task and a question that somebody was asked about it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from labelonce._kernels import Beliefs
from labelonce._types import Codes, Floats, Ids, Mask
from labelonce.multilabel._annotations import MultiLabelAnnotations

CLASSES: Ids = np.array(["no", "yes"], dtype=object)


@dataclass(frozen=True, eq=False)
class PairLabels:
    """Answers as labels of rows, given by cells, a cell being a worker and a question.

    It has the names of `Annotations` that sums need. The first answer is the one that means no, the second the one that
    means yes, then others.
    """

    task: Codes  # (n_answers_given,): The row of each answer given
    worker: Codes  # (n_answers_given,): Its cell
    label: Codes  # (n_answers_given,): The answer itself
    row_task: Codes  # (n_tasks,): The task of every row
    row_question: Codes  # (n_tasks,): The question of every row
    cell_worker: Codes  # (n_workers,): The worker of every cell
    cell_question: Codes  # (n_workers,): The question of every cell
    values: Floats  # (n_answers,): How much of a yes each answer is, NaN where it says neither
    order: Codes  # (n_answers,): The code that each answer has in the annotations
    n_people: int
    n_questions: int
    each_question: bool = True

    is_scale = False
    n_classes = 2
    classes = CLASSES

    @classmethod
    def of(cls, annotations: MultiLabelAnnotations, *, each_question: bool = True) -> Self:
        """Return the rows and cells of annotations; without `each_question` every worker is one cell."""
        question = annotations.question if each_question else np.zeros_like(annotations.question)
        asked = annotations.worker.astype(np.int64) * annotations.n_questions + question
        cells, cell = np.unique(asked, return_inverse=True)
        values, start = annotations.values, annotations.pair_start
        no, yes = int(np.nanargmin(values)), int(np.nanargmax(values))
        order = np.array([no, yes, *(one for one in range(len(values)) if one not in (no, yes))], dtype=np.int32)
        return cls(
            annotations.pair.astype(np.int32),
            cell.astype(np.int32),
            np.argsort(order).astype(np.int32)[annotations.answer],
            annotations.task[start],
            annotations.question[start],
            (cells // annotations.n_questions).astype(np.int32),
            (cells % annotations.n_questions).astype(np.int32),
            values[order],
            order,
            annotations.n_workers,
            annotations.n_questions,
            each_question,
        )

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_tasks(self) -> int:
        """Number of rows."""
        return len(self.row_task)

    @property
    def n_workers(self) -> int:
        """Number of cells."""
        return len(self.cell_worker)

    @property
    def n_answers(self) -> int:
        """Number of answers, given by anybody or not."""
        return len(self.values)

    @cached_property
    def leaning(self) -> Floats:
        """The weight of each answer as evidence for no and for yes, (n_answers, 2)."""
        share = np.nan_to_num(self.values)
        says = ~np.isnan(self.values)
        return np.stack([(1 - share) * says, share * says], axis=1)

    @property
    def is_square(self) -> bool:
        """Whether the answers are no and yes."""
        return bool(np.array_equal(self.leaning, np.eye(2)))

    def select(self, rows: Mask) -> Self:
        """Return some of the rows; cells keep their codes."""
        kept, place = rows[self.task], np.cumsum(rows, dtype=np.int32) - np.int32(1)
        parts: dict[str, Any] = {"row_task": self.row_task[rows], "row_question": self.row_question[rows]}
        return replace(self, task=place[self.task[kept]], worker=self.worker[kept], label=self.label[kept], **parts)


def yes_beliefs(yes: Floats) -> Beliefs:
    """Return P(yes) of every row as beliefs."""
    return Beliefs.of(np.stack([1 - yes, yes], axis=1))


def by_question(labels: PairLabels, cells: Floats, workers: Floats) -> Floats:
    """Return P(answer | true) as [worker, question, true, answer], answers in the order of the annotations.

    `cells` is that of every cell; cells without answers are the worker's own, of `workers`.
    """
    found = np.repeat(workers[:, None], labels.n_questions, axis=1)
    if labels.each_question:
        found[labels.cell_worker, labels.cell_question] = cells
    else:
        found[labels.cell_worker] = cells[:, None]
    return np.asarray(found[..., np.argsort(labels.order)])
