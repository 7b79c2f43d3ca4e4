"""What cifar10_figure1.py keeps of its trials: the results file, its tables and the plot."""

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import markdown, mean_error, read, versions, write_text

import labelonce
from labelonce._messages import described

METHODS = [
    "truth",
    "oracle correct",
    "oracle weighted EM",
    "MV",
    "weighted MV",
    "EM",
    "weighted EM",
    "MBEM paper",
    "MBEM",
]
OF_A_RUN = ("settings", "source", "seconds_in_all", "at_once", "device", "versions")


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what makes a trial."""
    names = ("part", "net", "crowd", "quality", "redundancy", "n_tasks", "seed", "variant")
    return tuple(row.get(name, "figure" if name == "part" else "") for name in names)


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write results, one per line, in a fixed order; of two with the same key the later one counts."""
    unique = {key_of(row): row for row in rows}
    lines = ",\n".join(json.dumps(unique[key]) for key in sorted(unique, key=str))
    write_text(path, f"[\n{lines}\n]\n")


def plain(value: Any) -> Any:
    """Return a setting as JSON takes it, functions by their names and options."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, partial):
        return f"{value.func.__name__}({', '.join(f'{name}={one!r}' for name, one in value.keywords.items())})"
    return value if isinstance(value, str | int | float | None) else described(value)


@cache
def source(experiment: Path) -> str:
    """Return a short hash of the library's code and an experiment's, to tell results of different code apart."""
    package = Path(labelonce.__file__).parent
    files = {path.relative_to(package.parent).as_posix(): path for path in package.rglob("*.py")}
    files[experiment.name] = experiment
    digest = sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name].read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def environment() -> dict[str, Any]:
    """Return what the numbers were made with."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {"device": device, "versions": versions() | {"labelonce": labelonce.__version__}}


def kept(before: dict[str, Any], again: Sequence[str]) -> list[dict[str, Any]]:
    """Return which methods of a row stay when some are done again, and what is known of the runs that made them.

    What a row itself says of a run is then true of the methods that were done again, and of no other.
    """
    runs = [*before.get("kept", [])]
    own = [method for method in before["accuracy"] if all(method not in run["methods"] for run in runs)]
    runs.append({"methods": own} | {name: before[name] for name in OF_A_RUN if name in before})
    runs = [run | {"methods": [method for method in run["methods"] if method not in again]} for run in runs]
    return [run for run in runs if run["methods"]]


