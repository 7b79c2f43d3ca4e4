"""Learning from annotations as they arrive: `partial_fit` of the models fitted by EM."""

from __future__ import annotations

from copy import deepcopy
from itertools import repeat
from typing import Any, NamedTuple, Self

import numpy as np

from labelonce._kernels import ScipyEngine, top_class, vote_fractions
from labelonce._messages import shorten, show
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_rng
from labelonce.aggregation._base import set_fitted
from labelonce.aggregation._em import AnswersEM, Parameters
from labelonce.data import Annotations, _ids
from labelonce.data._answers import class_leanings, holds_classes
from labelonce.data._gold import Gold, check_gold

_GROWTH = 1.5  # all tasks are visited again when there are so many times the annotations of the last visit
_VISIT = 1  # E+M steps on all tasks then
_STALE = 1.02  # the workers are estimated again when there are so many times the annotations of the last estimate
_REFRESH = 4  # E+M steps on all tasks before the results are read

_FITTED = frozenset(
    {"tasks_", "workers_", "classes_", "posterior_", "labels_", "confusion_", "prior_", "skill_"}
    | {"log_likelihood_", "n_iter_", "converged_", "_annotation_counts"}
)


class OnlineEM(AnswersEM):
    """EM that also takes its annotations in batches, after Welinder and Perona.

    References
    ----------
    P. Welinder and P. Perona, "Online Crowdsourcing: Rating Annotators and Obtaining Cost-Effective Labels", CVPR
    Workshops 2010.

    R. M. Neal and G. E. Hinton, "A View of the EM Algorithm that Justifies Incremental, Sparse, and Other Variants",
    Learning in Graphical Models, 1998.
    """

    def partial_fit(self, annotations: Annotations, *, gold: Gold | None = None) -> Self:
        """Take further annotations, with new tasks and new workers among them, without a full rerun.

        The tasks of the batch get an E+M step of their own, from what is known of the workers; the expected counts of
        all other tasks stay as they are (incremental EM, Neal and Hinton). Whenever the annotations have
        grown by half, all tasks are visited, and once more when a fitted attribute is read: reading costs a few
        steps over all annotations, taking a batch does not. Tasks and workers keep their places, new ones
        follow. `log_likelihood_` holds the objective at each visit, of the annotations there were then; `converged_`
        is False. After `fit`, the batches continue from its result.

        Parameters
        ----------
        annotations : Annotations
            The first batch sets the classes and answers: declare them all, by `classes=...`, if it may lack one. A
            worker who labelled a task in an earlier batch may not label it again.
        gold : mapping or array, optional
            Known true labels of tasks of this batch, as in `fit`.
        """
        if not isinstance(annotations, Annotations):
            raise TypeError(f"annotations must be Annotations; got {type(annotations).__name__}.")
        codes = None if gold is None else check_gold(gold, annotations)
        if not hasattr(self, "_stream"):
            self._stream = self._first_stream(annotations)
        self._stream.add(annotations, codes)
        for name in _FITTED & vars(self).keys():
            delattr(self, name)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave the annotations of `fit` out: they may be larger than all that was learned from them."""
        state = dict(super().__getstate__())
        if state.pop("_fitted_on", None) is not None and "_stream" not in state:
            state["_was_saved"] = True
        return state

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that `partial_fit` can continue; only a file leaves the annotations out."""
        copy = memo[id(self)] = type(self).__new__(type(self))
        copy.__dict__.update(deepcopy(vars(self), memo))
        return copy

    def settled(self) -> Self:
        """Return a copy that has what was found, but not the annotations to continue from."""
        copy: Self = clone(self)
        copy.__dict__.update(vars(self))
        if "_stream" in vars(self):
            self._stream.set_fitted_on(copy)
        copy._remember(None, None)
        return copy

    def _first_stream(self, annotations: Annotations) -> Stream:
        """Return a stream without annotations, or with those of an earlier `fit`."""
        if hasattr(self, "_was_saved"):
            raise ValueError(
                f"partial_fit needs the annotations so far, and a saved {type(self).__name__} has none; "
                "fit all of them again, then continue with partial_fit."
            )
        if not hasattr(self, "_fitted_on"):
            self._check_options(annotations.n_classes)
            return Stream(self, annotations.classes, annotations.answers)
        before, gold = self._fitted_on
        stream = Stream(self, before.classes, before.answers)
        stream.take_over(before, gold, self.posterior_)
        return stream

    def __getattr__(self, name: str) -> Any:
        if name in _FITTED and "_stream" in vars(self):
            self._stream.set_fitted_on(self)
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _quick_m_step(
        self, confusion_counts: Floats, class_counts: Floats, leaning: Floats | None = None
    ) -> Parameters:
        """Return what `_m_step` does, for a caller who has no use for its `log_penalty`."""
        return self._m_step(confusion_counts, class_counts, leaning)

    def _remember(self, annotations: Annotations | None, gold: Codes | None) -> None:
        for name in ("_stream", "_fitted_on", "_was_saved"):
            self.__dict__.pop(name, None)
        if annotations is None:
            self._was_saved = True  # there is nothing that partial_fit could resume from
        else:
            self._fitted_on = (annotations, gold)


