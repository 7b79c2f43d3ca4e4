"""`labelonce judges`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from labelonce._messages import argument, printable, show
from labelonce._types import TOOLS
from labelonce.cli._print import print_json, print_plain, print_status, print_table, read_from, warnings_as_notes
from labelonce.data import Annotations, floats
from labelonce.files import File, atomic_write, check_no_file, column_names, naming, read_columns
from labelonce.formats import find_labels, new_names
from labelonce.io import read_annotations, read_verdicts, write
from labelonce.judges import JudgePanel
from labelonce.report import panel_facts, panel_page
from labelonce.runs import FORMAT, find_files, names_of, of_classes

RECORD = "panel.json"
_FILES = (RECORD, "labels.csv", "judges.csv", "next.csv", "report.html")
_READS = {"format", "task", "worker", "label", "classes", "duplicates", "missing"}
_ALSO = {"relabel", "normalise", "spellings"}


def run_judges(
    *,
    files: list[Path],
    source: dict[str, Any],
    gold: list[Path],
    people: Sequence[str] | None,
    swap: Sequence[Any] | None,
    n: int,
    risk: float | None,
    width: float | None,
    seed: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Combine the verdicts in files, print the results, and write labels, judges, items to check and a report."""
    if output is not None:
        _check_folder(output)
    verdicts = find_files(files, source.get("format"))
    with warnings_as_notes():
        annotations = read_panel(verdicts, source, swap=swap)
        known, chances = read_checked(gold, annotations)
        panel = JudgePanel(people=people, random_state=seed).fit(annotations, gold=known)
        facts = panel_facts(panel, annotations, known, chances=chances, n=n, risk=risk, width=width)
    facts |= {"format": FORMAT, "file": names_of(verdicts), "read_as": read_from(verdicts)}
    facts["output"] = output and str(output)
    if output is not None:
        _write(output, panel, annotations, facts)
    show_panel(facts, as_json=as_json)
    if output is not None and not as_json:
        print_status(f"-> {output}/{', '.join(_FILES[1:])}")


def show_panel(facts: dict[str, Any], *, as_json: bool, n_workers: int = 20) -> None:
    """Print the facts about a panel."""
    if as_json:
        print_json(facts)
        return
    print_plain("\n".join(map(printable, _lines(facts))))
    rows = [_judge_row(row) for row in facts["judges"][:n_workers]]
    title = "Judges, best first" if len(facts["judges"]) <= n_workers else f"The {n_workers} best judges"
    print_table(title, ["judge", "skill", "90 % interval", "worth", "same answer", "leaning", "keep"], rows)
    rows = [[row["class"], f"{row['share']:.1%}", f"{row['low']:.1%} to {row['high']:.1%}"] for row in facts["shares"]]
    print_table("Share of each class among all items", ["class", "share", "95 % interval"], rows)
    print_plain("\nDo this next")
    print_plain("\n".join(printable(f"- {sentence}") for sentence in facts["todo"]))


def read_panel(files: Sequence[File], source: dict[str, Any], *, swap: Sequence[Any] | None = None) -> Annotations:
    """Return the verdicts in tables with any column names, or in exports of tools."""
    odd = sorted(set(source) - _READS - _ALSO)
    if any(file.format in TOOLS for file in files):
        annotations = read_annotations(files, **{"duplicates": "keep"} | of_classes(source))
    elif odd:
        raise ValueError(f"{argument(odd[0])} is not for judges; got {show(source[odd[0]])}. Leave it out.")
    else:
        annotations = read_verdicts(files, swap=swap, **{name: source[name] for name in _READS & set(source)})
        if "relabel" in source:
            known = annotations.answers.tolist()
            names = new_names(source["relabel"], [annotations.answers])
            annotations = annotations.relabel({old: new for old, new in names.items() if old in known})
        annotations = annotations.normalise() if source.get("normalise") else annotations
    if annotations.n_classes < 2:
        raise ValueError(
            f"{names_of(files)}: verdicts must be of at least two classes; got {show(annotations.classes[0])}."
        )
    return annotations


def read_checked(
    paths: Sequence[Path], annotations: Annotations
) -> tuple[dict[Any, Any] | None, dict[Any, float] | None]:
    """Return the labels that people gave to items, and the chances with which these were chosen, where they are known.

    A file has the columns task and label, and chance as `next.csv` has it. Items without a label are left out.
    """
    gold: dict[Any, Any] = {}
    chances: dict[Any, float] = {}
    for file in map(find_labels, paths):
        with naming(file):
            more = ["chance"] if "chance" in column_names(file) else []
            columns = read_columns(file, {name: name for name in ("task", "label", *more)})
            found: list[list[Any]] = [column.to_pylist() for column in columns]
            rows = [number for number, label in enumerate(found[1]) if label is not None]
            tasks = [_as_in(annotations.tasks, found[0][row]) for row in rows]
            unknown = set(tasks) - set(annotations.tasks.tolist())
            if unknown:
                raise ValueError(f"every task must have verdicts; got {show(min(unknown, key=str))} without.")
            gold |= {task: _as_in(annotations.classes, found[1][row]) for task, row in zip(tasks, rows, strict=True)}
            if more:
                chance = floats(pa.array(found[2]), "chance", len(found[0]))
                chances |= {task: float(chance[row]) for task, row in zip(tasks, rows, strict=True) if chance[row] > 0}
    return gold or None, chances or None


