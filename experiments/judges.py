"""Panels of language models: labels, how right they say they are, judges and rates, without gold and with a little.

Panels are cuts of LLMBar (shipped with the package) and of the media bias judges (needs the data of datasets.md), and
simulated ones: two to five classes, 3 to 60 judges who share up to .95 of their mistakes, some below chance, some with
people on a twentieth of the tasks. The rules of `JudgePanel` were chosen on the panels of the half "choose" and on
simulated ones with other settings and seeds; those of "report" were left for the page. `right` and `says` are of the
tasks without gold; the best judge and the ridge (logistic regression on the votes, C=1) are fitted to the same gold,
and Dawid-Skene has it as gold.

    LABELONCE_DATA=... python experiments/judges.py               # every panel, ten draws with gold; resumes
    python experiments/judges.py --draws 2 --panels simulated     # fewer draws, some panels
    python experiments/judges.py --table                          # the table again
"""

import argparse
from collections.abc import Callable, Iterator
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
from judge_panels import SIMULATED, Panel, cuts, made
from record import RESULTS, Trial, experiment, grouped, markdown
from sklearn.linear_model import LogisticRegression

import labelonce as lo

PATH = RESULTS / "judges.json"
GOLD = (0, 20, 50, 100, 200)


def trial(name: str, gold: int, seed: int) -> Trial:
    """Return what was measured on one panel with so many gold labels."""
    panel = made(SIMULATED[name], seed) if name in SIMULATED else cuts()[name]
    annotations, n, rng = panel.annotations, len(panel.truth), np.random.default_rng(seed)
    if gold > n - 50:
        return {"half": panel.half, "skipped": True}
    known = np.sort(rng.choice(n, gold, replace=False)) if gold else np.zeros(0, dtype=int)
    rest = np.setdiff1d(np.arange(n), known)
    given = {annotations.tasks[place]: annotations.classes[panel.truth[place]] for place in known} or None

    def right(fit: Any) -> float:
        return float((fit.labels_[rest] == annotations.classes[panel.truth[rest]]).mean())

    fitted = lo.JudgePanel().fit(annotations, gold=given)
    skeptic = lo.DawidSkene().fit(annotations.without(), gold=given)
    row = {"half": panel.half, "right": right(fitted), "says": float(fitted.confidence_[rest].mean())}
    row |= {"dawid_skene": right(skeptic), "vote": right(lo.MajorityVote().fit(annotations))}
    if gold:
        return row | _with_gold(panel, fitted, known, rest)
    row["dawid_skene_says"] = float(skeptic.posterior_[rest].max(axis=1).mean())
    own = annotations.label == panel.truth[annotations.task]
    skill = np.bincount(annotations.worker, own) / np.bincount(annotations.worker)
    low, high = fitted.skill_interval()
    row |= {"low": fitted.estimated_accuracy_.low, "high": fitted.estimated_accuracy_.high}
    row |= {"best": float(max(skill[~fitted.people_])), "effective": fitted.effective_workers_.value}
    row["truly_effective"] = effective_number(panel)
    return row | {"skill_covered": float(((low <= skill) & (skill <= high)).mean())}


def effective_number(panel: Panel) -> float:
    """Return Kish's number by the correlation of the judges' errors on all gold, for the judges of one task."""
    annotations = panel.annotations
    total, number = np.zeros((2, annotations.n_tasks, annotations.n_workers))
    np.add.at(total, (annotations.task, annotations.worker), annotations.label == panel.truth[annotations.task])
    np.add.at(number, (annotations.task, annotations.worker), 1)
    votes = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    errors = (votes - np.nanmean(votes, axis=0)) / (np.nanstd(votes, axis=0) + 1e-9)
    seen, errors = ~np.isnan(errors), np.nan_to_num(errors)
    both = errors.sum(axis=1) ** 2 - (errors**2).sum(axis=1)
    per_task = seen.sum(axis=1)
    correlation = both.sum() / max((per_task * (per_task - 1)).sum(), 1)
    judges = per_task.mean()
    return float(judges / (1 + (judges - 1) * correlation))


def _with_gold(panel: Panel, fitted: Any, known: Any, rest: Any) -> Trial:
    """Return how right the best judge by gold and a ridge on the votes are, and whether the range holds the rate."""
    ann, codes = panel.annotations, panel.truth
    shares, share = fitted.class_shares().to_pydict(), float((codes == ann.n_classes - 1).mean())
    votes = np.zeros((ann.n_tasks, ann.n_workers, ann.n_classes))
    np.add.at(votes, (ann.task, ann.worker, ann.label), 1.0)
    votes /= np.maximum(votes.sum(axis=2, keepdims=True), 1)
    right = np.take_along_axis(votes, codes[:, None, None], axis=2)[:, :, 0]
    best = int(np.argmax(right[known].sum(axis=0)))
    said = votes[rest, best] + votes[rest].sum(axis=1) * 1e-6
    row: Trial = {"rate_covered": bool(shares["low"][-1] <= share <= shares["high"][-1])}
    row["best_by_gold"] = float((said.argmax(axis=1) == codes[rest]).mean())
    if len(np.unique(codes[known])) < 2:
        return row | {"ridge": float(np.mean(codes[rest] == codes[known[0]]))}
    flat = votes.reshape(len(votes), -1)
    ridge = LogisticRegression(max_iter=2000).fit(flat[known], codes[known])
    return row | {"ridge": float((ridge.predict(flat[rest]) == codes[rest]).mean())}


