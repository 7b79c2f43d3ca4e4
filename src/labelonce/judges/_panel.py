"""Judges who share mistakes, such as language models, combined with a few people who know."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from labelonce._kernels import confusion_of
from labelonce._rules import RULES
from labelonce._sklearn import check_is_fitted
from labelonce._types import Codes, Estimate, Floats
from labelonce._validate import RandomState, check_int, check_number
from labelonce.aggregation._base import Aggregator, DoubtWarning, Fit
from labelonce.data import Annotations, Gold, _ids, check_gold
from labelonce.judges._law import Panel, law_of
from labelonce.judges._rates import checks_for_risk, checks_for_width, class_shares
from labelonce.judges._shown import Shown, Versus
from labelonce.judges._votes import Votes, families_of, people_of
from labelonce.workers import beta_interval


@dataclass(kw_only=True, eq=False, repr=False)
class JudgePanel(Aggregator):
    """Combine judges who share mistakes, mostly language models, and say how right the labels are.

    Several models agree because they are right or because they err together, which no number of verdicts can tell.
    So the share of their agreement that is shared error is an unknown: a prior says what is usual for language models,
    gold and people who contradict them say what it is here, and what is shown is averaged over what is left. A family
    of models (one model with several prompts) counts little more than one of them. Verdicts given twice, with the
    choices in either order, say how steady a judge is. Gold makes it a Bayesian logistic regression that starts from
    all this, so that 20 known labels help and do no harm. Answers that are no class count as no vote.

    Parameters
    ----------
    people : ids of workers or families, optional
        Who is a person, whose mistakes are their own. Default: workers whose family or id begins with a word such as
        "person", "human" or "expert".
    families : mapping, optional
        The family of each worker. Default: that of the annotations, else by names like `model/prompt`, else none.
    shared : pair of floats, optional
        Beta prior of the share of the models' agreement that is shared error. Default: what is usual for models that
        share mistakes, that err on their own, or that copy nearly everything, by how evenly they agree.
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_`.

    Attributes
    ----------
    confidence_ : (n_tasks,)
        The probability that each label is right.
    estimated_accuracy_ : (value, low, high)
        The share of labels that are right, with its 90 % range.
    shared_error_, effective_workers_ : (value, low, high)
        The share of the models' agreement that is shared error, and as many independent workers as those of one task
        are worth.
    families_, people_, consistency_, refusals_, worth_, adds_ : (n_workers,)
        The family; whether a person; how often a judge repeats its verdict; its answers that are no class; how many
        people's labels a verdict is worth alone, and what it adds to those of the other judges.
    agreement_, excess_agreement_ : (n_workers, n_workers)
        Agreement beyond chance, and beyond what being right explains; None of more than 2,000 workers.
    gold_accuracy_ : (value, low, high) or None
        How many labels of the gold tasks are right when these are left out in turn.
    doubts_ : tuple of str
        Why the fit should not be believed, as in its `DoubtWarning`.

    References
    ----------
    L. Kish, "Survey Sampling", 1965. J. H. Steiger, "Factor indeterminacy in the 1930's and the 1970's", 1979.

    Examples
    --------
    >>> import warnings, labelonce as lo
    >>> warnings.simplefilter("ignore", lo.DoubtWarning)
    >>> verdicts = lo.Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 0]] * 25)
    >>> panel = lo.JudgePanel().fit(verdicts)
    >>> panel.labels_[:3]
    array([0, 1, 1])
    """

    _tables = (8, 4)
    _takes_weights = True

    people: Any = None
    families: Mapping[Any, Any] | None = None
    shared: tuple[float, float] | None = None
    random_state: RandomState = 0

    def _checked(self, annotations: Annotations, gold: Gold | None) -> tuple[Annotations, Codes | None]:
        """Return the annotations whose answers are classes; the others are refusals, which are counted."""
        if isinstance(annotations, Annotations) and not annotations.is_square and not annotations.is_scale:
            codes = None if gold is None else check_gold(gold, annotations)
            others = annotations.worker[annotations.label >= annotations.n_classes]
            self.refusals_ = np.bincount(others, minlength=annotations.n_workers)
            return annotations.only_classes(), codes
        annotations, codes = super()._checked(annotations, gold)
        self.refusals_ = np.zeros(annotations.n_workers, dtype=np.int64)
        return annotations, codes

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:  # noqa: ARG002
        for end in self.shared or ():
            check_number(end, "shared", 1e-6)
        votes = Votes.of(annotations)
        if len(votes.task) == 0:
            raise ValueError("annotations must hold verdicts that are classes; got none. Check the classes.")
        families = families_of(annotations, self.families)
        person = people_of(annotations, families, self.people)
        own = np.where(person, annotations.workers.astype(str), families.astype(str))
        panel = Panel(votes, votes.pairs(), np.unique(own, return_inverse=True)[1], person)
        law = law_of(panel, RULES.persons_share if person.all() else self.shared)
        gold = np.full(annotations.n_tasks, -1, dtype=np.int32) if gold is None else gold
        shown = Shown.of(law, gold)
        return Fit(
            shown.posterior,
            confusion_of(shown.confusion()),
            shown.prior,
            np.array([]),
            converged=True,
            n_iter=1,
            more=shown.attributes() | {"families_": families, "people_": person, "_gold_codes": gold, "_shown": shown},
        )

    def _keep(self, annotations: Annotations, gold: Codes | None, fit: Fit, rng: np.random.Generator) -> Self:
        super()._keep(annotations, gold, fit, rng)
        self.skill_ = self._shown.skill[0]
        for sentence in self.doubts_:
            warnings.warn(f"{type(self).__name__}: {sentence}", DoubtWarning, stacklevel=4)
        return self

    def _say_how_right(self, annotations: Annotations, gold: Codes | None, fit: Fit) -> None:  # noqa: ARG002
        self.confidence_ = self.posterior_[np.arange(len(self.labels_)), _ids.lookup(self.labels_, self.classes_)]

    def skill_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of the interval of every skill."""
        check_is_fitted(self, "posterior_")
        mean, variance = self._shown.skill
        return beta_interval(mean, variance, level)

    def workers_to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per worker, best first, with intervals, family, worth and refusals."""
        check_is_fitted(self, "posterior_")
        low, high = self.skill_interval()
        useless = set(self.useless_judges())
        columns = {
            "worker": self.workers_,
            "family": self.families_,
            "person": self.people_,
            "annotations": self._annotation_counts,
            "skill": self.skill_,
            "low": low,
            "high": high,
            "consistency": self.consistency_,
            "refusals": self.refusals_,
            "worth": self.worth_,
            "adds": self.adds_,
            "keep": np.array([worker not in useless for worker in self.workers_.tolist()]),
        }
        best = np.argsort(-self.skill_, kind="stable")
        return pa.table({name: pa.array(np.asarray(values)[best]) for name, values in columns.items()})

    def pairs_to_frame(self, n: int | None = None) -> pa.Table:
        """Return an Arrow table of pairs of workers, those first that agree most beyond what being right explains."""
        check_is_fitted(self, "posterior_")
        pairs, expected = self._shown.law.panel.pairs, self._shown.expected()
        order = np.argsort(-(pairs.kappa - expected), kind="stable")[:n]
        family = self._shown.law.panel.family
        return pa.table(
            {
                "worker": pa.array(self.workers_[pairs.one[order]]),
                "other": pa.array(self.workers_[pairs.other[order]]),
                "same_family": pa.array(family[pairs.one[order]] == family[pairs.other[order]]),
                "tasks": pa.array(pairs.n[order].astype(np.int64)),
                "agreement": pa.array(pairs.kappa[order]),
                "expected": pa.array(expected[order]),
                "excess": pa.array((pairs.kappa - expected)[order]),
            }
        )

    def next_tasks(self, n: int, *, random_share: float = 0.5) -> pa.Table:
        """Return tasks for a person to check next: the least sure ones, and some at random, which keep rates honest.

        The column `probability` is the chance with which a task is chosen, for `class_shares`.
        """
        check_is_fitted(self, "posterior_")
        check_int(n, "n", 1)
        check_number(random_share, "random_share", 0.0, 1.0)
        open_tasks = np.flatnonzero(self._gold_codes < 0)
        n = min(n, len(open_tasks))
        unsure = open_tasks[np.argsort(self.confidence_[open_tasks], kind="stable")][: n - round(random_share * n)]
        rest = np.setdiff1d(open_tasks, unsure)
        drawn = np.random.default_rng(len(self.tasks_)).choice(rest, n - len(unsure), replace=False)
        chosen = np.concatenate([unsure, drawn])
        chance = np.append(np.ones(len(unsure)), np.full(len(drawn), len(drawn) / max(len(rest), 1)))
        return pa.table(
            {
                "task": pa.array(self.tasks_[chosen]),
                "reason": pa.array(["unsure"] * len(unsure) + ["random"] * len(drawn)),
                "confidence": pa.array(self.confidence_[chosen]),
                "probability": pa.array(chance),
            }
        )

    def class_shares(self, *, level: float = 0.95, chances: Mapping[Any, float] | None = None) -> pa.Table:
        """Return the share of each class among the tasks with an interval, by gold and what the panel says of the rest.

        `chances` maps a gold task to the chance with which it was chosen for checking; by default all had the same.
        """
        check_is_fitted(self, "posterior_")
        chance = None
        if chances is not None:
            chance = np.array([float(chances.get(task, 1.0)) for task in self.tasks_.tolist()])
        known = (self._shown.proxy, self._gold_codes, self.classes_)
        return class_shares(*known, chances=chance, level=level, doubt=self._shown.share_doubt)

    def checks_needed(
        self, *, width: float | None = None, risk: float | None = None, right: float = 0.95, level: float = 0.95
    ) -> Estimate:
        """Return how many more items people must check: (value, low, high).

        Until the shares of all classes are known to plus or minus `width`, if the items are drawn at random; or until
        at most a share `risk` of the labels is wrong, if people label the items that the panel is least sure of and are
        right with probability `right`. The range of the second number is that of `estimated_accuracy_`.
        """
        check_is_fitted(self, "posterior_")
        if (width is None) == (risk is None):
            raise ValueError(f"either width or risk must be given; got {'neither' if width is None else 'both'}.")
        if width is not None:
            check_number(width, "width", 1e-4, 1.0)
            check_number(level, "level", 0.5, 0.9999)
            number = float(checks_for_width(self._shown.proxy, self._gold_codes, width, level))
            return Estimate(number, number, number)
        check_number(risk, "risk", 0.0, 1.0)
        check_number(right, "right", 0.5, 1.0)
        known = self._gold_codes >= 0
        return checks_for_risk(self.confidence_, known, self.estimated_accuracy_, float(risk or 0.0), right)

    def versus_best_judge(self) -> Versus:
        """Return whether the panel's labels are better than those of its best judge."""
        check_is_fitted(self, "posterior_")
        return Versus.of(self)

    def useless_judges(self) -> list[Any]:
        """Return the workers whose verdicts add nothing to those of the others."""
        check_is_fitted(self, "posterior_")
        return self.workers_[list(self._shown.useless())].tolist() if self.agreement_ is not None else []
