"""The facts about a panel of judges as plain values, for the report and the commands."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.data import Annotations, check_gold, without_nan
from labelonce.judges import JudgePanel, alternative_annotator_test
from labelonce.report._embed import names

LEVEL = 0.9
LEANING = 0.1  # difference between orders above which a judge is said to lean to a place
_Z = 1.645
_FEWEST_PEOPLE = 3  # of the alternative annotator test
_MOST = {"differences": 20, "pairs": 10, "matrix": 60}


def panel_facts(
    panel: JudgePanel,
    annotations: Annotations,
    gold: Any = None,
    *,
    chances: Mapping[Any, float] | None = None,
    n: int = 50,
    risk: float | None = None,
    width: float | None = None,
) -> dict[str, Any]:
    """Return the facts about a fitted panel; `n` is the number of items to check next.

    `chances` are those with which items were chosen for checking, see `JudgePanel.class_shares`; `risk` and `width` are
    what `checks` should say how to reach, see `JudgePanel.checks_needed`.
    """
    versus = panel.versus_best_judge()
    known = None if gold is None else check_gold(gold, annotations)
    found: dict[str, Any] = {
        "n": _counts(panel, annotations, known),
        "classes": [str(one) for one in panel.classes_],
        "accuracy": _estimate(panel.estimated_accuracy_),
        "gold_accuracy": _estimate(panel.gold_accuracy_),
        "effective_workers": _estimate(panel.effective_workers_),
        "shared_error": _estimate(panel.shared_error_),
        "versus": {"judge": str(versus.judge), "verdict": versus.verdict}
        | {name: _estimate(getattr(versus, name)) for name in ("panel", "best", "difference")},
        "judges": _judges(panel, annotations),
        "families": _families(panel),
        "pairs": without_nan(panel.pairs_to_frame(_MOST["pairs"]).to_pylist()),
        "replace": _replace(panel, annotations),
        "differences": _differences(panel, annotations, known),
        "shares": without_nan(panel.class_shares(chances=chances).to_pylist()),
        "next": without_nan(panel.next_tasks(n).rename_columns({"probability": "chance"}).to_pylist()),
        "checks": _checks(panel, risk=risk, width=width),
        "doubts": list(panel.doubts_),
    }
    return found | {"todo": list(_todo(found))}


def _counts(panel: JudgePanel, annotations: Annotations, gold: Codes | None) -> dict[str, int]:
    return {
        "verdicts": len(annotations),
        "items": annotations.n_tasks,
        "judges": int((~panel.people_).sum()),
        "people": int(panel.people_.sum()),
        "families": len(set(panel.families_[~panel.people_].tolist())),
        "orders": 1 if annotations.orders is None else len(annotations.orders),
        "refusals": int(panel.refusals_.sum()),
        "gold": 0 if gold is None else int((gold >= 0).sum()),
    }


def _estimate(one: Any) -> dict[str, float] | None:
    return None if one is None else {name: float(getattr(one, name)) for name in ("value", "low", "high")}


def _checks(panel: JudgePanel, **wanted: float | None) -> dict[str, Any]:
    """Return how many items to check to reach what is wanted, by its name."""
    known = {name: {name: value} for name, value in wanted.items() if value is not None}
    return {name: one | (_estimate(panel.checks_needed(**one)) or {}) for name, one in known.items()}


def _judges(panel: JudgePanel, annotations: Annotations) -> list[dict[str, Any]]:
    rows, leaning = without_nan(panel.workers_to_frame().to_pylist()), position_bias(annotations)
    return [row | {"worker": str(row["worker"]), "leaning": leaning.get(row["worker"])} for row in rows]


def position_bias(annotations: Annotations) -> dict[Any, dict[str, Any]]:
    """Return how much more often each worker gives a class in the first order than in the second, by worker id.

    Of the classes the one that differs most; only workers with verdicts in two orders.
    """
    if annotations.order is None or annotations.orders is None or len(annotations.orders) < 2:
        return {}
    votes = annotations.label < annotations.n_classes
    shape = (annotations.n_workers, 2, annotations.n_classes)
    kept = votes & (annotations.order >= 0) & (annotations.order < 2)
    place = tuple(codes[kept] for codes in (annotations.worker, annotations.order, annotations.label))
    counts = np.bincount(np.ravel_multi_index(place, shape), minlength=math.prod(shape)).reshape(shape)
    size = counts.sum(axis=2)
    found = {}
    for worker in np.flatnonzero((size > 0).all(axis=1)):
        share = counts[worker] / size[worker][:, None]
        gap = share[0] - share[1]
        top = int(np.abs(gap).argmax()) if shape[2] > 2 else 0
        half = _Z * math.sqrt(float((share[:, top] * (1 - share[:, top]) / size[worker]).sum()))
        ends = {"value": float(gap[top]), "low": float(gap[top]) - half, "high": float(gap[top]) + half}
        found[annotations.workers[worker]] = {"label": str(annotations.classes[top])} | ends
    return found


def _families(panel: JudgePanel) -> dict[str, Any]:
    """Return the mean excess agreement within and between families, and of all judges in the order of families."""
    excess = panel.excess_agreement_
    if excess is None:
        return {"names": [], "excess": [], "order": [], "matrix": []}
    families = [str(one) for one in panel.families_]
    order = sorted(range(len(excess)), key=lambda w: (bool(panel.people_[w]), families[w], -panel.skill_[w]))
    listed = list(dict.fromkeys(families[w] for w in order))
    family = np.array([listed.index(one) for one in families])
    off = np.where(np.eye(len(excess), dtype=bool), np.nan, np.asarray(excess, dtype=float))
    blocks = [[_mean(off[np.ix_(family == a, family == b)]) for b in range(len(listed))] for a in range(len(listed))]
    shown = order if len(order) <= _MOST["matrix"] else []
    matrix = [[_rounded(off[a, b]) for b in shown] for a in shown]
    workers = names(panel.workers_[shown]) if shown else []
    sizes = np.bincount(family, minlength=len(listed)).tolist()
    return {"names": listed, "sizes": sizes, "excess": blocks, "order": workers, "matrix": matrix}


def matrix_cells(families: dict[str, Any]) -> dict[str, Any] | None:
    """Return the picture of the matrix: a square per pair, and the places where one family ends."""
    if not families["matrix"]:
        return None
    values = np.array([[np.nan if one is None else one for one in row] for row in families["matrix"]])
    most = max(float(np.nanmax(np.abs(values), initial=0.0, where=~np.isnan(values))), 0.05)
    shown = families["order"]
    size = len(values)

    def cell(a: int, b: int) -> dict[str, Any]:
        title = f"{shown[a]}, {shown[b]}: {values[a, b]:+.2f}"
        return {"x": b, "y": a, "fill": _fill(values[a, b] / most), "title": title}

    rows = [[cell(a, b) for b in range(size)] for a in range(size)]
    cuts = np.cumsum(families["sizes"])[:-1].tolist()
    named = list(zip(families["names"], families["sizes"], strict=True))
    return {"size": size, "rows": rows, "cuts": cuts, "families": named, "most": most, "titles": size <= 30}


def _fill(share: float) -> str:
    """Return the colour of a value from -1 (orange) over 0 (light grey) to 1 (blue); of none, grey."""
    if np.isnan(share):
        return "#b8c0c8"
    ends = (0, 63, 125) if share > 0 else (200, 90, 0)
    return "#" + "".join(f"{round(240 + (end - 240) * min(abs(share), 1)):02x}" for end in ends)


def panel_gold(panel: JudgePanel) -> Any:
    """Return the gold that a panel was fitted with, None without any."""
    codes = panel._gold_codes
    return None if (codes < 0).all() else [None if code < 0 else panel.classes_[code] for code in codes]


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return _rounded(known.mean()) if len(known) else None


def _rounded(value: Any) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)


def _replace(panel: JudgePanel, annotations: Annotations) -> list[dict[str, Any]] | None:
    """Return the alternative annotator test of every judge; None with too few people."""
    if panel.people_.sum() < _FEWEST_PEOPLE or panel.people_.all():
        return None
    test = alternative_annotator_test(annotations, people=panel.workers_[panel.people_].tolist())
    found: list[dict[str, Any]] = without_nan(test.to_pylist())
    return found


def _differences(panel: JudgePanel, annotations: Annotations, gold: Codes | None) -> dict[str, Any]:
    """Return the items on which the judges' majority differs from gold or, without gold, from the people."""
    votes = np.zeros((2, annotations.n_tasks, annotations.n_classes))
    kept = annotations.label < annotations.n_classes
    by_person = panel.people_[annotations.worker[kept]].astype(int)
    np.add.at(votes, (by_person, annotations.task[kept], annotations.label[kept]), 1.0)
    truth = np.where(votes[1].any(axis=1), votes[1].argmax(axis=1), -1)
    truth = truth if gold is None else np.where(gold >= 0, gold, truth)
    said, n = votes[0].argmax(axis=1), votes[0].sum(axis=1)
    both = np.flatnonzero((truth >= 0) & (n > 0))
    apart = both[said[both] != truth[both]]
    share = votes[0][apart, said[apart]] / n[apart]
    classes = names(annotations.classes)
    by_share = sorted(zip(apart.tolist(), share.tolist(), strict=True), key=lambda one: -one[1])
    rows = [
        {"item": str(annotations.tasks[task]), "judges": classes[said[task]], "people": classes[truth[task]]}
        | {"share": part}
        for task, part in by_share
    ]
    pairs, times = np.unique(np.stack([truth[apart], said[apart]]), axis=1, return_counts=True)
    kinds = [
        {"people": classes[a], "judges": classes[b], "items": int(k)}
        for (a, b), k in sorted(zip(pairs.T.tolist(), times.tolist(), strict=True), key=lambda one: -one[1])
    ]
    return {"compared": len(both), "apart": len(apart), "kinds": kinds[:10], "rows": rows[: _MOST["differences"]]}


