"""Putting the page together and writing it, whole or not at all."""

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from labelonce import __version__
from labelonce._rules import RULES
from labelonce.data import MOST_NUMBERS, Annotations, Gold, agreement, check_gold
from labelonce.files import atomic_write
from labelonce.judges import JudgePanel
from labelonce.learning._review import CHECK, REPLACE
from labelonce.multilabel import MultiLabelAnnotations
from labelonce.report._accuracy import estimated_accuracy, measured_accuracy
from labelonce.report._classes import RARE, class_figures, gold_calibration, label_calibration
from labelonce.report._embed import choice_rows, names, page_data, rows_of_recipe, rows_of_rounds, run_rows
from labelonce.report._facts import Facts, read_facts
from labelonce.report._money import compare_redundancy
from labelonce.report._panel import matrix_cells, panel_facts, panel_gold
from labelonce.report._questions import question_context, read_question_facts
from labelonce.report._review import (
    MOST,
    MOST_ROWS,
    as_csv,
    labels_list,
    least_sure,
    overruled,
    review_rows,
    workers_list,
)
from labelonce.report._work import WorkFigures, work_figures
from labelonce.report._workers import BLIND, FLAGS, LEVEL, MANY, SAME, SPAMMER_GAIN, WIDE, WorkerTable, worker_table

MOST_CLASSES = 6  # columns of the table of other answers
MOST_COMPARED = 200  # classes of the figures of agreement


def write_report(
    path: str | os.PathLike[str],
    fitted: Any,
    annotations: Annotations | MultiLabelAnnotations,
    *,
    title: str | None = None,
    texts: Any = None,
    images: Any = None,
    run: Mapping[str, Any] | None = None,
    gold: Gold | None = None,
    seconds: Any = None,
    work: Any = None,
) -> None:
    """Write one HTML file with the results of a fit: labels, workers, tasks to check, doubts, costs.

    The file needs nothing from the network, holds its own script and forbids any other, and appears whole or not at
    all. It has no date and draws no unseeded random number, so that the same fit gives the same bytes.

    Parameters
    ----------
    path : path
        An earlier file of that name is replaced.
    fitted : MBEM, TrainOnAggregate, aggregator or a multi-label one
        Fitted on `annotations`.
    annotations : Annotations or MultiLabelAnnotations
    title : str, optional
        Heads the page.
    texts, images : sequence or mapping, optional
        One entry per task, or a mapping of task ids to entries, shown next to the tasks worth another look. Images are
        paths or arrays; they need Pillow (`labelonce[images]`).
    run : mapping, optional
        What `run.json` holds; shown at the end.
    gold : mapping or array, optional
        True labels that the fit has *not* seen, as in the aggregators: the report then measures its accuracy, and
        shows the estimate next to it.
    seconds : mapping or array, optional
        Seconds per label of every worker, as from `labelonce.report.worker_seconds`; not with questions.
    work : table, optional
        One row per label with the columns task and worker, and any of seconds, pay and time, as from
        `labelonce.io.read_work`: adds time and pay per worker, and workers whose quality changed; not with questions.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "report.html")
    ...     lo.write_report(path, lo.DawidSkene().fit(ann), ann, title="Four tasks")
    ...     "<h1>Four tasks</h1>" in path.read_text()
    True
    """
    shown = {"texts": texts, "images": images, "run": run, "title": title or "What the crowd's labels say"}
    if isinstance(annotations, MultiLabelAnnotations):
        page = _questions_page(fitted, annotations, gold, **shown)
    elif isinstance(fitted, JudgePanel):
        page = panel_page(fitted, annotations, gold, title=title or "What the judges' verdicts say")
    else:
        page = _classes_page(fitted, annotations, gold, seconds=seconds, work=work, **shown)
    atomic_write(Path(path), page.encode("utf-8", "replace"))


