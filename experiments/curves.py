"""The three curves of the paper's Figure 1, of which two experiments have their own: methods, points and picture.

Test accuracy (a) against the quality of the workers at one label per task, (b) against the labels per task at quality
0.2, (c) the same with a fixed number of labels in all.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from draws import SIMPLE
from record import save

import labelonce as lo

Place = tuple[str, float, int, int]  # crowd, quality, labels per task, tasks
Found = Mapping[Place, Mapping[str, Sequence[float]]]  # accuracies in % by method
STYLES = {"truth": "k:", "oracle correct": "k--", "oracle weighted EM": "C7-.", "forward, true confusion": "C7--"}
STYLES |= {"unbiased, mean confusion": "C4:", "MV": "C1--", "weighted MV": "C1-", "EM": "C2--", "weighted EM": "C2-"}
STYLES |= {"MBEM paper": "C9-", "MBEM": "C3-", "image_learner": "C3--"}


def rival(name: str, learner: Any, y: Any, confusion: Any, em: Any = None) -> Any:
    """Return a classifier of a name, not fitted: an oracle, training on an aggregate, or the published MBEM."""
    match name:
        case "oracle correct":
            return lo.OracleCorrect(y, learner)
        case "oracle" | "oracle weighted EM":
            return lo.OracleConfusion(confusion, learner)
        case "MBEM paper":
            return lo.MBEM.paper(learner)
        case "MV" | "weighted MV":
            aggregator: Any = lo.MajorityVote()
        case "EM" | "weighted EM":
            aggregator = em or lo.DawidSkene(smoothing=0.0)
    return lo.TrainOnAggregate(aggregator, learner, targets="soft" if name.startswith("weighted") else "hard")


def places(
    n_tasks: int, qualities: Sequence[float], redundancies: Sequence[int], parts: Sequence[str] = "abc"
) -> list[tuple[float, int, int]]:
    """Return quality, labels per task and number of tasks of every point of some curves, each once."""
    found = [(quality, 1, n_tasks) for quality in qualities if "a" in parts]
    found += [(0.2, redundancy, n_tasks) for redundancy in redundancies if "b" in parts]
    found += [(0.2, redundancy, n_tasks // redundancy) for redundancy in redundancies if "c" in parts]
    return list(dict.fromkeys(found))


def plot(found: Found, path: Path) -> None:
    """Draw the curves of both crowds in the paper's layout: test error against quality or labels per task."""
    from matplotlib import pyplot as plt

    n_tasks = max(place[3] for place in found)
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.6), sharey=True, layout="constrained")
    titles = ["worker quality (1 label per task)", f"labels per task ({n_tasks:,} tasks)"]
    titles.append(f"labels per task ({n_tasks:,} labels in all)")
    for line, crowd in zip(axes, SIMPLE, strict=True):
        own = {place[1:]: methods for place, methods in found.items() if place[0] == crowd}
        panels: list[dict[float, Mapping[str, Sequence[float]]]] = [
            {quality: methods for (quality, r, _), methods in own.items() if r == 1},
            {r: methods for (quality, r, n), methods in own.items() if quality == 0.2 and n == n_tasks},
            {r: methods for (quality, r, n), methods in own.items() if quality == 0.2 and n == n_tasks // r},
        ]
        for axis, panel, title in zip(line, panels, titles, strict=True):
            for method, style in STYLES.items():
                errors = {x: 100 - fmean(panel[x][method]) for x in sorted(panel) if panel[x].get(method)}
                if errors:
                    width = 2.5 if method == "MBEM" else 1.2
                    axis.plot(*zip(*errors.items(), strict=True), style, label=method, marker=".", linewidth=width)
            axis.set(xlabel=title, xticks=sorted(panel))
            axis.set_title(crowd, fontsize=10)
            axis.grid(alpha=0.3)
        line[0].set_ylabel("test error, %")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=9)
    save(figure, path)
