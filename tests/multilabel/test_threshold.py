"""Probabilities become labels at one half, or where F1 is expected to be highest."""

import numpy as np

from labelonce.multilabel import MultiLabelAnnotations, MultiLabelVote
from labelonce.multilabel._threshold import thresholds


def test_the_expected_f1_threshold_is_the_best_of_calibrated_probabilities() -> None:
    rng = np.random.default_rng(3)
    chance = rng.beta(0.6, 3, size=6000)
    truth = rng.random(6000) < chance
    votes = rng.binomial(1000, chance)
    task = np.repeat(np.arange(6000), 2)
    ann = MultiLabelAnnotations.from_arrays(task, ["a"] * 12000, np.tile([0, 1], 6000), np.zeros(12000, dtype=int))
    model = MultiLabelVote(threshold="expected_f1").fit(ann)
    (found,) = thresholds("expected_f1", votes / 1000, np.zeros(6000, dtype=np.int32), 1)
    tried = np.linspace(0.05, 0.8, 76)
    f1 = [2 * (truth & (chance > t)).sum() / ((chance > t).sum() + truth.sum()) for t in tried]
    assert abs(found - tried[int(np.argmax(f1))]) < 0.06
    assert model.labels_.max() == 0  # nothing was ticked
