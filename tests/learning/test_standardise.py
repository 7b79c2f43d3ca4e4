"""Standardised features: as by `StandardScaler`, but that no column is destroyed by a few extreme values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelonce as lo
from labelonce import simulate
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.learning import Standardiser, default_learner
from labelonce.multilabel._question_problem import default_heads

RNG = np.random.default_rng(0)
ORDINARY = {
    "normal": RNG.normal(3.0, 2.0, 1000),
    "outliers of a few deviations": RNG.normal(size=1000) * np.where(RNG.random(1000) < 0.01, 30.0, 1.0),
    "skewed": RNG.lognormal(size=1000),
    "heavy tails": RNG.standard_t(2, 1000),
    "two values": RNG.random(1000) < 0.3,
    "a rare value": np.arange(1000) == 5,
    "counts, mostly zero": RNG.poisson(0.1, 1000) * 10_000.0,
    "pixels, a fifth bright": np.where(RNG.random(1000) < 0.2, RNG.uniform(50, 255, 1000), RNG.uniform(0, 0.5, 1000)),
    "constant": np.full(1000, 0.3),
    "constant but for rounding, with a code": np.append(np.full(500, 0.3), np.full(500, 0.1 + 0.2))
    + 1e6 * (np.arange(1000) == 5),
    "missing": np.where(RNG.random(1000) < 0.2, np.nan, RNG.normal(size=1000)),
    "all missing": np.full(1000, np.nan),
}


def normal(seed: int = 0, n: int = 1000) -> Floats:
    return np.random.default_rng(seed).normal(5.0, 2.0, n)


def with_code(share: float, code: float = 99999.0) -> Floats:
    values = normal()
    values[: round(share * len(values))] = code
    return values


EXTREME = {
    "one value": with_code(0.001),
    "a code for missing": with_code(0.01),
    "a common code for missing": with_code(0.08),
    "another unit": np.where(np.arange(1000) < 10, 1e4, 1.0) * normal(),
    "far away": with_code(0.01, 1e100),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:Degrees of freedom:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_column_is_that_of_the_standard_scaler(name: str, dtype: type) -> None:
    X: Floats = np.column_stack([ORDINARY[name], normal()]).astype(dtype)
    ours, theirs = Standardiser().fit(X), StandardScaler().fit(X)
    assert not ours.extreme_.any()
    assert_array_equal(ours.transform(X), theirs.transform(X))
    assert ours.transform(X).dtype == dtype
    assert_array_equal(ours.transform(X[:7] * 50), theirs.transform(X[:7] * 50))  # later tables are not clipped


@pytest.mark.parametrize("name", EXTREME)
def test_an_extreme_column_keeps_its_other_values_apart_and_leaves_the_columns_next_to_it_alone(name: str) -> None:
    X = np.column_stack([normal(1), EXTREME[name], normal(2)])
    ours = Standardiser().fit(X)
    assert_array_equal(ours.extreme_, [False, True, False])
    found = ours.transform(X)
    assert_array_equal(found[:, [0, 2]], StandardScaler().fit_transform(X)[:, [0, 2]])
    usual = np.abs(X[:, 1] - 5.0) < 6.0
    assert_allclose(found[usual, 1], (X[usual, 1] - 5.0) / 2.0, atol=0.6)
    assert found[~usual, 1].min() >= -5.0
    assert_array_equal(ours.transform([[0.0, 1e300, 0.0]])[0, 1], 5.0)


def test_missing_values_of_an_extreme_column_stay_missing() -> None:
    X = EXTREME["a code for missing"].copy()
    X[-50:] = np.nan
    found = Standardiser().fit_transform(X[:, None])
    assert_array_equal(np.isnan(found[:, 0]), np.isnan(X))
    assert np.nanstd(found[10:]) == pytest.approx(1.0, abs=0.1)


def test_a_column_is_left_alone_where_many_values_would_be_clipped() -> None:
    X = np.column_stack([with_code(0.09), with_code(0.2)])
    assert_array_equal(Standardiser().fit(X).extreme_, [True, False])


def test_frames_copies_names_and_containers_are_as_with_the_standard_scaler() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": EXTREME["one value"], "age": normal().astype(int)})
    before, ours = frame.copy(), Standardiser().set_output(transform="pandas").fit(frame)
    found = ours.transform(frame)
    assert list(found.columns) == list(ours.get_feature_names_out()) == ["size", "age"]
    assert frame.equals(before)
    assert_array_equal(clone(ours).fit(frame).transform(frame), found)
    assert not hasattr(clone(ours), "extreme_")
    assert ours.get_params() == {}
    with pytest.raises(ValueError, match="Standardiser is expecting 2 features"):
        Standardiser().fit(np.eye(2)).transform(np.zeros((3, 4)))


def test_sparse_and_infinite_features_are_refused_as_by_the_standard_scaler() -> None:
    counts = sparse.eye_array(3, format="csr")
    for scaler in (Standardiser(), StandardScaler()):
        with pytest.raises(ValueError, match="Cannot center sparse matrices"):
            scaler.fit(counts)
        with pytest.raises(ValueError, match="Input X contains infinity"):
            scaler.fit([[1.0], [np.inf]])
        with pytest.raises(ValueError, match="Cannot center sparse matrices"):
            scaler.fit(np.eye(3)).transform(counts)


def test_the_default_learners_standardise_so_and_leave_sparse_counts_alone() -> None:
    for default in (default_learner, default_heads):
        assert {type(one[0]) for one in default(np.zeros((3, 2)))} == {Standardiser}
        assert len({id(one[0]) for one in default(np.zeros((3, 2)))}) == 1
        assert not any(hasattr(one, "steps") for one in default(sparse.eye_array(3, format="csr")))


def outliers(seed: int, kind: str) -> tuple[Floats, lo.Annotations, Codes]:
    """Return 1,500 tasks, 1 % of them with values 1e4 times too large, or with a code in three of ten columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500, 10))
    y_true = (1.5 * X @ rng.normal(size=(10, 4)) + 0.5 * rng.gumbel(size=(1500, 4))).argmax(axis=1).astype(np.int32)
    X[rng.permutation(1500)[:15]] *= 1e4 if kind == "unit" else 1.0
    X[rng.permutation(1500)[:15], :3] = X[0, :3] if kind == "unit" else 99999.0
    confusion = simulate.hammer_spammer(20, 4, 0.6, rng, exact=True)
    return X, simulate.annotate(y_true, confusion, simulate.assign(1500, 20, 1, rng), rng), y_true


