"""Fits are counted, announced and limited."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import labelonce as lo
from labelonce import Annotations
from labelonce._rules import RULES
from labelonce._types import Floats
from labelonce.learning import RepeatedRows, SoftmaxRegression, _choice

# A tree that overfits the labels of a few noisy tasks is doubted, and rightly; here only its fits count.
pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


def problem(n_tasks: int = 150) -> tuple[Floats, Annotations]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_tasks, 3))
    confusion = lo.simulate.hammer_spammer(10, 3, 0.5, rng, exact=True)
    return X, lo.simulate.annotate(X.argmax(axis=1), confusion, lo.simulate.assign(n_tasks, 10, 2, rng), rng)


@pytest.mark.parametrize(
    "learner", [GaussianNB(), DecisionTreeClassifier(random_state=0), RandomForestClassifier(30, random_state=0)]
)
def test_fifteen_fits_are_enough_for_any_classifier(learner: Any) -> None:
    assert lo.MBEM(learner).fit(*problem()).n_fits_ <= 15


@pytest.mark.parametrize("max_fits", ["auto", 9, 11])
def test_every_fit_is_counted_and_none_is_above_the_limit(max_fits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, made = RepeatedRows.fit, []

    def counted(self: RepeatedRows, X: Any, y: Any, sample_weight: Any = None) -> RepeatedRows:
        made.append(1)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(RepeatedRows, "fit", counted)
    clf = lo.MBEM(DecisionTreeClassifier(random_state=0), max_fits=max_fits).fit(*problem())
    assert clf.recipe_["predictions"] == "out_of_fold"
    assert clf.n_fits_ == len(made) <= (15 if max_fits == "auto" else max_fits)


def test_a_limited_fit_of_a_learner_that_overfits_is_the_average_of_its_folds_over_all_rounds() -> None:
    X, ann = problem()
    last: Any = None
    for clf in lo.MBEM(DecisionTreeClassifier(min_samples_leaf=2, random_state=0)).stages(X, ann):
        last = last if clf._last is None else clf._last
    assert (clf.n_fits_, clf.n_rounds_, clf.recipe_["averaged"]) == (3 * 4, 3, (1, 2, 3))
    assert clf.recipe_["predictions"] == "out_of_fold"
    assert_array_equal(clf.predictions_, np.asarray(last.predictions))


def test_given_rounds_out_of_fold_that_stop_early_end_with_a_model_of_all_tasks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, ann = problem()
    monkeypatch.setattr(_choice, "RULES", replace(RULES, early_stop=0.9))
    clf = lo.MBEM(DecisionTreeClassifier(min_samples_leaf=2, random_state=0), rounds=5).fit(X, ann)
    assert (clf.recipe_["predictions"], clf.recipe_["averaged"]) == ("out_of_fold", ())
    assert clf.n_rounds_ < 5
    assert isinstance(clf.model_, RepeatedRows)


def test_a_limited_fit_resumes_from_any_stage() -> None:
    X, ann = problem()
    forest = RandomForestClassifier(5, random_state=0)
    saved = [pickle.dumps(clf) for clf in lo.MBEM(forest).stages(X, ann)]
    whole = lo.MBEM(forest).fit(X, ann)
    assert len(saved) == 1 + whole.n_rounds_ > 2
    for content in saved:
        clf = pickle.loads(content)
        list(clf.stages(X, ann, resume=True))
        assert_array_equal(clf.posterior_, whole.posterior_)
        assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))
        assert (clf.n_fits_, str(clf.history_)) == (whole.n_fits_, str(whole.history_))


def test_of_several_learners_the_one_that_is_right_about_unseen_tasks_runs_on() -> None:
    X, ann = problem(400)
    stump, tree = DecisionTreeClassifier(max_depth=1), DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
    clf = lo.MBEM([stump, tree]).fit(X, ann)
    assert clf.recipe_["learner"].get_params()["estimator__min_samples_leaf"] == 5
    assert clf.n_fits_ <= 20
    tried = np.isfinite([(row["held_out_scores"] + [np.nan] * 3)[:2] for row in clf.choices_])
    assert tried.tolist() == [[True, False], [True, True]]


def test_with_given_rounds_the_last_model_is_fitted_to_all_tasks() -> None:
    X, ann = problem()
    trees = [DecisionTreeClassifier(min_samples_leaf=leaf, random_state=0) for leaf in (2, 3)]
    last: Any = None
    plan: Any = None
    for clf in lo.MBEM(trees, rounds=3).stages(X, ann):
        last, plan = clf._last, clf._plan
    assert (clf.n_rounds_, clf.recipe_["averaged"]) == (3, ())
    tree = clone(plan.how.learner).fit(X, np.asarray(last.targets), last.target_weight)
    assert_array_equal(clf.predict_proba(X), tree.predict_proba(X))


def test_given_rounds_and_cheap_learners_are_not_limited() -> None:
    X, ann = problem()
    fixed = lo.MBEM(DecisionTreeClassifier(random_state=0), rounds=4).fit(X, ann)
    assert fixed.n_fits_ == 4 * 4 + 1  # the model of all tasks at the end
    assert lo.MBEM([SoftmaxRegression(C=0.1), SoftmaxRegression()]).fit(X, ann).n_fits_ > 20


def test_callbacks_hear_of_fits_while_choosing_and_then_of_rounds() -> None:
    events: list[dict[str, Any]] = []
    clf = lo.MBEM(GaussianNB(), callbacks=[events.append]).fit(*problem())
    choosing = [event for event in events if not event["round"]]
    assert [event["fits"] for event in choosing] == list(range(1, 1 + len(choosing)))
    assert choosing[-1]["planned_fits"] == 15
    assert [event["round"] for event in events[len(choosing) :]] == list(range(1, clf.n_rounds_ + 1))


def test_verbose_announces_the_fits(capsys: pytest.CaptureFixture[str]) -> None:
    lo.MBEM(GaussianNB(), verbose=True).fit(*problem())
    lines = capsys.readouterr().err.splitlines()
    assert "of at most 15 fits, about" in lines[0]
    assert lines[-1].startswith("MBEM: round ")


def test_verbose_draws_a_bar_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    clf = lo.MBEM(GaussianNB(), verbose=True).fit(*problem())
    shown = capsys.readouterr().err
    first, *others = shown.split("\r")[1:]
    assert "[#" in first
    assert "of at most 15 fits" in first
    assert shown.count("\n") == clf.n_rounds_  # fits share a line
    assert "[" in others[-clf.n_rounds_ - 1]
