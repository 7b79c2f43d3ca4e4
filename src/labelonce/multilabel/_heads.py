"""Heads: learners of all questions at once."""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar

import numpy as np

from labelonce._types import Codes
from labelonce.learning._learner import Learner


class Heads(Learner, ABC):
    """Base of the learners of questions: `fit` takes P(yes) and weights, both (n_tasks, n_questions)."""

    fits_questions: ClassVar[bool] = True

    def predict(self, X: Any) -> Codes:
        """Return 1 where P(yes | features) is above one half, shape (n_tasks, n_questions)."""
        return (self.predict_proba(X) > 0.5).astype(np.int32)
