"""Dawid and Skene's model, started by moments."""

from __future__ import annotations

from typing import Any

from labelonce._validate import RandomState
from labelonce.aggregation._dawid_skene import DawidSkene


class SpectralDawidSkene(DawidSkene):
    """Dawid and Skene's EM from a start by moments beside the votes (Zhang and others 2014).

    The workers are split at random into three groups, whose labels are independent given the true label. The
    third-order moment of the groups' mean labels is a tensor with one component per class: its
    decomposition gives the groups' confusion and the class prior, and a regression on them each worker's. Of
    `n_splits` splits the one of the best likelihood starts EM; EM from the votes runs too, and the better objective
    wins. The estimate does not need the votes to be right, so it can find good workers who are outvoted; it
    needs many tasks shared by the groups, and few classes.

    Parameters
    ----------
    n_splits : int
        Random splits of the workers.
    smoothing, prior, max_iter, tol, dtype
        As in `DawidSkene`.
    random_state : int, numpy.random.Generator or None
        Draws the splits and breaks ties of `labels_`.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan, "Spectral Methods Meet EM: A Provably Optimal Algorithm for
    Crowdsourcing", NIPS 2014.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 10)
    >>> lo.SpectralDawidSkene().fit(ann).labels_[:4]
    array([0, 1, 0, 1])
    """

    start = "spectral"
    n_init = 1
    _takes_scales = False
    worker_model = None

    _tables = (15, 10)

    def __init__(
        self,
        *,
        n_splits: int = 10,
        smoothing: Any = 1.0,
        prior: Any = "learned",
        max_iter: int = 500,
        tol: float = 1e-7,
        dtype: str = "float64",
        random_state: RandomState = 0,
    ) -> None:
        self.n_splits = n_splits
        self.smoothing = smoothing
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.dtype = dtype
        self.random_state = random_state
