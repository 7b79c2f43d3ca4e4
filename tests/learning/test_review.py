"""The review list: given labels by their chance of being wrong, with what to do about each."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce.learning._review import review_table


def small() -> tuple[lo.Annotations, Any, Any]:
    """Three tasks, four labels: P(true), and our labels."""
    ann = lo.Annotations.from_arrays(["a", "a", "b", "c"], ["v", "w", "v", "w"], ["cat", "dog", "dog", "cat"])
    return ann, np.array([[0.95, 0.05], [0.6, 0.4], [0.85, 0.15]]), np.array([0, 0, 0], dtype=np.int32)


def noisy() -> tuple[Any, Any, lo.Annotations]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    X = np.eye(3)[y] @ rng.normal(scale=3.0, size=(3, 6)) + rng.normal(size=(600, 6))
    confusion = lo.simulate.hammer_spammer(12, 3, 0.5, rng, exact=True)
    return X, y, lo.simulate.annotate(y, confusion, lo.simulate.assign(600, 12, 2, rng, replace=False), rng)


def test_every_given_label_has_a_row_the_most_likely_wrong_first() -> None:
    ann, posterior, picks = small()
    rows = review_table(ann, posterior, picks, least=0.0).to_pylist()
    assert [(row["task"], row["worker"], row["given"]) for row in rows] == [
        ("a", "w", "dog"),
        ("b", "v", "dog"),
        ("c", "w", "cat"),
        ("a", "v", "cat"),
    ]
    assert_allclose([row["chance_wrong"] for row in rows], [0.95, 0.6, 0.15, 0.05])
    assert {row["label"] for row in rows} == {"cat"}
    assert [row["action"] for row in rows] == ["replace", "check", "keep", "keep"]


def test_a_label_that_is_ours_but_unsure_is_to_be_checked() -> None:
    ann, posterior, picks = small()
    rows = review_table(ann, posterior[:, ::-1], 1 - picks).to_pylist()
    assert [(row["task"], row["action"]) for row in rows] == [("a", "replace"), ("c", "check"), ("b", "check")]


def test_only_labels_worth_checking_are_listed() -> None:
    ann, posterior, picks = small()
    assert review_table(ann, posterior, picks)["task"].to_pylist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"least must be in \[0, 1\]; got 2"):
        review_table(ann, posterior, picks, least=2)


def test_texts_follow_their_tasks() -> None:
    ann, posterior, picks = small()
    rows = review_table(ann, posterior, picks, least=0.0, shown={"text": ["A", "B", "C"]}).to_pylist()
    assert [row["text"] for row in rows] == ["A", "B", "C", "A"]


def test_a_fit_lists_wrong_labels_first_with_calibrated_chances() -> None:
    X, y, ann = noisy()
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=3).fit(X, ann)
    table = clf.review(least=0.0)
    assert table.num_rows == len(ann)
    chance = table["chance_wrong"].to_numpy()
    wrong = table["given"].to_numpy() != y[table["task"].to_numpy()]
    assert (np.diff(chance) <= 0).all()
    assert wrong[:100].mean() > 0.95
    assert abs(chance.mean() - wrong.mean()) < 0.05
    first = table.slice(0, 1).to_pylist()[0]
    assert first["chance_wrong"] == 1 - clf.posterior_[first["task"], first["given"]]


@pytest.mark.usefixtures("skops")
def test_the_list_of_a_loaded_fit_is_the_same(tmp_path: Path) -> None:
    X, _, ann = noisy()
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=1).fit(X, ann)
    lo.save(clf, tmp_path / "model.skops")
    assert lo.load(tmp_path / "model.skops").review() == clf.review()


def test_without_held_out_models_the_list_says_so() -> None:
    X, _, ann = noisy()
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=1, folds=1).fit(X, ann)
    assert not clf.verdict_.held_out
    with pytest.warns(lo.DoubtWarning, match="no model was held out"):
        clf.review()
