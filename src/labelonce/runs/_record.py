"""The options and the results of a run: the records in `job.json`, `warnings.json` and `run.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from labelonce._messages import show
from labelonce._types import GROUPINGS, Duplicates, Effort, Format, Missing, Model, Multiple, Rejected, Spellings

if TYPE_CHECKING:
    from labelonce.data import Annotations
    from labelonce.multilabel import MultiLabelAnnotations

FORMAT = 1
PATHS = ("labels", "features", "images", "gold", "groups", "relabel")
_READING = ("missing", "relabel", "normalise", "spellings", "question", "answer")
# The JSON names these only where they are given: earlier versions had none.
LATER = ("embed", "effort", "classes", "answers", "groups", *_READING)
Named = Literal["name", "stem", "column"]
_Record = TypeVar("_Record", bound="JsonRecord")


@dataclass(frozen=True)
class Options:
    """What `labelonce train` was asked for."""

    labels: str | tuple[str, ...]
    features: str | None = None
    text: str | None = None
    images: str | None = None
    image_size: int = 32
    embed: str | None = None
    effort: Effort | None = None
    gold: str | None = None
    groups: str | None = None
    model: Model = "softmax"
    rounds: int | Literal["auto"] = "auto"
    seed: int = 0
    ignore: tuple[str, ...] = ()
    format: Format | None = None
    task: str | None = None
    worker: str | None = None
    label: str | None = None
    duplicates: Duplicates | None = None
    rejected: Rejected | None = None
    multiple: Multiple | None = None
    classes: tuple[str | int, ...] | None = None
    answers: tuple[str | int, ...] | None = None
    missing: Missing | None = None
    relabel: str | None = None
    normalise: bool | None = None
    spellings: Spellings | None = None
    question: str | None = None
    answer: str | None = None

    @property
    def label_files(self) -> tuple[str, ...]:
        """The files of labels."""
        return (self.labels,) if isinstance(self.labels, str) else self.labels

    @property
    def named_labels(self) -> str:
        """The files of labels, relative to the working directory where possible."""
        return ", ".join(map(near, self.label_files))

    @property
    def source(self) -> dict[str, Any]:
        """How the labels are read: the options of `runs.read_labels`."""
        names = ("format", "task", "worker", "label", "duplicates", "rejected", "multiple", "classes", "answers")
        return {name: value for name in (*names, *_READING) if (value := getattr(self, name)) is not None}

    @property
    def paths(self) -> dict[str, str]:
        """The input files and folders by their roles; groups of classes may need no file.

        Of several files of labels the second has the role "labels_2", and so on.
        """
        found = {}
        for role in PATHS:
            given = getattr(self, role)
            for number, path in enumerate((given,) if isinstance(given, str) else given or (), 1):
                if path not in GROUPINGS:
                    found[role if number == 1 else f"{role}_{number}"] = path
        return found

    def with_paths(self, change: Callable[[str], str]) -> Self:
        """Return the options with every path changed."""
        return replace(self, **changed_paths(vars(self), change))


def changed_paths(options: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return the options that are paths, each changed."""
    given = {role: options.get(role) for role in PATHS}
    return {
        role: change(value) if isinstance(value, str) else tuple(map(change, value))
        for role, value in given.items()
        if value is not None and value not in GROUPINGS
    }


@dataclass(frozen=True)
class InputFile:
    """An input as it was when the run began; `files` counts those of a folder."""

    path: str
    sha256: str
    bytes: int
    files: int | None = None


@dataclass(frozen=True)
class NumberInput:
    """What `predict` needs to know about rows of numbers; `columns` is None if they had no names."""

    columns: list[str] | None
    number: int
    kind: Literal["numbers"] = "numbers"


@dataclass(frozen=True)
class TextInput:
    """What `predict` needs to know about texts."""

    column: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class ImageInput:
    """What `predict` needs to know about images: how files are named by tasks, and the side to which they are brought.

    `size` is None where a pretrained model takes the files.
    """

    named: Named
    size: int | None
    kind: Literal["images"] = "images"


