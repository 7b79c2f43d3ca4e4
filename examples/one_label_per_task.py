"""Train on digits with one label each, mostly guesses, and find the workers who guess."""

import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo

X, y = load_digits(return_X_y=True)
X = X / 16
rng = np.random.default_rng(0)
order = rng.permutation(len(y))
train, test = order[:1297], order[1297:]
confusion = lo.simulate.hammer_spammer(50, 10, 0.2, rng, exact=True)  # 10 of 50 are always right
ann = lo.simulate.annotate(y[train], confusion, lo.simulate.assign(1297, 50, 1, rng), rng)

clf = lo.MBEM(lo.SoftmaxRegression()).fit(X[train], ann)
low, high = clf.verdict_.skill_interval()
best = np.argsort(-clf.skill_)[:3]

print(f"{np.mean(ann.label == y[train][ann.task]):.0%} of the labels are right")
print(f"{clf.score(X[test], y[test]):.1%} of new digits are recognised after {clf.n_rounds_} rounds")
for worker in best:
    print(f"worker {worker}: right with probability {low[worker]:.2f} to {high[worker]:.2f}")
