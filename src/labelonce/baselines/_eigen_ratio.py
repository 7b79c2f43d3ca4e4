"""Skills from the eigenvectors of who agrees with whom."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from labelonce._kernels import AnnotationSums, Factors, posterior_of
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_choice
from labelonce.aggregation import Aggregator, Fit, warn_if_no_overlap
from labelonce.baselines._assignment import vote_weight, warn_if_disconnected
from labelonce.data import Annotations, worker_groups

_DENSE = 64  # workers up to which a full decomposition is quicker than Lanczos


@dataclass(kw_only=True, eq=False, repr=False)
class EigenRatio(Aggregator):
    """Skills from agreements alone, by an eigenvector, then one weighted vote (Dalvi and others 2013).

    Say worker a beats chance by u[a]: right with probability (1 + (n_classes - 1) u[a]) / n_classes. Then the
    excess agreement of two workers over their common tasks, `(n_classes * agreed - common) / (n_classes - 1)`,
    has the mean `common * u[a] * u[b]`, for any number of classes and however common each is. So u is found without
    iterating over labels, in one of two ways:

    * "eigenvectors": the leading eigenvector of the excess matrix, divided by that of the matrix of common tasks;
    * "entries": the leading eigenvector of the excess matrix divided entry by entry by common tasks, which is
      noisy where two workers meet on few tasks.

    The scale comes from least squares on the entries off the diagonal, the sign from the assumption that the mean
    label beats chance. No worker with n labels is taken for surer than 1 / (n + n_classes) from right or wrong.
    A worker's labels on tasks with `gold` are counted instead. Groups of workers that share no task are solved
    one by one, with an `AssignmentWarning`; a worker who shares none gets the mean skill of the rest. There is no
    objective (`log_likelihood_` is empty).

    Parameters
    ----------
    ratio : {"eigenvectors", "entries"}
        What is divided by what, see above.
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_`.

    References
    ----------
    N. Dalvi, A. Dasgupta, R. Kumar and V. Rastogi, "Aggregating Crowdsourced Binary Ratings", WWW 2013.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.baselines.EigenRatio().fit(ann).labels_
    array([0, 1, 0, 1])
    """

    ratio: str = "eigenvectors"
    random_state: RandomState = 0

    _tables = (4, 0)

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        check_choice(self.ratio, "ratio", ("eigenvectors", "entries"))
        warn_if_no_overlap(annotations, "EigenRatio")
        warn_if_disconnected(annotations, worker_groups(annotations), "EigenRatio")
        sums = AnnotationSums(annotations)
        common, excess = agreements(annotations, gold)
        groups = connected_components(common, directed=False)[1]  # fewer meet where gold is left out
        beats_chance = _solve(common, excess, groups, sums.by_worker(), by_entry=self.ratio == "entries")
        skill = _skill(beats_chance, sums, gold)
        weight = vote_weight(skill, annotations.n_classes)
        posterior = posterior_of(sums.by_class(weight[sums.worker]), gold).posterior
        confusion = Factors.one_coin(skill, annotations.n_classes)
        return Fit(posterior, confusion, posterior.mean(axis=0), np.array([]), True, 0)


def agreements(annotations: Annotations, gold: Codes | None) -> tuple[Any, Any]:
    """Return common tasks and excess agreement of all pairs of workers, sparse (n_workers, n_workers), diagonal 0.

    Tasks with gold are left out.
    """
    kept = slice(None) if gold is None else gold[annotations.task] < 0
    task, worker, label = annotations.task[kept].astype(np.int64), annotations.worker[kept], annotations.label[kept]
    n_classes = annotations.n_classes
    common = _meetings(task, worker, annotations.n_tasks, annotations.n_workers)
    agreed = _meetings(task * n_classes + label, worker, annotations.n_tasks * n_classes, annotations.n_workers)
    return common, (n_classes * agreed - common) / max(n_classes - 1, 1)


def _meetings(place: Any, worker: Codes, n_places: int, n_workers: int) -> Any:
    """Return in how many places every two workers meet."""
    present = sparse.csr_array((np.ones(len(place)), (place, worker)), shape=(n_places, n_workers))
    meetings = present.T @ present
    return meetings - sparse.diags_array(meetings.diagonal())


def _solve(common: Any, excess: Any, groups: Codes, labels: Floats, *, by_entry: bool) -> Floats:
    """Return by how much each worker beats chance, group by group; the mean of the others for those who met nobody."""
    beats_chance = np.full(len(groups), np.nan)
    for group in np.flatnonzero(np.bincount(groups) > 1):
        members = np.flatnonzero(groups == group)
        pair = np.ix_(members, members)
        direction = _direction(common[pair], excess[pair], by_entry=by_entry)
        found = _scale(direction, common[pair], excess[pair]) * direction
        beats_chance[members] = found if found @ labels[members] >= 0 else -found
    met = ~np.isnan(beats_chance)
    total = float(labels[met].sum())
    beats_chance[~met] = beats_chance[met] @ labels[met] / total if total else 0.5
    return np.asarray(np.clip(beats_chance, -1, 1))


def _direction(common: Any, excess: Any, *, by_entry: bool) -> Floats:
    if by_entry:
        inverse = common.copy()
        inverse.data = 1 / inverse.data
        return _leading(excess * inverse)
    met = np.abs(_leading(common))
    return np.divide(_leading(excess), met, out=np.zeros_like(met), where=met > 0)


def _leading(matrix: Any) -> Floats:
    """Return the eigenvector of the largest eigenvalue of a symmetric matrix."""
    if matrix.shape[0] <= _DENSE:
        return np.asarray(np.linalg.eigh(matrix.toarray())[1][:, -1])
    start = np.asarray(abs(matrix).sum(axis=1), dtype=np.float64)  # eigsh would draw one
    if not start.any():
        return np.full(len(start), len(start) ** -0.5)
    return np.asarray(eigsh(matrix, k=1, which="LA", v0=start)[1][:, 0])


def _scale(direction: Floats, common: Any, excess: Any) -> float:
    """Return the s for which excess is nearest to common * s^2 * direction[a] * direction[b]."""
    square = direction**2
    fit, norm = direction @ (excess @ direction), square @ (common @ square)
    return float(np.sqrt(max(fit / norm, 0.0))) if norm > 0 else 0.0


def _skill(beats_chance: Floats, sums: AnnotationSums, gold: Codes | None) -> Floats:
    """Return each worker's chance of being right: as found, or counted where tasks have gold."""
    n_classes, labels = sums.shape[1], sums.by_worker()
    skill = (1 + (n_classes - 1) * beats_chance) / n_classes
    if gold is not None:
        known = gold[sums.task] >= 0
        right = sums.at_label(gold[:, None] == np.arange(n_classes))
        n_known = sums.by_worker(known.astype(np.float64))
        skill += (sums.by_worker(right.astype(np.float64)) - n_known * skill) / np.maximum(labels, 1)
    doubt = 1 / (labels + n_classes)
    return np.clip(skill, doubt, 1 - doubt)
