"""`labelonce agreement`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelonce._messages import argument
from labelonce.cli._print import print_json, print_note, print_plain, print_table, read_from, warnings_as_notes
from labelonce.cli._source import check_outputs
from labelonce.data import Agreement, Figure, agreement
from labelonce.formats._answers import integers_if_all
from labelonce.io import read_annotations, write
from labelonce.multilabel import MultiLabelAnnotations
from labelonce.runs._labels import find_files, names_of, of_classes
from labelonce.runs._questions import has_questions, read_questions

_MOST = 20
_FIGURES = {
    "percent": "two labels of a task are the same in",
    "fleiss_kappa": "Fleiss' kappa",
    "alpha": "Krippendorff's alpha",
    "alpha_ordinal": "  if the labels are a scale: by their order",
    "alpha_interval": "  if the labels are a scale: by their distances",
}


def run_agreement(
    paths: list[Path], source: dict[str, Any], *, order: str | None, level: float, output: Path | None, as_json: bool
) -> None:
    """Print how far the workers agree, for all labels, each class and each pair of workers."""
    check_outputs(paths, output=(output, None))
    files = find_files(paths, source.get("format"))
    ordered = None if order is None else integers_if_all([part.strip() for part in order.split(",")])
    with warnings_as_notes():
        keep = {"duplicates": "keep"} | source
        asked = has_questions(files, source)
        annotations: Any = read_questions(files, keep) if asked else read_annotations(files, **of_classes(keep))
    found = agreement(annotations, order=ordered, level=level)
    if found.n_tasks == 0:
        raise ValueError(f"{names_of(files)}: a task must have labels by two workers to compare; got none that has.")
    questions = _by_question(annotations, level) if asked else []
    if output is not None:
        write(found.pairs, output)
    if as_json:
        more = {"questions": [{"question": name} | one.to_dict() for name, one in questions]} if asked else {}
        pairs = {"pairs": found.pairs.to_pylist()} if output is None else {}
        print_json(
            {"file": names_of(files)}
            | found.to_dict()
            | more
            | _without_nan(pairs)
            | {"output": output and str(output)}
        )
        return
    what = (
        "answers to {:,} questions about tasks that two or more answer"
        if asked
        else "labels of {:,} tasks that two or more label"
    )
    print_plain(f"{read_from(files)}, {found.n_annotations:,} {what.format(found.n_tasks)}")
    for name, words in _FIGURES.items():
        figure = getattr(found, name)
        if figure is not None:
            print_plain(
                f"{words}{' ' if name == 'percent' else ': '}{_percent(figure) if name == 'percent' else figure}"
            )
    _print_tables(found, questions)
    print_note(f"{level:.0%} intervals, over tasks; those of pairs of workers by the tasks that they share")
    if output is None and len(found.pairs) > _MOST:
        print_note(f"all {len(found.pairs):,} pairs go to a file with {argument('output')}")


def _by_question(annotations: MultiLabelAnnotations, level: float) -> list[tuple[Any, Agreement]]:
    return [(name, agreement(annotations.of_question(name), level=level)) for name in annotations.questions.tolist()]


def _print_tables(found: Agreement, questions: Sequence[tuple[Any, Agreement]]) -> None:
    def figure(row: dict[str, Any], name: str) -> str:
        return str(Figure(*(row[name + end] for end in ("", "_low", "_high"))))

    classes = found.classes.to_pylist()
    rows = [[row["label"], row["count"], figure(row, "agreement"), figure(row, "alpha")] for row in classes]
    print_table("Classes, each against all others", ["class", "labels", "also by another", "alpha"], rows)
    if questions:
        rows = [[name, one.n_tasks, _percent(one.percent), str(one.alpha)] for name, one in questions]
        print_table("Questions", ["question", "tasks", "agreement", "alpha"], rows)
    weighted = ["weighted_kappa"] if "weighted_kappa" in found.pairs.column_names else []
    names = ["agreement", "kappa", *weighted]
    rows = [
        [row["worker"], row["other"], row["tasks"], *(figure(row, name) for name in names)]
        for row in found.pairs.slice(0, _MOST).to_pylist()
    ]
    title = "Pairs of workers, those that share most tasks first"
    print_table(title, ["worker", "and", "tasks", "agreement", *(name.replace("_", " ") for name in names[1:])], rows)


def _percent(figure: Figure) -> str:
    return (
        f"{figure.value:.1%} of cases ({figure.low:.1%} to {figure.high:.1%})"
        if figure.low == figure.low
        else "unknown"
    )


def _without_nan(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _without_nan(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_without_nan(value) for value in found]
    return None if found != found else found
