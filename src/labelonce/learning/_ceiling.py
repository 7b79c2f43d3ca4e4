"""What the agreement of labels with the surest predictions tells of how right workers can be.

Order the tasks by how sure the model is. Where features are weak, labels agree with surer predictions more often, up to
the surest. Where features are strong, the agreement soon stops rising: the model is right by then, and what is left is
how right the workers are, their *ceiling*. That is an assumption about features, in plain words: *the log-odds that the
model is right grow steadily with how sure it is*. Agreement that is flat throughout, as where features say nothing, is
no evidence.
"""

from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm, rankdata

from labelonce._rules import RULES
from labelonce._types import Codes, Floats


class Curve(NamedTuple):
    """How often labels agree with predictions, by predicted class and how sure the model is of it, in cells.

    Attributes
    ----------
    predicted : (n_cells,)
        The predicted class.
    sure : (2, n_cells)
        How sure the model is, in two ways: the log-odds of the best two classes, and normal quantiles of their ranks.
    agree, n : (n_cells,)
        How many labels agree, and how many there are; those of one task count as one.
    """

    predicted: Codes
    sure: Floats
    agree: Floats
    n: Floats

    @classmethod
    def of(cls, predicted: Codes, margin: Floats, agrees: Floats, weight: Floats) -> Self:
        """Return the curve of labels, each with its predicted class, the margin of that, and whether they agree."""
        quantiles = norm.ppf(0.5 + rankdata(margin) / (2 * len(margin) + 2))
        sure = np.stack([margin / max(float(margin.std()), 1e-9), quantiles])
        order = np.lexsort((margin, predicted))
        size = np.bincount(predicted)
        n_cells = np.clip(size // RULES.ceiling_cells[1], 1, RULES.ceiling_cells[0])
        place = np.arange(len(order)) - (np.cumsum(size) - size)[predicted[order]]
        code = place * n_cells[predicted[order]] // size[predicted[order]]
        cell = np.zeros(len(order), dtype=np.intp)
        cell[order] = np.cumsum(np.diff(predicted[order] * (RULES.ceiling_cells[0] + 1) + code, prepend=-1) != 0) - 1
        n, agree = (np.bincount(cell, one).astype(np.float64) for one in (weight, weight * agrees))
        mean = [np.bincount(cell, weight * one) / n for one in sure]
        first = np.unique(cell, return_index=True)[1]
        return cls(predicted[first], np.stack(mean), agree, n)

    def log_likelihood(self, hit: Floats, miss: Floats) -> float:
        """Return how likely the agreement is where a predicted class is right, and labels say it then and otherwise.

        `hit` and `miss` (n_classes,) are how often labels say the predicted class where it is true, and where not.
        The log-odds of being right are fitted: a line for every class, since features may tell one class from the rest
        and nothing else. The better of the two ways to be sure counts: what one way explains is no evidence.
        """
        return max(self._fitted(one, hit[self.predicted], miss[self.predicted]) for one in self.sure)

    def _fitted(self, sure: Floats, hit: Floats, miss: Floats) -> float:
        (tie, tie_doubt), most = RULES.ceiling_tie, RULES.ceiling_slope
        classes, own = np.unique(self.predicted, return_inverse=True)
        n = len(classes)

        def loss(at: Floats) -> tuple[float, Floats]:
            right = expit(at[:n][own] + at[n:][own] * sure)
            share = np.clip(miss + right * (hit - miss), 1e-3, 1 - 1e-3)
            value = self.agree @ np.log(share) + (self.n - self.agree) @ np.log1p(-share)
            slope = (self.agree / share - (self.n - self.agree) / (1 - share)) * (hit - miss) * right * (1 - right)
            pull, scale = np.concatenate([(at[:n] - tie) / tie_doubt, at[n:] / most]), np.repeat([tie_doubt, most], n)
            down = np.concatenate([np.bincount(own, slope), np.bincount(own, slope * sure)])
            return float(0.5 * pull @ pull - value), pull / scale - down

        bounds = [(-6.0, 6.0)] * n + [(0.0, 3 * most)] * n
        begun = [np.repeat(start, n) for start in ((tie, 0.1), (tie, 0.6), (0.0, 3.0))]
        options = {"maxiter": 300, "ftol": 1e-14, "gtol": 1e-8}
        found = [minimize(loss, at, jac=True, method="L-BFGS-B", bounds=bounds, options=options) for at in begun]
        return -min(float(one.fun) for one in found)
