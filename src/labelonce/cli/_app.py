"""The commands: each parses its options and calls the library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from labelonce import __version__
from labelonce._types import EngineName, Model
from labelonce.cli._options import (
    DAWID_SKENE,
    INFORMATION,
    LABELS,
    Crowd,
    EmbedOption,
    Goal,
    GroupsOption,
    IgnoreOption,
    ImagesOption,
    JsonOption,
    LabelsFiles,
    LabelsOutput,
    Method,
    OutputFormat,
    RunArgument,
    StrategyName,
    Target,
    TaskOption,
    TextOption,
    listed_ids,
    money,
    share,
    speak_of_options,
    takes_source,
)
from labelonce.cli._sharded import app as sharded

app = typer.Typer(
    name="labelonce",
    help="Clean labels and worker skills from noisy crowd labels, even with one label per task.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(sharded, name="sharded")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelonce {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    speak_of_options(context, app)


@app.command()
@takes_source
def aggregate(
    files: LabelsFiles,
    source: dict[str, Any],
    method: Annotated[Method, typer.Option(help="How to weigh the workers.")] = DAWID_SKENE,
    output: LabelsOutput = None,
    workers: Annotated[Path | None, typer.Option(help="Where a table of workers and their skills goes.")] = None,
    output_format: OutputFormat = None,
    gold: Annotated[Path | None, typer.Option(help="Known true labels: columns task and label, or an export.")] = None,
    groups: GroupsOption = None,
    engine: Annotated[
        EngineName | None, typer.Option(help="What does the sums of the methods that offer a choice; default: auto.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Breaks ties.")] = 0,
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
    from labelonce.cli._aggregate import run_aggregate

    run_aggregate(
        files,
        source,
        method=method.value,
        gold=gold,
        groups=groups,
        engine=engine,
        seed=seed,
        output=output,
        output_format=output_format,
        workers=workers,
        as_json=as_json,
    )


@app.command()
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


@app.command()
@takes_source
def judges(
    files: LabelsFiles,
    source: dict[str, Any],
    gold: Annotated[
        list[Path] | None, typer.Option(help="Items that people checked: columns task and label; may repeat.")
    ] = None,
    people: Annotated[
        str | None, typer.Option(help="Comma-separated workers or families that are people; default: by name.")
    ] = None,
    swap: Annotated[
        str | None,
        typer.Option(help="Two verdicts that name the place shown, such as A,B: they trade places in other orders."),
    ] = None,
    n: Annotated[int, typer.Option("--next", min=1, help="Number of items to check next.")] = 50,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for labels, judges, items to check and a report.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Breaks ties.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Combine the verdicts of language models, with a few people: how right they are, whom to keep, what to check.

    Says whether the panel beats its best judge, how many people's labels each judge is worth, which judges to drop, and
    the share of each class. Reads tables with the columns of evaluation tools, such as item, model, prompt, answer,
    logprob and swapped. Fill in the column label of next.csv and give it back with --gold.

    For example:

    - `labelonce judges verdicts.jsonl -o panel`

    - `labelonce judges verdicts.csv --gold checked.csv --gold panel/next.csv -o panel`

    - `labelonce judges pairwise.jsonl --swap A,B --json`
    """
    from labelonce.cli._judges import run_judges

    run_judges(
        files,
        source,
        gold=gold or [],
        people=[part.strip() for part in people.split(",")] if people else [],
        swap=None if swap is None else listed_ids(swap),
        n=n,
        seed=seed,
        output=output,
        as_json=as_json,
    )


@app.command()
@takes_source
def agreement(
    files: LabelsFiles,
    source: dict[str, Any],
    order: Annotated[
        str | None, typer.Option(help="All labels of a scale from lowest to highest: bad,fair,good.")
    ] = None,
    level: Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")] = 0.9,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where all pairs go, by suffix.")] = None,
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


