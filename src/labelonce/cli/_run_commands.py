"""The commands on runs: train one, predict, show, review and report it; and embed, which makes features."""

from pathlib import Path
from typing import Annotated, Any

import typer

from labelonce._types import Model
from labelonce.cli._options import (
    LABELS,
    EmbedOption,
    GroupsOption,
    IgnoreOption,
    ImagesOption,
    JsonOption,
    LabelsOutput,
    OutputFormat,
    RunArgument,
    TaskOption,
    TextOption,
    option,
    takes_source,
)


@takes_source
def train(
    context: typer.Context,
    source: dict[str, Any],
    labels: Annotated[list[Path] | None, typer.Argument(metavar="[LABELS]...", help=LABELS)] = None,
    output: Annotated[Path, option("The run folder.", "--output", "-o")] = Path("run"),
    features: Annotated[
        Path | None, option("One row per task: a column of task ids, and numbers; a table, npy or npz.")
    ] = None,
    text: TextOption = None,
    images: ImagesOption = None,
    embed: EmbedOption = None,
    quick: Annotated[
        bool, option("Texts or images: a model that takes seconds, without a pretrained one.", "--quick")
    ] = False,
    thorough: Annotated[
        bool, option("Texts: n-grams as well. Images: both sides, or a longer training.", "--thorough")
    ] = False,
    image_size: Annotated[int, option("Side in pixels to which images are brought: 32, 64, ...")] = 32,
    model: Annotated[Model, option("What learns from the features.")] = "softmax",
    rounds: Annotated[str, option("Number of fits of the model; auto: chosen with the labels.")] = "auto",
    gold: Annotated[Path | None, option("Known true labels: columns task and label, or a tool's export.")] = None,
    groups: GroupsOption = None,
    ignore: IgnoreOption = None,
    seed: Annotated[int, option("The same seed gives the same numbers.")] = 0,
    resume: Annotated[bool, option("Resume the stopped run in the folder.", "--resume")] = False,
    as_json: Annotated[bool, option("Print run.json instead of a summary.", "--json")] = False,
) -> None:
    """Train a classifier on noisy labels, one per task included, and find out who can be trusted.

    Writes a run folder: run.json (what was run and what came out), labels.parquet (the clean label of every task with
    its confidence), workers.parquet (the skill of every worker), model.skops and, with the report extra, report.html.
    An earlier result in the folder stays until the new one is complete.

    For example:

    - `labelonce train labels.csv --features features.parquet -o run`
    - `labelonce train labels.csv --text review -o run`  (a column of labels.csv)
    - `labelonce train labels.csv --features texts.csv --text review --gold known.csv -o run`
    - `labelonce train export.json --text review --label-column sentiment -o run`  (a field of Label Studio's tasks)
    - `labelonce train species.csv --features features.parquet --groups genera.csv -o run`  (many classes)
    - `labelonce train labels.csv --images photos -o run`  (photos/7.jpg or photos/7.png is task 7)
    - `labelonce train ticked.csv --features features.parquet -o run`  (several labels at once)
    - `labelonce train --resume -o run`  (after a kill or a power cut; it ends with the same numbers)
    """
    from labelonce.cli._train import run_train

    given = {
        "labels": labels or (),
        "features": features and str(features),
        "text": text,
        "images": images and str(images),
        "image_size": image_size,
        "embed": embed,
        "effort": _effort(quick=quick, thorough=thorough),
        "gold": gold and str(gold),
        "groups": groups,
        "model": model,
        "rounds": int(rounds) if rounds.isdecimal() else rounds,
        "seed": seed,
        "ignore": tuple(ignore or ()),
    } | source
    explicit = {name for name in given if str(context.get_parameter_source(name)).endswith("COMMANDLINE")}
    explicit |= {"effort"} if given["effort"] else set()
    run_train(given, explicit, output, resume=resume, as_json=as_json)


def _effort(*, quick: bool, thorough: bool) -> str | None:
    if quick and thorough:
        raise ValueError("--quick must go without --thorough; got both. Leave one of them out.")
    return "quick" if quick else "thorough" if thorough else None


