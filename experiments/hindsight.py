"""What MBEM's choice without gold costs: its accuracy beside the best fixed recipe, known only with hindsight.

`curves.py` and `real_crowds.py` note the test accuracy of every recipe after every round; this makes the table of it.

    python experiments/hindsight.py    # results/hindsight.md from results/{digits,labelme_simulated,real_crowds}.json
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

import labelonce as lo

RESULTS = Path(__file__).parent / "results"
ROUNDS = 6


def recipes(X: Any, ann: lo.Annotations, X_test: Any, y_test: Any, learners: list[Any]) -> list[dict[str, Any]]:
    """Return the test accuracy of every learner, fitted to all annotations, round by round."""
    rows = []
    for learner in learners:
        fit = lo.MBEM(learner, rounds=1, tol=0.0).fit(X, ann)
        accuracy = [float((fit.predict(X_test) == y_test).mean())]
        for _ in range(ROUNDS - 1):
            fit.resume(X, ann)
            accuracy.append(float((fit.predict(X_test) == y_test).mean()))
        rows.append({"C": learner.C, "accuracy": accuracy})
    return rows


def sets() -> dict[str, list[dict[str, Any]]]:
    """Return the trials of every set that note all recipes."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in ("digits", "labelme_simulated", "real_crowds"):
        for row in json.loads((RESULTS / f"{file}.json").read_text())["trials"]:
            if "recipes" in row:
                name = row["name"] if file == "real_crowds" else f"{file}, {row['crowd']}"
                found.setdefault(f"{name} | {row['redundancy']}", []).append(row)
    return found


def table() -> None:
    """Write for every set the choice, the best fixed recipe, and training on the vote."""
    head = ["set", "labels per task", "seeds", "MBEM's choice", "best fixed recipe", "which", "cost of the choice"]
    head += ["gain over the better vote"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    costs, gains = [], []
    for name, trials in sets().items():
        grid = 100 * np.mean([[recipe["accuracy"] for recipe in row["recipes"]] for row in trials], axis=0)
        number, place = np.unravel_index(grid.argmax(), grid.shape)
        best = trials[0]["recipes"][number]
        chosen = 100 * np.mean([row["accuracy"]["MBEM"] for row in trials])
        vote = 100 * max(np.mean([row["accuracy"][method] for row in trials]) for method in ("MV", "weighted MV"))
        costs.append(grid.max() - chosen)
        gains.append(chosen - vote)
        which = f"C = {best['C']:g}, {place + 1} rounds"
        cells = [
            name,
            len(trials),
            f"{chosen:.1f}",
            f"{grid.max():.1f}",
            which,
            f"{costs[-1]:.1f}",
            f"{gains[-1]:+.1f}",
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines.append(f"| mean | | | | | | {np.mean(costs):.2f} | {np.mean(gains):+.1f} |")
    (RESULTS / "hindsight.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    table()