def _classes_page(fitted: Any, annotations: Annotations, gold: Any, *, run: Any, title: str, **shown: Any) -> str:
    facts = read_facts(fitted, annotations)
    if facts.large:
        raise ValueError(
            f"a report must be of {MOST_NUMBERS:,} probabilities and entries of matrices at most; got "
            f"{annotations.n_tasks:,} tasks and {annotations.n_workers:,} workers with {annotations.n_classes:,} "
            "classes. Use to_frame, workers_to_frame and review."
        )
    codes = None if gold is None else check_gold(gold, annotations)
    if codes is not None and not (codes >= 0).any():
        raise ValueError("gold must be known for a task at least; got none. Leave gold out.")
    return _render("page", _context(facts, codes, **shown) | {"title": title, "run": run_rows(run)})


def panel_page(panel: JudgePanel, annotations: Any, gold: Any = None, *, title: str, facts: Any = None) -> str:
    facts = facts or panel_facts(panel, annotations, panel_gold(panel) if gold is None else gold)
    return _render("panel", facts | {"title": title, "method": "JudgePanel", "cells": matrix_cells(facts["families"])})


def _questions_page(
    fitted: Any, annotations: MultiLabelAnnotations, gold: Any, *, run: Any, title: str, **shown: Any
) -> str:
    facts = read_question_facts(fitted, annotations)
    context = question_context(facts, gold, run=run_rows(run), **shown)
    shares = [max(row["found"], row["given"] or 0.0) for row in context["questions"]]
    linked = {part["code"] for part in context["details"]}
    return _render("questions", context | {"title": title, "widest": max(*shares, 1e-9), "linked": linked})


def _context(facts: Facts, gold: Any, *, texts: Any, images: Any, seconds: Any, work: Any) -> dict[str, Any]:
    """Return everything that the template shows."""
    ann, table = facts.annotations, worker_table(facts)
    estimate = estimated_accuracy(facts)
    accuracy: Any = estimate if gold is None else measured_accuracy(facts, gold)
    unsure, contradicted = least_sure(facts), overruled(facts)
    to_check = labels_list(facts, texts)
    actions = to_check["action"].to_pylist()
    figures = None if work is None else work_figures(work, ann, facts.belief)
    lists = {"labels-to-check.csv": as_csv(to_check), "workers.csv": as_csv(workers_list(facts, table, figures))}
    return {
        "facts": facts,
        "method": facts.method,
        "n": {"labels": len(ann), "tasks": int(facts.labelled.sum()), "workers": int((table.labels > 0).sum())}
        | {"unlabelled": int((~facts.labelled).sum()), "classes": ann.n_classes, "redundancy": ann.redundancy},
        "accuracy": accuracy,
        "estimate": estimate,
        "too_sure": gold is not None and estimate is not None and estimate.value > accuracy.high,
        "n_check": {"labels": len(actions), "replace": actions.count(REPLACE), "check": actions.count(CHECK)},
        "flagged": _flagged(facts, table),
        "n_unsure": len(unsure),
        "n_contradicted": len(contradicted),
        "unsure": review_rows(facts, unsure[:MOST], texts, images),
        "contradicted": review_rows(facts, contradicted[:MOST], texts, images),
        "flag_counts": dict(zip(FLAGS, table.flags.sum(axis=0).tolist(), strict=True)),
        "balance": (balance := _balance(facts)),
        "rare": any(row["threshold"] is not None for row in balance),
        "agreement": agreement(ann) if 1 < ann.n_classes <= MOST_COMPARED else None,
        "drifts": _drifts(facts, figures),
        "periods": [] if figures is None else figures.periods,
        "paid": 0.0 if figures is None else float(np.nansum(figures.pay)),
        "others": _others(facts),
        "rounds": rows_of_rounds(facts.history),
        "choices": choice_rows(facts),
        "recipe": rows_of_recipe(facts.recipe),
        "calibration": label_calibration(facts) if gold is None else gold_calibration(facts, gold),
        "money": None if accuracy is None else compare_redundancy(facts, accuracy.value),
        "rules": {"level": LEVEL, "gain": SPAMMER_GAIN, "wide": WIDE, "blind": BLIND, "same": SAME, "many": MANY}
        | {"rare": RARE, "unsure": RULES.review_keep, "sure": RULES.review_replace, "most_rows": MOST_ROWS},
        "data": page_data(facts, table, seconds, figures) | {"lists": lists},
    }


