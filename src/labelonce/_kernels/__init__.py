"""Arrays in, arrays out: the sums over annotations that every model of workers is made of.

An annotation is one row `worker * n_classes + label` of a table whose columns are the true classes. The
E-step adds up table rows over the annotations of each task, the M-step adds up posteriors over the
annotations of each row: one sparse matrix, used forwards and transposed. Nothing outside this package
knows that layout; confusion comes in and counts go out as [worker, true, given].
"""

from labelonce._kernels._posterior import floored_log, normalise, top_class, vote_fractions
from labelonce._kernels._scipy import EStep, ScipyEngine
from labelonce._kernels._sums import AnnotationSums, posterior_of

__all__ = [
    "AnnotationSums",
    "EStep",
    "ScipyEngine",
    "floored_log",
    "normalise",
    "posterior_of",
    "top_class",
    "vote_fractions",
]