@dataclass(frozen=True)
class DataSize:
    """How much there was to learn from."""

    annotations: int
    tasks: int
    labelled_tasks: int
    workers: int
    redundancy: float
    gold: int

    @classmethod
    def of(cls, annotations: Annotations | MultiLabelAnnotations, gold: Mapping[Any, Any] | None) -> Self:
        """Return the size of annotations and of the known true labels."""
        return cls(
            annotations=len(annotations),
            tasks=annotations.n_tasks,
            labelled_tasks=len(np.unique(annotations.task)),
            workers=annotations.n_workers,
            redundancy=annotations.redundancy,
            gold=len(gold or {}),
        )


@dataclass(frozen=True)
class UsedRecipe:
    """How the model was fitted: the learner and the rounds that were given or chosen, and the workers.

    `predictions` says whether the workers were judged by predictions "in_sample" or "out_of_fold".
    """

    learner: str
    rounds: int
    predictions: str
    workers: str


@dataclass(frozen=True)
class EstimatedAccuracy:
    """The estimated share of right labels and the ends of its 90 % range; nothing checked it unless `held_out`.

    `narrowing` is what would narrow the range, empty if nothing would, and `doubts` are the warnings of
    the fit.
    """

    value: float
    low: float
    high: float
    held_out: bool
    narrowing: str
    doubts: list[str]

    @classmethod
    def of(cls, clf: Any) -> Self:
        verdict, found = clf.verdict_, clf.verdict_.accuracy()
        narrowing = str(verdict.narrowing() or "")
        return cls(found.value, found.low, found.high, verdict.held_out, narrowing, list(clf.doubts_))

    def __str__(self) -> str:
        found = f"{self.value:.1%} of the labels are right, by estimate ({self.low:.0%} to {self.high:.0%})"
        found = f"{found}; {self.narrowing}" if self.narrowing else found
        return found if self.held_out else f"{found}; NOTHING WAS HELD OUT: this is unchecked and usually too high"


@dataclass(frozen=True)
class Outcome:
    """What came out: `shares` are those of the classes among the labels found."""

    estimated_accuracy: EstimatedAccuracy
    agreement: float
    classes: list[str | int | float | bool]
    shares: list[float]

    def __post_init__(self) -> None:
        if len(self.classes) != len(self.shares):
            raise ValueError(f"got {len(self.shares)} result.shares of {len(self.classes)} result.classes")


@dataclass(frozen=True)
class QuestionOutcome:
    """What came out for every question: its share of yes among the answers given and among the labels found.

    `agreement` is how often the model says what the workers say.
    """

    questions: list[str | int]
    given: list[float | None]
    shares: list[float]
    agreement: float
    estimated_accuracy: EstimatedAccuracy

    def __post_init__(self) -> None:
        if not len(self.questions) == len(self.given) == len(self.shares):
            raise ValueError(f"got {len(self.shares)} result.shares of {len(self.questions)} result.questions")


@dataclass(frozen=True)
class RoundEntry:
    """A round of the fit's `history_`, with None for missing numbers."""

    round: int
    agreement: float
    mean_confidence: float
    log_likelihood: float | None
    held_out_score: float | None
    posterior_change: float | None

    @classmethod
    def of(cls, entry: dict[str, Any]) -> Self:
        known = {field.name: entry.get(field.name) for field in fields(cls)}
        numbers: dict[str, Any] = {name: None if value != value else value for name, value in known.items()}
        return cls(**numbers)


@dataclass(frozen=True)
class JsonRecord:
    """A record that is kept in a JSON file, one key for every field."""

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        return {"format": FORMAT} | asdict(self, dict_factory=_written)


@dataclass(frozen=True)
class WarningsRecord(JsonRecord):
    """What an unfinished run has warned of so far."""

    warnings: list[str]


