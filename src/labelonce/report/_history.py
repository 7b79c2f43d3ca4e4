"""How the fit went: rounds, what was tried, what was used, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from labelonce._messages import clip, described
from labelonce.report._facts import Facts

_LONGEST = 600


def round_rows(facts: Facts) -> list[dict[str, Any]]:
    """Return the rounds of an MBEM, each number None where there is none; nothing for other fits."""
    return rows_of_rounds(facts.history)


def rows_of_rounds(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a history, each number None where there is none."""
    return [{name: _or_none(value) for name, value in entry.items()} for entry in history]


def choice_rows(facts: Facts) -> list[dict[str, Any]]:
    """Return the options that MBEM tried, best first, with the held-out score of each."""
    rows = []
    for choice in facts.choices:
        scores = np.array(choice["held_out_scores"], dtype=np.float64)
        if np.isfinite(scores).any():
            best = int(np.nanargmax(scores))
            what = {"learner": _short(choice["learner"]), "predictions": choice["predictions"]}
            rows.append({**what, "round": best + 1, "score": float(scores[best])})
    return sorted(rows, key=lambda row: -row["score"])


def recipe_rows(facts: Facts) -> list[tuple[str, str]]:
    """Return what was used."""
    return rows_of_recipe(facts.recipe)


def rows_of_recipe(recipe: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return options with their values as texts."""
    return [(name.replace("_", " "), _short(value)) for name, value in recipe.items()]


def run_rows(run: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the entries of a run's record, nested ones as JSON."""
    if run is None:
        return []
    return [(str(name), value if isinstance(value, str) else _json(value)) for name, value in run.items()]


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _short(value: Any) -> str:
    return clip(described(value), _LONGEST)


def _json(value: Any) -> str:
    return clip(json.dumps(value, ensure_ascii=False, default=str), 20_000)
