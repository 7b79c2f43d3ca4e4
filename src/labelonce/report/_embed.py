"""The data that the page draws from, workers and confusion maps as compact JSON, and how the fit went."""

import base64
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from labelonce._messages import clip, described, show
from labelonce._types import Floats, Ids
from labelonce.report._facts import Facts
from labelonce.report._work import WorkFigures
from labelonce.report._workers import FLAGS, WorkerTable

_LONGEST = 600  # characters of an option
_MAP_BYTES = 3_000_000  # of worker maps in the file, before base64


def page_data(facts: Facts, table: WorkerTable, seconds: Any, work: WorkFigures | None = None) -> dict[str, Any]:
    """Return the page's data; the workers with the most wrong labels come first, and the first `n_maps` have a map."""
    order = np.argsort(-table.wrong, kind="stable")
    n_classes = facts.annotations.n_classes
    n_maps = min(len(order), _MAP_BYTES // n_classes**2)
    blind, share = table.blind[order], facts.labels_per_worker / facts.labels_per_worker.sum()
    data = {
        "classes": names(facts.annotations.classes),
        "flagNames": list(FLAGS),
        "names": names(facts.annotations.workers[order]),
        "labels": table.labels[order].tolist(),
        "wrong": [round(value, 1) for value in table.wrong[order].tolist()],
        "skill": _thousandths(table.skill[order]),
        "low": _thousandths(table.low[order]),
        "high": _thousandths(table.high[order]),
        "chance": _thousandths(table.chance[order]),
        "flags": (table.flags[order] @ (1 << np.arange(len(FLAGS)))).tolist(),
        "blind": {int(row): np.flatnonzero(blind[row]).tolist() for row in np.flatnonzero(blind.any(axis=1))},
        "seconds": None,
        "pay": None,
        "nMaps": n_maps,
        "maps": _as_bytes(facts.confusion[order[:n_maps]]),
        "population": _as_bytes(np.einsum("w,wks->ks", share, facts.confusion)),  # the mean over labels
    }
    figures: dict[str, Any] = {} if work is None else {"seconds": work.seconds, "pay": work.pay}
    if seconds is not None:
        figures["seconds"] = worker_values(seconds, facts.annotations.workers)
    for name, values in figures.items():
        if not np.isnan(values).all():
            data[name] = [None if np.isnan(value) else round(float(value), 2) for value in values[order]]
    return data


def worker_values(seconds: Any, workers: Ids) -> Floats:
    """Return the seconds of every worker, NaN where a mapping does not name it."""
    if isinstance(seconds, Mapping):
        found = [seconds.get(worker, np.nan) for worker in workers.tolist()]
        if not set(seconds) & set(workers.tolist()):
            raise ValueError(
                f"seconds must be by worker id, as {show(workers[0])}; got none of the {len(workers)} workers."
            )
        return np.array(found, dtype=np.float64)
    values = np.asarray(seconds, dtype=np.float64)
    if values.shape != workers.shape:
        raise ValueError(f"seconds must have one entry per worker, {len(workers)}; got shape {values.shape}.")
    return values


def names(ids: Ids) -> list[str]:
    """Return ids as texts, cut where they are long."""
    return [clip(str(value), 200) for value in ids.tolist()]


def _thousandths(values: Floats) -> list[int]:
    return [int(value) for value in np.rint(1000 * values)]


def _as_bytes(confusion: Floats) -> str:
    return base64.b64encode(np.rint(255 * confusion).astype(np.uint8).tobytes()).decode()


def rows_of_rounds(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a history, each number None where there is none."""
    return [
        {name: None if isinstance(value, float) and not np.isfinite(value) else value for name, value in entry.items()}
        for entry in history
    ]


def choice_rows(facts: Facts) -> list[dict[str, Any]]:
    """Return the options that MBEM tried, best first, with the held-out score of each."""
    rows = []
    for choice in facts.choices:
        scores = np.array(choice["held_out_scores"], dtype=np.float64)
        if np.isfinite(scores).any():
            best = int(np.nanargmax(scores))
            what = {"learner": short(choice["learner"]), "predictions": choice["predictions"]}
            rows.append({**what, "round": best + 1, "score": float(scores[best])})
    return sorted(rows, key=lambda row: -row["score"])


def rows_of_recipe(recipe: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return options with their values as texts."""
    return [(name.replace("_", " "), short(value)) for name, value in recipe.items()]


def run_rows(run: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the entries of a run's record, nested ones as JSON."""
    as_json = partial(json.dumps, ensure_ascii=False, default=str)
    rows = (run or {}).items()
    return [(str(name), value if isinstance(value, str) else clip(as_json(value), 20_000)) for name, value in rows]


def short(value: Any) -> str:
    """Return an option as a text."""
    return clip(described(value), _LONGEST)
