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
    EBCC = "ebcc"
    SPECTRAL_DAWID_SKENE = "spectral-dawid-skene"
    MINIMAX_ENTROPY = "minimax-entropy"
    MULTIDIMENSIONAL_WISDOM = "multidimensional-wisdom"
    DATA_PROGRAMMING = "data-programming"


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
    file: Annotated[Path, typer.Argument(help="Labels: csv, tsv, parquet, jsonl or arrow, also .gz and .zst.")],
    method: Annotated[Method, typer.Option(help="How to weigh the workers.")] = Method.DAWID_SKENE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the labels go, by suffix; default: CSV on stdout.")
    ] = None,
    workers: Annotated[Path | None, typer.Option(help="Where a table of workers and their skills goes.")] = None,
    task_column: Annotated[str, typer.Option(help="Name of the column of task ids.")] = "task",
    worker_column: Annotated[str, typer.Option(help="Name of the column of worker ids.")] = "worker",
    label_column: Annotated[str, typer.Option(help="Name of the column of labels.")] = "label",
    duplicates: Annotated[
        Duplicates, typer.Option(help="If one worker labelled one task more than once.")
    ] = Duplicates.ERROR,
    seed: Annotated[int, typer.Option(help="Breaks ties.")] = 0,
) -> None:
    """Write the most probable label of every task in FILE.

    The output has a row a task: task, label, confidence, and the probability of each class.

    For example:

    - `labelonce aggregate labels.csv -o clean.csv`

    - `labelonce aggregate labels.parquet --method ibcc -o clean.parquet --workers workers.csv`

    - `labelonce aggregate answers.tsv --task-column item --worker-column who --label-column answer`
    """
    from labelonce.cli._aggregate import run_aggregate
    from labelonce.io import read_annotations

    annotations = read_annotations(
        file, task=task_column, worker=worker_column, label=label_column, duplicates=duplicates.value
    )
    run_aggregate(annotations, method.value, seed, output=output, workers=workers)


@app.command()
def compare(
    file: Annotated[Path, typer.Argument(help="Labels: csv, tsv, parquet, jsonl or arrow, also .gz and .zst.")],
    gold: Annotated[
        Path | None, typer.Option(help="Known true labels, columns task and label: shown, never used to choose.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where the table goes, by suffix.")] = None,
    task_column: Annotated[str, typer.Option(help="Name of the column of task ids.")] = "task",
    worker_column: Annotated[str, typer.Option(help="Name of the column of worker ids.")] = "worker",
    label_column: Annotated[str, typer.Option(help="Name of the column of labels.")] = "label",
    duplicates: Annotated[
        Duplicates, typer.Option(help="If one worker labelled one task more than once.")
    ] = Duplicates.ERROR,
    seed: Annotated[int, typer.Option(help="Draws the labels that are held out.")] = 0,
) -> None:
    """Fit every aggregator to FILE and recommend one, without gold if need be.

    A fifth of the labels is held out: the method that predicts them best is recommended.

    For example:

    - `labelonce compare labels.csv`

    - `labelonce compare labels.csv --gold gold.csv -o methods.csv`
    """
    from labelonce.cli._compare import run_compare
    from labelonce.io import read_annotations

    annotations = read_annotations(
        file, task=task_column, worker=worker_column, label=label_column, duplicates=duplicates.value
    )
    run_compare(annotations, gold, seed, columns=(task_column, label_column), output=output)


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

    For example: `labelonce demo --seed 1`
    """
    from labelonce.cli._demo import run_demo

    run_demo(seed)


def main() -> None:
    """Run the command line: bad input is one sentence on stderr and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, OSError) as error:
        typer.echo(f"labelonce: {error}", err=True)
        sys.exit(2)
