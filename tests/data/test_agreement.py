"""Agreement: published tables, other people's packages, brute force; missing labels, unequal redundancy, repeats."""

from itertools import combinations
from typing import Any

import krippendorff
import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa, to_table

import labelonce as lo
from labelonce.data import Figure

NAN = np.nan
# Krippendorff, Computing Krippendorff's alpha-reliability, 2011, section C: four observers, twelve units.
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T
# Fleiss, Measuring nominal scale agreement among many raters, 1971, table 1: 30 patients, 6 psychiatrists, 5 diagnoses.
PATIENTS = np.array(
    [
        [0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0], [2, 0, 4, 0, 0],
        [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6], [1, 0, 0, 5, 0], [1, 1, 0, 4, 0],
        [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1], [0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0],
        [0, 2, 0, 4, 0], [1, 0, 2, 0, 3], [0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0],
        [1, 0, 0, 4, 1], [0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6],
    ]
)  # fmt: skip
TABLES = {  # of two raters: kappa, and where they were published the ends of the 95 % interval
    "Fleiss, Cohen and Everitt 1969": ([[106, 10, 4], [22, 28, 10], [2, 12, 6]], (0.429, None, None)),
    "Cohen 1968": ([[88, 14, 18], [10, 40, 10], [2, 6, 12]], (0.492, None, None)),
    "SAS, PROC FREQ": ([[0, 4, 1], [0, 8, 0], [0, 1, 5]], (0.4842, 0.2137, 0.7547)),
}


def of_counts(counts: Any) -> lo.Annotations:
    """Return labels with so many of each class for every task, each by a worker of its own."""
    labels = [[k for k, n in enumerate(row) for _ in range(n)] for row in counts]
    width = max(map(len, labels))
    return lo.Annotations.from_matrix([row + [-1] * (width - len(row)) for row in labels])


def of_table(table: Any) -> lo.Annotations:
    """Return the labels of two workers whose cross table this is."""
    rows = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return lo.Annotations.from_matrix(rows)


def random_crowd(seed: int, n_classes: int = 4) -> np.ndarray:
    """Return a matrix of labels with most of them missing, and workers of all kinds."""
    rng = np.random.default_rng(seed)
    truth, right = rng.integers(n_classes, size=60), rng.uniform(0.2, 1, size=9)
    said = np.where(rng.random((60, 9)) < right, truth[:, None], rng.integers(n_classes, size=(60, 9)))
    return np.where(rng.random((60, 9)) < 0.5, said, -1)


def test_krippendorffs_and_fleiss_own_examples() -> None:
    found = lo.agreement(lo.Annotations.from_matrix(KRIPPENDORFF))
    assert (found.n_tasks, found.n_annotations) == (11, 40)
    assert found.alpha_ordinal is not None
    assert found.alpha_interval is not None
    published = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849}
    figures = (found.alpha.value, found.alpha_ordinal.value, found.alpha_interval.value)
    assert_allclose(figures, list(published.values()), atol=5e-4)
    assert round(lo.agreement(of_counts(PATIENTS)).fleiss_kappa.value, 3) == 0.430


@pytest.mark.parametrize(("table", "published"), TABLES.values(), ids=TABLES)
def test_published_kappas_of_two_raters(table: Any, published: Any) -> None:
    pair = lo.agreement(of_table(table), level=0.95).pairs.to_pylist()[0]
    for name, wanted in zip(("kappa", "kappa_low", "kappa_high"), published, strict=True):
        assert wanted is None or abs(pair[name] - wanted) < 5.1 * 10.0 ** -len(str(wanted)[1:])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_krippendorff(seed: int, level: Any) -> None:
    matrix = random_crowd(seed)
    found = lo.agreement(lo.Annotations.from_matrix(matrix))
    figure = {"nominal": found.alpha, "ordinal": found.alpha_ordinal, "interval": found.alpha_interval}[level]
    assert figure is not None
    theirs = krippendorff.alpha(np.where(matrix < 0, NAN, matrix).T, level_of_measurement=level)
    assert_allclose(figure.value, theirs, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_fleiss_kappa_is_that_of_statsmodels(seed: int) -> None:
    counts = np.random.default_rng(seed).multinomial(5, [0.5, 0.3, 0.2], size=40)
    assert_allclose(lo.agreement(of_counts(counts)).fleiss_kappa.value, fleiss_kappa(counts), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "weights"), [("kappa", None), ("weighted_kappa", "quadratic")])