class Stream:
    """All annotations so far, the posterior of their tasks, and the expected counts that follow from it."""

    parameters: Parameters

    def __init__(self, model: OnlineEM, classes: Ids, answers: Ids) -> None:
        self._model = model
        self.classes, self.answers = classes, answers
        self._leaning = None if answers is classes else class_leanings(answers, classes)
        self.tasks, self.workers = _Table("tasks"), _Table("workers")
        n, none = len(classes), np.zeros(0, dtype=np.int32)
        self._task, self._worker, self._label = _Growing(none), _Growing(none), _Growing(none)
        self._before = _Growing(none)  # the row before of the same task, -1 for the first
        self._last = _Growing(none)  # the last row of each task
        self._gold = _Growing(none)
        self._posterior = _Growing(np.zeros((0, n), dtype=model.dtype))
        self._counts = _Growing(np.zeros((0, n, len(answers))))
        self._class_counts = np.zeros(n)
        self._visited = self._estimated = self._refreshed = 0
        self.path: list[float] = []

    def set_fitted_on(self, model: OnlineEM) -> None:
        """Set the fitted attributes after a visit of all tasks; no later batch changes them."""
        if self._refreshed < len(self._task):
            self.visit(_REFRESH)
            self._refreshed = len(self._task)
        set_fitted(
            model,
            confusion=self.parameters.confusion,
            prior=self.parameters.prior,
            workers=self.workers.ids.values.copy(),
            classes=self.classes,
            answers=self.answers,
            annotation_counts=np.bincount(self._worker.values, minlength=len(self.workers)),
            tasks=self.tasks.ids.values.copy(),
            posterior=self._posterior.values.copy(),
            picks=top_class(self._posterior.values, check_rng(self._model.random_state)),
            log_likelihood_=np.array(self.path),
            n_iter_=len(self.path),
            converged_=False,
        )

    def take_over(self, annotations: Annotations, gold: Codes | None, posterior: Floats) -> None:
        """Continue from a full fit."""
        batch = self._read(annotations, gold)
        self._append(batch)
        self._posterior.values[:] = posterior
        self._recount(self._engine(self._all_rows(), len(self.tasks)))
        self._visited = self._refreshed = len(self._task)
        self._estimate()

    def add(self, annotations: Annotations, gold: Codes | None) -> None:
        """Take a batch, or raise and stay as it was."""
        batch = self._read(annotations, gold)
        touched = batch.task[np.append(True, batch.task[1:] != batch.task[:-1])]  # a batch is sorted by task
        earlier = self._rows_of(touched[touched < len(self.tasks)])
        self._reject_repeats(annotations, batch, earlier)
        self._append(batch)
        if len(self._task) >= _GROWTH * self._visited:
            self.visit(_VISIT)
        else:
            self._improve(touched, batch, earlier)
        if len(self._task) >= _STALE * self._estimated:
            self._estimate()

    def _read(self, annotations: Annotations, gold: Codes | None) -> _Batch:
        """Return a batch in the codes of the stream; a label outside the classes is an error."""
        label_codes = _ids.lookup(annotations.answers, self.answers)
        unknown = np.flatnonzero(label_codes[annotations.label] < 0)
        if len(unknown):
            label = annotations.answers[annotations.label[unknown[0]]]
            what = "classes" if self._leaning is None else "answers"
            raise ValueError(
                f"labels must be among the {what} of the first batch, {shorten(self.answers)}; got "
                f"{show(label)} ({len(unknown)} in total). Declare all {what} in the first batch."
            )
        tasks, new_tasks = self.tasks.codes(annotations.tasks)
        workers, new_workers = self.workers.codes(annotations.workers)
        rows = (tasks[annotations.task], workers[annotations.worker], label_codes[annotations.label])
        gold = np.full(annotations.n_tasks, -1, dtype=np.int32) if gold is None else gold
        known, class_codes = np.flatnonzero(gold >= 0), _ids.lookup(annotations.classes, self.classes)
        outside = known[class_codes[gold[known]] < 0]
        if len(outside):
            raise ValueError(
                f"gold must be among the classes of the first batch, {shorten(self.classes)}; got "
                f"{show(annotations.classes[gold[outside[0]]])} for task "
                f"{show(annotations.tasks[outside[0]])}. Declare all classes in the first batch."
            )
        return _Batch(*rows, tasks[known], class_codes[gold[known]], new_tasks, new_workers)

    def _reject_repeats(self, annotations: Annotations, batch: _Batch, earlier: _Rows) -> None:
        """Refuse a worker who labelled a task of an earlier batch again."""
        n_workers = np.int64(len(self.workers) + len(batch.new_workers))
        new, old = (rows.task * n_workers + rows.worker for rows in (batch, earlier))
        old.sort()
        near = np.searchsorted(old, new)
        again = np.flatnonzero(np.append(old, -1)[near] == new)
        if len(again):
            task, worker = annotations.task[again[0]], annotations.worker[again[0]]
            raise ValueError(
                f"a worker must label a task once; got worker {show(annotations.workers[worker])} on task "
                f"{show(annotations.tasks[task])} again in a later batch ({len(again)} in total)."
            )

    def _append(self, batch: _Batch) -> None:
        """Add the rows, tasks and workers of a batch."""
        self.tasks.add(batch.new_tasks)
        self.workers.add(batch.new_workers)
        for column in (self._last, self._gold):
            column.extend(np.full(len(batch.new_tasks), -1, dtype=np.int32))
        self._posterior.extend(np.zeros((len(batch.new_tasks), len(self.classes))))
        self._counts.extend(np.zeros((len(batch.new_workers), *self._counts.values.shape[1:])))
        first = len(self._task)
        row = np.arange(first, first + len(batch.task), dtype=np.int32)
        same = np.append(False, batch.task[1:] == batch.task[:-1])  # a batch is sorted by task
        self._before.extend(np.where(same, row - 1, self._last.values[batch.task]))
        self._last.values[batch.task] = row
        self._task.extend(batch.task)
        self._worker.extend(batch.worker)
        self._label.extend(batch.label)
        self._gold.values[batch.gold_tasks] = batch.gold

    def _improve(self, touched: Codes, batch: _Batch, earlier: _Rows) -> None:
        """Run an E+M step on the touched tasks; the counts of the others stay."""
        if len(self.parameters.confusion) < len(self.workers):
            self._estimate()
        place = np.empty(len(self.tasks), dtype=np.int32)
        place[touched] = np.arange(len(touched), dtype=np.int32)
        new = self._engine(_Rows(place[batch.task], batch.worker, batch.label), len(touched))
        both = [np.concatenate(pair) for pair in zip(earlier, batch[:3], strict=True)]
        every = self._engine(_Rows(place[both[0]], both[1], both[2]), len(touched))
        before = self._posterior.values[touched]
        posterior, _ = every.e_step(self.parameters.log_confusion, self.parameters.log_prior, self._gold_of(touched))
        counts = self._counts.values
        counts += every.m_step(posterior - before)  # the earlier rows move from one posterior to the other
        counts += new.m_step(before)  # which the new rows never had
        np.maximum(counts, 0, out=counts)  # rounding
        self._class_counts = np.maximum(self._class_counts + (posterior.sum(axis=0) - before.sum(axis=0)), 0)
        self._posterior.values[touched] = posterior

    def visit(self, n_steps: int) -> None:
        """Run E+M steps on all tasks; the first visit starts from the votes."""
        engine, gold = self._engine(self._all_rows(), len(self.tasks)), self._gold_of(slice(None))
        if self._visited == 0:
            self._posterior.values[:] = vote_fractions(engine.vote_counts(), gold)
        self._recount(engine)
        for step in range(1, n_steps + 1):
            m_step = self._model._m_step if step == n_steps else self._model._quick_m_step
            parameters = m_step(self._counts.values, self._class_counts, self._leaning)
            self._posterior.values[:], log_likelihood = engine.e_step(
                parameters.log_confusion, parameters.log_prior, gold
            )
            self._recount(engine)
        self.parameters = parameters
        self.path.append(log_likelihood + parameters.log_penalty)
        self._visited = len(self._task)

    def _estimate(self) -> None:
        """Set the workers and the prior to what the counts say."""
        self.parameters = self._model._quick_m_step(self._counts.values, self._class_counts, self._leaning)
        self._estimated = len(self._task)

    def _recount(self, engine: ScipyEngine) -> None:
        """Set the counts to those of the posteriors."""
        self._counts.values[:] = engine.m_step(self._posterior.values)
        self._class_counts = self._posterior.values.sum(axis=0, dtype=np.float64)

    def _rows_of(self, tasks: Codes) -> _Rows:
        """Return all rows of some tasks."""
        found, row = [np.zeros(0, dtype=np.int32)], self._last.values[tasks]
        while len(row := row[row >= 0]):
            found.append(row)
            row = self._before.values[row]
        rows = np.concatenate(found)
        return _Rows(self._task.values[rows], self._worker.values[rows], self._label.values[rows])

    def _all_rows(self) -> _Rows:
        return _Rows(self._task.values, self._worker.values, self._label.values)

    def _gold_of(self, tasks: Any) -> Codes | None:
        gold = self._gold.values[tasks]
        return gold if (gold >= 0).any() else None

    def _engine(self, rows: _Rows, n_tasks: int) -> ScipyEngine:
        tables = [np.arange(n) for n in (n_tasks, len(self.workers), len(self.classes), len(self.answers))]
        if self._leaning is not None and not holds_classes(self.answers, self.classes):
            tables[3] += len(self.classes)  # no answer is a class
        return ScipyEngine(Annotations(*rows, *tables), self._model.dtype)


