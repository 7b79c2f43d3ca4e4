"""What MBEM's choice without gold costs: its accuracy compared with the best fixed recipe, known only with hindsight.

`quality_and_redundancy.py` and `mbem_on_real_crowds.py` note the test accuracy of every recipe after every round; this
makes the table of it.

    python experiments/cost_of_choosing.py    # from the results of those two
"""

from typing import Any

import numpy as np
from record import RESULTS, Trial, markdown, read, write_text

import labelonce as lo

ROUNDS = 6


def recipes(X: Any, ann: lo.Annotations, X_test: Any, y_test: Any, learners: list[Any]) -> list[dict[str, Any]]:
    """Return the test accuracy of every learner, fitted to all annotations, round by round."""
    rows = []
    for learner in learners:
        stages = lo.MBEM(learner, rounds=ROUNDS).stages(X, ann)
        accuracy = [float((fit.predict(X_test) == y_test).mean()) for fit in stages if fit.history_]
        accuracy += accuracy[-1:] * (ROUNDS - len(accuracy))  # rounds that stopped early would find the same
        rows.append({"C": learner.C, "accuracy": accuracy})
    return rows


def sets() -> dict[str, list[Trial]]:
    """Return the trials of every set that note all recipes."""
    found: dict[str, list[Trial]] = {}
    for file in ("digits", "labelme_simulated", "mbem_on_real_crowds"):
        for row in read(RESULTS / f"{file}.json"):
            if "recipes" in row:
                name = row["name"] if file == "mbem_on_real_crowds" else f"{file}, {row['crowd']}"
                found.setdefault(f"{name} | {row['redundancy']}", []).append(row)
    return found


def table() -> str:
    """Return for every set the choice, the best fixed recipe, and training on the vote."""
    head = ["set", "labels per task", "seeds", "MBEM's choice", "best fixed recipe", "which", "cost of the choice"]
    head += ["gain over the better vote"]
    rows, costs, gains = [], [], []
    for name, trials in sets().items():
        grid = 100 * np.mean([[recipe["accuracy"] for recipe in row["recipes"]] for row in trials], axis=0)
        number, place = np.unravel_index(grid.argmax(), grid.shape)
        which = f"C = {trials[0]['recipes'][number]['C']:g}, {place + 1} rounds"
        chosen = 100 * np.mean([row["accuracy"]["MBEM"] for row in trials])
        vote = 100 * max(np.mean([row["accuracy"][method] for row in trials]) for method in ("MV", "weighted MV"))
        costs.append(grid.max() - chosen)
        gains.append(chosen - vote)
        cells = [name, len(trials), f"{chosen:.1f}", f"{grid.max():.1f}", which]
        rows.append([*cells, f"{costs[-1]:.1f}", f"{gains[-1]:+.1f}"])
    mean = f"| mean | | | | | | {np.mean(costs):.2f} | {np.mean(gains):+.1f} |\n"
    return markdown(head, rows) + mean


if __name__ == "__main__":
    write_text(RESULTS / "cost_of_choosing.md", table())