def means(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return accuracies in % of every point of the figure, a list over seeds for every method."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted((row for row in rows if row["part"] == "figure"), key=lambda row: str(key_of(row))):
        key = tuple(row[name] for name in ("net", "crowd", "quality", "redundancy", "n_tasks"))
        at = found.setdefault(key, {method: [] for method in METHODS})
        for method, accuracy in row["accuracy"].items():
            at[method].append(100 * accuracy)
    return found


def write_tables(path: Path, epochs_of: Callable[[str], int], crowds: list[str], image: Path) -> None:
    """Write the tables beside the results in `path`, and the figure."""
    rows = read(path)
    of_variants = ablation_table(rows, epochs_of)
    parts = [figure_table(rows), rounds_table(rows), of_variants, human_table(rows), truth_table(rows)]
    write_text(path.with_suffix(".md"), "\n".join(part for part in parts if part))
    plot(means(rows), crowds, image)


def figure_table(rows: list[dict[str, Any]]) -> str:
    """Return the points of the figure, mean and standard error over seeds."""
    head = ["net", "crowd", "quality", "labels per task", "tasks", "seeds", *METHODS]
    found = means(rows).items()
    return table(head, [[*key, len(at["MV"]), *(mean_error(at[method]) for method in METHODS)] for key, at in found])


def rounds_table(rows: list[dict[str, Any]]) -> str:
    """Return our default: test accuracy after every round, and seconds."""
    chosen = sorted((row for row in rows if row["part"] == "default"), key=lambda row: str(key_of(row)))
    lines = []
    for row in chosen:
        tests = " ".join(f"{100 * one['test']:.1f}" for one in row["rounds"])
        last = row["rounds"][-1]
        lines.append([row["crowd"], row["seed"], tests, f"{100 * last['posterior']:.1f}", last["seconds"]])
    return table(["our default", "seed", "test accuracy after each round", "posterior right", "seconds"], lines)


def ablation_table(rows: list[dict[str, Any]], epochs_of: Callable[[str], int]) -> str:
    """Return the variants of our default in the order of the last round's test accuracy, and what they train."""
    last: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row["part"] == "ablation":
            at = last.setdefault(row["variant"], {}).setdefault(row["crowd"], [])
            at.append(100 * row["rounds"][-1]["test"])
    crowds = sorted({crowd for at in last.values() for crowd in at}, reverse=True)
    head = ["six rounds, one network", *(f"{crowd}{what}" for crowd in crowds for what in ("", ", change")), "epochs"]
    lines = []
    for variant in sorted(last, key=lambda name: (name != "", -np.mean(last[name].get(crowds[0], [0.0])))):
        cells = [variant or "all parts"]
        for crowd in crowds:
            own, base = (last[name].get(crowd, []) for name in (variant, ""))
            cells += [mean_error(own), f"{np.mean(own) - np.mean(base):+.1f}" if own and base and variant else ""]
        lines.append([*cells, epochs_of(variant)])
    return table(head, lines)


def human_table(rows: list[dict[str, Any]]) -> str:
    """Return the results on CIFAR-10N."""
    chosen = [row for row in rows if row["part"] == "human"]
    if not chosen:
        return ""
    methods = list(chosen[0]["accuracy"])
    spreads = [mean_error([100 * row["accuracy"][method] for row in chosen]) for method in methods]
    noise = f"noise {100 * np.mean([row['noise'] for row in chosen]):.1f} %"
    return table(["CIFAR-10N, one random label", "seeds", *methods], [[noise, len(chosen), *spreads]])


def truth_table(rows: list[dict[str, Any]]) -> str:
    """Return the fast net on true labels, every seed with its seconds."""
    chosen = sorted((row for row in rows if row["part"] == "truth"), key=lambda row: str(key_of(row)))
    shown = [
        [f"seed {row['seed']}", f"{100 * row['accuracy']['truth']:.2f}", row["seconds"]["truth"]] for row in chosen
    ]
    return table(["fast net on true labels", "test accuracy", "seconds"], shown)


def table(head: list[str], rows: list[list[Any]]) -> str:
    """Return a table, nothing where there are no rows."""
    return markdown(head, rows) if rows else ""


def plot(points: dict[tuple[Any, ...], dict[str, Any]], crowds: list[str], path: Path) -> None:
    """Draw the six panels in the paper's layout: test error against quality or labels per task."""
    from matplotlib import pyplot as plt

    styles = {"truth": "k:", "oracle correct": "C7:", "oracle weighted EM": "C7-.", "MV": "C1--", "weighted MV": "C1-"}
    styles |= {"EM": "C2--", "weighted EM": "C2-", "MBEM paper": "C9-", "MBEM": "C3-"}
    crowds = [crowd for crowd in crowds if any(key[:2] == ("fast", crowd) for key in points)]
    size = (12, 3.5 * len(crowds))
    figure, axes = plt.subplots(len(crowds), 3, figsize=size, sharey=True, layout="constrained", squeeze=False)
    most = max((key[4] for key in points), default=0)
    titles = ["worker quality, 1 label per task", "labels per task, all images", "labels per task, fixed budget"]
    for row, crowd in zip(axes, crowds, strict=True):
        of_crowd = {key[2:]: at for key, at in points.items() if key[:2] == ("fast", crowd)}
        panels = [
            {key[0]: at for key, at in of_crowd.items() if key[1] == 1},
            {key[1]: at for key, at in of_crowd.items() if key[0] == 0.2 and key[2] == most},
            {key[1]: at for key, at in of_crowd.items() if key[0] == 0.2 and key[2] == most // key[1]},
        ]
        for axis, panel, title in zip(row, panels, titles, strict=True):
            for method, style in styles.items():
                at = sorted(panel)
                errors = [100 - np.mean(panel[x][method]) for x in at]
                axis.plot(at, errors, style, marker="." if len(at) < 3 else None, label=method)
            axis.set_title(f"{crowd}: {title}", fontsize=10)
            axis.set(xlabel="quality" if panel is panels[0] else "labels per task")
        row[0].set_ylabel("test error, %")
    axes[0, 0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