@app.command()
@takes_source
def compare(
    files: LabelsFiles,
    source: dict[str, Any],
    gold: Annotated[Path | None, typer.Option(help="Known true labels: shown, never used to choose.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where the table goes, by suffix.")] = None,
    seed: Annotated[int, typer.Option(help="Draws the labels that are held out.")] = 0,
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


@app.command()
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
    from labelonce.cli._simulate import run_simulate

    sizes = (tasks, workers, classes, redundancy)
    run_simulate(sizes, crowd, quality, seed, output=output, gold=gold)


@app.command()
@takes_source
def train(
    context: typer.Context,
    source: dict[str, Any],
    labels: Annotated[list[Path] | None, typer.Argument(metavar="[LABELS]...", help=LABELS)] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The run folder.")] = Path("run"),
    features: Annotated[
        Path | None, typer.Option(help="One row per task: a column of task ids, and numbers; a table, npy or npz.")
    ] = None,
    text: TextOption = None,
    images: ImagesOption = None,
    embed: EmbedOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Texts or images: a model that takes seconds, without a pretrained one.")
    ] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Texts: n-grams as well. Images: both sides, or a longer training.")
    ] = False,
    image_size: Annotated[int, typer.Option(help="Side in pixels to which images are brought: 32, 64, ...")] = 32,
    model: Annotated[Model, typer.Option(help="What learns from the features.")] = "softmax",
    rounds: Annotated[str, typer.Option(help="Number of fits of the model; auto: chosen with the labels.")] = "auto",
    gold: Annotated[
        Path | None, typer.Option(help="Known true labels: columns task and label, or a tool's export.")
    ] = None,
    groups: GroupsOption = None,
    ignore: IgnoreOption = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the stopped run in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print run.json instead of a summary.")] = False,
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


@app.command()
def embed(
    source: Annotated[Path, typer.Argument(help="A table with texts, or a folder of images named by their task ids.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the numbers go, by suffix.")],
    text: Annotated[str | None, typer.Option(help="Column of texts.")] = None,
    task: Annotated[str | None, typer.Option("--task-column", help="Column of task ids; default: task.")] = None,
    embed: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="A name on the Hugging Face Hub, or a local folder; default: that of LABELONCE_EMBED, else "
            "all-MiniLM-L6-v2 or DINOv2 small.",
        ),
    ] = None,
    suffix: Annotated[bool, typer.Option("--suffix", help="Task ids are names of files with their suffix.")] = False,
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


def _effort(*, quick: bool, thorough: bool) -> str | None:
    if quick and thorough:
        raise ValueError("--quick must go without --thorough; got both. Leave one of them out.")
    return "quick" if quick else "thorough" if thorough else None


@app.command()
def predict(
    run: RunArgument,
    file: Annotated[
        Path, typer.Argument(help="New rows with the columns that the run was trained on, or a folder of images.")
    ],
    output: LabelsOutput = None,
    task: TaskOption = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Also write the probability of each class or question.")
    ] = False,
    output_format: OutputFormat = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV on stdout.")] = False,
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


