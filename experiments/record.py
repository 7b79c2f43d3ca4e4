"""What every experiment and benchmark keeps: results as JSON with versions and machine, resumed, and as tables.

A results file holds `trials` (one per line, with its seed and what it measured, to five digits) below the command, the
settings, the versions, the machine and the seconds that made them. Needs the standard library alone, so that it runs
in every environment.
"""

import argparse
import json
import math
import os
import platform
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"
PACKAGES = ("labelonce", "numpy", "scipy", "scikit-learn", "torch")
Trial = dict[str, Any]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages that results depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Return the processor's name, the number of its cores and how many threads the results were allowed."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    threads = os.environ.get("OMP_NUM_THREADS", "all")
    return {"cpu": names[0] if names else platform.processor(), "cores": os.cpu_count(), "threads": threads}


def command() -> str:
    """Return the command line of this script, as typed from the root of the repository, wherever its results go."""
    script, words = Path(sys.argv[0]).resolve(), list(sys.argv[1:])
    for option in {"--out", "--join", "--scratch"} & set(words):
        place = words.index(option)
        del words[place : place + 2]
    return shlex.join(["python", f"{script.parent.name}/{script.name}", *words])


def read(path: Path) -> list[Trial]:
    """Return the trials in a results file, none where there is no file."""
    return list(json.loads(path.read_text())["trials"]) if path.exists() else []


def made_before(paths: Iterable[Path]) -> tuple[dict[str, Any], float]:
    """Return the commands and machines of results files which this command resumes, its own last, and their seconds."""
    abouts = [json.loads(path.read_text()) for path in paths if path.exists()]
    earlier = [one for about in abouts for one in about.get("command", "").split(" && ")]
    names = dict.fromkeys([*(one for one in earlier if one and one != command()), command()])
    seen = [about["machine"] for about in abouts if "machine" in about]
    machines = [*(one for known in seen for one in (known if isinstance(known, list) else [known])), machine()]
    distinct = [one for place, one in enumerate(machines) if one not in machines[:place]]
    made_by = {"command": " && ".join(names), "machine": distinct if len(distinct) > 1 else distinct[0]}
    return made_by, sum(about.get("seconds", 0.0) for about in abouts)


