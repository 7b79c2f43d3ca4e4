"""`labelonce sharded prepare`, `append` and `fit`."""

import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from labelonce._types import Duplicates
from labelonce.cli._options import JsonOption, listed_ids, option, speak_of_options

app = typer.Typer(
    help="Aggregate annotations larger than memory, by one process or, under torchrun, by several.",
    no_args_is_help=True,
)


Streamed = Literal["dawid-skene", "one-coin", "ibcc"]
Tables = Annotated[list[Path], typer.Argument(help="Tables of task, worker and label; folders of Parquet files.")]
TaskColumn = Annotated[str, option("Column of task ids.", "--task-column")]
WorkerColumn = Annotated[str, option("Column of worker ids.", "--worker-column")]
LabelColumn = Annotated[str, option("Column of the labels.", "--label-column")]
RepeatedLabels = Annotated[Duplicates, option("What to keep if one worker labelled one task more than once.")]


@app.callback()
def _root(context: typer.Context) -> None:
    speak_of_options(context, app)


@app.command()
def prepare(
    files: Tables,
    output: Annotated[Path, option("Folder to write; it must not exist.", "--output", "-o")],
    classes: Annotated[
        str | None, option("All classes, comma-separated, such as no,yes; default: the labels seen.")
    ] = None,
    task: TaskColumn = "task",
    worker: WorkerColumn = "worker",
    label: LabelColumn = "label",
    duplicates: RepeatedLabels = "error",
    as_json: JsonOption = False,
) -> None:
    """Write FILES, of any size and in any order, as blocks of tasks that fit can stream.

    For example:

    - `labelonce sharded prepare labels-*.parquet -o prepared`
    - `labelonce sharded prepare s3://bucket/labels -o prepared`  (a folder of Parquet files, as Spark writes it)
    """
    from labelonce.sharded import prepare as prepare_shards

    declared = None if classes is None else listed_ids(classes)
    prepare_shards(files, output, task=task, worker=worker, label=label, classes=declared, duplicates=duplicates)
    _say_what_is_in(output, as_json=as_json)


@app.command()
def append(
    files: Tables,
    output: Annotated[Path, option("A folder that prepare wrote.", "--to")],
    task: TaskColumn = "task",
    worker: WorkerColumn = "worker",
    label: LabelColumn = "label",
    duplicates: RepeatedLabels = "error",
    as_json: JsonOption = False,
) -> None:
    """Add the labels in FILES, such as those of a day, to a folder that prepare wrote.

    Only blocks with tasks that get more labels are written again.

    For example:

    - `labelonce sharded append monday.parquet --to prepared`
    """
    from labelonce.sharded import append as append_to_shards

    append_to_shards(files, output, task=task, worker=worker, label=label, duplicates=duplicates)
    _say_what_is_in(output, as_json=as_json)


def _say_what_is_in(output: Path, *, as_json: bool) -> None:
    from labelonce.cli._print import print_json, print_status
    from labelonce.sharded import open_shards

    shards = open_shards(output)
    found: dict[str, Any] = {"annotations": shards.n_annotations, "tasks": shards.n_labelled}
    found |= {"workers": len(shards.workers), "classes": shards.classes.tolist(), "blocks": shards.n_blocks}
    found["output"] = str(output)
    if as_json:
        print_json(found)
    else:
        sizes = ", ".join(f"{found[name]:,} {name}" for name in ("annotations", "tasks", "workers", "blocks"))
        print_status(f"{sizes} in {output}")


@app.command()
def fit(
    folder: Annotated[Path, typer.Argument(help="A folder that prepare wrote.")],
    output: Annotated[Path, option("Folder for labels, workers and run.json.", "--output", "-o")],
    method: Annotated[Streamed, option("How to weigh the workers.")] = "dawid-skene",
    dtype: Annotated[
        Literal["float32", "float64"], option("Numbers to compute with; float32 halves the memory.")
    ] = "float32",
    max_iter: Annotated[int, option("Most iterations; a fit that needs more ends with a note.")] = 500,
    tol: Annotated[float, option("Stop when the objective per annotation changes by at most this.")] = 1e-7,
    device: Annotated[Literal["cpu", "cuda"] | None, option("Default: cuda where there is any.")] = None,
    seed: Annotated[int, option("Breaks ties.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Run EM over the blocks in FOLDER and write the label of every task.

    Stopped or killed, the same command resumes after the last finished iteration.

    For example:

    - `labelonce sharded fit prepared -o clean`
    - `torchrun --nproc-per-node 2 --max-restarts 3 -m labelonce sharded fit prepared -o clean`
    """
    from labelonce.aggregation import aggregator_of
    from labelonce.cli._print import print_json, print_status, warnings_as_notes
    from labelonce.sharded import fit as fit_shards

    is_first = os.environ.get("RANK", "0") == "0"

    def show(iteration: int, objective: float) -> None:
        if is_first:
            print_status(f"iteration {iteration}: objective {objective:.6f}")

    if _was_finished_before_a_restart(output):
        print_status(f"{output} was finished before torchrun started this process again")
        return
    model: Any = aggregator_of(method)()
    model.set_params(dtype=dtype, max_iter=max_iter, tol=tol, device=device, random_state=seed)
    with warnings_as_notes():
        fit_shards(model, folder, output, callback=show)
    if as_json and is_first:
        print_json(json.loads((output / "run.json").read_text()) | {"output": str(output)})


def _was_finished_before_a_restart(output: Path) -> bool:
    """Return whether the run in a folder belongs to this launch, in which a process was killed at the end."""
    written = output / "run.json"
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0" or not written.exists():
        return False
    try:
        ticks = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19])
        (boot,) = (int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if line[:5] == "btime")
    except (OSError, ValueError, IndexError):  # a system that does not tell when the launcher was started
        return False
    return written.stat().st_mtime > boot + ticks / os.sysconf("SC_CLK_TCK")
