"""Plan how many labels to buy from a small pilot on digits. Saves the picture to the path given."""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo
from labelonce import planning

warnings.simplefilter("ignore", lo.DoubtWarning)  # that so few labels leave a wide range
rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
order = rng.permutation(len(y))
X, y = X[order] / 16, y[order]

# The pilot: 120 tasks with three labels each, by 12 workers of whom some guess.
confusion = lo.simulate.one_coin([0.95, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7, 0.6, 0.5, 0.4, 0.2, 0.1], n_classes=10)
assignment = lo.simulate.assign(120, 12, 3, rng, replace=False)
ann = lo.simulate.annotate(y[:120], confusion, assignment, rng)
pilot = lo.MBEM(lo.SoftmaxRegression(), rounds=3).fit(X[:120], ann)

# Money for 3,600, where collecting a task costs as much as two labels.
rows = {"features": X, "annotations": ann.align(np.arange(len(X)))}  # those without labels included
found = planning.plan(pilot, budget=3600, label_price=1, task_price=2, tasks=1300, **rows)
print(found)

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "plan.svg"
found.plot(path)

# Was it good advice? Spend the budget at several redundancies, and look at true labels.
for redundancy in (1, 2, 3, 5, 8):
    n = found.row(redundancy).tasks
    labels = lo.simulate.annotate(y[:n], confusion, lo.simulate.assign(n, 12, redundancy, rng, replace=False), rng)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=3, folds=1).fit(X[:n], labels)
    print(f"{redundancy} labels for {n} tasks: {clf.score(X[1300:], y[1300:]):.1%} right on new digits")