@app.command()
def show(
    run: RunArgument,
    workers: Annotated[int, typer.Option(min=0, help="How many workers to print, the best and the worst.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="All of it as JSON, every worker included.")] = False,
) -> None:
    """Print what a run found: a summary, its rounds and its workers.

    For example:

    - `labelonce show run`

    - `labelonce show run --json | jq .result.shares`
    """
    from labelonce.cli._show import run_show

    run_show(run, n_workers=workers, as_json=as_json)


@app.command()
def review(
    run: RunArgument,
    output: LabelsOutput = None,
    least: Annotated[
        float, typer.Option(min=0, max=1, help="The least chance of being wrong of a label in the list.")
    ] = 0.2,
    top: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of labels to list, most likely wrong first.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines instead of CSV on stdout.")] = False,
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


@app.command()
def report(
    run: RunArgument,
    gold: Annotated[
        Path | None, typer.Option(help="True labels that the run has not seen: columns as in its labels.")
    ] = None,
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


@app.command()
def plan(
    run: Annotated[Path | None, typer.Argument(help="A run folder that train wrote: the pilot.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(parser=money, metavar="AMOUNT", help="What can be spent; default: ten times the pilot."),
    ] = None,
    goal: Annotated[Goal, typer.Option(help="What the labels are for: to train a model, or to be right.")] = "model",
    label_price: Annotated[
        float | None,
        typer.Option(parser=money, metavar="AMOUNT", help="Price of one label; default: as in the run's files, or 1."),
    ] = None,
    fee: Annotated[
        float, typer.Option(parser=share, metavar="SHARE", help="What the platform adds to each price, such as 20%.")
    ] = 0.0,
    task_price: Annotated[
        float, typer.Option(parser=money, metavar="AMOUNT", help="Price of one more task, without its labels.")
    ] = 0.0,
    tasks: Annotated[
        int | None, typer.Option(help="Number of tasks there are; default: those of the run, else no limit.")
    ] = None,
    test_tasks: Annotated[
        int | None, typer.Option(help="Tasks of a test set, paid from the budget; default: for a tenth of it.")
    ] = None,
    overlap: Annotated[
        int | None, typer.Option(help="Tasks with a second label where the others get one; default: a useful number.")
    ] = None,
    assume: Annotated[
        str | None, typer.Option(help="Instead of a pilot: skill=0.8, skills=0.9,0.7,0.6 or quality=0.3 (hammers).")
    ] = None,
    classes: Annotated[int | None, typer.Option(help="Number of classes, with --assume; default: 2.")] = None,
    fits: Annotated[int, typer.Option(help="Maximum number of simulated fits; 0: none.")] = 24,
    picture: Annotated[Path | None, typer.Option(help="File for a picture, svg or png.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same plan.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Plan how many labels per task, and how many tasks, a budget should buy.

    The workers are those of a run, or stated with --assume. With a run, its features are used to simulate the result.

    For example:

    - `labelonce plan run`

    - `labelonce plan run --budget 2000 --label-price 0.05 --fee 20% --goal labels`

    - `labelonce plan --assume skill=0.8 --budget 10000 --task-price 2`

    - `labelonce plan --assume quality=0.3 --classes 10 --budget 10000 --json`
    """
    from labelonce.cli._plan import run_plan

    prices = {"budget": budget, "label_price": label_price, "fee": fee, "task_price": task_price, "tasks": tasks}
    options: dict[str, Any] = {**prices, "goal": goal, "test_tasks": test_tasks, "overlap": overlap}
    options |= {"fits": fits, "random_state": seed}
    run_plan(run, assume, classes, picture=picture, as_json=as_json, **options)


@app.command("next")
@takes_source
def next_(
    files: LabelsFiles,
    source: dict[str, Any],
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="How many labels to ask for.")] = 100,
    features: Annotated[
        Path | None,
        typer.Option(help="One row per task, labelled or not: a column of task ids, and numbers; a table, npy or npz."),
    ] = None,
    text: TextOption = None,
    images: ImagesOption = None,
    embed: EmbedOption = None,
    ignore: IgnoreOption = None,
    strategy: Annotated[StrategyName, typer.Option(help="How the next labels are chosen.")] = INFORMATION,
    each: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of labels of one worker; default: an equal share for the good ones."),
    ] = None,
    max_labels: Annotated[int | None, typer.Option(min=1, help="Maximum number of labels of one task.")] = None,
    overlap: Annotated[
        int | None,
        typer.Option(min=0, help="Number of second labels of random tasks; default: as many as are useful."),
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Known true labels: such tasks are not asked for.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where they go; default: CSV on stdout.")
    ] = None,
    target: Annotated[
        Target | None,
        typer.Option("--for", help="Write the file that this tool imports."),
    ] = None,
    tasks: Annotated[
        Path | None, typer.Option(help="With --for: a table of all tasks with the fields that the tool shows.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same assignments.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Write who should label what next: one row per label to ask for, task and worker.

    For people who label in batches elsewhere. All labels so far are fitted, with --features by the model that train
    fits; a run folder in their place needs no new fit. Every worker then gets the tasks that gain most information from
    its labels, and workers whose labels carry little get none. Where nearly all tasks have one label, second labels of
    random tasks come first: how often they agree shows how right the labels are.

    For example:

    - `labelonce next run -n 100 -o assignments.csv`

    - `labelonce next labels.csv --features features.parquet -n 100 -o assignments.csv`

    - `labelonce next labels.csv --features texts.csv --text review -n 100 -o assignments.csv`

    - `labelonce next labels.csv -n 500 --each 20 --max-labels 5 --gold known.csv -o assignments.csv`

    - `labelonce next Batch_1.csv --task-column image_url --for mturk -o batch2.csv`

    - `labelonce next labels.csv --strategy FewestLabels --json`
    """
    from labelonce.cli._next import run_next

    run_next(
        files,
        source,
        n=n,
        inputs={"features": features, "text": text, "images": images, "embed": embed, "ignore": tuple(ignore or ())},
        gold=gold,
        strategy=strategy.value,
        each=each,
        max_labels=max_labels,
        overlap=overlap,
        seed=seed,
        output=output,
        target=target,
        tasks=tasks,
        as_json=as_json,
    )


@app.command()
def project(
    folder: Annotated[Path, typer.Argument(help="The project's folder: a new one, or one to add workers to.")],
    tasks: Annotated[
        Path | None, typer.Option(help="A table with one row per task, or a folder of images; it is copied.")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="The labels to choose from, comma-separated.")] = None,
    multilabel: Annotated[
        bool, typer.Option("--multilabel", help="Several labels can be true of a task: check boxes.")
    ] = False,
    workers: Annotated[str | None, typer.Option(help="Comma-separated workers: each gets a link.")] = None,
    revoke: Annotated[
        str | None, typer.Option(help="Comma-separated workers whose links to revoke; their labels stay.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="What people see above the tasks; default: the folder's name.")
    ] = None,
    task: Annotated[str, typer.Option("--task-column", help="Column of task ids.")] = "task",
    text: Annotated[str, typer.Option(help="Column of texts.")] = "",
    image: Annotated[str, typer.Option(help="Column of image files, named from where the table lies.")] = "",
    embed: EmbedOption = None,
    instructions: Annotated[
        Path | None, typer.Option(help="Markdown with what people should know, and examples; images lie next to it.")
    ] = None,
    known: Annotated[
        Path | None, typer.Option(help="A table with the true labels of some tasks (task, label): they are mixed in.")
    ] = None,
    feedback: Annotated[bool, typer.Option("--feedback", help="Tell people the true label after such a task.")] = False,
    overlap: Annotated[
        float, typer.Option(min=0, max=1, help="Share of tasks that get a second label by somebody else.")
    ] = 0.0,
    goal: Annotated[int, typer.Option(min=0, help="Labels that everybody is asked for; 0: none is named.")] = 0,
    url: Annotated[
        str | None, typer.Option(help="Where the service will be reached, for the links; default: its project.toml.")
    ] = None,
    backup: Annotated[
        Path | None, typer.Option(help="Write a copy of all answers to this file, also while the project is served.")
    ] = None,
    label_studio: Annotated[
        str | None, typer.Option(help="Instead of --tasks and --classes: the URL of a Label Studio.")
    ] = None,
    label_studio_project: Annotated[int | None, typer.Option(help="The number of its project.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a folder for a team that labels, or add workers to one; then serve it with `labelonce serve`.

    Prints a link for every worker and one for the dashboard. They are shown this once: only hashes of the tokens are
    kept. How labels are routed is said in the folder's project.toml. The token for a Label Studio is taken from
    LABEL_STUDIO_API_KEY in the environment.

    For example:

    - `labelonce project pets --tasks photos --classes cat,dog --workers ann,bob`  (a folder of images)

    - `labelonce project reviews --tasks reviews.csv --text review --classes good,bad --workers ann`

    - `labelonce project walks --tasks photos --classes dog,sea,road --multilabel --workers ann`  (check boxes)

    - `labelonce project pets --tasks photos --classes cat,dog --instructions guide.md --overlap 0.1 --goal 200`

    - `labelonce project pets --workers eve`  (one more worker)

    - `labelonce project pets --revoke bob`  (his link works no longer)

    - `labelonce project pets --backup pets-monday.db`

    - `labelonce project pets --label-studio http://127.0.0.1:8090 --label-studio-project 1`
    """
    from labelonce.cli._serve import run_backup, run_project, run_revoke

    if revoke is not None or backup is not None:
        alone = "--revoke" if revoke is not None else "--backup"
        others = (tasks, classes, workers, title, text, image, embed, multilabel, label_studio)
        if any(others) or None not in (revoke, backup):
            raise ValueError(f"{alone} must go without other options; got more. Use two commands.")
        run_revoke(folder, revoke) if revoke is not None else run_backup(folder, backup or Path())
        return
    options: dict[str, Any] = {"title": title, "task": task, "text": text, "image": image, "embed": embed}
    options |= {"multilabel": multilabel, "guide": instructions, "known": known}
    options |= {"feedback": feedback, "overlap": overlap, "goal": goal}
    there = (label_studio, label_studio_project)
    run_project(folder, tasks, classes, workers, there=there, url=url, as_json=as_json, **options)


@app.command()
def serve(
    folder: Annotated[Path, typer.Argument(help="A folder that labelonce project made.")],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0: everywhere.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Default: that of the links, in the project.toml.")
    ] = None,
    label_studio: Annotated[
        str | None, typer.Option(help="Be the model of a project in the Label Studio at this URL, too.")
    ] = None,
    label_studio_project: Annotated[int | None, typer.Option(help="The number of its project.")] = None,
    url: Annotated[str | None, typer.Option(help="Where Label Studio reaches us; default: host and port.")] = None,
) -> None:
    """Hand out tasks to a team over HTTP, while the model improves: a labelling page, a dashboard and an API.

    The labels are in the project's database when a request is answered. Whatever else the service writes can be
    deleted and comes back.

    For example:

    - `labelonce serve pets`

    - `labelonce serve pets --host 0.0.0.0 --port 80`

    - `labelonce serve pets --label-studio http://127.0.0.1:8090 --label-studio-project 1`
    """
    from labelonce.cli._serve import run_serve

    run_serve(folder, (label_studio, label_studio_project), host=host, port=port, url=url)


@app.command()
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


def main() -> None:
    """Run the command line: bad input is one sentence on stderr and exit code 2."""
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:  # the last: an extra that is not installed
        from labelonce.cli._print import one_line

        typer.echo(f"labelonce: {one_line(str(error))}", err=True)
        sys.exit(2)
