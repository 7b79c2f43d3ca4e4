"""The bodies of requests and responses, for validation and for the OpenAPI description."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from labelonce.service._settings import MOST_LETTERS as MOST_IN_ID
from labelonce.service._tokens import MOST_LETTERS, NAME

_TEXT = r"^[^\x00]*$"  # PostgreSQL keeps no such character
MOST_SECONDS = 1e6
LARGEST_ID = 2**53  # what JavaScript counts to
_OWN_NAME = "The sender's own name of it: sent twice, it counts once."
Key = Annotated[str, Field(min_length=1, max_length=200, pattern=_TEXT, description=_OWN_NAME)]
TaskId = Annotated[str, Field(min_length=1, max_length=MOST_IN_ID)]
Name = Annotated[str, Field(max_length=MOST_LETTERS, pattern=NAME)]
Class = Annotated[str, Field(min_length=1, max_length=MOST_IN_ID)]


class LabelMessage(BaseModel):
    """A label for a task; in a project with check boxes `labels`, all that were ticked, instead of `label`.

    Which of them, and what the classes are, the description of a running service says.
    """

    model_config = ConfigDict(extra="forbid")
    key: Key
    task: TaskId
    label: Class | None = None
    labels: Annotated[list[Class] | None, Field(max_length=10_000)] = None
    seconds: Annotated[float | None, Field(ge=0, le=MOST_SECONDS, strict=True)] = None


def described(schema: dict[str, Any], classes: tuple[str, ...], *, multilabel: bool) -> dict[str, Any]:
    """Return an OpenAPI description in which `LabelMessage` is what the project takes."""
    given = schema["components"]["schemas"]["LabelMessage"]
    wanted, other = ("labels", "label") if multilabel else ("label", "labels")
    label: dict[str, Any] = {"type": "string", "enum": list(classes)}
    given["properties"].pop(other, None)
    given["properties"][wanted] = {"type": "array", "items": label, "maxItems": len(classes)} if multilabel else label
    given["required"] = sorted({*given["required"], wanted})
    return schema


class SkipMessage(BaseModel):
    """A skipped task and the reason."""

    model_config = ConfigDict(extra="forbid")
    key: Key
    task: TaskId
    reason: Annotated[str, Field(min_length=1, max_length=1000, pattern=_TEXT)]


class Remark(BaseModel):
    """A worker's comment on a task; `flagged` if the admin should look at it."""

    model_config = ConfigDict(extra="forbid")
    key: Key
    task: TaskId
    text: Annotated[str, Field(min_length=1, max_length=1000, pattern=_TEXT)]
    flagged: Annotated[bool, Field(strict=True)] = False


class Guide(BaseModel):
    """The instructions, as elements."""

    content: list[Any]


class NewWorker(BaseModel):
    """A worker to add."""

    model_config = ConfigDict(extra="forbid")
    worker: Name


class RecentAnswer(BaseModel):
    """One of the worker's last answers; without a label it is a skip."""

    id: int
    task: str
    label: str | None
    labels: list[str] | None


class Identity(BaseModel):
    """The worker who asks, and the settings of the project."""

    role: str
    worker: str
    title: str
    instructions: str
    classes: list[str]
    multilabel: bool
    labels: int
    tasks: int
    goal: int
    recent: list[RecentAnswer]
    share_settled: float


class NextTask(BaseModel):
    """The task to label now; without one, why."""

    task: str | None
    text: str | None = None
    has_image: bool = False
    why: str | None = None
    share_settled: float = 0.0


class Receipt(BaseModel):
    """An answer that is stored; `new` is False if it was stored before.

    `known` is the true label, where it is known and people are told.
    """

    id: int
    task: str
    new: bool
    known: str | None = None


class UndoReceipt(BaseModel):
    """An answer that was undone, its label (none for a skip), and its task, to label again."""

    id: int
    label: str | None
    labels: list[str] | None
    task: str
    text: str | None
    has_image: bool


class Token(BaseModel):
    """A new token: it is shown once and kept nowhere."""

    worker: str
    token: str


class Page(BaseModel):
    """A part of a list."""

    total: int
    offset: int
    rows: list[dict[str, Any]]


class ErrorMessage(BaseModel):
    """Why something was refused."""

    detail: Any
