"""The options of the commands, each declared once. No library is loaded for `--help`.

A parameter has the name of the library's argument that it is passed to; that is how messages about an argument find
the option to speak of.
"""

import inspect
from collections.abc import Callable
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from labelonce._messages import named_as_options
from labelonce._types import STRATEGIES, Duplicates, Format, Missing, Multiple, Rejected, Spellings
from labelonce.aggregation import COMMANDS, plugins
from labelonce.aggregation import STRATEGIES as OTHER_STRATEGIES

Method = StrEnum("Method", COMMANDS)  # type: ignore[misc]  # no literal: the members are those of the registry
DAWID_SKENE = Method("dawid-skene")
_STRATEGIES = {name: name for name in (*STRATEGIES, *plugins(OTHER_STRATEGIES))}
StrategyName = StrEnum("StrategyName", _STRATEGIES)  # type: ignore[misc]  # as above
INFORMATION = StrategyName("Information")
Target = Literal["mturk", "toloka", "label-studio"]
Goal = Literal["model", "labels"]
Crowd = Literal["hammer-spammer", "class-wise", "adversarial"]


def option(help: str, *names: str, **more: Any) -> Any:
    """Return an option by what it is for; without names it is called as its parameter."""
    return typer.Option(*names, help=help, **more)


LABELS = (
    "Labels, one file or several: csv, tsv, xlsx, parquet, jsonl or arrow, also .gz and .zst; or exports of Label "
    "Studio, MTurk, Toloka or Prodigy."
)
LabelsFiles = Annotated[list[Path], typer.Argument(metavar="FILE...", help=LABELS)]
JsonOption = Annotated[bool, option("One JSON object on stdout, for programs.", "--json")]
LabelsOutput = Annotated[
    Path | None, option("Where the labels go, by suffix; default: CSV on stdout.", "--output", "-o")
]
OutputFormat = Annotated[Format | None, option("Format of --output, such as label-studio for predictions with scores.")]
RunArgument = Annotated[Path, typer.Argument(help="A run folder that train wrote.")]

TaskOption = Annotated[
    str | None, option("Column of task ids; default: that of the run, task, or the only one there is.", "--task-column")
]
IgnoreOption = Annotated[
    list[str] | None,
    option("A column of --features, or of LABELS with a column per question, to leave out; may repeat."),
]
GroupsOption = Annotated[
    str | None,
    option(
        "Classes that are taken for each other, for many classes: a table with the columns class and group; "
        "taxonomy, where labels are paths such as animal/dog/beagle; or auto, found in the labels."
    ),
]

EmbedOption = Annotated[
    str | None,
    option(
        "Pretrained model of texts or images: a name on the Hugging Face Hub, a local folder, or none; default: "
        "that of LABELONCE_EMBED, else all-MiniLM-L6-v2 or DINOv2, if it is on this machine."
    ),
]
ImagesOption = Annotated[Path | None, option("Train on the images in this folder, named by their task ids.")]
TextOption = Annotated[str | None, option("Train on the texts in this column of --features, or else of LABELS.")]

_OWN = "or the tool's own."
_EXPORT = "in a tool's export."
_reading = partial(option, rich_help_panel="How the labels are read")


def _source(
    format: Annotated[Format | None, _reading("The format, where it is not recognised.")] = None,
    task: Annotated[str | None, _reading(f"Column of task ids; default: task, {_OWN}", "--task-column")] = None,
    worker: Annotated[str | None, _reading(f"Column of worker ids; default: worker, {_OWN}", "--worker-column")] = None,
    label: Annotated[str | None, _reading(f"Column or question; default: label, {_OWN}", "--label-column")] = None,
    classes: Annotated[
        str | None, _reading("All classes, comma-separated, such as no,yes; default: the labels seen.")
    ] = None,
    answers: Annotated[
        str | None, _reading("All answers, where they are not the classes: no,maybe,yes, or a scale such as 1,2,3,4,5.")
    ] = None,
    duplicates: Annotated[Duplicates | None, _reading("If one worker labelled one task more than once.")] = None,
    missing: Annotated[
        Missing | None, _reading("Rows without a task, a worker or a label; drop: leave them out.")
    ] = None,
    relabel: Annotated[
        Path | None, _reading("New names of labels: a table of old and new ones; an empty one leaves a label out.")
    ] = None,
    normalise: Annotated[
        bool, _reading("One spelling for labels that differ in case, blanks and punctuation.", "--normalise")
    ] = False,
    spellings: Annotated[
        Spellings | None, _reading("Labels that differ in case, blanks and punctuation; keep: they are classes.")
    ] = None,
    plain: Annotated[
        bool, _reading("Do not read the columns probability, weight, order and family.", "--plain")
    ] = False,
    rejected: Annotated[Rejected | None, _reading(f"Rejected or cancelled answers {_EXPORT}")] = None,
    multiple: Annotated[
        Multiple | None,
        _reading(f"Answers of several labels {_EXPORT} questions: each label, or column of a table, is one."),
    ] = None,
    question: Annotated[
        str | None, _reading("Column of questions, where a row is one answer to one question.", "--question-column")
    ] = None,
    answer: Annotated[str | None, _reading("Column of answers to questions.", "--answer-column")] = None,
    ignore: Annotated[
        list[str] | None, _reading("A column that is no question, of a table with one column each; may repeat.")
    ] = None,
) -> dict[str, Any]:
    given = {name: value for name, value in locals().items() if value not in (None, False)}
    if relabel is not None:
        given["relabel"] = str(relabel)
    return given | {name: listed_ids(given[name]) for name in ("classes", "answers") if name in given}


def listed_ids(text: str) -> tuple[Any, ...]:
    """Return comma-separated ids: integers where all are, as in a column of a file."""
    from labelonce.formats import integers_if_all

    return tuple(integers_if_all([part.strip() for part in text.split(",")]))


def money(text: Any) -> float:
    """Return an amount of money that a person typed, such as $2,000; a default is a number already."""
    from labelonce.formats import amount

    value = amount(text) if isinstance(text, str) else float(text)
    if value != value:
        raise typer.BadParameter(f"an amount of money such as 2000 or $2,000 is needed; got {text!r}.")
    return value


def share(text: Any) -> float:
    """Return a share that a person typed, such as 20% or 0.2; a default is a number already."""
    if not str(text).endswith("%"):
        return money(text)
    return money(text[:-1]) / 100


def speak_of_options(context: typer.Context, app: typer.Typer) -> None:
    """Let messages about an argument name the option of the command that was called."""
    command = typer.main.get_group(app).commands[context.invoked_subcommand or ""]
    options = {one.name: one.opts[0] for one in command.params if one.param_type_name == "option" and one.name}
    if "seed" in options:
        options["random_state"] = options["seed"]
    context.with_resource(named_as_options(options))


def takes_source(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a file of labels: it gets a `source`, those given, for `read_annotations`."""
    own, shared = (inspect.signature(one, eval_str=True).parameters for one in (command, _source))

    @wraps(command)
    def with_options(**given: Any) -> None:
        source = _source(**{name: given.pop(name) for name in shared if name not in own})
        command(**given, source=source)

    parameters = [one for one in (shared | own).values() if one.name != "source"]
    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    with_options.__dict__["__signature__"] = inspect.Signature(keywords)
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options