def right(X: Any, ann: lo.Annotations, y_true: Codes, scaler: Any) -> float:
    learners = [make_pipeline(scaler, lo.SoftmaxRegression(C=C)) for C in (0.1, 1.0)] if scaler else None
    return float((lo.MBEM(learners, rounds=2).fit(X, ann).labels_ == y_true).mean())


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_rows_in_another_unit_do_not_keep_labels_from_being_corrected() -> None:
    X, ann, y_true = outliers(0, "unit")
    given = (ann.label == y_true[ann.task]).mean()
    assert right(X, ann, y_true, StandardScaler()) < given + 0.05
    assert right(X, ann, y_true, None) > given + 0.2


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_a_code_for_missing_values_costs_few_labels() -> None:
    X, ann, y_true = outliers(0, "code")
    assert right(X, ann, y_true, None) > right(X, ann, y_true, StandardScaler()) + 0.05


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
@pytest.mark.parametrize("scaler", [Standardiser, StandardScaler])  # StandardScaler: files of earlier versions
def test_a_fit_is_saved_and_loaded_with_its_scaler(scaler: type, tmp_path: Path) -> None:
    X, ann, _ = outliers(0, "unit")
    fitted = lo.MBEM(make_pipeline(scaler(), lo.SoftmaxRegression()), rounds=1).fit(X, ann)
    lo.save(fitted, tmp_path / "model.skops")
    again = lo.load(tmp_path / "model.skops")
    assert type(again.learner[0]) is scaler
    assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
