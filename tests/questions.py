"""Small crowds that answer questions, for the tests of this room."""

from typing import Any, NamedTuple

import numpy as np

from labelonce._types import Floats, Mask
from labelonce.multilabel import MultiLabelAnnotations


class Crowd(NamedTuple):
    """Simulated answers and what is true: `y_true` (n_tasks, n_questions), `confusion` [worker, question, 2, 2]."""

    annotations: MultiLabelAnnotations
    y_true: Mask
    confusion: Floats


def crowd(
    *,
    n_tasks: int = 300,
    n_questions: int = 4,
    n_workers: int = 12,
    redundancy: int = 3,
    yes: Any = 0.3,
    per_question: bool = False,
    y_true: Any = None,
    seed: int = 0,
) -> Crowd:
    """Return workers who miss and invent labels at rates of their own, the same for all questions or not."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_tasks, n_questions)) < yes if y_true is None else np.asarray(y_true, dtype=bool)
    n_tasks, n_questions = truth.shape
    rate = rng.beta(2, 5, size=(n_workers, n_questions if per_question else 1, 2))
    wrong = np.broadcast_to(rate, (n_workers, n_questions, 2))
    confusion = np.stack([1 - wrong[..., 0], wrong[..., 0], wrong[..., 1], 1 - wrong[..., 1]], axis=-1)
    confusion = confusion.reshape(n_workers, n_questions, 2, 2)
    who = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :redundancy]
    task = np.repeat(np.arange(n_tasks), redundancy * n_questions)
    worker = np.repeat(who.ravel(), n_questions)
    question = np.tile(np.arange(n_questions), n_tasks * redundancy)
    chance = confusion[worker, question, truth[task, question].astype(int), 1]
    answer = (rng.random(len(task)) < chance).astype(int)
    names = [f"q{number}" for number in range(n_questions)]
    made = MultiLabelAnnotations.from_arrays(
        task, np.array(names)[question], worker, answer, questions=names, answers=[0, 1]
    )
    return Crowd(made, truth, confusion)
