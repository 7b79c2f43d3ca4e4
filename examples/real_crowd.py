"""Find the species of birds in 108 photographs from the labels of 39 people, some worse than chance."""

import labelonce as lo

data = lo.datasets.load("bluebird")  # comes with labelonce
ann = data.annotations
assert ann is not None
gold = data.gold_of(ann)  # the truth, for the comparison only
print(data)

for model in (lo.MajorityVote(), lo.OneCoin(), lo.DawidSkene()):
    model.fit(ann)
    print(f"{type(model).__name__:>12}: {(model.labels_ == gold).mean():.1%} of photographs right")

# Without gold: does the model know whom to trust? Its skills next to the share of labels that really are right.
skill = lo.DawidSkene().fit(ann).skill_
right = [float((ann.label == gold[ann.task])[ann.worker == worker].mean()) for worker in range(ann.n_workers)]
print(f"rank correlation of estimated and true skills: {lo.metrics.rank_correlation(right, skill):.2f}")
for worker in (skill.argmax(), skill.argmin()):
    print(f"worker {ann.workers[worker]}: estimated skill {skill[worker]:.2f}, in truth {right[worker]:.2f}")

comparison = lo.compare_aggregators(ann)  # every method, judged by annotations that were held out
print(f"recommended without gold: {comparison.recommended}")