def _as_in(ids: Any, value: Any) -> Any:
    return str(value) if ids.dtype == object else int(value) if isinstance(value, str) and value.isdigit() else value


def _check_folder(folder: Path) -> None:
    check_no_file(folder)
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if names and RECORD not in names:
        raise ValueError(
            f"{folder} must be a new folder or that of an earlier panel; got one with other files, such as "
            f"{show(min(names))}. Name another folder."
        )


def _write(folder: Path, panel: JudgePanel, annotations: Annotations, facts: dict[str, Any]) -> None:
    """Write the results of a panel, the record last."""
    folder.mkdir(parents=True, exist_ok=True)
    following = pa.Table.from_pylist(facts["next"])
    blank = pa.array([""] * len(following))
    write(panel, folder / "labels.csv")
    write(panel.workers_to_frame(), folder / "judges.csv")
    write(following.add_column(1, "label", blank), folder / "next.csv")
    page = panel_page(panel, annotations, facts=facts, title="What the judges' verdicts say")
    atomic_write(folder / "report.html", page.encode("utf-8", "replace"))
    atomic_write(folder / RECORD, json.dumps(facts, allow_nan=False).encode())


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    n, versus = facts["n"], facts["versus"]
    people = f", {n['people']:,} people" if n["people"] else ""
    orders = f", in {n['orders']} orders" if n["orders"] > 1 else ""
    yield f"{facts['read_as']}"
    yield (
        f"{n['verdicts']:,} verdicts on {n['items']:,} items by {n['judges']:,} judges of {n['families']:,} families"
        f"{people}{orders}; {n['refusals']:,} are no class; {n['gold']:,} items checked"
    )
    yield ""
    yield f"right labels, estimated over all items: {_range(facts['accuracy'])}"
    if facts["gold_accuracy"]:
        yield f"right labels on the checked items, each left out in turn: {_range(facts['gold_accuracy'])}"
    better = {"panel": "the panel is better", "judge": "the judge alone is better", "unclear": "cannot be told yet"}
    gap = " to ".join(f"{100 * versus['difference'][end]:+.1f}" for end in ("low", "high"))
    yield f"panel against its best judge, {versus['judge']}: {better[versus['verdict']]} ({gap} points)"
    number = facts["effective_workers"]
    yield f"effective number of workers: {number['value']:.1f} ({number['low']:.1f} to {number['high']:.1f})"
    yield f"agreement that is shared error: {_range(facts['shared_error'])}"
    differences = facts["differences"]
    if differences["compared"]:
        yield f"most judges differ from people on {differences['apart']:,} of {differences['compared']:,} items"
    if facts["replace"] is not None:
        passed = [row["judge"] for row in facts["replace"] if row["passes"]]
        yield f"may replace a person (alternative annotator test): {', '.join(map(str, passed)) or 'no judge'}"
    if found := facts.get("checks", {}).get("risk"):
        some = f"{found['value']:,.0f} ({found['low']:,.0f} to {found['high']:,.0f})"
        yield f"labels of people to buy, least sure items first, until {found['risk']:.1%} are wrong: {some}"
    if found := facts.get("checks", {}).get("width"):
        more = f"{found['value']:,.0f}"
        yield f"random items to check until the shares are known to plus or minus {found['width']:.1%}: {more} more"
    yield from (f"doubt: {doubt}" for doubt in facts["doubts"])


def _range(one: dict[str, float]) -> str:
    return f"{one['value']:.1%} ({one['low']:.1%} to {one['high']:.1%})"


def _judge_row(row: dict[str, Any]) -> list[str]:
    leaning = row["leaning"]
    return [
        row["worker"] + (" (person)" if row["person"] else ""),
        f"{row['skill']:.2f}",
        f"{row['low']:.2f} to {row['high']:.2f}",
        "" if row["worth"] is None else f"{row['worth']:.2f}",
        "" if row["consistency"] is None else f"{row['consistency']:.0%}",
        "" if leaning is None else f"{leaning['label']} {100 * leaning['value']:+.0f}",
        "yes" if row["keep"] else "drop",
    ]