def test_kappas_of_pairs_and_their_intervals_are_those_of_statsmodels(seed: int, name: str, weights: Any) -> None:
    matrix = random_crowd(seed)
    for pair in lo.agreement(lo.Annotations.from_matrix(matrix), level=0.95).pairs.to_pylist():
        both = matrix[:, [pair["worker"], pair["other"]]]
        both = both[(both >= 0).all(axis=1)]
        theirs = cohens_kappa(to_table(both, bins=np.arange(-0.5, 4.5))[0], wt=weights)
        assert len(both) == pair["tasks"]
        assert_allclose(pair[name], theirs.kappa, rtol=1e-9)
        if pair["agreement"] < 1:
            assert_allclose(pair[f"{name}_low"], max(theirs.kappa_low, -1), rtol=1e-4)
            assert_allclose(pair[f"{name}_high"], min(theirs.kappa_upp, 1), rtol=1e-4)


def test_every_pair_that_shares_a_task_is_there_the_most_shared_first() -> None:
    matrix = random_crowd(0)
    pairs = lo.agreement(lo.Annotations.from_matrix(matrix)).pairs.to_pylist()
    shared = {pair: int((matrix[:, list(pair)] >= 0).all(axis=1).sum()) for pair in combinations(range(9), 2)}
    assert {(pair["worker"], pair["other"]): pair["tasks"] for pair in pairs} == shared
    assert [pair["tasks"] for pair in pairs] == sorted(shared.values(), reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_of_classes_are_those_of_one_class_against_the_rest(seed: int) -> None:
    matrix = random_crowd(seed)
    for row in lo.agreement(lo.Annotations.from_matrix(matrix)).classes.to_pylist():
        of_class = np.where(matrix < 0, -1, matrix == row["label"])
        alone = lo.agreement(lo.Annotations.from_matrix(of_class))
        assert_allclose([row["alpha"], row["alpha_low"], row["alpha_high"]], ends(alone.alpha), rtol=1e-9)
        again = [of_class[t, w] for t, v in zip(*np.nonzero(of_class == 1), strict=True) for w in range(9) if w != v]
        assert_allclose(row["agreement"], np.mean([one for one in again if one >= 0]), rtol=1e-9)


def test_two_labels_that_differ_or_agreement_of_all_leave_intervals_a_width() -> None:
    matrix = [[0, 0], [0, 0], [0, 0], [0, 1], [2, 2]]
    rows = lo.agreement(lo.Annotations.from_matrix(matrix)).classes.to_pylist()
    of_one, of_two = rows[1], rows[2]
    assert (of_one["agreement"], of_one["agreement_low"]) == (0.0, 0.0)
    assert_allclose(of_one["agreement_high"], 1.645**2 / (1 + 1.645**2), rtol=1e-3)  # Wilson's interval of 0 of 1
    assert_allclose(of_two["agreement_low"], 1 / (1 + 1.645**2), rtol=1e-3)  # and of 1 of 1
    found = lo.agreement(lo.Annotations.from_matrix([[0, 0], [1, 1]] * 20))
    assert (found.alpha.value, found.alpha.high) == (1.0, 1.0)
    assert 0.8 < found.alpha.low < found.percent.low < 1
    assert 0.8 < found.pairs.to_pylist()[0]["kappa_low"] < 1


def ends(figure: Figure | None) -> list[float]:
    assert figure is not None
    return [figure.value, figure.low, figure.high]


NAMES = ["percent", "fleiss_kappa", "alpha", "alpha_ordinal", "alpha_interval"]


@pytest.mark.parametrize("name", NAMES)
def test_intervals_are_as_wide_as_those_of_a_bootstrap_over_tasks(name: str) -> None:
    matrix, rng = random_crowd(1), np.random.default_rng(0)
    draws = [matrix[rng.integers(60, size=60)] for _ in range(300)]
    values = [getattr(lo.agreement(lo.Annotations.from_matrix(one)), name).value for one in draws]
    _, low, high = ends(getattr(lo.agreement(lo.Annotations.from_matrix(matrix)), name))
    assert_allclose(high - low, 2 * 1.671 * np.std(values), rtol=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_intervals_are_those_of_leaving_out_one_task_at_a_time(name: str) -> None:
    matrix = np.concatenate([random_crowd(seed) for seed in range(6)])
    left_out = [lo.agreement(lo.Annotations.from_matrix(np.delete(matrix, i, axis=0))) for i in range(len(matrix))]
    values = np.array([getattr(one, name).value for one in left_out])
    error = np.sqrt((len(values) - 1) * values.var())
    found = getattr(lo.agreement(lo.Annotations.from_matrix(matrix)), name)
    assert_allclose((found.high - found.low) / 2, 1.649 * error, rtol=0.01)


def test_own_repeated_labels_do_not_count_and_questions_are_compared_by_task() -> None:
    rows: Any = ([1, 1, 1, 2, 2], ["a", "a", "b", "a", "a"], ["x", "y", "y", "x", "x"])
    found = lo.agreement(lo.Annotations.from_arrays(*rows, duplicates="keep"))
    assert (found.n_tasks, found.n_annotations, found.percent.value) == (1, 2, 1.0)
    rows = ([1, 1, 1, 1], ["dog", "dog", "sea", "sea"], ["a", "b", "a", "b"], ["yes", "yes", "no", "yes"])
    found = lo.agreement(lo.MultiLabelAnnotations.from_arrays(*rows))
    assert (found.n_tasks, found.percent.value) == (2, 0.5)


def test_order_and_names_of_labels_and_workers_do_not_matter() -> None:
    matrix = random_crowd(2)
    names = np.array(["d", "a", "c", "b"], dtype=object)
    renamed: Any = np.where(matrix < 0, None, names[matrix])
    one = lo.agreement(lo.Annotations.from_matrix(matrix))
    other = lo.agreement(lo.Annotations.from_matrix(renamed[:, ::-1]), order=names.tolist())
    for name in NAMES:
        assert_allclose(ends(getattr(one, name)), ends(getattr(other, name)), rtol=1e-9)


def test_words_have_no_order_unless_it_is_said() -> None:
    ann = lo.Annotations.from_matrix([["no", "maybe"], ["yes", "yes"], ["no", "no"], ["maybe", "yes"]])
    assert lo.agreement(ann).alpha_ordinal is None
    assert "weighted_kappa" not in lo.agreement(ann).pairs.column_names
    assert lo.agreement(ann, order=["no", "maybe", "yes"]).alpha_ordinal is not None
    with pytest.raises(ValueError, match=r"order must name every label.* got none for 'maybe'"):
        lo.agreement(ann, order=["no", "yes"])


@pytest.mark.parametrize("matrix", [[[0, -1], [-1, 1]], [[0, 0], [0, 0]], [[0, 1]]])
def test_what_the_labels_do_not_tell_is_unknown(matrix: Any) -> None:
    found = lo.agreement(lo.Annotations.from_matrix(matrix))
    assert str(found.alpha).startswith("unknown") or np.isnan(found.alpha.low)
    assert found.to_dict()["alpha"]["low"] is None
    assert len(found.pairs) in (0, 1)


@pytest.mark.slow
def test_a_million_labels_take_seconds_and_no_array_of_tasks_by_workers() -> None:
    rng = np.random.default_rng(0)
    task, worker, label = np.repeat(np.arange(200_000), 5), rng.integers(5000, size=10**6), rng.integers(10, size=10**6)
    ann = lo.Annotations.from_arrays(task, worker, label, duplicates="last")
    found = lo.agreement(ann)
    assert len(found.pairs) > 10**6
    assert abs(found.alpha.value) < 0.01
