"""`labelonce agreement`."""

from pathlib import Path
from typing import Any

from labelonce._messages import argument
from labelonce.cli._options import listed_ids
from labelonce.cli._print import print_json, print_note, print_plain, print_table, read_from, warnings_as_notes
from labelonce.cli._source import check_outputs
from labelonce.data import Agreement, Figure, agreement, without_nan
from labelonce.io import read_annotations, write
from labelonce.runs import find_files, has_questions, names_of, of_classes, read_questions

_MOST = 20
_FIGURES = {
    "percent": "two labels of a task are the same: ",
    "fleiss_kappa": "Fleiss' kappa: ",
    "alpha": "Krippendorff's alpha: ",
    "alpha_ordinal": "  if the labels are a scale, by their order: ",
    "alpha_interval": "  if the labels are a scale, by their distances: ",
}


def run_agreement(
    paths: list[Path], source: dict[str, Any], *, order: str | None, level: float, output: Path | None, as_json: bool
) -> None:
    """Print how far the workers agree, for all labels, each class and each pair of workers."""
    check_outputs(paths, output=(output, None))
    files = find_files(paths, source.get("format"))
    asked = has_questions(files, source)
    with warnings_as_notes():
        source = {"duplicates": "keep"} | source
        annotations: Any = read_questions(files, source) if asked else read_annotations(files, **of_classes(source))
    found = agreement(annotations, order=None if order is None else listed_ids(order), level=level)
    if found.n_tasks == 0:
        raise ValueError(f"{names_of(files)}: a task must have labels by two workers to compare; got none that has.")
    names = annotations.questions.tolist() if asked else []
    questions = {str(name): agreement(annotations.of_question(name), level=level) for name in names}
    if output is not None:
        write(found.pairs, output)
    if as_json:
        pairs = {} if output else {"pairs": without_nan(found.pairs.to_pylist())}
        more = {"questions": {name: one.to_dict() for name, one in questions.items()}} if asked else {}
        print_json({"file": names_of(files), "output": output and str(output)} | found.to_dict() | more | pairs)
        return
    of = f"{found.n_annotations:,} labels of {found.n_tasks:,} {'questions about tasks' if asked else 'tasks'}"
    print_plain(f"{read_from(files)}, {of} by two or more workers")
    for name, words in _FIGURES.items():
        if getattr(found, name) is not None:
            print_plain(f"{words}{getattr(found, name)}")
    _print_tables(found, questions)
    print_note(f"{level:.0%} intervals, over tasks; those of pairs of workers by the tasks that they share")
    if output is None and len(found.pairs) > _MOST:
        print_note(f"all {len(found.pairs):,} pairs go to a file with {argument('output')}")


def _print_tables(found: Agreement, questions: dict[str, Agreement]) -> None:
    def cells(row: dict[str, Any], names: list[str]) -> list[str]:
        return [str(Figure(*(row[name + end] for end in ("", "_low", "_high")))) for name in names]

    rows = [[row["label"], row["count"], *cells(row, ["agreement", "alpha"])] for row in found.classes.to_pylist()]
    print_table("Classes, each against all others", ["class", "labels", "also by another", "alpha"], rows)
    if questions:
        rows = [[name, one.n_tasks, one.percent, one.alpha] for name, one in questions.items()]
        print_table("Questions", ["question", "tasks", "agreement", "alpha"], rows)
    names = [name for name in ("agreement", "kappa", "weighted_kappa") if name in found.pairs.column_names]
    some = found.pairs.slice(0, _MOST).to_pylist()
    rows = [[row["worker"], row["other"], row["tasks"], *cells(row, names)] for row in some]
    header = ["worker", "and", "tasks", *(name.replace("_", " ") for name in names)]
    print_table("Pairs of workers, those that share most tasks first", header, rows)
