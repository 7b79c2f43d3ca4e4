"""The commands on files of labels: check, aggregate, judges, agreement, compare."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from labelonce.cli._options import (
    DAWID_SKENE,
    GroupsOption,
    JsonOption,
    LabelsFiles,
    LabelsOutput,
    Method,
    OutputFormat,
    listed_ids,
    option,
    takes_source,
)


@takes_source
def check(files: LabelsFiles, source: dict[str, Any], as_json: JsonOption = False) -> None:
    """Say what is in FILE, what looks wrong with it, and what can be estimated from it.

    The first thing to run on new labels; nothing is written. Exit code 0: nothing looks wrong. 1: a person
    should look at something. 2: the file cannot be read.

    For example:

    - `labelonce check labels.csv`
    - `labelonce check batch_results.csv --label-column category --rejected keep`
    - `labelonce check export.json --label-column sentiment --json`
    """
    from labelonce.cli._check import run_check

    raise typer.Exit(run_check(files, source, as_json=as_json))


@takes_source
def aggregate(
    files: LabelsFiles,
    source: dict[str, Any],
    method: Annotated[Method, option("How to weigh the workers.")] = DAWID_SKENE,
    output: LabelsOutput = None,
    workers: Annotated[Path | None, option("Where a table of workers and their skills goes.")] = None,
    output_format: OutputFormat = None,
    gold: Annotated[Path | None, option("Known true labels: columns task and label, or an export.")] = None,
    groups: GroupsOption = None,
    device: Annotated[
        Literal["cpu", "cuda"] | None,
        option("Where the sums of the methods that offer a choice are done; default: cuda where it pays."),
    ] = None,
    seed: Annotated[int, option("Breaks ties.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write the most probable label of every task in FILE, or in several files together.

    The output has one row per task: task, label, confidence, and the probability of each class, or of the best five
    where there are thousands.

    For example:

    - `labelonce aggregate labels.csv -o clean.csv`
    - `labelonce aggregate labels.parquet --method ibcc -o clean.parquet --workers workers.csv`
    - `labelonce aggregate answers.tsv --task-column item --worker-column who --label-column answer`
    - `labelonce aggregate export.json --label-column sentiment -o predictions.json --output-format label-studio`
    - `labelonce aggregate species.parquet --groups genera.csv -o clean.parquet`  (thousands of classes)
    - `labelonce aggregate labels.csv -o clean.csv --json`
    """
    given = locals()
    from labelonce.cli._aggregate import run_aggregate

    run_aggregate(**given)


@takes_source
def judges(
    files: LabelsFiles,
    source: dict[str, Any],
    gold: Annotated[list[Path] | None, option("Items that people checked: columns task and label; may repeat.")] = None,
    people: Annotated[
        str | None, option("Comma-separated workers or families that are people; default: by name.")
    ] = None,
    swap: Annotated[
        str | None, option("Two verdicts that name the place shown, such as A,B: they trade places in other orders.")
    ] = None,
    n: Annotated[int, option("Number of items to check next.", "--next", min=1)] = 50,
    risk: Annotated[
        float | None,
        option("Says how many labels of people to buy until at most this share is wrong.", min=0.0, max=1.0),
    ] = None,
    width: Annotated[
        float | None, option("Says how many items to check until shares are known to +-.", min=1e-4, max=1.0)
    ] = None,
    output: Annotated[
        Path | None, option("Folder for labels, judges, items to check and a report.", "--output", "-o")
    ] = None,
    seed: Annotated[int, option("Breaks ties.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Combine the verdicts of language models, with a few people: how right they are, whom to keep, what to check.

    Says whether the panel beats its best judge, how many people's labels each judge is worth, which judges to drop, and
    the share of each class. Reads tables with the columns of evaluation tools, such as item, model, prompt, answer,
    logprob and swapped. Fill in the column label of next.csv and give it back with --gold.

    For example:

    - `labelonce judges verdicts.jsonl -o panel`
    - `labelonce judges verdicts.csv --gold checked.csv --gold panel/next.csv -o panel`
    - `labelonce judges verdicts.csv --risk 0.05 --width 0.03`
    - `labelonce judges pairwise.jsonl --swap A,B --json`
    """
    given = locals() | {"people": [part.strip() for part in people.split(",")] if people else None}
    from labelonce.cli._judges import run_judges

    run_judges(**given | {"gold": gold or [], "swap": None if swap is None else listed_ids(swap)})


@takes_source
def agreement(
    files: LabelsFiles,
    source: dict[str, Any],
    order: Annotated[str | None, option("All labels of a scale from lowest to highest: bad,fair,good.")] = None,
    level: Annotated[float, option("Level of the intervals.", min=0.5, max=0.999)] = 0.9,
    output: Annotated[Path | None, option("Where all pairs go, by suffix.", "--output", "-o")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say how far workers agree: percent, Fleiss' kappa, Krippendorff's alpha; per class, and Cohen's kappa per pair.

    Over the tasks that two or more workers labelled; of a worker's several labels for one task the last counts.

    For example:

    - `labelonce agreement labels.csv`
    - `labelonce agreement ratings.csv --order bad,fair,good -o pairs.csv`
    """
    from labelonce.cli._agreement import run_agreement

    run_agreement(files, source, order=order, level=level, output=output, as_json=as_json)


@takes_source
def compare(
    files: LabelsFiles,
    source: dict[str, Any],
    gold: Annotated[Path | None, option("Known true labels: shown, never used to choose.")] = None,
    output: Annotated[Path | None, option("Where the table goes, by suffix.", "--output", "-o")] = None,
    seed: Annotated[int, option("Draws the labels that are held out.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Fit every aggregator to FILE and recommend one, without gold if need be.

    A fifth of the labels is held out: the method that predicts them best is recommended.

    For example:

    - `labelonce compare labels.csv`
    - `labelonce compare labels.csv --gold gold.csv -o methods.csv`
    - `labelonce compare export.json --label-column sentiment --json`
    """
    from labelonce.cli._compare import run_compare

    run_compare(files, source, gold, seed, output=output, as_json=as_json)
