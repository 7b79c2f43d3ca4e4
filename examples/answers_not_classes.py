"""Use the answer "can't tell": workers skip one class more often, and skipping is then evidence for it."""

import numpy as np

import labelonce as lo

rng = np.random.default_rng(0)
classes, answers = ["benign", "malignant"], ["benign", "malignant", "can't tell"]
n_tasks, n_workers = 1500, 30

right = lo.simulate.one_coin(rng.beta(8, 3, n_workers), n_classes=2)
unsure = np.array([0.1, 0.45])[:, None] * np.ones((n_workers, 1, 1))  # malignant ones are harder to tell
confusion = np.concatenate([(1 - unsure) * right, unsure], axis=2)
y_true = (rng.random(n_tasks) < 0.3).astype(int)
drawn = lo.simulate.annotate(y_true, confusion, lo.simulate.assign(n_tasks, n_workers, 4, rng, replace=False), rng)
said = np.array(answers, dtype=object)[drawn.label]

ann = lo.Annotations.from_arrays(drawn.task, drawn.worker, said, classes=classes, answers=answers)
print(ann)
model = lo.DawidSkene().fit(ann)
without = lo.DawidSkene().fit(ann.only_classes())
for name, fitted in (("with can't tell", model), ("without", without)):
    print(f"{name}: {np.mean(fitted.labels_ == np.array(classes)[y_true]):.1%} of the labels are right")
for k, name in enumerate(classes):
    print(f"P(can't tell | {name}) = {model.confusion_[:, k, 2].mean():.2f}")
for row in model.workers_to_frame().slice(0, 3).to_pylist():
    print(f"worker {row['worker']}: skill {row['skill']:.2f}, can't tell {row['other_answers']:.0%} of the time")
