"""What `check` says about probabilities, weights, orders, families and repeated answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labelonce._messages import argument, at_command_line, show
from labelonce._types import Codes, Mask
from labelonce.data import _rows
from labelonce.data._annotations import Annotations

MOST_ORDERS = 24  # of four choices; a column with more values numbers the rows
SYSTEMATIC = 0.5  # share of the pairs of a worker and a task that are repeated, from which repeats are no accident


def extra_notes(annotations: Annotations) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, the number and a sentence for each optional column, for families by name, and for repeats."""
    if annotations.probability is not None:
        stated = int((~np.isnan(annotations.probability[:, 0])).sum())
        mean = float(
            np.nanmax(annotations.probability, axis=1, initial=0.0, where=~np.isnan(annotations.probability)).sum()
        )
        sentence = (
            f"{stated:,} of {len(annotations):,} labels come with a probability, on average {mean / max(stated, 1):.2f}"
        )
        yield "stated probabilities", stated, f"{sentence} for the likelier class."
    if annotations.weight is not None:
        low, high = float(annotations.weight.min()), float(annotations.weight.max())
        yield "weights", len(annotations), f"labels carry weights from {low:.3g} to {high:.3g}."
    yield from _families(annotations)
    yield from _consistency(annotations)


def extra_problems(annotations: Annotations) -> Iterator[tuple[str, int, str]]:
    """Yield a finding if a column called order is not about the order of the choices."""
    orders = annotations.orders
    if orders is not None and len(orders) > MOST_ORDERS:
        keep = argument("plain") if at_command_line() else "plain=True"
        sentence = f"column order has {len(orders):,} values, such as {show(orders[0])}: it does not look like the"
        yield "orders", len(orders), f"{sentence} order of the choices. Leave it out with {keep}, or rename it."


def is_panel(annotations: Annotations) -> bool:
    """Return whether the labels look like those of language models: with families or orders."""
    return annotations.order is not None or _family_codes(annotations) is not None


def repeats_are_systematic(annotations: Annotations) -> bool:
    """Return whether most pairs of a judge and a task are repeated, not always with the same label: no accident.

    Judges have families; rows of other workers that repeat may be about several questions.
    """
    again = _rows.repeats(annotations.task, annotations.worker)
    same = annotations.label[1:] == annotations.label[:-1]
    most = _pairs_repeated(again) > SYSTEMATIC * (~again).sum()
    return bool(most and not same[again[1:]].all() and _family_codes(annotations) is not None)


def _family_codes(annotations: Annotations) -> Codes | None:
    return annotations.name_families() if annotations.family is None else annotations.family


def _pairs_repeated(again: Mask) -> int:
    """Return how many pairs of a worker and a task have a repeat."""
    return int((again & ~np.append(False, again[:-1])).sum())


def _families(annotations: Annotations) -> Iterator[tuple[str, int, str]]:
    codes = _family_codes(annotations)
    if codes is None:
        return
    sizes = np.bincount(codes)
    largest = np.flatnonzero(codes == sizes.argmax())[:2]
    such = " and ".join(show(annotations.workers[one]) for one in largest)
    n = int((sizes > 0).sum())
    by_name = ", by their names" if annotations.family is None else ""
    sentence = (
        f"the {len(codes):,} workers are of {n:,} families{by_name}, such as {such}: "
        "members of a family share mistakes. labelonce judges and JudgePanel take that into account."
    )
    yield "families", n, sentence


def _consistency(annotations: Annotations) -> Iterator[tuple[str, int, str]]:
    again = _rows.repeats(annotations.task, annotations.worker)
    if not again.any() or not (annotations.order is not None or repeats_are_systematic(annotations)):
        return
    same = annotations.label[1:] == annotations.label[:-1]
    worker = annotations.worker[again]
    n, agreed = (np.bincount(worker, weights, annotations.n_workers) for weights in (None, same[again[1:]]))
    share = np.divide(agreed, n, out=np.ones(len(n)), where=n > 0)
    least = int(share.argmin())
    orders = "" if annotations.orders is None else f", in {len(annotations.orders)} orders of the choices"
    sentence = (
        f"{again.sum():,} answers repeat a worker and a task{orders}; {same[again[1:]].mean():.0%} of them are the "
        f"same as before, least of worker {show(annotations.workers[least])} ({share[least]:.0%})."
    )
    yield "consistency", int(again.sum()), sentence
