"""Train a small network on digits with one label each, and find the workers who guess."""

import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo
from labelonce import neural

digits = load_digits()
X, y = digits.data.astype(np.float32), digits.target
rng = np.random.default_rng(0)
order = rng.permutation(len(y))
train, new = order[:1297], order[1297:]
confusion = lo.simulate.hammer_spammer(50, 10, 0.3, rng, exact=True)  # 15 of 50 workers are always right
ann = lo.simulate.annotate(y[train], confusion, lo.simulate.assign(len(train), 50, 1, rng), rng)

learner = neural.TorchLearner(neural.mlp, epochs=12, epochs_by_round=(6,), batch_size=64, lr=0.05, mixup=0.4)
vote = lo.TrainOnAggregate(lo.MajorityVote(), learner).fit(X[train], ann)
clf = lo.MBEM(learner, rounds=5).fit(X[train], ann)

hammer = confusion[:, 0, 0] == 1
print(f"trained on the labels: {vote.score(X[new], y[new]):.1%} of 500 new digits right")
print(f"MBEM, five rounds:     {clf.score(X[new], y[new]):.1%}")
print(
    f"skill of good workers: {clf.skill_[hammer].min():.2f} or more; "
    f"of the others: {clf.skill_[~hammer].max():.2f} or less"
)
