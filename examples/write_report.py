"""Write the report on digits with one label each, with images and some true labels."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import labelonce as lo

digits = load_digits()
rng = np.random.default_rng(0)
confusion = lo.simulate.class_wise_hammer_spammer(40, 10, 0.6, rng)
ann = lo.simulate.annotate(digits.target, confusion, lo.simulate.assign(1797, 40, 1, rng), rng)
clf = lo.MBEM(lo.SoftmaxRegression(), rounds=4).fit(digits.data / 16, ann)

path = Path(tempfile.mkdtemp()) / "report.html"
lo.write_report(path, clf, ann, title="Digits, each labelled once", images=digits.images)
print(f"open {path} ({path.stat().st_size / 1000:.0f} kB)")
