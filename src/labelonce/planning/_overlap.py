"""Overlap: how many tasks need a second label, so that agreement shows how right the labels are."""

from typing import Any

_SHARE, _FEWEST, _MOST_SHARE = 0.05, 40, 0.2  # of the tasks, where no fit says how many: judgement


def wanted_overlap(fitted: Any, n_tasks: int, n_shared: int = 0) -> int:
    """Return how many tasks should get a second label.

    With features, the fit says how many second labels narrow the range of its accuracy. Otherwise it is a share of the
    tasks, less the `n_shared` that several workers have labelled.
    """
    verdict = getattr(fitted, "verdict_", None)
    if verdict is not None and verdict.held_out:
        narrowing = verdict.narrowing()
        return 0 if narrowing is None else int(narrowing.second)
    share = max(round(_SHARE * n_tasks), min(_FEWEST, round(_MOST_SHARE * n_tasks)))
    return max(0, share - n_shared)
