"""Compare 1,200 labels for many digits once with 1,200 for few digits often. Saves the plot to the path given."""

import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo

matplotlib.use("Agg")
from matplotlib import pyplot as plt

warnings.simplefilter("ignore", lo.DoubtWarning)  # that so few labels leave a wide range
BUDGET, REDUNDANCIES, SEEDS = 1200, (1, 2, 3, 5), (0, 1)
X, y = load_digits(return_X_y=True)
found: dict[str, list[float]] = {"majority vote, then train": [], "MBEM": []}
for redundancy in REDUNDANCIES:
    scores = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train, test = order[: BUDGET // redundancy], order[1297:]
        confusion = lo.simulate.hammer_spammer(50, 10, 0.3, rng, exact=True)  # 15 of 50 are always right
        assignment = lo.simulate.assign(len(train), 50, redundancy, rng, replace=False)
        ann = lo.simulate.annotate(y[train], confusion, assignment, rng)
        vote = lo.TrainOnAggregate(lo.MajorityVote(), lo.SoftmaxRegression()).fit(X[train] / 16, ann)
        clf = lo.MBEM(lo.SoftmaxRegression(), rounds=4).fit(X[train] / 16, ann)
        scores.append([model.score(X[test] / 16, y[test]) for model in (vote, clf)])
    for name, score in zip(found, np.mean(scores, axis=0), strict=True):
        found[name].append(float(score))
        print(f"{redundancy} labels per task: {name} {score:.1%}")

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for (name, scores_of), colour in zip(found.items(), ("#c92a2a", "#0b7285"), strict=True):
    axes.plot(REDUNDANCIES, [100 * score for score in scores_of], "o-", color=colour, label=name)
axes.set(xlabel=f"labels per task, {BUDGET:,} labels in all", ylabel="right on new digits, %", xticks=REDUNDANCIES)
axes.legend(frameon=False)
path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "budget.svg"
figure.savefig(path, metadata={"Date": None})
