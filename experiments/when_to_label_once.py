"""When to label once: the theory's threshold, and what the same budget bought in the simulations.

python experiments/when_to_label_once.py    # from the results of quality_and_redundancy.py
"""

from statistics import fmean, stdev
from typing import Any

import numpy as np
from draws import SETS, SIMPLE
from quality_and_redundancy import FILES, accuracies
from record import IMAGES, RESULTS, read, save

from labelonce import theory


def plot_theory(axis: Any) -> None:
    """Draw the redundancy that each bound prefers against the workers' skill."""
    skills = np.linspace(0.62, 0.99, 75)
    for bound, style in (("theorem", "C3-"), ("hard", "C0--"), ("variance", "C7:")):
        best = [theory.best_redundancy(1 - skill, bound=bound) for skill in skills]  # type: ignore[arg-type]
        axis.plot(skills, best, style, label=f'bound "{bound}"', linewidth=2)
    threshold = theory.label_once_threshold()
    axis.axvline(threshold.skill, color="k", linewidth=0.8)
    axis.annotate(f"{threshold.skill:.4f}", (threshold.skill, 8), xytext=(4, 0), textcoords="offset points")
    axis.set(xlabel="skill of alike workers, two classes", ylabel="best labels per task at a fixed budget")
    axis.set_title("Theorem 4.1 and two tighter bounds", fontsize=10)


def plot_measured(axis: Any, name: str) -> None:
    """Draw the accuracy of MBEM and of the vote against the redundancy, the number of labels fixed."""
    found, n = accuracies(read(RESULTS / f"{FILES[name]}.json")), SETS[name][0]
    for crowd, line in zip(SIMPLE, ("-", "--"), strict=True):
        for method, colour in (("MBEM", "C3"), ("weighted MV", "C1")):
            values = [found[crowd, 0.2, redundancy, n // redundancy][method] for redundancy in (1, 3, 5)]
            errors = [stdev(one) / len(one) ** 0.5 for one in values]
            style = {"color": colour, "linestyle": line, "label": f"{method}, {crowd}", "capsize": 2}
            axis.errorbar([1, 3, 5], [fmean(one) for one in values], errors, **style)
    axis.set(xlabel=f"labels per task ({n:,} labels in all)", ylabel="test accuracy, %", xticks=[1, 3, 5])
    axis.set_title(f"{name}, 20 % good workers", fontsize=10)


if __name__ == "__main__":
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    plot_theory(axes[0])
    for axis, name in zip(axes[1:], FILES, strict=True):
        plot_measured(axis, name)
    for axis in axes:
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    save(figure, IMAGES / "when_to_label_once.png")
