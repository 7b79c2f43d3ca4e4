"""Plot estimated against true skills of workers, with one label per task. Saves the plot to the path given."""

import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo

matplotlib.use("Agg")
from matplotlib import pyplot as plt

X, y_true = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
true_skill = rng.uniform(0.1, 1, 30)
confusion = lo.simulate.one_coin(true_skill, n_classes=10)
ann = lo.simulate.annotate(y_true, confusion, lo.simulate.assign(1797, 30, 1, rng), rng)

clf = lo.MBEM(lo.SoftmaxRegression(), rounds=4).fit(X / 16, ann)
low, high = clf.verdict_.skill_interval()
order = np.argsort(true_skill)

figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.vlines(range(30), low[order], high[order], color="#0b7285", linewidth=4, alpha=0.4, label="90 % interval")
axes.plot(clf.skill_[order], "o", color="#0b7285", label="found")
axes.plot(true_skill[order], "_", color="#c92a2a", markersize=11, markeredgewidth=2, label="true")
axes.set(xlabel="workers, by true skill", ylabel="chance of being right", ylim=(0, 1), xticks=[])
axes.legend(frameon=False)
path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "workers.svg"
figure.savefig(path, metadata={"Date": None})
inside = np.mean((low <= true_skill) & (true_skill <= high))
ranking = lo.metrics.rank_correlation(true_skill, clf.skill_)
print(f"{inside:.0%} of the true skills lie in their intervals; the order of the workers is right to {ranking:.2f}")