def table(trials: list[Trial]) -> str:
    """Return a table for every number of gold labels, and the means of the halves."""
    seen = [one for one in trials if "right" in one]
    return "\n".join([_without(seen), *(_with(seen, gold) for gold in sorted({one["gold"] for one in seen} - {0}))])


HALVES: dict[str, Callable[[Trial], bool]] = {
    "choose": lambda one: one["half"] == "choose",
    "report, real": lambda one: one["half"] == "report" and one["name"] not in SIMULATED,
    "simulated": lambda one: one["name"] in SIMULATED,
}


def _mean(rows: list[Trial], value: str | Callable[[Trial], float]) -> float:
    get = (lambda one: one[value]) if isinstance(value, str) else value
    return fmean(map(get, rows)) if rows else float("nan")


def _without(trials: list[Trial]) -> str:
    head = ["panel", "half", "vote", "best judge", "Dawid-Skene", "it says", "panel", "says", "range", "effective"]
    keys = ("vote", "best", "dawid_skene", "dawid_skene_says", "right", "says")
    rows, parts = [], [one for one in trials if one["gold"] == 0]
    for (name,), own in grouped(parts, "name").items():
        inside = "" if all(one["low"] <= one["right"] <= one["high"] for one in own) else " (outside)"
        span = f"{_mean(own, 'low'):.2f} to {_mean(own, 'high'):.2f}{inside}"
        number = f"{_mean(own, 'effective'):.1f}, by all gold {_mean(own, 'truly_effective'):.1f}"
        rows.append([name, own[0]["half"], *(f"{_mean(own, key):.3f}" for key in keys), span, number])
    return f"Without gold:\n\n{markdown(head, rows)}\n{_summary(parts)}"


def _summary(parts: list[Trial]) -> str:
    lines = []
    for half, kept in HALVES.items():
        if own := [one for one in parts if kept(one)]:
            off = _mean(own, lambda one: abs(one["says"] - one["right"])) * 100
            inside = _mean(own, lambda one: one["low"] <= one["right"] <= one["high"]) * 100
            near = _mean(own, lambda one: abs(one["effective"] / one["truly_effective"] - 1) <= 0.2) * 100
            covered = _mean(own, "skill_covered") * 100
            lines.append([half, len(own), f"{off:.1f}", f"{inside:.0f} %", f"{near:.0f} %", f"{covered:.0f} %"])
    head = ["half", "trials", "says minus right, points", "range holds it", "effective number within 20 %"]
    return markdown([*head, "skills in their intervals"], lines)


def _with(trials: list[Trial], gold: int) -> str:
    others = ("vote", "best_by_gold", "dawid_skene", "ridge")
    head = ["half", "trials", "right", "over vote", "over best judge", "over Dawid-Skene", "over ridge"]
    head += ["worst panel against the best of these", "says minus right", "rate covered"]
    rows = []
    for half, kept in HALVES.items():
        own = [one for one in trials if one["gold"] == gold and kept(one)]
        if not own:
            continue
        panels = list(grouped(own, "name").values())
        gains = [f"{(_mean(own, 'right') - _mean(own, key)) * 100:+.1f}" for key in others]
        gaps = {part[0]["name"]: _mean(part, "right") - max(_mean(part, key) for key in others) for part in panels}
        worst = min(gaps, key=lambda name: gaps[name])
        off = fmean(abs(_mean(part, "says") - _mean(part, "right")) for part in panels) * 100
        cells = [f"{gaps[worst] * 100:+.1f} ({worst})", f"{off:.1f}", f"{_mean(own, 'rate_covered') * 100:.0f} %"]
        rows.append([half, len(own), f"{_mean(own, 'right'):.3f}", *gains, *cells])
    return f"With {gold} gold labels, points of accuracy on the other tasks:\n\n{markdown(head, rows)}"


def points(options: argparse.Namespace) -> Iterator[Trial]:
    for name, gold, seed in product((*SIMULATED, *cuts()), GOLD, range(options.draws)):
        wanted = options.panels in (name, "all", "simulated" if name in SIMULATED else "real")
        if wanted and (gold or name in SIMULATED or seed == 0):
            yield {"name": name, "gold": gold, "seed": seed}


if __name__ == "__main__":
    asked: dict[str, Any] = {"draws": {"type": int, "default": 10}}
    asked["panels"] = {"default": "all", "help": "all, simulated, real, or the name of one"}
    experiment(__doc__, PATH, trial, points, table, order={"name": [*SIMULATED, *cuts()]}, **asked)
