"""The recipes of CONTRIBUTING.md work as they are written: each is one file."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import labelonce as lo

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
RECIPES = re.findall(r'^```python\n(""".*?)^```$', PAGE, re.MULTILINE | re.DOTALL)


def recipe(name: str) -> Any:
    (code,) = [code for code in RECIPES if re.search(rf"^(class|def) {name}\b", code, re.MULTILINE)]
    names: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    return names[name]


def crowd(confusion: Any) -> tuple[Any, Any, lo.Annotations]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X.argmax(axis=1)
    return X, y, lo.simulate.annotate(y, confusion, lo.simulate.assign(300, len(confusion), 1, rng), rng)


def test_there_are_three_recipes() -> None:
    assert len(RECIPES) == 3


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_a_new_worker_model_serves_the_rounds_and_the_verdict() -> None:
    X, y, annotations = crowd(lo.simulate.one_coin([0.8] * 5, 2))
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2, worker_model=recipe("OneCrowd")()).fit(X, annotations)
    assert (clf.labels_ == y).mean() > (annotations.label == y).mean()
    assert np.ptp(clf.skill_) < 0.01


def test_a_new_worker_model_has_intervals_for_every_entry() -> None:
    model = recipe("OneCrowd")().fit_counts(np.array([[[8.0, 2.0], [1.0, 9.0]]]))
    low, high = model.confusion_interval()
    assert ((low < model.confusion_) & (model.confusion_ < high)).all()


def test_a_new_answer_type_serves_mbem_and_aggregators() -> None:
    X, y, annotations = crowd(lo.simulate.one_coin([0.9] * 5, 2))
    rng = np.random.default_rng(0)
    percent = np.where(annotations.label == 1, 100, 0) * 0.6 + rng.uniform(0, 40, len(annotations))
    found = recipe("from_percent")(annotations.task, annotations.worker, percent)
    yes = y == 1
    assert ((lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, found).labels_ == "yes") == yes).mean() > 0.9
    assert ((lo.MajorityVote().fit(found).labels_ == "yes") == yes).mean() > 0.8


def test_a_new_answer_type_refuses_what_is_no_percent() -> None:
    with pytest.raises(ValueError, match=r"from 0 to 100; got -1\.0 to 20\.0"):
        recipe("from_percent")([0, 1], [0, 0], [-1, 20])


def test_a_new_learner_is_chosen_and_cloned_as_others_are() -> None:
    X, y, annotations = crowd(lo.simulate.one_coin([0.9, 0.9, 0.6, 0.6], 2))
    learner = clone(recipe("NearestMean")())
    clf = lo.MBEM([learner, lo.SoftmaxRegression(C=1e-4)]).fit(X, annotations)
    assert (clf.predict(X) == y).mean() > 0.9
    assert len(clf.choices_) == 2