def write(
    path: Path,
    trials: Sequence[Trial],
    *,
    settings: Mapping[str, Any] | None = None,
    seconds: float,
    made_by: Mapping[str, Any] | None = None,
) -> None:
    """Write trials and what made them, by default this command on this machine, in `seconds`."""
    about: dict[str, Any] = {"command": command(), "settings": dict(settings or {}), "versions": versions()}
    about |= {"machine": machine(), "seconds": round(seconds, 1)} | dict(made_by or {})
    lines = ",\n".join(json.dumps(_rounded(one)) for one in trials)  # one trial per line, numbers to five digits
    write_text(path, f'{json.dumps(about, indent=1)[:-2]},\n "trials": [\n{lines}\n]}}\n')


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def write_text(path: Path, text: str) -> None:
    """Write a whole file, or leave the old one as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def resume(
    options: argparse.Namespace,
    trial: Callable[..., Trial],
    points: Sequence[Trial],
    *,
    order: Mapping[str, Sequence[Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Run the points that the results file does not have, some at a time, and write the file after each.

    `trial(**point)` returns what was measured; its warnings are left out. Trials are kept in the order of their points'
    values, or in the given `order` of a key's values. Trials of another file, `join`, which ran elsewhere, are added.
    """
    from joblib import Parallel, delayed

    keys = list(points[0])
    files = [options.out] if options.join is None else [options.out, options.join]
    seen = {_key(row, keys): row for path in reversed(files) for row in read(path)}
    done = list(seen.values())
    todo = [point for point in points if _key(point, keys) not in seen]
    made_by, before = made_before(files)
    started = time.perf_counter() - before
    last = time.monotonic() + 60 * options.minutes
    print(
        f"{len(todo)} of {len(points)} trials to run, {options.jobs} at a time; results go to {options.out}", flush=True
    )

    def keep() -> None:
        done.sort(key=lambda row: [_rank(row[key], (order or {}).get(key)) for key in keys])
        write(options.out, done, settings=settings, seconds=time.perf_counter() - started, made_by=made_by)

    if options.join is not None:
        keep()
    work = (delayed(_quietly)(trial, point) for point in todo if time.monotonic() < last)
    at_once = Parallel(n_jobs=options.jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
    for row in at_once(work):
        done.append(row)
        keep()
        print(*_key(row, keys), row.get("accuracy", ""), flush=True)


def _quietly(trial: Callable[..., Trial], point: Trial) -> Trial:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those of one label per task: that is what is measured
        return point | trial(**point)


def renew(options: argparse.Namespace, trial: Callable[[Trial], Trial]) -> None:
    """Run one method again in every trial of the results file and keep the rest; `trial(row)` returns what is new.

    Trials that were renewed are marked, so that a run that was stopped resumes; once all are marked, all run again.
    """
    from joblib import Parallel, delayed

    rows = read(options.out)
    if all("renewed" in row for row in rows):
        for row in rows:
            del row["renewed"]
    todo = [number for number, row in enumerate(rows) if not row.get("renewed")]
    todo.sort(key=lambda number: "recipes" not in rows[number])  # first those of cost_of_choosing.py
    started = time.perf_counter()
    work = (delayed(_renewed)(trial, number, rows[number]) for number in todo)
    for number, found in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
        accuracy = rows[number]["accuracy"] | found.pop("accuracy")
        rows[number] |= found | {"accuracy": accuracy, "renewed": versions()["labelonce"]}
        write(options.out, rows, seconds=time.perf_counter() - started)
        print(number, found, accuracy, flush=True)


def _renewed(trial: Callable[[Trial], Trial], number: int, row: Trial) -> tuple[int, Trial]:
    return number, _quietly(lambda: trial(row), {})


def grid(**values: Iterable[Any]) -> list[Trial]:
    """Return a point for every combination of some values; those of the last key change fastest."""
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


def grouped(trials: Iterable[Trial], *keys: str) -> dict[tuple[Any, ...], list[Trial]]:
    """Return the trials by their values of some keys, in the order of the first of each."""
    found: dict[tuple[Any, ...], list[Trial]] = {}
    for row in trials:
        found.setdefault(_key(row, keys), []).append(row)
    return found


def _key(row: Trial, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in keys)


def _rank(value: Any, order: Sequence[Any] | None) -> tuple[bool, Any]:
    """Return a place to sort by, numbers before words."""
    return (False, list(order).index(value)) if order else (isinstance(value, str), value)


def save(figure: Any, path: Path) -> None:
    """Write a figure as a PNG of at most 64 colours, a fifth of the size of what matplotlib writes."""
    from io import BytesIO

    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    whole = BytesIO()
    figure.savefig(whole, dpi=90, format="png")
    with Image.open(whole) as picture:
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def markdown(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (head, *rows)]
    lines.insert(1, "|---" * len(head) + "|")
    return "\n".join(lines) + "\n"


def tabulated(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """Return a table by format strings of the values of rows, such as "{seconds:.1f}", empty where one is missing."""

    def cell(row: Mapping[str, Any], form: str) -> str:
        try:
            return form.format_map(row)
        except KeyError:
            return ""

    return markdown(list(columns), ([cell(row, form) for form in columns.values()] for row in rows))


def mean_error(values: Sequence[float], *, sign: str = "") -> str:
    """Return mean ± standard error, the value itself where there is one, nothing where there is none."""
    if len(values) < 2:
        return f"{values[0]:{sign}.1f}" if len(values) else ""
    numbers = [float(value) for value in values]
    return f"{fmean(numbers):{sign}.1f} ± {stdev(numbers) / math.sqrt(len(numbers)):.1f}"


def arguments(description: str | None, path: Path | None) -> argparse.ArgumentParser:
    """Return the options that every experiment has; `path` is its results file."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="run nothing, make table and figure of the results")
    parser.add_argument("--again", action="store_true", help="start again instead of resuming")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no trial after so long")
    parser.add_argument("--join", type=Path, help="another results file of this script, whose trials are taken over")
    parser.add_argument("--out", type=Path, default=path, help="the results file; table and figure go next to it")
    return parser


def several(values: Iterable[Any], **more: Any) -> dict[str, Any]:
    """Return the arguments of an option of `experiment` that names some of these values, by default all."""
    return {"nargs": "+", "default": list(values)} | more


def main(
    options: argparse.Namespace,
    run: Callable[[argparse.Namespace], Any],
    table: Callable[[list[Trial]], str],
    *,
    draw: Callable[[list[Trial], Path], None] | None = None,
    image: str = "",
) -> None:
    """Do what the options of `arguments` ask for: run what is missing, then write the table and draw the image.

    The image of the results in the repository belongs to the docs; that of another results file goes next to it.
    """
    if not options.table:
        if options.again:
            options.out.unlink(missing_ok=True)
        run(options)
    trials = read(options.out)
    if not trials:
        sys.exit(f"{options.out} must hold trials to make a table of; run the same command without --table first.")
    write_text(options.out.with_suffix(".md"), table(trials))
    if draw is not None:
        draw(trials, (IMAGES if options.out.parent == RESULTS else options.out.parent) / image)


def experiment(
    description: str | None,
    path: Path | None,
    trial: Callable[..., Trial],
    points: Callable[[argparse.Namespace], Iterable[Trial]],
    table: Callable[[list[Trial]], str],
    *,
    draw: Callable[[list[Trial], Path], None] | None = None,
    image: str = "",
    order: Mapping[str, Sequence[Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    jobs: int = 2,
    **asked: Mapping[str, Any],
) -> None:
    """Run the trials at `points(options)` that are missing, then make table and image: all that most scripts do.

    `asked` are further options, each with the arguments of `add_argument`.
    """
    parser = arguments(description, path)
    parser.set_defaults(jobs=jobs)
    for name, about in asked.items():
        parser.add_argument(f"--{name}", **about)

    def run(options: argparse.Namespace) -> None:
        resume(options, trial, list(points(options)), order=order, settings=settings)

    main(parser.parse_args(), run, table, draw=draw, image=image)
