"""One network for several labels at once: a sigmoid head for each yes-or-no question."""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from labelonce._types import Codes, Floats
from labelonce.neural._data import count_tasks
from labelonce.neural._learner import TorchLearner
from labelonce.neural._saving import is_ours
from labelonce.neural._training import Rows


class SigmoidHeads(TorchLearner):
    """A network with one output per question, each through a sigmoid, on probability targets.

    What `MultiLabelMBEM` makes of a `TorchLearner`: all questions share everything below the last layer. A task's loss
    is the sum over questions of weight times binary cross-entropy, divided by the square root of the number of
    questions: every head should learn as fast as alone, and what they share should not learn that many times faster.
    Options are those of `TorchLearner`.

    Attributes
    ----------
    modules_, history_
        As in `TorchLearner`.
    classes_ : (n_questions,)
        The numbers of the questions, as in scikit-learn's multi-label networks.

    Examples
    --------
    >>> import numpy as np
    >>> from labelonce import neural
    >>> X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    >>> y = (X > 0).astype(float)
    >>> net = neural.SigmoidHeads(neural.mlp, epochs=20, batch_size=32, device="cpu", random_state=0)
    >>> bool((net.fit(X, y).predict(X) == y).mean() > 0.95)
    True
    """

    fits_questions: ClassVar[bool] = True
    takes_slots = False

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Return targets (n_tasks, n_questions) in [0, 1] times weights of the same shape, 0 where not asked."""
        targets = np.asarray(y, dtype=np.float64)
        weight = np.ones_like(targets) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        n_tasks = count_tasks(X)
        if targets.ndim != 2 or len(targets) != n_tasks or weight.shape != targets.shape:
            raise ValueError(
                f"targets and weights must have shape (n_tasks, n_questions) for {n_tasks} tasks; got "
                f"{targets.shape} and {weight.shape}."
            )
        if not ((targets >= 0) & (targets <= 1)).all():
            raise ValueError(f"targets must be in [0, 1]; got {targets.min():g} to {targets.max():g}.")
        asked = (weight > 0).any(axis=1)
        if not asked.any():
            raise ValueError("weights must be above 0 for a question about a task at least; got none.")
        self.classes_ = np.arange(targets.shape[1])
        scaled = weight / weight[weight > 0].mean()
        # No and yes side by side: a mixture of tasks mixes these, and a question that was not asked has neither.
        return np.hstack([scaled * (1 - targets), scaled * targets]), asked.astype(np.float64)

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss summed over the batch; targets are weights of no, then of yes, for every question."""
        n = logits.shape[1]
        no, yes = targets[:, :n], targets[:, n:]
        if self.label_smoothing:
            half = self.label_smoothing / 2
            no, yes = (1 - half) * no + half * yes, (1 - half) * yes + half * no
        scores = logits.float()
        lost: torch.Tensor = -(yes * F.logsigmoid(scores) + no * F.logsigmoid(-scores)).sum()
        return lost / math.sqrt(n)

    @torch.no_grad()
    def predict_batch(self, module: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        """Return P(no), then P(yes), for every question about a batch by one network, without random views."""
        found = self._mean_over_views(module, batch, torch.sigmoid)
        return torch.cat([1 - found, found], dim=1)

    def predict_proba(self, X: Any) -> Floats:
        """Return P(yes | features), shape (n_tasks, n_questions), the mean over the networks."""
        return super().predict_proba(X)[:, len(self.classes_) :]

    def predict(self, X: Any) -> Codes:
        """Return 1 where P(yes | features) is above one half, shape (n_tasks, n_questions)."""
        return (self.predict_proba(X) > 0.5).astype(np.int32)

    def _n_outputs(self, rows: Rows) -> int:
        return int(rows.targets.shape[1]) // 2

    def _records(self) -> bool:
        """Return whether steps may be recorded: the loss here waits for nothing either."""
        return is_ours(self.module_fn) and type(self) is SigmoidHeads if self.record is None else self.record
