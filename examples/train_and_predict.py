"""Go from a file of labels to a run folder and to predictions: the commands `train`, `show` and `predict`."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_iris

import labelonce as lo


def labelonce(*arguments: str | Path) -> str:
    """Run a command as from a shell: labelonce ..."""
    command = [sys.executable, "-c", "from labelonce.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


X, y = load_iris(return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(y))
train, new = order[:120], order[120:]
confusion = lo.simulate.hammer_spammer(8, 3, 0.5, rng, exact=True)  # half of the workers guess
ann = lo.simulate.annotate(y[train], confusion, lo.simulate.assign(120, 8, 1, rng), rng)

with tempfile.TemporaryDirectory() as folder:
    here = Path(folder)
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    for file, rows in (("features.csv", X[train]), ("new.csv", X[new])):
        columns = {"task": np.arange(len(rows))} | {name: rows[:, place] for place, name in enumerate(names)}
        lo.write(pa.table(columns), here / file)
    lo.write(ann, here / "labels.csv")

    labelonce("train", here / "labels.csv", "--features", here / "features.csv", "--rounds", "2", "-o", here / "run")
    print(labelonce("show", here / "run", "--workers", "4"))
    labelonce("predict", here / "run", here / "new.csv", "-o", here / "predicted.csv")
    clf = lo.load(here / "run" / "model.skops")  # the same from Python
    print(f"{np.mean(clf.predict(X[new]) == y[new]):.0%} of the new flowers are named right")
