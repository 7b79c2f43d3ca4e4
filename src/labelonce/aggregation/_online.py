"""Learning from annotations as they arrive: `partial_fit` of the models fitted by EM."""

from typing import Self

import numpy as np

from labelonce._kernels import Beliefs, make_evidence
from labelonce._messages import shorten, show
from labelonce._types import Codes, Ids, Mask
from labelonce._validate import check_rng
from labelonce.aggregation._base import Fit
from labelonce.aggregation._em import AnswersEM, first_counts
from labelonce.data import Annotations, Gold, _ids, check_whole, sorted_annotations

# All tasks get a step when annotations have grown by this factor since the last such step. More often, and EM settles
# on what few labels say: with 1.1, IBCC ends at 28 % right labels for 92 after 1,000 batches of a crowd of 100k labels.
_GROWTH = 1.5


class OnlineEM(AnswersEM):
    """EM that also takes its annotations in batches, after Welinder and Perona.

    References
    ----------
    P. Welinder and P. Perona, "Online Crowdsourcing: Rating Annotators and Obtaining Cost-Effective Labels", CVPR
    Workshops 2010.

    R. M. Neal and G. E. Hinton, "A View of the EM Algorithm that Justifies Incremental, Sparse, and Other Variants",
    Learning in Graphical Models, 1998.
    """

    _fitted_on: tuple[Annotations, Codes | None, int]  # all so far, gold, and how many there were when all had a step

    def partial_fit(self, annotations: Annotations, *, gold: Gold | None = None) -> Self:
        """Take further annotations, with new tasks and new workers among them, and update all results by one step.

        The tasks of the batch get an E-step from what is known of the workers, the others keep their posterior until
        the annotations have grown by half, and workers and prior follow from all (incremental EM, Neal and Hinton).
        After `fit`, batches continue from its result. Tasks and workers keep their places, new ones follow. A batch
        costs about as much as an iteration of a fit. `log_likelihood_` is empty and `converged_` False.

        Parameters
        ----------
        annotations : Annotations
            The first batch sets the classes and answers: declare them all, by `classes=...`, if it may lack one. A
            worker who labelled a task in an earlier batch may not label it again.
        gold : mapping or array, optional
            Known true labels of tasks of this batch, as in `fit`.
        """
        if getattr(self, "worker_model", None) is not None:
            raise ValueError(
                f"partial_fit must have worker_model=None; got {self.worker_model!r}. Call fit with all annotations."
            )
        annotations, codes = self._checked(annotations, gold)
        if not hasattr(self, "classes_"):
            self._check_options(annotations.n_classes)
            return self._step(annotations, codes, None, 0)
        if not hasattr(self, "_fitted_on"):
            raise ValueError(
                f"partial_fit needs the annotations so far, and a saved {type(self).__name__} has none; "
                "fit all of them again, then continue with partial_fit."
            )
        before, known, stepped = self._fitted_on
        every, codes, touched = _joined(before, known, annotations, codes)
        return self._step(every, codes, touched, stepped)

    def _step(self, annotations: Annotations, gold: Codes | None, touched: Mask | None, stepped: int) -> Self:
        """Run an E+M step on the touched tasks, or on all if it is time; the first starts from the votes."""
        evidence = make_evidence(annotations, dtype=self.dtype, device=self.device)
        if touched is None:
            start = evidence.votes(gold).to_dense()
        else:
            start = np.zeros((annotations.n_tasks, annotations.n_classes), dtype=self.dtype)
            start[: len(self.posterior_)] = self.posterior_  # new tasks say nothing of their workers yet
        found = self._next(first_counts(evidence, Beliefs.of(start)), None)
        log_prior = evidence.log_prior(found.prior) if found.log_prior is None else found.log_prior
        posterior = evidence.e_step(found.confusion, log_prior, gold).beliefs.to_dense()
        if touched is not None and len(annotations) < _GROWTH * stepped:
            posterior = np.where(touched[:, None], posterior, start)
        else:
            stepped = len(annotations)
        found = self._next(first_counts(evidence, Beliefs.of(posterior)), None)
        fit = Fit(posterior, found.confusion, found.prior, np.array([]), False, 1)
        self._keep(annotations, gold, fit, check_rng(self.random_state))
        self._fitted_on = (annotations, gold, stepped)
        return self

    def _keep(self, annotations: Annotations, gold: Codes | None, fit: Fit, rng: np.random.Generator) -> Self:
        super()._keep(annotations, gold, fit, rng)
        self._fitted_on = (annotations, gold, len(annotations))  # `save` leaves them out
        return self