def embed(
    source: Annotated[Path, typer.Argument(help="A table with texts, or a folder of images named by their task ids.")],
    output: Annotated[Path, option("Where the numbers go, by suffix.", "--output", "-o")],
    text: Annotated[str | None, option("Column of texts.")] = None,
    task: Annotated[str | None, option("Column of task ids; default: task.", "--task-column")] = None,
    embed: Annotated[
        str | None,
        option(
            "A name on the Hugging Face Hub, or a local folder; default: that of LABELONCE_EMBED, else "
            "all-MiniLM-L6-v2 or DINOv2 small.",
            "--model",
        ),
    ] = None,
    suffix: Annotated[bool, option("Task ids are names of files with their suffix.", "--suffix")] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn texts or images into numbers with a pretrained model: features for every other command.

    Texts take sentence-transformers or any encoder of transformers, images a model of transformers or timm. What was
    encoded once is kept, so a stopped command resumes.

    For example:

    - `labelonce embed photos -o features.parquet`
    - `labelonce embed reviews.csv --text review -o features.parquet`
    - `labelonce embed photos --model models/dinov2-small -o features.parquet`  (a folder, without network)
    """
    from labelonce.cli._embed import run_embed

    run_embed(source, output, model=embed, text=text, task=task, suffix=suffix, as_json=as_json)


def predict(
    run: RunArgument,
    file: Annotated[
        Path, typer.Argument(help="New rows with the columns that the run was trained on, or a folder of images.")
    ],
    output: LabelsOutput = None,
    task: TaskOption = None,
    proba: Annotated[bool, option("Also write the probability of each class or question.", "--proba")] = False,
    output_format: OutputFormat = None,
    as_json: Annotated[bool, option("JSON lines instead of CSV on stdout.", "--json")] = False,
) -> None:
    """Write the model's label of every row of FILE, with its confidence; of a run on questions, a column for each.

    The columns are found by their names; others are not read. Task ids are in --task-column, or in the only other
    column whose values all differ; without one the rows are 0, 1, 2, ...

    For example:

    - `labelonce predict run new.csv -o predicted.csv`
    - `labelonce predict run new.parquet --proba | head`
    - `labelonce predict run more_photos -o predicted.csv`
    - `labelonce predict run new_tasks.json -o predictions.json --output-format label-studio`  (a run on texts)
    """
    from labelonce.cli._predict import run_predict

    run_predict(run, file, task=task, output=output, output_format=output_format, proba=proba, as_json=as_json)


def show(
    run: RunArgument,
    workers: Annotated[int, option("How many workers to print, the best and the worst.", min=0)] = 20,
    as_json: Annotated[bool, option("All of it as JSON, every worker included.", "--json")] = False,
) -> None:
    """Print what a run found: a summary, its rounds and its workers.

    For example:

    - `labelonce show run`
    - `labelonce show run --json | jq .result.shares`
    """
    from labelonce.cli._show import run_show

    run_show(run, n_workers=workers, as_json=as_json)


def review(
    run: RunArgument,
    output: LabelsOutput = None,
    least: Annotated[float, option("The least chance of being wrong of a label in the list.", min=0, max=1)] = 0.2,
    top: Annotated[int | None, option("Maximum number of labels to list, most likely wrong first.", min=1)] = None,
    as_json: Annotated[bool, option("JSON lines instead of CSV on stdout.", "--json")] = False,
) -> None:
    """Write the given labels that are worth checking, the most likely wrong first.

    One row per given label: task, its text or image where the run has it, given label, worker, our label, the
    calibrated chance that the given label is wrong, and what to do: replace (our label is at least 90 % sure), check
    or keep. Needs nothing but the run folder.

    For example:

    - `labelonce review run -o recheck.csv`
    - `labelonce review run --top 100 -o first.csv`
    """
    from labelonce.cli._review import run_review

    run_review(run, output=output, least=least, top=top, as_json=as_json)


def report(
    run: RunArgument,
    gold: Annotated[Path | None, option("True labels that the run has not seen: columns as in its labels.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write report.html of a run again; with --gold it measures what the run estimated.

    The old report stays until the new one is complete.

    For example:

    - `labelonce report run`
    - `labelonce report run --gold checked.csv`
    """
    from labelonce.cli._report import run_report

    run_report(run, gold=gold, as_json=as_json)