@dataclass(frozen=True)
class Job(JsonRecord):
    """The job: the options, with absolute paths, and the inputs and versions that the run began with."""

    options: Options
    inputs: dict[str, InputFile]
    versions: dict[str, str]
    started: str

    def __post_init__(self) -> None:
        if set(self.inputs) != set(self.options.paths):
            raise ValueError(f"got inputs {sorted(self.inputs)} for options that name {sorted(self.options.paths)}")

    def with_paths(self, change: Callable[[str], str]) -> Self:
        """Return the record with every path changed."""
        inputs = {role: replace(one, path=change(one.path)) for role, one in self.inputs.items()}
        return replace(self, options=self.options.with_paths(change), inputs=inputs)


@dataclass(frozen=True)
class RunRecord(Job):
    """A finished run, as in `run.json`: the job and what came out."""

    finished: str
    warnings: list[str]
    features: NumberInput | TextInput | ImageInput
    data: DataSize
    recipe: UsedRecipe
    result: Outcome | QuestionOutcome
    rounds: list[RoundEntry]

    @property
    def outcome(self) -> Outcome:
        """The result of a run on classes; one on questions is an error."""
        if isinstance(self.result, QuestionOutcome):
            raise ValueError(
                f"the run must be of labels that are classes; got one of {len(self.result.questions)} questions. Use "
                "labelonce show, predict and report, or its labels.parquet."
            )
        return self.result


def _written(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in fields if name not in LATER or value is not None}


def near(path: str) -> str:
    """Return a path relative to the working directory if it lies below it, otherwise unchanged."""
    with suppress(ValueError):
        return str(Path(path).relative_to(os.getcwd()))
    return path


def read_json(path: Path, fix: str) -> dict[str, Any]:
    """Return what a JSON file of labelonce holds; any other file is an error that ends with the `fix`."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must be the JSON that labelonce wrote; got: {error}. {fix}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        got = f"format {show(content.get('format'))}" if isinstance(content, dict) else show(content)
        raise ValueError(f"{path} must be the JSON that labelonce wrote, in format {FORMAT}; got {got}. {fix}")
    return content


def read_record(kind: type[_Record], path: Path, fix: str) -> _Record:
    """Return the record in a JSON file; a key that is missing or of another type is an error as in `read_json`."""
    content = read_json(path, fix)
    try:
        record: _Record = _parsed(kind, content, "")
    except ValueError as error:
        raise ValueError(f"{path} must be as labelonce wrote it; {error}. {fix}") from error
    return record


_hints = cache(get_type_hints)


def _missing_keys(value: Any, kind: Any) -> int:
    """Return how many keys of a record a JSON object lacks, to find the best of several records."""
    if not (isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict)):
        return 0
    return len(set(_hints(kind)) - set(value))


def _parsed(kind: Any, value: Any, place: str) -> Any:
    """Return a JSON value as the type it must be of."""
    origin, inside = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(value, dict):
        hints = _hints(kind)
        for name in hints:
            if name not in value and not (name in LATER and kind is Options):
                raise ValueError(f"got no {place}{name}")
        found = {name: hint for name, hint in hints.items() if name in value}
        return kind(**{name: _parsed(hint, value[name], f"{place}{name}.") for name, hint in found.items()})
    if origin in (UnionType, Union):
        nearest = sorted(inside, key=partial(_missing_keys, value))
        for one in nearest:
            with suppress(ValueError):
                return _parsed(one, value, place)
        if isinstance(value, dict):
            return _parsed(nearest[0], value, place)  # whose error says what is wrong
    elif origin in (list, tuple) and isinstance(value, list):
        return origin(_parsed(inside[0], one, f"{place}{row}.") for row, one in enumerate(value))
    elif origin is dict and isinstance(value, dict):
        return {name: _parsed(inside[1], one, f"{place}{name}.") for name, one in value.items()}
    elif kind is float and type(value) is int:
        return float(value)
    elif value in inside if origin is Literal else type(value) is kind:
        return value
    raise ValueError(f"got {show(value)} for {place.removesuffix('.')}")
