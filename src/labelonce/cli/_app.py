"""The commands, each a thin shell around the library."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from labelonce import __version__

app = typer.Typer(
    name="labelonce",
    help="Clean labels and worker skills from noisy crowd labels, even with one label per task.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


class Method(StrEnum):
    """The aggregators by their names on the command line."""

    MAJORITY_VOTE = "majority-vote"
    DAWID_SKENE = "dawid-skene"
    ONE_COIN = "one-coin"
    IBCC = "ibcc"


class Duplicates(StrEnum):
    """What to do when one worker labelled one task more than once."""

    ERROR = "error"
    FIRST = "first"
    LAST = "last"
    KEEP = "keep"


class Crowd(StrEnum):
    """The simulated crowds by their names on the command line."""

    HAMMER_SPAMMER = "hammer-spammer"
    CLASS_WISE = "class-wise"
    ADVERSARIAL = "adversarial"


class Format(StrEnum):
    """The file formats by their names on the command line."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    ARROW = "arrow"
    LABEL_STUDIO = "label-studio"
    MTURK = "mturk"
    TOLOKA = "toloka"
    PRODIGY = "prodigy"
    MATRIX = "matrix"


class Rejected(StrEnum):
    """What to do with answers that were rejected or cancelled."""

    DROP = "drop"
    KEEP = "keep"


class Multiple(StrEnum):
    """What to do with an answer of several labels."""

    ERROR = "error"
    JOIN = "join"
    SPLIT = "split"


LabelsFile = Annotated[
    Path,
    typer.Argument(
        help="Labels: csv, tsv, parquet, jsonl or arrow, also .gz and .zst; or an export of Label Studio, MTurk, "
        "Toloka or Prodigy."
    ),
]
FormatOption = Annotated[Format | None, typer.Option("--format", help="The file's format, where it is not recognised.")]
TaskColumn = Annotated[str | None, typer.Option(help="Column or field of task ids; default: task, or the tool's own.")]
WorkerColumn = Annotated[
    str | None, typer.Option(help="Column or field of worker ids; default: worker, or the tool's own.")
]
LabelColumn = Annotated[
    str | None, typer.Option(help="Column, control or question of the labels; default: label, or the only one.")
]
RejectedOption = Annotated[Rejected | None, typer.Option(help="Rejected or cancelled answers in a tool's export.")]
MultipleOption = Annotated[Multiple | None, typer.Option(help="Answers of several labels in a tool's export.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelonce {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def aggregate(
    file: LabelsFile,
    method: Annotated[Method, typer.Option(help="How to weigh the workers.")] = Method.DAWID_SKENE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the labels go, by suffix; default: CSV on stdout.")
    ] = None,
    workers: Annotated[Path | None, typer.Option(help="Where a table of workers and their skills goes.")] = None,
    format: FormatOption = None,
    output_format: Annotated[
        Format | None, typer.Option(help="Format of --output, such as label-studio for predictions with scores.")
    ] = None,
    task_column: TaskColumn = None,
    worker_column: WorkerColumn = None,
    label_column: LabelColumn = None,
    duplicates: Annotated[
        Duplicates, typer.Option(help="If one worker labelled one task more than once.")
    ] = Duplicates.ERROR,
    rejected: RejectedOption = None,
    multiple: MultipleOption = None,
    seed: Annotated[int, typer.Option(help="Breaks ties.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write the most probable label of every task in FILE.

    The output has a row a task: task, label, confidence, and the probability of each class.

    For example:

    - `labelonce aggregate labels.csv -o clean.csv`

    - `labelonce aggregate labels.parquet --method ibcc -o clean.parquet --workers workers.csv`

    - `labelonce aggregate answers.tsv --task-column item --worker-column who --label-column answer`

    - `labelonce aggregate export.json --label-column sentiment -o predictions.json --output-format label-studio`

    - `labelonce aggregate labels.csv -o clean.csv --json`
    """
    from labelonce.cli._aggregate import run_aggregate

    source = {
        "format": format,
        "task": task_column,
        "worker": worker_column,
        "label": label_column,
        "duplicates": duplicates.value,
        "rejected": rejected,
        "multiple": multiple,
    }
    run_aggregate(
        file, source, method.value, seed, output=output, output_format=output_format, workers=workers, as_json=as_json
    )


@app.command()
def check(
    file: LabelsFile,
    format: FormatOption = None,
    task_column: TaskColumn = None,
    worker_column: WorkerColumn = None,
    label_column: LabelColumn = None,
    rejected: RejectedOption = None,
    multiple: MultipleOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is in FILE, what looks wrong with it, and what can be estimated from it.

    The first thing to run on new labels; nothing is written. Exit code 0: nothing looks wrong. 1: a person
    should look at something. 2: the file cannot be read.

    For example:

    - `labelonce check labels.csv`

    - `labelonce check batch_results.csv --label-column category --rejected keep`

    - `labelonce check export.json --label-column sentiment --json`
    """
    from labelonce.cli._check import run_check

    source = {
        "format": format,
        "task": task_column,
        "worker": worker_column,
        "label": label_column,
        "rejected": rejected,
        "multiple": multiple,
    }
    raise typer.Exit(run_check(file, source, as_json=as_json))


@app.command()
def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the labels go, by suffix.")],
    gold: Annotated[Path | None, typer.Option(help="Where the true labels go.")] = None,
    tasks: Annotated[int, typer.Option(help="Number of tasks.")] = 1000,
    workers: Annotated[int, typer.Option(help="Number of workers.")] = 50,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    redundancy: Annotated[int, typer.Option(help="Labels per task.")] = 1,
    crowd: Annotated[Crowd, typer.Option(help="What the bad workers do.")] = Crowd.HAMMER_SPAMMER,
    quality: Annotated[float, typer.Option(help="Chance that a worker is good.")] = 0.2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 0,
) -> None:
    """Write labels of a simulated crowd, to try things on.

    Good workers are always right. The others guess (hammer-spammer), guess in some classes only
    (class-wise) or are always wrong (adversarial).

    For example:

    - `labelonce simulate -o labels.csv --gold gold.csv --redundancy 3`

    - `labelonce simulate -o labels.parquet --tasks 100000 --workers 500 --crowd class-wise --quality 0.5`
    """
    from labelonce.cli._simulate import run_simulate

    sizes = (tasks, workers, classes, redundancy)
    run_simulate(sizes, crowd.value, quality, seed, output=output, gold=gold)


@app.command()
def demo(seed: Annotated[int, typer.Option(help="Another seed, another crowd.")] = 0) -> None:
    """Simulate a crowd that labels handwritten digits, and see who can be trusted.

    For example:

    - `labelonce demo`

    - `labelonce demo --seed 1`
    """
    from labelonce.cli._demo import run_demo

    run_demo(seed)


def main() -> None:
    """Run the command line: bad input is one sentence on stderr and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, OSError) as error:
        from labelonce.cli._print import for_the_shell

        typer.echo(f"labelonce: {for_the_shell(str(error))}", err=True)
        sys.exit(2)
