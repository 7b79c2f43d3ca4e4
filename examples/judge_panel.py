"""From files of verdicts to decisions: language models as judges, and some items checked by people."""

import json
import tempfile
import warnings
from pathlib import Path

import labelonce as lo
from labelonce.io import read_verdicts

data = lo.datasets.load("llmbar")  # which of two answers is better? 58 judges in both orders
assert data.annotations is not None
folder = Path(tempfile.mkdtemp())

# An evaluation tool would write such a file: one line per verdict.
with (folder / "verdicts.jsonl").open("w") as file:
    for row in data.annotations.to_frame().to_pylist():
        model, _, prompt = row["worker"].partition("/")
        verdict = {"model": model, "prompt": prompt, "item": row["task"], "swapped": row["order"] == 1}
        file.write(json.dumps(verdict | {"answer": "AB"[row["label"]]}) + "\n")

verdicts = read_verdicts(folder / "verdicts.jsonl")
truth = {task: "AB"[label] for task, label in enumerate(data.gold)}
warnings.simplefilter("ignore", lo.DoubtWarning)  # that nobody has checked an item yet


def describe(name: str, labels: dict[int, str], said: float) -> None:
    """Print how many labels are right, next to what was said."""
    right = sum(labels[task] == truth[task] for task in truth) / len(truth)
    print(f"{name:>28}: says {said:.0%} of the labels are right; {right:.0%} are")


aggregated = lo.DawidSkene().fit(verdicts)
labels = dict(zip(aggregated.tasks_, aggregated.labels_, strict=True))
describe("Dawid-Skene", labels, aggregated.posterior_.max(axis=1).mean())

checked: dict[int, str] = {}
for _ in range(3):
    panel = lo.JudgePanel().fit(verdicts, gold=checked or None)
    labels = dict(zip(panel.tasks_, panel.labels_, strict=True))
    describe(f"panel, {len(checked)} items checked", labels, panel.estimated_accuracy_.value)
    checked |= {task: truth[task] for task in panel.next_tasks(40)["task"].to_pylist()}

versus = panel.versus_best_judge()
print(f"best judge {versus.judge}; better: {versus.verdict}; may be dropped: {len(panel.useless_judges())} of 58")
lo.write_report(folder / "report.html", panel, verdicts)
print("report.html and labels.csv are in", folder)
lo.write(panel, folder / "labels.csv")
