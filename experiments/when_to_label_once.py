"""When to label once: the theory's threshold, and what the same budget bought in the simulations.

python experiments/when_to_label_once.py    # from the results of quality_and_redundancy.py
"""

from typing import Any

import numpy as np
from quality_and_redundancy import PROBLEMS
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
    axis.legend(fontsize=8)


def plot_measured(axis: Any, name: str) -> None:
    """Draw the accuracy of MBEM and of the vote against the redundancy, the number of labels fixed."""
    problem = PROBLEMS[name]
    trials = read(RESULTS / f"{problem.file}.json")
    for crowd, line in (("hammer-spammer", "-"), ("class-wise", "--")):
        for method, colour in (("MBEM", "C3"), ("weighted MV", "C1")):
            means, errors = [], []
            for redundancy in (1, 3, 5):
                key = (crowd, 0.2, redundancy, problem.n_train // redundancy)
                names = ("crowd", "quality", "redundancy", "n_tasks")
                values = [100 * row["accuracy"][method] for row in trials if tuple(row[part] for part in names) == key]
                means.append(np.mean(values))
                errors.append(np.std(values, ddof=1) / np.sqrt(len(values)))
            axis.errorbar([1, 3, 5], means, errors, color=colour, linestyle=line, label=f"{method}, {crowd}", capsize=2)
    axis.set(xlabel=f"labels per task ({problem.n_train:,} labels in all)", ylabel="test accuracy, %", xticks=[1, 3, 5])
    axis.set_title(f"{name}, 20 % good workers", fontsize=10)
    axis.legend(fontsize=8)


def main() -> None:
    """Draw all three."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    plot_theory(axes[0])
    for axis, name in zip(axes[1:], PROBLEMS, strict=True):
        plot_measured(axis, name)
    for axis in axes:
        axis.grid(alpha=0.3)
    save(figure, IMAGES / "when_to_label_once.png")


if __name__ == "__main__":
    main()
