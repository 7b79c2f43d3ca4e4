"""Who gave which answer to which question about which task."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from labelonce._messages import argument, shorten, show
from labelonce._types import DUPLICATES, Codes, Duplicates, Floats, Ids, Mask
from labelonce._validate import RandomState, check_choice, check_codes, check_columns, check_count, check_int, check_rng
from labelonce.data import Annotations, _ids, _rows
from labelonce.multilabel import _tables
from labelonce.multilabel._tables import check_answers, declare, encode_answers

if TYPE_CHECKING:
    from labelonce.multilabel._check import MultiLabelCheck

_CODES = ("task", "question", "worker", "answer")
_TABLES = ("tasks", "questions", "workers", "answers")
_NAMES = (*_CODES, *_TABLES, "values")


@dataclass(frozen=True, eq=False, repr=False)
class MultiLabelAnnotations:
    """Immutable (task, question, worker, answer) rows as dense codes, sorted by task, question and worker.

    A question is a label that a task may have or not, such as "dog"; an answer is what a worker said to it. A worker
    who was not asked has no row: *not asked* is not *no*. Build one with `from_arrays`, `from_frame`, `from_ticked`,
    `from_wide`, `from_indicator` or `labelonce.read_multilabel`.

    Attributes
    ----------
    task, question, worker, answer : int32 arrays of shape (n_annotations,)
        Codes: positions in the tables below. Read-only.
    tasks, questions, workers, answers : arrays
        The ids behind the codes, int64 or str. Tasks and questions are in the order in which they first appear in the
        data, workers are sorted, unless a table was given. A table may hold ids that no annotation uses.
    values : float array of shape (n_answers,)
        How much of a yes each answer is: 0 no, 1 yes, 0.5 maybe, NaN where it says neither by itself, such as "skip".

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.MultiLabelAnnotations.from_ticked(
    ...     ["p1", "p1", "p2"], ["ann", "bob", "bob"], [{"dog", "beach"}, {"dog"}, set()], questions=["dog", "beach"]
    ... )
    >>> ann
    MultiLabelAnnotations(6 answers: 2 tasks x 2 questions by 2 workers, 3 yes, redundancy 1.5)
    >>> ann.to_frame().slice(2, 2).to_pylist()[0]
    {'task': 'p1', 'question': 'beach', 'worker': 'ann', 'answer': 'yes'}
    """

    task: Codes
    question: Codes
    worker: Codes
    answer: Codes
    tasks: Ids
    questions: Ids
    workers: Ids
    answers: Ids
    values: Floats

    def __post_init__(self) -> None:
        check_columns(**{name: getattr(self, name) for name in _CODES})
        for name, table in zip(_CODES, _TABLES, strict=True):
            ids = _ids.table_of(getattr(self, table), table)
            self._set(table, ids)
            self._set(name, check_codes(getattr(self, name), f"{name} codes", len(ids)))
        self._set("values", check_answers(self.answers, self.values)[1])
        order = _order(self.task, self.question, self.worker, (self.n_tasks, self.n_questions, self.n_workers))
        if order is not None:
            for name in _CODES:
                self._set(name, getattr(self, name)[order])

    def _set(self, name: str, array: Ids) -> None:
        frozen = array.copy() if array.flags.writeable else array.view()
        frozen.flags.writeable = False
        object.__setattr__(self, name, frozen)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return MultiLabelAnnotations, self._arrays()

    def _arrays(self) -> tuple[Ids, ...]:
        return tuple(getattr(self, name) for name in _NAMES)

    @classmethod
    def from_arrays(
        cls,
        task: Any,
        question: Any,
        worker: Any,
        answer: Any,
        *,
        questions: Any = None,
        answers: Any = None,
        duplicates: Duplicates = "error",
    ) -> MultiLabelAnnotations:
        """Return the annotations of four columns of equal length, one answer per row.

        Parameters
        ----------
        task, question, worker, answer : columns
            Ids, integers or strings, as in `Annotations.from_arrays`.
        questions : column, optional
            All questions, in the order wanted, so that one that nobody was asked keeps its place.
        answers : sequence or mapping, optional
            All answers: a sequence from no to yes, in even steps, such as ["no", "maybe", "yes"] or [1, 2, 3, 4, 5];
            or a mapping of each answer to how much of a yes it is, None where it says neither. Default: 0 and 1, or
            the words no, maybe, yes and skip.
        duplicates : {"error", "first", "last", "keep"}
            What to do when one worker answered one question about one task more than once.

        Examples
        --------
        >>> ann = MultiLabelAnnotations.from_arrays(
        ...     [1, 1, 2], ["dog", "cat", "dog"], ["x", "x", "y"], [5, 1, 2], answers=[1, 2, 3, 4, 5]
        ... )
        >>> ann.values[ann.answer]
        array([1.  , 0.  , 0.25])
        """
        check_columns(task=task, question=question, worker=worker, answer=answer)
        check_choice(duplicates, "duplicates", DUPLICATES)
        task, tasks = _ids.encode_seen(task, "task")
        if questions is None:
            question, questions = _ids.encode_seen(question, "question")
        else:
            question, questions = _ids.encode(question, "question", _ids.table_of(questions, "questions"))
        worker, workers = _ids.encode(worker, "worker")
        answer, answers, values = encode_answers(answer, answers)
        return _sorted((task, question, worker, answer), (tasks, questions, workers, answers, values), duplicates)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        task: Hashable = "task",
        question: Hashable = "question",
        worker: Hashable = "worker",
        answer: Hashable = "answer",
        questions: Any = None,
        answers: Any = None,
        duplicates: Duplicates = "error",
    ) -> MultiLabelAnnotations:
        """Return the annotations in four columns of a pandas, polars or Arrow frame, as in `from_arrays`."""
        columns = _ids.frame_columns(frame, task=task, question=question, worker=worker, answer=answer)
        return cls.from_arrays(*columns, questions=questions, answers=answers, duplicates=duplicates)

    @classmethod
    def from_ticked(
        cls,
        task: Any,
        worker: Any,
        ticked: Any,
        *,
        shown: Any = None,
        questions: Any = None,
        duplicates: Duplicates = "error",
    ) -> MultiLabelAnnotations:
        """Return the annotations of check boxes: one row per worker and task, with the set of labels it ticked.

        A box that was shown and not ticked is a "no", one that was not shown is not asked.

        Parameters
        ----------
        task, worker : columns
        ticked : sequence of sets
            The labels that were ticked, none of them for an empty set. A string is an error: it is no set.
        shown : sequence of sets, optional
            The boxes that were there. Default: all of `questions`.
        questions : column, optional
            All boxes. Default: all labels that anybody ticked, or that were shown, sorted.
        duplicates : {"error", "first", "last", "keep"}

        Examples
        --------
        >>> ann = MultiLabelAnnotations.from_ticked(
        ...     [1, 2], ["x", "x"], [["dog"], []], shown=[["dog", "cat"], ["dog"]]
        ... )
        >>> ann.to_frame()["answer"].to_pylist(), len(ann)
        (['no', 'yes', 'no'], 3)
        """
        columns, names = _tables.ticked_rows(task, worker, ticked, shown, questions)
        return cls.from_arrays(*columns, questions=names, answers=["no", "yes"], duplicates=duplicates)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        task: Hashable = "task",
        worker: Hashable = "worker",
        questions: Any = None,
        answers: Any = None,
        duplicates: Duplicates = "error",
    ) -> MultiLabelAnnotations:
        """Return the annotations of a frame with one row per worker and task, and one column per question.

        A missing cell means that this was not asked. `questions` names the columns; default: all others.

        Examples
        --------
        >>> table = pa.table({"task": [1, 2], "worker": ["x", "x"], "dog": [1, 0], "cat": [0, None]})
        >>> MultiLabelAnnotations.from_wide(table)
        MultiLabelAnnotations(3 answers: 2 tasks x 2 questions by 1 workers, 1 yes, redundancy 1)
        """
        columns, names, _ = _tables.wide_rows(frame, task, worker, questions)
        return cls.from_arrays(*columns, questions=names, answers=answers, duplicates=duplicates)

    @classmethod
    def from_indicator(
        cls, matrix: Any, *, tasks: Any = None, questions: Any = None, worker: Any = 0, answers: Any = None
    ) -> MultiLabelAnnotations:
        """Return a (n_tasks, n_questions) matrix of answers as those of one worker; -1 and NaN mean "not asked".

        Examples
        --------
        >>> MultiLabelAnnotations.from_indicator([[0, 1], [1, -1]])
        MultiLabelAnnotations(3 answers: 2 tasks x 2 questions by 1 workers, 2 yes, redundancy 1)
        """
        rows, columns, given, shape = _rows.matrix_entries(matrix)
        task_ids = np.arange(shape[0]) if tasks is None else _ids.table_of(tasks, "tasks")
        question_ids = np.arange(shape[1]) if questions is None else _ids.table_of(questions, "questions")
        if (len(task_ids), len(question_ids)) != shape:
            raise ValueError(
                f"tasks and questions must name the rows and columns of the matrix, {shape}; got {len(task_ids)} and "
                f"{len(question_ids)}."
            )
        codes, answer_ids, values = encode_answers(given, answers)
        tables = (task_ids, question_ids, _ids.table_of([worker], "worker"), answer_ids, values)
        return _sorted((rows, columns, np.zeros_like(rows), codes), tables, "error")

    def __len__(self) -> int:
        return len(self.task)

    @property
    def n_tasks(self) -> int:
        """Number of tasks, asked about or not."""
        return len(self.tasks)

    @property
    def n_questions(self) -> int:
        """Number of questions, asked or not."""
        return len(self.questions)

    @property
    def n_workers(self) -> int:
        """Number of workers, with answers or without."""
        return len(self.workers)

    @property
    def n_answers(self) -> int:
        """Number of different answers, given by anybody or not."""
        return len(self.answers)

    @property
    def redundancy(self) -> float:
        """Mean number of answers to a question about a task, of those that have any."""
        return len(self) / len(self.pair_start)

    @cached_property
    def pair_start(self) -> Codes:
        """The first row of every pair of a task and a question that anybody was asked about."""
        new = np.ones(len(self), dtype=bool)
        new[1:] = (self.task[1:] != self.task[:-1]) | (self.question[1:] != self.question[:-1])
        start = np.flatnonzero(new).astype(np.int32)
        start.flags.writeable = False
        return start

    @cached_property
    def pair(self) -> Codes:
        """The number of every row's pair of task and question."""
        sizes = np.diff(np.append(self.pair_start, len(self)))
        pair = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        pair.flags.writeable = False
        return pair

    def align(self, task_ids: Any) -> MultiLabelAnnotations:
        """Return the same annotations with `tasks` equal to `task_ids`, the order of the rows of X."""
        task, tasks = _rows.tasks_among(self.task, self.tasks, task_ids)
        return self._rows_where(slice(None), task=task, tasks=tasks)

    def select(self, task_mask: Any) -> MultiLabelAnnotations:
        """Return the tasks where `task_mask`, of shape (n_tasks,), is True, with their annotations."""
        mask, kept, task = _rows.tasks_where(self.task, task_mask, self.n_tasks)
        return self._rows_where(kept, task=task, tasks=self.tasks[mask])

    def sample(
        self, *, redundancy: int = 1, of: str = "judgements", random_state: RandomState = None
    ) -> MultiLabelAnnotations:
        """Return at most `redundancy` workers of every task, or of every question, drawn at random.

        Parameters
        ----------
        redundancy : int
        of : {"judgements", "answers"}
            What is drawn: workers of a task with all their answers about it, as when each fills in one form; or
            answers to a question about a task.
        random_state : int, numpy.random.Generator or None
        """
        check_int(redundancy, "redundancy", 1)
        check_choice(of, "of", ("judgements", "answers"))
        rng = check_rng(random_state)
        if of == "answers":
            group, unit = self.pair, np.arange(len(self), dtype=np.int64)
        else:
            group, unit = self.task, self.task.astype(np.int64) * self.n_workers + self.worker
        return self._rows_where(_drawn(group, unit, redundancy, rng))

    def relabel(self, mapping: Mapping[Any, Any]) -> MultiLabelAnnotations:
        """Return the annotations with new answers; an answer that becomes None is dropped.

        Examples
        --------
        >>> ann = MultiLabelAnnotations.from_arrays([1, 2], ["dog"] * 2, ["x"] * 2, ["maybe", "yes"])
        >>> ann.relabel({"maybe": "no"}).answers
        array(['no', 'yes'], dtype=object)
        """
        known = self.answers.tolist()
        unknown = [old for old in mapping if old not in known]
        if unknown:
            raise ValueError(
                f"mapping must start from the answers {shorten(self.answers)}; got {show(unknown[0])} "
                f"({len(unknown)} in total)."
            )
        renamed = [mapping.get(old, old) for old in known]
        value = {}
        for old, new, share in zip(known, renamed, self.values.tolist(), strict=True):
            if new is not None and (new not in value or new == old):
                value[new] = None if np.isnan(share) else share
        ids, values = declare(value)
        codes = np.array([-1 if new is None else list(value).index(new) for new in renamed], dtype=np.int32)
        kept = codes[self.answer] >= 0
        return self._rows_where(kept, answer=codes[self.answer[kept]], answers=ids, values=values)

    def of_question(self, question: Any) -> Annotations:
        """Return the annotations of one question, whose classes are the answers, for the models of one label.

        Examples
        --------
        >>> ann = MultiLabelAnnotations.from_arrays([1, 1, 2], ["a", "b", "a"], ["x"] * 3, [1, 0, 1])
        >>> ann.of_question("a")
        Annotations(2 annotations: 2 tasks x 1 workers, 2 classes, redundancy 1)
        """
        found = np.flatnonzero(self.questions == question)
        if not len(found):
            raise ValueError(f"question must be one of {shorten(self.questions)}; got {show(question)}.")
        kept = self.question == found[0]
        rows = (self.task[kept], self.worker[kept], self.answer[kept])
        return Annotations(*rows, self.tasks, self.workers, self.answers)

    def check(self) -> MultiLabelCheck:
        """Return what is in the annotations, what looks wrong and what can be estimated from them."""
        from labelonce.multilabel._check import check  # it needs the type that is defined here

        return check(self)

    def to_frame(self) -> pa.Table:
        """Return an Arrow table of ids with columns task, question, worker, answer."""
        columns = [_ids.decode(getattr(self, c), getattr(self, t)) for c, t in zip(_CODES, _TABLES, strict=True)]
        return pa.table(columns, names=list(_CODES))

    def _rows_where(self, kept: Mask | slice, **given: Any) -> MultiLabelAnnotations:
        """Return some of the rows, with other codes and other tables where given; the rest is shared."""
        rows = tuple(given[name] if name in given else getattr(self, name)[kept] for name in _CODES)
        return _sorted(rows, tuple(given.get(name, getattr(self, name)) for name in (*_TABLES, "values")), "keep")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultiLabelAnnotations):
            return NotImplemented
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]  # equal by value over arrays: no cheap hash

    def __repr__(self) -> str:
        said_yes = int((self.values[self.answer] > 0.5).sum())
        return (
            f"MultiLabelAnnotations({len(self):,} answers: {self.n_tasks:,} tasks x {self.n_questions:,} questions by "
            f"{self.n_workers:,} workers, {said_yes:,} yes, redundancy {self.redundancy:.3g})"
        )


