"""A refit of models and people paid from one purse: people's answers are gold for the panel, and may be wrong."""

from typing import Any

import numpy as np
from scipy.special import softmax

from labelonce._kernels import one_coin_confusion
from labelonce._rules import RULES
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats, Mask
from labelonce.data import Annotations
from labelonce.judges import JudgePanel
from labelonce.routing._state import State

_STEPS = 30


def fit_panel(state: State, estimator: JudgePanel, annotations: Annotations) -> tuple[Any, Floats, Floats]:
    """Return the panel, fitted to the models with people's answers as gold, the posterior, and the workers' confusion.

    Where people answered, the posterior is what the panel says with this item left out of its gold, times the chance of
    their answers. How often people are right is learned from both.
    """
    person: Mask = np.logical_not(_in_families(state, annotations))
    by_person: Mask = person[annotations.worker]
    answers = np.zeros(state.belief.shape)
    np.add.at(answers, (annotations.task[by_person], annotations.label[by_person]), 1.0)
    models = annotations.part(~by_person)
    model: Any = clone(estimator).fit(models, gold=_gold(state, answers))
    skill, posterior = _people(model._shown.proxy, answers)
    confusion: Floats = np.array(model.confusion_)
    confusion[person] = one_coin_confusion(np.array([skill]), state.n_classes)[0]
    posterior = np.where(answers.sum(axis=1, keepdims=True) > 0, posterior, model.posterior_)
    return model, state.with_gold(posterior), confusion


def asks_people(state: State, annotations: Annotations) -> bool:
    """Return whether there are models and people to be told apart."""
    return bool(_in_families(state, annotations)[annotations.worker].any())


def _in_families(state: State, annotations: Annotations) -> Mask:
    return np.array([state.families.get(one) is not None for one in annotations.workers.tolist()], dtype=bool)


def _gold(state: State, answers: Floats) -> list[Any]:
    """Return the label that most people gave to each item, None without one; what is known to be true goes first."""
    top: Codes = answers.argmax(axis=1)
    ties = (answers == answers.max(axis=1, keepdims=True)).sum(axis=1) > 1
    codes = np.where(state.gold >= 0, state.gold, np.where(ties, -1, top))
    return [None if code < 0 else state.classes[code] for code in codes.tolist()]


def _people(proxy: Floats, answers: Floats) -> tuple[float, Floats]:
    """Return how often people are right, and the posterior of their answers and the proxy, by EM."""
    right, wrong = RULES.person_right
    n, skill, posterior = answers.sum(axis=1, keepdims=True), right / (right + wrong), proxy
    for _ in range(_STEPS):
        other = (1 - skill) / (answers.shape[1] - 1)
        logs = np.log(np.maximum(proxy, 1e-9)) + answers * np.log(skill) + (n - answers) * np.log(other)
        posterior = softmax(logs, axis=1)
        skill = float(((posterior * answers).sum() + right) / (n.sum() + right + wrong))
    return skill, posterior