def _todo(found: dict[str, Any]) -> Iterator[str]:
    """Yield what to do next, the most useful first."""
    n, versus = found["n"], found["versus"]
    useless = [row["worker"] for row in found["judges"] if not row["keep"]]
    leaning = [row for row in found["judges"] if row["leaning"] and abs(row["leaning"]["value"]) > LEANING]
    if not n["gold"] and not n["people"]:
        yield (
            f"Check {len(found['next'])} items by hand and give them as gold: without any, nothing tells shared "
            "mistakes from the truth."
        )
    if versus["verdict"] == "panel":
        yield f"Use the labels of the panel: they are better than those of its best judge, {versus['judge']}."
    elif versus["verdict"] == "judge":
        yield f"Use {versus['judge']} alone: it is better than the panel."
    elif n["gold"]:
        yield f"Check more items: whether the panel is better than {versus['judge']} cannot be told yet."
    if useless:
        shown = f"{', '.join(useless[:5])}{' and others' if len(useless) > 5 else ''}"
        adds = "it adds" if len(useless) == 1 else "they add"
        yield f"Drop {len(useless)} of {n['judges']} judges ({shown}): {adds} nothing to the others."
    if leaning:
        worst = max(leaning, key=lambda row: abs(row["leaning"]["value"]))
        yield (
            f"Keep asking in both orders: {len(leaning)} judges lean to a place, most {worst['worker']} "
            f"({abs(worst['leaning']['value']):.0%} between the orders)."
        )
    if n["families"] < n["judges"] and n["families"] > 0:
        yield "For more judges take other models: another prompt of the same model adds little."