def said_by(annotations: MultiLabelAnnotations, by: str, value: Floats | None = None) -> tuple[Floats, Ids]:
    """Return the sum of a value of every answer, by default how much of a yes it is, and the number of answers.

    `by` is "task", "question", "worker" or "pair". Answers that mean neither yes nor no are left out.
    """
    share, code = annotations.values[annotations.answer], getattr(annotations, by)
    says, n = ~np.isnan(share), len(annotations.pair_start if by == "pair" else getattr(annotations, f"{by}s"))
    total = np.bincount(code[says], (share if value is None else value)[says], n)
    return total.astype(np.float64), np.bincount(code[says], minlength=n)


def _order(task: Codes, question: Codes, worker: Codes, sizes: tuple[int, int, int]) -> Codes | None:
    """Return the order by task, question and worker, then as given; None if the rows are in that order."""
    same = task[1:] == task[:-1]
    same_question = question[1:] == question[:-1]
    later = question[1:] > question[:-1]
    sorted_now = (task[1:] > task[:-1]) | (same & (later | (same_question & (worker[1:] >= worker[:-1]))))
    if sorted_now.all():
        return None
    order: Codes | None = None
    for codes, size in ((worker, sizes[2]), (question, sizes[1]), (task, sizes[0])):
        order = _rows.stable_order(codes if order is None else codes[order], size, order)
    return order


