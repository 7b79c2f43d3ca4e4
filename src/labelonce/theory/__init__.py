"""The theory of the paper: how noisy the training targets are, and what Theorem 4.1 makes of it.

The paper is Khetan, Lipton and Anandkumar, "Learning From Noisy Singly-labeled Data", ICLR 2018; where it has an error,
the function has the corrected formula and its docstring says so.

The bounds are qualitative. Their constants ask for millions of annotations where thousands serve in
practice, so compare settings with them; do not plan a purchase by their values.

Examples
--------
Workers who are wrong one time in ten, a billion annotations, one label per task:

>>> from labelonce import theory
>>> setting = {"n_annotations": 10**9, "redundancy": 1, "vc_dimension": 10}
>>> epsilon = theory.confusion_error_bound(0.1, n_workers=10, **setting)
>>> round(epsilon, 4)
0.0818
>>> beta = theory.beta_symmetric_worst_case(0.1, 1, epsilon)
>>> round(theory.excess_risk_bound(beta, **setting), 5)
0.00032
"""

from labelonce.theory._bounds import (
    confusion_error_bound,
    excess_risk_bound,
    lemma_1_risk_bound,
    lemma_2_confusion_bound,
    required_annotations,
)
from labelonce.theory._label_once import (
    Threshold,
    best_redundancy,
    bound_factor,
    crossing_skill,
    label_once_threshold,
)
from labelonce.theory._noise import (
    MonteCarlo,
    alpha,
    beta,
    beta_monte_carlo,
)
from labelonce.theory._symmetric import (
    beta_symmetric,
    beta_symmetric_bound,
    beta_symmetric_worst_case,
    majority_error,
)

__all__ = [
    "MonteCarlo",
    "Threshold",
    "alpha",
    "best_redundancy",
    "beta",
    "beta_monte_carlo",
    "beta_symmetric",
    "beta_symmetric_bound",
    "beta_symmetric_worst_case",
    "bound_factor",
    "confusion_error_bound",
    "crossing_skill",
    "excess_risk_bound",
    "label_once_threshold",
    "lemma_1_risk_bound",
    "lemma_2_confusion_bound",
    "majority_error",
    "required_annotations",
]