def _flagged(facts: Facts, table: WorkerTable) -> dict[str, Any]:
    """Return how many workers are no better than guessing, their share of the labels, and the most harmful worker."""
    bad, worst = table.no_better_than_guessing, int(np.argmax(table.wrong))
    return {
        "workers": int(bad.sum()),
        "share": float(table.labels[bad].sum() / max(1, table.labels.sum())),
        "worst": names(facts.annotations.workers[[worst]])[0],
        "worst_wrong": float(np.rint(table.wrong[worst])),
        "worst_labels": int(table.labels[worst]),
    }


def _balance(facts: Facts) -> list[dict[str, Any]]:
    """Return the classes, the largest first: what to expect of our labels and of those given."""
    ann, shown = facts.annotations, names(facts.annotations.classes)
    figures = class_figures(facts.posterior[facts.labelled], facts.label[facts.labelled])
    joint = facts.counts.counts.sum(axis=0)  # true class, label given
    given = {
        "given": np.bincount(ann.label, minlength=ann.n_classes) / len(ann),
        "given_precision": np.diagonal(joint) / np.maximum(joint.sum(axis=0), 1e-9),
        "given_recall": np.diagonal(joint) / np.maximum(joint.sum(axis=1), 1e-9),
    }
    return [
        {"name": shown[k]} | vars(figures[k]) | {name: float(rate[k]) for name, rate in given.items()}
        for k in sorted(range(ann.n_classes), key=lambda k: -figures[k].share)
    ]


def _drifts(facts: Facts, figures: WorkFigures | None) -> list[dict[str, Any]]:
    """Return the workers whose labels became better or worse, the largest change first."""
    if figures is None:
        return []
    found = np.flatnonzero(figures.drifts)
    found = found[np.argsort(-np.abs(figures.late - figures.early)[found], kind="stable")]
    named = zip(names(facts.annotations.workers[found]), figures.early[found], figures.late[found], strict=True)
    return [{"worker": worker, "early": float(early), "late": float(late)} for worker, early, late in named]


def _others(facts: Facts) -> dict[str, Any] | None:
    """Return the answers that are no classes: how often each was given, and how often to tasks of each class."""
    if facts.others is None:
        return None
    order = np.argsort(-facts.posterior[facts.labelled].mean(axis=0), kind="stable")[:MOST_CLASSES]
    rows = zip(names(facts.others.answers), facts.others.counts.tolist(), facts.others.by_class[:, order], strict=True)
    return {
        "classes": [names(facts.annotations.classes)[k] for k in order.tolist()],
        "rows": [{"name": name, "count": count, "by_class": shares.tolist()} for name, count, shares in rows],
        "total": int(facts.others.counts.sum()),
    }


def _render(name: str, context: dict[str, Any]) -> str:
    return str(_template(name).render(**context))


@cache
def _template(name: str) -> Any:
    """Return the template of a page, with all in it that is the same in every report."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("the report needs Jinja2; install it with: pip install 'labelonce[report]'.") from error
    folder = files("labelonce.report")
    load = FunctionLoader(lambda file: folder.joinpath(f"{file}.html").read_text("utf-8"))
    blocks: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(autoescape=True, undefined=StrictUndefined, loader=load, **blocks)
    environment.filters |= {"percent": _percent, "number": _number}
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    own = {kind: folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js")}
    hashes = {f"{kind}_hash": _hash(text) for kind, text in own.items()}
    return environment.get_template(name, globals=own | hashes | {"version": __version__})


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def _percent(value: float) -> str:
    r"""Return a share in per cent, with a decimal where whole numbers hide too much.

    >>> _percent(0.5), _percent(0.9871), _percent(0.0004), _percent(1.0)
    ('50\xa0%', '98.7\xa0%', '<0.1\xa0%', '100\xa0%')
    """
    if 0 < value < 0.001:
        return "<0.1\xa0%"
    if 0.999 < value < 1:
        return ">99.9\xa0%"
    digits = 1 if 0 < value < 0.1 or 0.9 < value < 1 else 0
    return f"{100 * value:.{digits}f}\xa0%"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.3g}"
