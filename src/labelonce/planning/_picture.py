"""The picture of a plan: what every redundancy is worth, and what accuracy to expect of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelonce.planning._plan import Plan

_BEST, _CURVE, _OTHER = "#c92a2a", "#0b7285", "#868e96"
_SUFFIXES = (".svg", ".png")


def write_picture(plan: Plan, path: Path) -> None:
    """Draw the curve of a plan; with a simulation also the expected accuracy."""
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"path must end in {' or '.join(_SUFFIXES)}; got {path.name!r}.")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Plan.plot needs matplotlib; install it with: pip install matplotlib.") from error
    simulated = any(row.accuracy is not None for row in plan.rows)
    figure = Figure(figsize=(9 if simulated else 6, 3.4), layout="constrained")
    axes: Any = figure.subplots(1, 2 if simulated else 1, squeeze=False)[0]
    _draw_worth(axes[0], plan)
    if simulated:
        _draw_accuracy(axes[1], plan)
    for one in axes:
        one.set_xlabel(f"labels per task, for {plan.budget:,.6g} in all")
        one.axvline(plan.redundancy, color=_BEST, linewidth=1, linestyle=":")
        one.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw_worth(axes: Any, plan: Plan) -> None:
    at = [row.redundancy for row in plan.rows]
    axes.fill_between(at, [row.worth_low for row in plan.rows], [row.worth_high for row in plan.rows], alpha=0.2)
    worth = [row.worth for row in plan.rows]
    axes.plot(at, worth, "o-", color=_CURVE, markersize=3, label="perfect labels it is worth")
    axes.plot(at, [row.tasks for row in plan.rows], "--", color=_OTHER, linewidth=1, label="tasks")
    axes.plot(plan.redundancy, plan.row(plan.redundancy).worth, "o", color=_BEST, label=f"best: {plan.redundancy}")
    axes.set_ylim(0, 1.6 * max(row.worth_high for row in plan.rows))
    axes.set_ylabel("tasks")
    axes.legend(frameon=False)


def _draw_accuracy(axes: Any, plan: Plan) -> None:
    known = [(row.redundancy, row.accuracy) for row in plan.rows if row.accuracy is not None]
    at = [redundancy for redundancy, _ in known]
    low, high = ([100 * getattr(one, end) for _, one in known] for end in ("low", "high"))
    axes.fill_between(at, low, high, alpha=0.2)
    axes.plot(at, [100 * one.value for _, one in known], "-", color=_CURVE, label="expected, with its 90 % range")
    axes.set_ylabel("right on new tasks, %")
    axes.legend(frameon=False)