def _sorted(rows: tuple[Codes, ...], tables: tuple[Any, ...], duplicates: Duplicates) -> MultiLabelAnnotations:
    """Return annotations from rows in any order over checked codes and tables, which are taken over."""
    check_count(len(rows[0]))
    order = _order(rows[0], rows[1], rows[2], (len(tables[0]), len(tables[1]), len(tables[2])))
    task, question, worker, answer = rows if order is None else (column[order] for column in rows)
    if duplicates != "keep":
        again = _rows.repeats(task, worker)
        again[1:] &= question[1:] == question[:-1]
        if duplicates == "error" and again.any():
            raise ValueError(_duplicate_message(again, (task, question, worker), tables))
        if again.any():
            kept = ~again if duplicates == "first" else ~np.append(again[1:], False)
            task, question, worker, answer = task[kept], question[kept], worker[kept], answer[kept]
    made = object.__new__(MultiLabelAnnotations)
    for name, array in zip(_NAMES, (task, question, worker, answer, *tables), strict=True):
        array.flags.writeable = False
        object.__setattr__(made, name, array)
    return made


def _duplicate_message(again: Mask, rows: tuple[Codes, ...], tables: tuple[Any, ...]) -> str:
    first = int(np.argmax(again))
    task, question, worker = (show(ids[codes[first]]) for codes, ids in zip(rows, tables, strict=False))
    return (
        f"a worker must answer a question about a task once; got worker {worker} on question {question} about task "
        f"{task} again ({int(again.sum())} repeated rows in total). "
        f"Choose what to keep with {argument('duplicates', 'first', 'last', 'keep')}."
    )


def _drawn(group: Codes, unit: Any, most: int, rng: np.random.Generator) -> Mask:
    """Return the rows of at most `most` units of every group, drawn at random; a unit is all rows of one number."""
    units, first, of_row = np.unique(unit, return_index=True, return_inverse=True)
    order = rng.permutation(len(units))
    own = group[first][order]
    by_group = np.argsort(own, kind="stable")
    grouped = own[by_group]
    kept = np.zeros(len(units), dtype=bool)
    kept[order[by_group]] = np.arange(len(units)) - np.searchsorted(grouped, grouped) < most
    return np.asarray(kept[of_row])
