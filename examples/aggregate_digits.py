"""Find the true labels of digits from three labels each, most of them guesses."""

import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo

y_true = load_digits().target
rng = np.random.default_rng(0)
confusion = lo.simulate.hammer_spammer(50, 10, 0.2, rng, exact=True)  # 10 of 50 are always right
assignment = lo.simulate.assign(len(y_true), 50, 3, rng, replace=False)
ann = lo.simulate.annotate(y_true, confusion, assignment, rng)

true_skill = confusion[:, np.arange(10), np.arange(10)].mean(axis=1)
for model in (lo.MajorityVote(), lo.DawidSkene(), lo.OneCoin()):
    model.fit(ann)
    accuracy = lo.metrics.accuracy(y_true, model.posterior_)
    ranking = lo.metrics.rank_correlation(true_skill, model.skill_)
    print(f"{type(model).__name__:>12}: {accuracy:.1%} of labels right, worker ranking {ranking:.2f}")