class _Rows(NamedTuple):
    task: Codes
    worker: Codes
    label: Codes


class _Batch(NamedTuple):
    """A batch in the codes of the stream, those of its new ids included."""

    task: Codes
    worker: Codes
    label: Codes
    gold_tasks: Codes
    gold: Codes
    new_tasks: Ids
    new_workers: Ids


class _Growing:
    """An array that grows at the end, in amortised constant time; `values` is a view that can be written to."""

    def __init__(self, empty: Any) -> None:
        self._buffer, self._length = empty, 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> Any:
        return self._buffer[: self._length]

    def extend(self, rows: Any) -> None:
        end = self._length + len(rows)
        if end > len(self._buffer):
            larger = np.empty((max(end, 2 * len(self._buffer)), *self._buffer.shape[1:]), dtype=self._buffer.dtype)
            larger[: self._length] = self.values
            self._buffer = larger
        self._buffer[self._length : end] = rows
        self._length = end


class _Table:
    """Ids in the order in which they came."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._code: dict[Any, int] = {}
        self.ids = _Growing(np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self._code)

    def codes(self, ids: Ids) -> tuple[Codes, Ids]:
        """Return the codes of distinct ids, new ones counted on from the end, and the new ids."""
        if len(self):
            _ids.check_same_kind(ids, self._name, self.ids.values)
        found = map(self._code.get, ids.tolist(), repeat(-1))
        codes = np.fromiter(found, dtype=np.int32, count=len(ids))
        new = np.flatnonzero(codes < 0)
        codes[new] = np.arange(len(self), len(self) + len(new), dtype=np.int32)
        return codes, ids[new]

    def add(self, new: Ids) -> None:
        """Take in ids that are not here yet."""
        if len(self) == 0:
            self.ids = _Growing(np.zeros(0, dtype=new.dtype))
        self._code.update(zip(new.tolist(), range(len(self), len(self) + len(new)), strict=True))
        self.ids.extend(new)
