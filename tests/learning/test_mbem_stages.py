"""A fit in stages: stopped after any of them and gone on with, it ends with the same numbers."""

import pickle
from typing import Any

import numpy as np
import pytest
from crowds import crowd_with_features
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from labelonce import MBEM, SoftmaxRegression
from labelonce.workers import OneCoin


def make(**options: Any) -> MBEM:
    scaler = StandardScaler()
    learners = [make_pipeline(scaler, SoftmaxRegression(C=C)) for C in (0.1, 1.0)]
    return MBEM(learners, worker_model=OneCoin(), **({"rounds": 3} | options))


@pytest.mark.parametrize("options", [{}, {"rounds": "auto", "max_fits": 14}])
def test_every_stage_can_be_gone_on_from(options: dict[str, Any]) -> None:
    X, ann, *_ = crowd_with_features(120)
    saved = [pickle.dumps(clf) for clf in make(**options).stages(X, ann)]
    whole = make(**options).fit(X, ann)
    assert len(saved) == 1 + whole.n_rounds_
    for content in saved:
        clf = pickle.loads(content)
        list(clf.stages(X, ann, resume=True))
        assert_array_equal(clf.posterior_, whole.posterior_)
        assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))
        assert str(clf.history_) == str(whole.history_)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # a tree fitted to noise is doubted, and rightly
def test_given_rounds_out_of_fold_are_gone_on_from_without_a_round_twice() -> None:
    X, ann, *_ = crowd_with_features(120)
    tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0)
    saved = [pickle.dumps(clf) for clf in MBEM(tree, rounds=4).stages(X, ann)]
    whole = MBEM(tree, rounds=4).fit(X, ann)
    assert whole.recipe_["predictions"] == "out_of_fold"
    for content in saved:
        clf = pickle.loads(content)
        list(clf.stages(X, ann, resume=True))
        assert (clf.n_fits_, str(clf.history_)) == (whole.n_fits_, str(whole.history_))


def test_a_callback_sees_what_its_round_found() -> None:
    X, ann, *_ = crowd_with_features(120)
    seen: list[Any] = []
    clf = make()

    def see(entry: dict[str, Any]) -> None:
        if entry["round"]:  # 0 while the plan is chosen
            seen.append((entry["round"], clf.n_rounds_, clf.model_))

    clf.callbacks = [see]
    clf.fit(X, ann)
    assert [pair[:2] for pair in seen] == [(1, 1), (2, 2), (3, 3)]
    assert seen[-1][2] is clf.model_


def test_going_on_needs_the_same_tasks() -> None:
    X, ann, *_ = crowd_with_features(120)
    clf = make().fit(X, ann)
    fewer, before = ann.select(np.arange(120) < 100), clf.posterior_.copy()
    with pytest.raises(ValueError, match=r"annotations of the fit, .*120 tasks x 6 workers.*; got .*100 tasks"):
        list(clf.stages(X[:100], fewer, resume=True))
    assert_array_equal(clf.posterior_, before)


def test_going_on_needs_a_start() -> None:
    with pytest.raises(NotFittedError):
        list(make().stages(*crowd_with_features(120)[:2], resume=True))


def test_the_tables_of_a_fit_have_a_row_a_task_and_a_worker() -> None:
    X, ann, *_ = crowd_with_features(120)
    clf = make().fit(X, ann)
    tasks, workers = clf.to_frame(), clf.workers_to_frame()
    assert tasks.column_names == ["task", "label", "confidence", "posterior_0", "posterior_1", "posterior_2"]
    assert tasks["label"].to_pylist() == clf.labels_.tolist()
    assert workers.column_names == ["worker", "annotations", "skill", "skill_low", "skill_high"]
    assert sum(workers["annotations"].to_pylist()) == len(ann)
    skill, low, high = (workers[name].to_numpy() for name in ("skill", "skill_low", "skill_high"))
    assert (np.diff(skill) <= 0).all()
    assert ((low <= skill) & (skill <= high)).all()
