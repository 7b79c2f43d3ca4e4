"""The commands to try things on: simulate a crowd, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelonce.cli._options import Crowd


def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the labels go, by suffix.")],
    gold: Annotated[Path | None, typer.Option(help="Where the true labels go.")] = None,
    tasks: Annotated[int, typer.Option(help="Number of tasks.")] = 1000,
    workers: Annotated[int, typer.Option(help="Number of workers.")] = 50,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    redundancy: Annotated[int, typer.Option(help="Labels per task.")] = 1,
    crowd: Annotated[Crowd, typer.Option(help="What the bad workers do.")] = "hammer-spammer",
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
    given = locals()
    from labelonce.cli._simulate import run_simulate

    run_simulate(**given)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the files and the run go.")] = Path(
        "labelonce-demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed, another crowd.")] = 0,
) -> None:
    """Simulate a crowd that labels handwritten digits, train on it, and see who can be trusted.

    Writes the crowd's files and a run folder with the model and report.html, and prints what MBEM won over voting.

    For example:

    - `labelonce demo`
    - `labelonce demo --seed 1 -o another-crowd`
    """
    from labelonce.cli._demo import run_demo

    run_demo(seed, output)
