"""What the paper published, next to what our experiments measured: its numbers and its claims about the plots.

The page docs/reproducing.md includes the table.

    python experiments/paper.py
"""

from collections.abc import Iterator
from itertools import product
from statistics import fmean
from typing import Any

from record import RESULTS, markdown, read, write_text

TABLE = RESULTS / "paper.md"
CLAIMS = (  # of the six plots of Figure 1: which points, which two methods, and by how much the first may fall short
    ("Figure 1, left: at one label per image MBEM is far better than EM", "a", "MBEM paper", "weighted EM", 0.0),
    ("Figure 1, left: and is within 3.5 points of the oracle", "a", "MBEM paper", "oracle weighted EM", 3.5),
    ("Figure 1, middle: weights are better than hard labels (EM)", "b", "weighted EM", "EM", 0.0),
    ("Figure 1, middle: at three labels MBEM is better than weighted EM", "three", "MBEM paper", "weighted EM", 0.0),
    ("Figure 1, right: within a budget MBEM is better than EM", "c", "MBEM paper", "weighted EM", 0.0),
)
CROWDS = ("hammer-spammer", "class-wise")
COCO = (
    ("majority vote", 43.3, "majority vote"),
    ("EM", 44.7, "EM"),
    ("MBEM", 45.1, "paper"),
    ("true labels", 51.2, "truth"),
)


def trials(name: str) -> list[dict[str, Any]]:
    return read(RESULTS / f"{name}.json")


def mean(rows: list[dict[str, Any]], value: str, **wanted: Any) -> float:
    """Return the mean of a value, in per cent, over the trials that agree with what is wanted."""
    found = [row[value] for row in rows if all(row.get(name) == one for name, one in wanted.items())]
    return fmean(found) * (100 if max(found) <= 1 else 1)


def figure1() -> Iterator[tuple[str, str, str]]:
    """Yield the rows of Figure 1: what the text says of its plots, which print no numbers, against our points."""
    rows = [row for row in trials("cifar10_figure1") if row["net"] == "fast"]

    def accuracy(method: str, crowd: str, quality: float, redundancy: int, n_tasks: int = 50_000) -> float:
        same = method in ("EM", "weighted EM") and redundancy == 1  # at one label per task they are the vote
        point = {"crowd": crowd, "quality": quality, "redundancy": redundancy, "n_tasks": n_tasks}
        return mean(rows, "accuracy", method="MV" if same else method, **point)

    points: dict[str, list[tuple[Any, ...]]] = {
        "a": [(quality, 1) for quality in (0.2, 0.3, 0.5, 0.7)],
        "b": [(0.2, redundancy) for redundancy in (3, 5, 9)],
        "three": [(0.2, 3)],
        "c": [(0.2, redundancy, 50_000 // redundancy) for redundancy in (1, 3, 5)],
    }
    for crowd in CROWDS:
        for claim, where, one, other, short in CLAIMS:
            at = [(accuracy(one, crowd, *point), accuracy(other, crowd, *point)) for point in points[where]]
            holds = sum(first > second - short for first, second in at)
            pairs = ", ".join(f"{first:.1f} : {second:.1f}" for first, second in at)
            yield f"{claim} ({crowd})", pairs, f"{holds} of {len(at)} points"
        found = [accuracy("MBEM paper", crowd, *point) for point in points["c"]]
        yield f"Figure 1, right: one label per image is best ({crowd})", *first_is_best(found)


def first_is_best(values: list[float]) -> tuple[str, str]:
    """Return values as the paper orders them, and whether the first is the largest."""
    return " > ".join(f"{value:.1f}" for value in values), "yes" if values[0] > max(values[1:]) else "no"


def figure2() -> Iterator[tuple[str, str, str]]:
    """Yield the rows of Figure 2, on 100 classes of Tiny ImageNet."""
    rows = trials("tiny_imagenet_figure2")
    for crowd, quality in product(CROWDS, (0.2, 0.6)):
        at = {"crowd": crowd, "quality": quality}
        paper = [mean(rows, "top1", method="MBEM paper", redundancy=r, **at) for r in (1, 2, 3, 5)]
        votes, ours = (mean(rows, "top1", method=method, redundancy=1, **at) for method in ("MV", "groups found"))
        name = f"({crowd}, quality {quality:g})"
        yield f"Figure 2: one label per image is best {name}", *first_is_best(paper)
        better = f"{paper[0]:.1f} : {votes:.1f}; our default {ours:.1f}"
        yield f"Figure 2: and MBEM is better than votes {name}", better, "yes" if paper[0] > votes else "no"


def numbers() -> Iterator[tuple[str, Any, str]]:
    cifar, tiny, boxes = trials("cifar10_figure1"), trials("tiny_imagenet_figure2"), trials("multilabel")
    truth = mean(cifar, "accuracy", net="resnet20", method="truth", n_tasks=50_000)
    yield "ResNet-20 on true labels of CIFAR-10, accuracy", 91.5, f"{truth:.1f}"
    point = {"method": "truth", "redundancy": 1, "crowd": "hammer-spammer", "quality": 0.2}
    ours = f"{mean(tiny, 'top1', **point):.1f}, {mean(tiny, 'top5', **point):.1f}"
    where = "on 100 classes of Tiny ImageNet with a smaller network: not comparable"
    yield "ResNet-18 on true labels of ImageNet, top 1 and top 5", "69.5, 89", f"{ours}, {where}"
    for name, published, method in COCO:
        f1 = mean(boxes, "micro", set="layout", crowd="nine judgements", method=method)
        yield f"MS-COCO, nine judgements per image, F1, {name}", published, f"{f1:.1f}, simulated, in that layout"


def page() -> str:
    """Return the tables, and what the experiments took."""
    names = ("cifar10_figure1", "tiny_imagenet_figure2", "multilabel")
    took = (f"`{name}.py` {sum(row.get('seconds') or 0 for row in trials(name)) / 60:,.0f}" for name in names)
    claims = markdown(["what the paper says of a plot", "ours, test accuracy in %", "holds"], [*figure1(), *figure2()])
    printed = markdown(["number that the paper prints, in %", "published", "ours"], numbers())
    return f"{printed}\n{claims}\nMinutes, summed over all trials: {', '.join(took)}.\n"


if __name__ == "__main__":
    write_text(TABLE, page())
    print(TABLE)