def _joined(
    before: Annotations, known: Codes | None, more: Annotations, gold: Codes | None
) -> tuple[Annotations, Codes | None, Mask]:
    """Return all annotations with new ids after the old ones, the gold of all tasks, and which are new or labelled."""
    for one in (before, more):
        check_whole(one, "partial_fit")
    tasks, task = _extended(before.tasks, more.tasks, "tasks")
    workers, worker = _extended(before.workers, more.workers, "workers")
    label = _ids.lookup(more.answers, before.answers)
    unknown = np.flatnonzero(label[more.label] < 0)
    if len(unknown):
        what = "classes" if before.is_square else "answers"
        raise ValueError(
            f"labels must be among the {what} of the first batch, {shorten(before.answers)}; got "
            f"{show(more.answers[more.label[unknown[0]]])} ({len(unknown)} in total). Declare all {what} in the first "
            "batch."
        )
    new = (task[more.task], worker[more.worker], label[more.label])
    _reject_repeats(before, new[0], new[1], tasks, workers)
    rows = [np.concatenate(pair) for pair in zip((before.task, before.worker, before.label), new, strict=True)]
    tables = (tasks, workers, before.classes, before.answers)
    every = sorted_annotations(rows[0], rows[1], rows[2], *tables, duplicates="keep")
    codes = np.full(len(tasks), -1, dtype=np.int32)
    if known is not None:
        codes[: len(known)] = known
    if gold is not None:
        codes[task[gold >= 0]] = _classes_of(gold, before, more)
    touched = np.arange(len(tasks)) >= before.n_tasks
    touched[task] = True
    return every, codes if (codes >= 0).any() else None, touched


def _extended(old: Ids, new: Ids, name: str) -> tuple[Ids, Codes]:
    """Return the old ids with those of `new` that are not among them, and the code of each new id."""
    _ids.check_same_kind(new, name, old)
    codes = _ids.lookup(new, old)
    unknown = codes < 0
    codes = np.where(unknown, len(old) - 1 + np.cumsum(unknown, dtype=np.int32), codes)
    return np.concatenate([old, new[unknown]]), codes


def _reject_repeats(before: Annotations, task: Codes, worker: Codes, tasks: Ids, workers: Ids) -> None:
    """Refuse a worker who labelled a task of an earlier batch again."""
    touched = np.zeros(len(tasks), dtype=bool)
    touched[task] = True
    rows = touched[before.task]
    old = before.task[rows] * np.int64(len(workers)) + before.worker[rows]
    again = np.flatnonzero(np.isin(task * np.int64(len(workers)) + worker, old))
    if len(again):
        raise ValueError(
            f"a worker must label a task once; got worker {show(workers[worker[again[0]]])} on task "
            f"{show(tasks[task[again[0]]])} again in a later batch ({len(again)} in total)."
        )


def _classes_of(gold: Codes, before: Annotations, more: Annotations) -> Codes:
    """Return the known gold in the codes of the first batch."""
    known = np.flatnonzero(gold >= 0)
    codes = _ids.lookup(more.classes, before.classes)[gold[known]]
    outside = known[codes < 0]
    if len(outside):
        raise ValueError(
            f"gold must be among the classes of the first batch, {shorten(before.classes)}; got "
            f"{show(more.classes[gold[outside[0]]])} for task {show(more.tasks[outside[0]])}. Declare all classes in "
            "the first batch."
        )
    return codes
