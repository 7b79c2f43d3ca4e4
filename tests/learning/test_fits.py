"""Fits are counted, announced and limited."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import labelonce as lo
from labelonce import Annotations
from labelonce._types import Floats
from labelonce.learning import RepeatedRows, SoftmaxRegression

# A tree that memorises the labels of a few noisy tasks is doubted, and rightly; here only its fits count.
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


def test_given_rounds_and_cheap_learners_are_not_limited() -> None:
    X, ann = problem()
    fixed = lo.MBEM(DecisionTreeClassifier(random_state=0), rounds=4, predictions="out_of_fold", tol=0.0).fit(X, ann)
    assert fixed.n_fits_ == 4 * 6
    assert lo.MBEM([SoftmaxRegression(C=0.1), SoftmaxRegression()]).fit(X, ann).n_fits_ > 15


def test_the_limit_must_be_a_number() -> None:
    with pytest.raises(ValueError, match=r"max_fits must be .*; got 0"):
        lo.MBEM(GaussianNB(), max_fits=0).fit(*problem())


def test_callbacks_hear_of_fits_while_choosing_and_then_of_rounds() -> None:
    events: list[dict[str, Any]] = []
    clf = lo.MBEM(GaussianNB(), callbacks=[events.append]).fit(*problem())
    choosing = [event for event in events if not event["round"]]
    first = choosing[0]["fits"]  # before, it was found out whether the learner memorises
    assert [event["fits"] for event in choosing] == list(range(first, first + len(choosing)))
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
    assert "[####" in first
    assert "of at most 15 fits" in first
    assert shown.count("\n") == clf.n_rounds_  # fits share a line
    assert "[" in others[-clf.n_rounds_ - 1]
