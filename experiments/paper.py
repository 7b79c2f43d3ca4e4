"""What the paper published, next to what our experiments measured: its numbers and its claims about the plots.

The page docs/reproducing.md includes the table.

    python experiments/paper.py
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

RESULTS = Path(__file__).parent / "results"
TABLE = RESULTS / "paper.md"
CLAIMS = (  # of the six plots of Figure 1: which points, which two methods, and by how much the first may fall short
    ("Figure 1, left: at one label per image MBEM is far better than EM", "a", "MBEM paper", "weighted EM", 0.0),
    (
        "Figure 1, left: and is within 3.5 points of the oracle",
        "a",
        "MBEM paper",
        "oracle weighted EM",
        3.5,
    ),
    ("Figure 1, middle: weights are better than hard labels (EM)", "b", "weighted EM", "EM", 0.0),
    ("Figure 1, middle: at three labels MBEM is better than weighted EM", "three", "MBEM paper", "weighted EM", 0.0),
    ("Figure 1, right: within a budget MBEM is better than EM", "c", "MBEM paper", "weighted EM", 0.0),
)


def trials(name: str) -> list[dict[str, Any]]:
    """Return the trials of an experiment."""
    found: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text())["trials"]
    return found


def mean(rows: list[dict[str, Any]], value: str, **wanted: Any) -> float:
    """Return the mean of a value, in per cent, over the trials that agree with what is wanted."""
    found = [row[value] for row in rows if all(row.get(name) == one for name, one in wanted.items())]
    return fmean(found) * (100 if max(found) <= 1 else 1)


def figure1() -> list[str]:
    """Return the rows of Figure 1: what the text says of its plots, which print no numbers, against our points."""
    rows = [row for row in trials("cifar10_figure1") if row["net"] == "fast"]
    crowds = {"hammer-spammer": "hammer-spammer", "class-wise": "class-wise"}
    lines = []
    for crowd in crowds:
        points = {
            "a": [{"quality": q, "redundancy": 1, "n_tasks": 50_000} for q in (0.2, 0.3, 0.5, 0.7)],
            "b": [{"quality": 0.2, "redundancy": r, "n_tasks": 50_000} for r in (3, 5, 9)],
            "three": [{"quality": 0.2, "redundancy": 3, "n_tasks": 50_000}],
            "c": [{"quality": 0.2, "redundancy": r, "n_tasks": 50_000 // r} for r in (1, 3, 5)],
        }
        for claim, where, one, other, short in CLAIMS:
            at = [(fixed(rows, one, crowd, point), fixed(rows, other, crowd, point)) for point in points[where]]
            holds = sum(first > second - short for first, second in at)
            pairs = ", ".join(f"{first:.1f} : {second:.1f}" for first, second in at)
            lines.append(f"| {claim} ({crowd}) | {pairs} | {holds} of {len(at)} points |")
        once, *more = (fixed(rows, "MBEM paper", crowd, point) for point in points["c"])
        shown = " > ".join(f"{value:.1f}" for value in (once, *more))
        lines.append(
            f"| Figure 1, right: one label per image is best ({crowd}) | {shown} | {verdict(once > max(more))} |"
        )
    return lines


def fixed(rows: list[dict[str, Any]], method: str, crowd: str, point: dict[str, Any]) -> float:
    """Return the accuracy at a point; at one label per task MV, EM and weighted EM are one method."""
    same = method in ("EM", "weighted EM", "weighted MV") and point["redundancy"] == 1
    return mean(rows, "accuracy", method="MV" if same else method, crowd=crowd, **point)


def verdict(holds: bool) -> str:
    """Return whether a claim holds, in words."""
    return "yes" if holds else "no"


def figure2() -> list[str]:
    """Return the rows of Figure 2, on 100 classes of Tiny ImageNet."""
    rows, lines = trials("tiny_imagenet_figure2"), []
    for crowd in ("hammer-spammer", "class-wise"):
        for quality in (0.2, 0.6):
            at = {"crowd": crowd, "quality": quality}
            paper = [mean(rows, "top1", method="MBEM paper", redundancy=r, **at) for r in (1, 2, 3, 5)]
            votes = mean(rows, "top1", method="MV", redundancy=1, **at)
            ours = mean(rows, "top1", method="groups found", redundancy=1, **at)
            points = " > ".join(f"{value:.1f}" for value in paper)
            name = f"({crowd}, quality {quality:g})"
            lines.append(
                f"| Figure 2: one label per image is best {name} | {points} | {verdict(paper[0] > max(paper[1:]))} |"
            )
            better = f"{paper[0]:.1f} : {votes:.1f}; our default {ours:.1f}"
            lines.append(f"| Figure 2: and MBEM is better than votes {name} | {better} | {verdict(paper[0] > votes)} |")
    return lines


def numbers() -> list[str]:
    """Return the numbers that the paper prints."""
    cifar, tiny, boxes = trials("cifar10_figure1"), trials("tiny_imagenet_figure2"), trials("multilabel")
    truth = mean(cifar, "accuracy", net="resnet20", method="truth", n_tasks=50_000)
    top = {
        value: mean(tiny, value, method="truth", redundancy=1, crowd="hammer-spammer", quality=0.2)
        for value in ("top1", "top5")
    }
    lines = [
        f"| ResNet-20 on true labels of CIFAR-10, accuracy | 91.5 | {truth:.1f} |",
        f"| ResNet-18 on true labels of ImageNet, top 1 and top 5 | 69.5, 89 | {top['top1']:.1f}, {top['top5']:.1f}, "
        "on 100 classes of Tiny ImageNet with a smaller network: not comparable |",
    ]
    for name, published, ours in (
        ("majority vote", 43.3, "majority vote"),
        ("EM", 44.7, "EM"),
        ("MBEM", 45.1, "paper"),
        ("true labels", 51.2, "truth"),
    ):
        f1 = mean(boxes, "micro", set="layout", crowd="nine judgements", method=ours)
        lines.append(
            f"| MS-COCO, nine judgements per image, F1, {name} | {published} | {f1:.1f}, simulated, in that layout |"
        )
    return lines


def minutes() -> str:
    """Return what the experiments took."""
    took = {
        name: sum(row.get("seconds") or 0 for row in trials(name)) / 60
        for name in ("cifar10_figure1", "tiny_imagenet_figure2", "multilabel")
    }
    return ", ".join(f"`{name}.py` {value:,.0f}" for name, value in took.items())


def page() -> str:
    """Return the tables."""
    return "\n".join(
        [
            "| number that the paper prints, in % | published | ours |",
            "|---|---|---|",
            *numbers(),
            "",
            "| what the paper says of a plot | ours, test accuracy in % | holds |",
            "|---|---|---|",
            *figure1(),
            *figure2(),
            "",
            f"Minutes, summed over all trials: {minutes()}.",
            "",
        ]
    )


if __name__ == "__main__":
    TABLE.write_text(page())
    print(TABLE)
