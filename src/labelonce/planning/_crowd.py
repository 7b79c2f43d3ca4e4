"""The workers as a planner sees them: stated, or fitted and therefore in doubt."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta as beta_distribution
from scipy.stats import norm

from labelonce._messages import show
from labelonce._sklearn import check_is_fitted
from labelonce._types import Floats
from labelonce._validate import check_distribution, check_int, check_number
from labelonce.aggregation import Aggregator
from labelonce.learning import LEVEL, MBEM
from labelonce.multilabel import MultiLabelMBEM
from labelonce.simulate import one_coin
from labelonce.workers import WorkerModel

_SHARED_DOUBT = 0.5  # share of the variance of a skill that all workers have in common: one model judged them all
_LEVEL_WIDTH = 3.29  # standard deviations in a 90 % interval


@dataclass(frozen=True)
class Crowd:
    """The workers of a plan; `assume` makes them from a few numbers, `plan` from a fitted model.

    Attributes
    ----------
    confusion : (n_workers, n_classes, n_classes)
        P(given | true) as [worker, true, given].
    load : (n_workers,)
        Share of the labels that each worker gives.
    prior : (n_classes,)
        P(true label).
    skill_error : (n_workers,)
        Standard deviation of what is known of each worker's skill; 0 for workers who were stated.
    population : bool
        The workers stand for kinds of workers, of whom there are as many as labels are bought.
    n_workers : int or None
        How many workers will share the work; None: not known.
    pilot_labels : int
        Labels that the crowd was fitted to; 0 for workers who were stated.

    Examples
    --------
    >>> crowd = assume(quality=0.2, n_classes=10)
    >>> crowd.skill.round(2), crowd.load
    (array([0.1, 1. ]), array([0.8, 0.2]))
    """

    confusion: Floats
    load: Floats
    prior: Floats
    skill_error: Floats
    population: bool = False
    n_workers: int | None = None
    pilot_labels: int = 0

    def __post_init__(self) -> None:
        # In one order, whatever that of the workers was: the draws of a plan then do not depend on their numbering.
        keys = np.column_stack([self.confusion.reshape(len(self.confusion), -1), self.load, self.skill_error])
        order = np.lexsort(keys.T[::-1])
        for name in ("confusion", "load", "skill_error"):
            object.__setattr__(self, name, getattr(self, name)[order])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.prior)

    @property
    def skill(self) -> Floats:
        """Each worker's chance of giving the true label."""
        return np.asarray(np.einsum("wkk,k->w", self.confusion, self.prior))

    @property
    def mean_skill(self) -> float:
        """The share of right labels."""
        return float(self.load @ self.skill)

    @property
    def is_certain(self) -> bool:
        """Whether nothing about the workers is in doubt."""
        return not self.skill_error.any()

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return the confusion of a plausible crowd, drawn within the uncertainty of the skills.

        A worker drawn as better than estimated moves towards always right, a worse one towards guessing.
        """
        if self.is_certain:
            return self.confusion
        skill = self.skill
        common, own = rng.standard_normal(), rng.standard_normal(len(skill))
        place = norm.cdf(np.sqrt(_SHARED_DOUBT) * common + np.sqrt(1 - _SHARED_DOUBT) * own)
        wanted = np.where(self.skill_error > 0, _beta_quantile(skill, self.skill_error, place), skill)
        return with_skill(self.confusion, wanted, self.prior)


def assume(
    *,
    n_classes: int = 2,
    skill: float | None = None,
    skills: Any = None,
    quality: float | None = None,
    confusion: Any = None,
    prior: Any = None,
    n_workers: int | None = None,
) -> Crowd:
    """Return the crowd that you expect, where there are no labels yet. Give one of the four.

    Parameters
    ----------
    n_classes : int of at least 2
        Number of classes; that of `confusion` where it is given.
    skill : float in [0, 1]
        All workers are right with this chance, and a wrong label is any other class.
    skills : array in [0, 1]
        The same with unequal workers, each as frequent as the others.
    quality : float in [0, 1]
        This share of the workers is always right, the others guess: hammers and spammers.
    confusion : (n_classes, n_classes) or (n_workers, n_classes, n_classes) array
        P(given | true) as [true, given], of all workers or of each kind.
    prior : (n_classes,) array, optional
        P(true label). Default: uniform.
    n_workers : int, optional
        How many workers will share the work.

    Examples
    --------
    >>> assume(skill=0.8).mean_skill
    0.8
    >>> assume(skills=[0.9, 0.7, 0.5], n_classes=4).skill
    array([0.5, 0.7, 0.9])
    """
    stated = {"skill": skill, "skills": skills, "quality": quality, "confusion": confusion}
    given = [name for name, value in stated.items() if value is not None]
    if len(given) != 1:
        raise ValueError(f"assume must have one of {', '.join(stated)}; got {', '.join(given) or 'none of them'}.")
    classes = check_int(n_classes, "n_classes", 2)
    load = None
    if skill is not None:
        matrices = one_coin([check_number(skill, "skill", 0, 1)], classes)
    elif skills is not None:
        matrices = one_coin(skills, classes)
    elif quality is not None:
        share = check_number(quality, "quality", 0, 1)
        matrices, load = one_coin([1.0, 1 / classes], classes), np.array([share, 1 - share])
    else:
        matrices = _stated_confusion(confusion)
        classes = matrices.shape[1]
    n = len(matrices)
    load = np.full(n, 1 / n) if load is None else load
    shares = np.full(classes, 1 / classes) if prior is None else check_distribution(prior, "prior", (classes,))
    workers = None if n_workers is None else check_int(n_workers, "n_workers", 1)
    return Crowd(matrices, load, shares, np.zeros(n), population=True, n_workers=workers)


def crowd_of(workers: Any) -> Crowd:
    """Return the crowd of a fitted MBEM, aggregator or worker model; a crowd as it is."""
    if isinstance(workers, Crowd):
        return workers
    if isinstance(workers, MBEM | Aggregator | WorkerModel) and not isinstance(workers, MultiLabelMBEM):
        check_is_fitted(workers, "confusion_")
        if workers.confusion_.shape[1] != workers.confusion_.shape[2]:
            raise ValueError(
                f"workers must be fitted to answers that are classes; got {workers.confusion_.shape[2]} answers for "
                f"{workers.confusion_.shape[1]} classes. Fit to annotations.only_classes() to plan."
            )
        return _fitted_crowd(workers)
    raise TypeError(
        "workers must be a fitted MBEM, aggregator or worker model, a run folder, or planning.assume(...); "
        f"got {show(workers)}."
    )


def _fitted_crowd(fitted: Any) -> Crowd:
    confusion: Floats = np.asarray(fitted.confusion_, dtype=np.float64)
    n, n_classes = confusion.shape[:2]
    counts = np.asarray(getattr(fitted, "_annotation_counts", np.ones(n)), dtype=np.float64)
    prior: Floats = np.asarray(getattr(fitted, "prior_", np.full(n_classes, 1 / n_classes)), dtype=np.float64)
    if isinstance(fitted, WorkerModel):
        low, high = fitted.skill_interval(prior)
        error = (high - low) / _LEVEL_WIDTH
    elif isinstance(fitted, MBEM):
        low, high = fitted.verdict_.skill_interval(LEVEL)
        error = (high - low) / _LEVEL_WIDTH
        confusion = with_skill(confusion, fitted.skill_, prior)
    else:
        skill = np.einsum("wkk,k->w", confusion, prior)
        error = np.sqrt(skill * (1 - skill) / (counts + 2))
    known = counts > 0
    pilot = 0 if isinstance(fitted, WorkerModel) else int(counts.sum())
    load = counts[known] / counts.sum()
    return Crowd(confusion[known], load, prior, error[known], n_workers=int(known.sum()), pilot_labels=pilot)


def with_skill(confusion: Floats, wanted: Floats, prior: Floats) -> Floats:
    """Return each worker's confusion, moved towards always right or towards guessing until the skill is as wanted."""
    skill, chance = np.einsum("wkk,k->w", confusion, prior), 1 / len(prior)
    up = np.clip((wanted - skill) / np.maximum(1 - skill, 1e-9), 0, 1)[:, None, None]
    down = np.where(skill > chance, np.clip((skill - wanted) / np.maximum(skill - chance, 1e-9), 0, 1), 0.0)
    moved = confusion + up * (np.eye(len(prior)) - confusion) + down[:, None, None] * (chance - confusion)
    return np.asarray(moved / moved.sum(axis=2, keepdims=True))


def _beta_quantile(mean: Floats, deviation: Floats, place: Floats) -> Floats:
    mean = np.clip(mean, 1e-3, 1 - 1e-3)
    variance = np.clip(deviation**2, 1e-12, 0.9 * mean * (1 - mean))
    strength = mean * (1 - mean) / variance - 1
    return np.asarray(beta_distribution.ppf(place, mean * strength, (1 - mean) * strength))


def _stated_confusion(confusion: Any) -> Floats:
    shape = np.shape(confusion)
    if len(shape) not in (2, 3) or shape[-1] != shape[-2] or shape[-1] < 2 or 0 in shape:
        raise ValueError(
            "confusion must have shape (n_classes, n_classes) or (n_workers, n_classes, n_classes) with 2 classes or "
            f"more; got {shape}."
        )
    matrices = check_distribution(confusion, "confusion", shape)
    return matrices if len(shape) == 3 else matrices[None]
