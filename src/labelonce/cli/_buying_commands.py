"""The commands for buying labels: plan, next, and a team's project and its service."""

from pathlib import Path
from typing import Annotated, Any

import typer

from labelonce.cli._options import (
    INFORMATION,
    EmbedOption,
    Goal,
    IgnoreOption,
    ImagesOption,
    JsonOption,
    LabelsFiles,
    StrategyName,
    Target,
    TextOption,
    money,
    option,
    share,
    takes_source,
)


def plan(
    run: Annotated[Path | None, typer.Argument(help="A run folder that train wrote: the pilot.")] = None,
    budget: Annotated[
        float | None, option("What can be spent; default: ten times the pilot.", parser=money, metavar="AMOUNT")
    ] = None,
    goal: Annotated[Goal, option("What the labels are for: to train a model, or to be right.")] = "model",
    label_price: Annotated[
        float | None,
        option("Price of one label; default: as in the run's files, or 1.", parser=money, metavar="AMOUNT"),
    ] = None,
    fee: Annotated[
        float, option("What the platform adds to each price, such as 20%.", parser=share, metavar="SHARE")
    ] = 0.0,
    task_price: Annotated[
        float, option("Price of one more task, without its labels.", parser=money, metavar="AMOUNT")
    ] = 0.0,
    tasks: Annotated[int | None, option("Number of tasks there are; default: those of the run, else no limit.")] = None,
    test_tasks: Annotated[
        int | None, option("Tasks of a test set, paid from the budget; default: for a tenth of it.")
    ] = None,
    overlap: Annotated[
        int | None, option("Tasks with a second label where the others get one; default: a useful number.")
    ] = None,
    assume: Annotated[
        str | None, option("Instead of a pilot: skill=0.8, skills=0.9,0.7,0.6 or quality=0.3 (hammers).")
    ] = None,
    classes: Annotated[int | None, option("Number of classes, with --assume; default: 2.")] = None,
    fits: Annotated[int, option("Maximum number of simulated fits; 0: none.")] = 24,
    picture: Annotated[Path | None, option("File for a picture, svg or png.")] = None,
    seed: Annotated[int, option("The same seed gives the same plan.")] = 0,
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
    given = locals()
    from labelonce.cli._plan import run_plan

    run_plan(**given)


@takes_source
def next_(
    files: LabelsFiles,
    source: dict[str, Any],
    n: Annotated[int, option("How many labels to ask for.", "--number", "-n", min=1)] = 100,
    features: Annotated[
        Path | None,
        option("One row per task, labelled or not: a column of task ids, and numbers; a table, npy or npz."),
    ] = None,
    text: TextOption = None,
    images: ImagesOption = None,
    embed: EmbedOption = None,
    ignore: IgnoreOption = None,
    strategy: Annotated[StrategyName, option("How the next labels are chosen.")] = INFORMATION,
    each: Annotated[
        int | None, option("Maximum number of labels of one worker; default: an equal share for the good ones.", min=1)
    ] = None,
    max_labels: Annotated[int | None, option("Maximum number of labels of one task.", min=1)] = None,
    overlap: Annotated[
        int | None, option("Number of second labels of random tasks; default: as many as are useful.", min=0)
    ] = None,
    gold: Annotated[Path | None, option("Known true labels: such tasks are not asked for.")] = None,
    output: Annotated[Path | None, option("Where they go; default: CSV on stdout.", "--output", "-o")] = None,
    target: Annotated[Target | None, option("Write the file that this tool imports.", "--for")] = None,
    tasks: Annotated[
        Path | None, option("With --for: a table of all tasks with the fields that the tool shows.")
    ] = None,
    seed: Annotated[int, option("The same seed gives the same assignments.")] = 0,
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
    given = locals() | {"strategy": strategy.value, "ignore": tuple(ignore or ())}
    from labelonce.cli._next import run_next

    run_next(**given)


def project(
    folder: Annotated[Path, typer.Argument(help="The project's folder: a new one, or one to add workers to.")],
    tasks: Annotated[Path | None, option("A table with one row per task, or a folder of images; it is copied.")] = None,
    classes: Annotated[str | None, option("The labels to choose from, comma-separated.")] = None,
    multilabel: Annotated[bool, option("Several labels can be true of a task: check boxes.", "--multilabel")] = False,
    workers: Annotated[str | None, option("Comma-separated workers: each gets a link.")] = None,
    revoke: Annotated[str | None, option("Comma-separated workers whose links to revoke; their labels stay.")] = None,
    title: Annotated[str | None, option("What people see above the tasks; default: the folder's name.")] = None,
    task: Annotated[str, option("Column of task ids.", "--task-column")] = "task",
    text: Annotated[str, option("Column of texts.")] = "",
    image: Annotated[str, option("Column of image files, named from where the table lies.")] = "",
    embed: EmbedOption = None,
    instructions: Annotated[
        Path | None, option("Markdown with what people should know, and examples; images lie next to it.")
    ] = None,
    known: Annotated[
        Path | None, option("A table with the true labels of some tasks (task, label): they are mixed in.")
    ] = None,
    feedback: Annotated[bool, option("Tell people the true label after such a task.", "--feedback")] = False,
    overlap: Annotated[float, option("Share of tasks that get a second label by somebody else.", min=0, max=1)] = 0.0,
    goal: Annotated[int, option("Labels that everybody is asked for; 0: none is named.", min=0)] = 0,
    url: Annotated[
        str | None, option("Where the service will be reached, for the links; default: its project.toml.")
    ] = None,
    backup: Annotated[
        Path | None, option("Write a copy of all answers to this file, also while the project is served.")
    ] = None,
    label_studio: Annotated[str | None, option("Instead of --tasks and --classes: the URL of a Label Studio.")] = None,
    label_studio_project: Annotated[int | None, option("The number of its project.")] = None,
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


def serve(
    folder: Annotated[Path, typer.Argument(help="A folder that labelonce project made.")],
    host: Annotated[str, option("Where to listen; 0.0.0.0: everywhere.")] = "127.0.0.1",
    port: Annotated[int | None, option("Default: that of the links, in the project.toml.", min=1, max=65535)] = None,
    label_studio: Annotated[
        str | None, option("Be the model of a project in the Label Studio at this URL, too.")
    ] = None,
    label_studio_project: Annotated[int | None, option("The number of its project.")] = None,
    url: Annotated[str | None, option("Where Label Studio reaches us; default: host and port.")] = None,
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
