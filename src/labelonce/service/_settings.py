"""The settings of a project: what is asked, how it is routed, and how the service behaves; one TOML file."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from labelonce import embed
from labelonce._messages import show
from labelonce._types import STRATEGIES, STRATEGIES_OF_QUESTIONS
from labelonce._validate import check_choice, check_int, check_number
from labelonce.aggregation import STRATEGIES as OTHER_STRATEGIES
from labelonce.aggregation import plugins
from labelonce.embed._models import Kind
from labelonce.files import atomic_write
from labelonce.formats import SEPARATOR
from labelonce.service._secrets import without_secrets

FILE = "project.toml"
MOST_LETTERS = 1000  # of a class, and of the id of a task
_PORT = 8080
Source = Literal["features", "text", "images", "nothing"]
_EMBEDDED: dict[str, Kind] = {"text": "text", "images": "image"}
SOURCES: tuple[str, ...] = get_args(Source)

_WHY = {
    "title": "What people see above the tasks.",
    "classes": "The labels to choose from, in the order of the number keys.",
    "multilabel": "Whether several classes can be true of a task: check boxes instead of buttons.",
    "tasks": "One row per task, a file in this folder.",
    "task": "The column of task ids.",
    "text": "The column with the text of a task; empty: none.",
    "image": "The column with the image file of a task, below this folder; empty: none.",
    "learn_from": "What the model learns from: features (the columns of numbers), text, images or nothing.",
    "embed": "The pretrained model of texts or images, a name or a local folder; empty: n-grams, or a few pixels.",
    "instructions": "Shown above the tasks; a longer text, with examples, is instructions.md in this folder.",
    "goal": "Labels that everybody is asked for; 0: none is named.",
    "overlap": "Share of tasks that get a second label by somebody else, who does not know it.",
    "known": "A table in this folder with the true labels of some tasks, which are mixed in; empty: none.",
    "known_share": "Share of such tasks among those that a person gets.",
    "feedback": "Whether people are told the true label after they labelled such a task.",
    "url": "Where people reach the service: what their links begin with. It listens at its port, if it names one.",
    "database": "A file in this folder, or postgresql://...; LABELONCE_DATABASE in the environment goes first.",
    "strategy": "How the next task is chosen; check boxes take Information, Random or FewestLabels.",
    "settled_risk": "A task gets no more labels once the error probability of its label is at most this.",
    "max_labels": "Most labels of one task; 0: as many as it takes.",
    "budget": "Stop after this many labels; 0: never.",
    "max_risk": "Stop when the mean error probability of the tasks is at most this; 0: never.",
    "min_gain": "Stop when the average worker's best answer brings less information than this, in nats; 0: never.",
    "may_decline": "Whether a worker whose labels are worth little may get no task.",
    "lease_seconds": "How long a task that was handed out waits for its label.",
    "refit_every": "Labels after which everything is fitted again, in a process of its own.",
    "requests_per_second": "Most requests of one person, on average.",
    "seed": "Breaks ties.",
}


@dataclass(frozen=True)
class Settings:
    """What `project.toml` holds; every field is explained there.

    Examples
    --------
    >>> settings = Settings("Pets", ("cat", "dog"), text="text", learn_from="text")
    >>> settings.budget, settings.strategy
    (0, 'Information')
    """

    title: str
    classes: tuple[str, ...]
    multilabel: bool = False
    tasks: str = "tasks.csv"
    task: str = "task"
    text: str = ""
    image: str = ""
    learn_from: Source = "nothing"
    embed: str = ""
    instructions: str = ""
    goal: int = 0
    overlap: float = 0.0
    known: str = ""
    known_share: float = 0.1
    feedback: bool = False
    url: str = "http://127.0.0.1:8080"
    database: str = "annotations.db"
    strategy: str = "Information"
    settled_risk: float = 0.05
    max_labels: int = 0
    budget: int = 0
    max_risk: float = 0.0
    min_gain: float = 0.0
    may_decline: bool = False
    lease_seconds: float = 600.0
    refit_every: int = 50
    requests_per_second: float = 20.0
    seed: int = 0

    def __post_init__(self) -> None:
        names = list(self.classes)
        if not len(set(names)) == len(names) >= 2 or not all(isinstance(one, str) and one for one in names):
            raise ValueError(f"classes must be two or more different words; got {show(names)}.")
        for one in names:
            if len(one) > MOST_LETTERS or "\0" in one or not is_unicode(one):
                raise ValueError(f"classes must have at most {MOST_LETTERS} letters, no NUL; got {show(one)}.")
        if self.multilabel:
            self._check_boxes()
        check_url(self.url)
        check_choice(self.learn_from, "learn_from", SOURCES)
        check_choice(self.strategy, "strategy", (*STRATEGIES, *plugins(OTHER_STRATEGIES)))
        column = _EMBEDDED.get(self.learn_from)
        if column is not None and not getattr(self, column):
            rule = f"learn_from = {self.learn_from!r} must go with a column"
            raise ValueError(f"{rule}; got none. Name it with {column}.")
        for name in ("max_labels", "budget", "seed", "goal"):
            check_int(getattr(self, name), name, 0)
        check_int(self.refit_every, "refit_every", 1)
        check_number(self.lease_seconds, "lease_seconds", 1.0)
        check_number(self.requests_per_second, "requests_per_second", 0.1)
        for name in ("settled_risk", "max_risk", "overlap", "known_share"):
            check_number(getattr(self, name), name, 0.0, 1.0)
        check_number(self.min_gain, "min_gain", 0.0)

    @property
    def port(self) -> int:
        """Where to listen so that the links lead there; 8080 behind a proxy, which has no port in its address."""
        return urlsplit(self.url).port or _PORT

    def _check_boxes(self) -> None:
        """Raise an error if a setting does not go with check boxes."""
        if self.known:
            raise ValueError(f"known must be left out with check boxes; got {show(self.known)}.")
        joined = [one for one in self.classes if SEPARATOR in one]
        if joined:
            raise ValueError(f"classes of check boxes must have no {SEPARATOR!r} in them; got {show(joined[0])}.")
        check_choice(self.strategy, "strategy of check boxes", STRATEGIES_OF_QUESTIONS)


def is_unicode(text: str) -> bool:
    """Return whether a text is valid Unicode: a file name in another encoding may not be."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def check_url(url: str) -> str:
    """Return the address of a service if it is one."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError(f"url must be http://HOST:PORT or https://HOST; got {show(without_secrets(url))}.")
    return url


def read_settings(folder: Path) -> Settings:
    path = folder / FILE
    if not path.is_file():
        raise ValueError(f"{folder} must hold a {FILE}; got none. Make a project with: labelonce project {folder}.")
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be TOML; got: {error}.") from error
    known = {field.name: field for field in fields(Settings)}
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{path} must have settings among {', '.join(known)}; got {show(name)}.")
        found[name] = _typed(value, str(known[name].type), f"{path}: {name}")
    for name in ("title", "classes"):
        if name not in found:
            raise ValueError(f"{path} must say {name}; got no such line.")
    try:
        return Settings(**found)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def model_for(settings: Settings, wanted: str | None) -> str:
    """Return the pretrained model of a new project, nothing for none: the one named, else one that is installed."""
    kind = _EMBEDDED.get(settings.learn_from)
    if wanted in ("none", "") or (kind is None and wanted in (None, "auto")):
        return ""
    if kind is None:
        raise ValueError(f"embed must go with texts or images; got {wanted!r} for {settings.learn_from}.")
    return (embed.at_hand(kind) or "") if wanted in (None, "auto") else embed.found_model(kind, wanted)


def write_settings(folder: Path, settings: Settings) -> None:
    """Write `project.toml`, with what every line means."""
    lines = []
    for name, why in _WHY.items():
        value: Any = getattr(settings, name)
        value = list(value) if isinstance(value, tuple) else value
        lines += [f"# {why}", f"{name} = {json.dumps(value, ensure_ascii=False)}"]  # TOML's values here are JSON's
    atomic_write(folder / FILE, ("\n".join(lines) + "\n").encode())


def _typed(value: Any, kind: str, place: str) -> Any:
    """Return a value of the file as the type of its field, which every annotation above names first."""
    if kind.startswith("tuple") and isinstance(value, list):
        return tuple(value)
    if kind == "float" and type(value) is int:
        return float(value)
    wanted = {"str": str, "Source": str, "int": int, "float": float, "bool": bool}.get(kind)
    if wanted is None or type(value) is not wanted:
        raise ValueError(f"{place} must be a {kind.split('[')[0].lower()}; got {show(value)}.")
    return value
