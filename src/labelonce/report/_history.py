"""How the fit went: rounds, what was tried, what was used, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from labelonce._messages import clip, described

_LONGEST = 600


def round_rows(fitted: Any) -> list[dict[str, Any]]:
    """Return the rounds of an MBEM, each number None where there is none; nothing for other fits."""
    history = getattr(fitted, "history_", [])
    return [{name: _or_none(value) for name, value in entry.items()} for entry in history]


def choice_rows(fitted: Any) -> list[dict[str, Any]]:
    """Return what an MBEM tried, the best first, with the best held-out score of each."""
    rows = []
    for choice in getattr(fitted, "choices_", None) or []:
        scores = np.array(choice["held_out_scores"], dtype=np.float64)
        if np.isfinite(scores).any():
            best = int(np.nanargmax(scores))
            what = {"learner": _short(choice["learner"]), "posterior": choice["posterior"]}
            rows.append({**what, "round": best + 1, "score": float(scores[best])})
    return sorted(rows, key=lambda row: -row["score"])


def recipe_rows(fitted: Any) -> list[tuple[str, str]]:
    """Return what was used: the recipe of an MBEM, or the parameters and iterations of an aggregator."""
    if hasattr(fitted, "recipe_"):
        return [(name.replace("_", " "), _short(value)) for name, value in fitted.recipe_.items()]
    source = getattr(fitted, "aggregator_", fitted)
    rows = [(name.replace("_", " "), _short(value)) for name, value in source.get_params().items()]
    if getattr(source, "n_iter_", 0):
        ended = "converged" if source.converged_ else "stopped before it converged"
        rows.append(("iterations", f"{source.n_iter_}, {ended}"))
    return rows


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
