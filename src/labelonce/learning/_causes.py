"""Whether mistakes have common causes, and whether predictions rank the answers to questions at all."""

from typing import Any

import numpy as np
from scipy.stats import rankdata

from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask
from labelonce.learning._case import Case


def common_causes(case: Case, crowd: Any, log_prior: Floats) -> float:
    """Return z of the trend of disagreement between labels of a row along how unsure the model is of it.

    Where every worker errs alone, two labels of a row disagree as often as their workers' matrices and the row's class
    say, whatever the features are. Where rows are hard for all, people err together, and agree on what is wrong.
    0 where too few rows have several labels to tell, or where labels stay within slots.
    """
    labels = case.evidence.labels
    if case.predictions.classes is not None or case.kind is not None or not labels.is_square:
        return 0.0
    order = np.argsort(labels.task, kind="stable")
    pair = np.flatnonzero(np.diff(labels.task[order]) == 0)
    if len(pair) < RULES.least_pairs:
        return 0.0
    one, other = order[pair], order[pair + 1]
    row = labels.task[one]
    share = np.exp(log_prior[row] - log_prior[row].max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    said = [crowd.dense()[labels.worker[some]] for some in (one, other)]
    agree = (labels.label[one] == labels.label[other]).astype(float)
    expected = np.einsum("pk,pkl,pkl->p", share, *said)
    expected = np.clip(expected * agree.mean() / expected.mean(), 0.01, 0.99)
    sure = np.argsort(np.argsort(case.predictions.max()[row])) / len(row)
    sure -= sure.mean()
    return float(((agree - expected) @ sure) / np.sqrt((expected * (1 - expected)) @ sure**2))


def taken_wrong(case: Case, labels: Codes, confidence: Floats) -> float:
    """Return the share of single labels that are taken to be wrong, where predictions contradict far more; 0 elsewhere.

    Then people and models may make the same mistakes on the same tasks, which single labels cannot show.
    """
    if case.gold is not None or case.kind is not None or case.n_pairs >= RULES.least_pairs:
        return 0.0
    least, times = RULES.contradictions
    rows = np.flatnonzero(case.labelled)
    contradicted = (case.predicted[rows] != labels[rows]).mean()
    taken = float(1 - confidence[rows].mean())
    return taken if contradicted > max(least, times * taken) else 0.0


def surely_contradicted(case: Case, labels: Codes, confidence: Floats) -> float:
    """Return how much more often the surest predictions contradict labels than these are estimated to be wrong.

    Of rows with several labels nearly all labels are taken to be right. If the surest predictions contradict them, then
    people make the same mistakes, or the features do not determine the class: the labels cannot tell which. A model
    that contradicts very many is wrong. 0 where they hardly do, and where classes are known, which tell more.
    """
    n_labels = np.bincount(case.evidence.labels.task, minlength=len(labels))
    rows, (share, least, most) = np.flatnonzero(n_labels > 1), RULES.surest
    if case.gold is not None or case.kind is not None or len(rows) * share < RULES.least_pairs:
        return 0.0
    surest = rows[np.argsort(-case.predictions.max()[rows], kind="stable")[: int(share * len(rows))]]
    differ = (case.predicted[surest] != labels[surest]).mean()
    more = float(differ - (1 - confidence[surest]).mean())
    least = max(least, RULES.sure_excess * np.sqrt(differ * (1 - differ) / len(surest)))
    return more if more > least and differ <= most else 0.0


def ranks(case: Case) -> float:
    """Return z of the sums of ranks of the predictions of yes where people say yes, a mean over the questions.

    Unlike the likelihood it has no part in how often each worker says yes, nor in how rare a yes is.
    """
    if case.kind is None:
        return 0.0
    predicted, said = case.predictions.to_dense()[:, 1], case.votes.to_dense()[:, 1] > 0.5
    answered = [case.labelled & (case.kind == one) for one in np.unique(case.kind)]
    found = [_rank_z(predicted[rows], said[rows]) for rows in answered if rows.any()]
    return float(np.sum(found) / np.sqrt(len(found))) if found else 0.0


def _rank_z(predicted: Floats, said: Mask) -> float:
    n, n_yes = len(said), int(said.sum())
    spread = np.sqrt(n_yes * (n - n_yes) * (n + 1) / 12)
    return float((rankdata(predicted)[said].sum() - n_yes * (n + 1) / 2) / spread) if spread else 0.0
