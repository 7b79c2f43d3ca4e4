"""The commands to try things on: simulate a crowd, and the demo."""

from pathlib import Path
from typing import Annotated

from labelonce.cli._options import Crowd, option


def simulate(
    output: Annotated[Path, option("Where the labels go, by suffix.", "--output", "-o")],
    gold: Annotated[Path | None, option("Where the true labels go.")] = None,
    tasks: Annotated[int, option("Number of tasks.")] = 1000,
    workers: Annotated[int, option("Number of workers.")] = 50,
    classes: Annotated[int, option("Number of classes.")] = 10,
    redundancy: Annotated[int, option("Labels per task.")] = 1,
    crowd: Annotated[Crowd, option("What the bad workers do.")] = "hammer-spammer",
    quality: Annotated[float, option("Chance that a worker is good.")] = 0.2,
    seed: Annotated[int, option("The same seed gives the same file.")] = 0,
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
    output: Annotated[Path, option("Where the files and the run go.", "--output", "-o")] = Path("labelonce-demo"),
    seed: Annotated[int, option("Another seed, another crowd.")] = 0,
) -> None:
    """Simulate a crowd that labels handwritten digits, train on it, and see who can be trusted.

    Writes the crowd's files and a run folder with the model and report.html, and prints what MBEM won over voting.

    For example:

    - `labelonce demo`
    - `labelonce demo --seed 1 -o another-crowd`
    """
    from labelonce.cli._demo import run_demo

    run_demo(seed, output)
