"""Multi-label metrics agree with scikit-learn, and leave out what is unknown."""

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics

from labelonce.multilabel import (
    average_precision,
    bootstrap_interval,
    exact_match,
    f1_score,
    hamming_loss,
    mean_average_precision,
)


@pytest.fixture
def answers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    true = (rng.random((200, 5)) < [0.1, 0.3, 0.5, 0.8, 0.02]).astype(int)
    score = np.round(np.clip(0.5 * true + rng.normal(0.3, 0.3, true.shape), 0, 1), 1)  # with ties
    return true, score


@pytest.mark.parametrize("average", ["micro", "macro", None])
def test_f1_is_that_of_scikit_learn(answers: tuple[np.ndarray, np.ndarray], average: str | None) -> None:
    true, score = answers
    given = (score > 0.5).astype(int)
    wanted = sklearn_metrics.f1_score(true, given, average=average, zero_division=0)
    np.testing.assert_allclose(f1_score(true, given, average=average), wanted, rtol=1e-12)


def test_average_precision_is_that_of_scikit_learn(answers: tuple[np.ndarray, np.ndarray]) -> None:
    true, score = answers
    wanted = sklearn_metrics.average_precision_score(true, score, average=None)
    np.testing.assert_allclose(average_precision(true, score), wanted, rtol=1e-12)
    assert mean_average_precision(true, score) == pytest.approx(np.mean(wanted), rel=1e-12)


def test_hamming_loss_and_exact_match_are_those_of_scikit_learn(answers: tuple[np.ndarray, np.ndarray]) -> None:
    true, score = answers
    given = (score > 0.5).astype(int)
    assert hamming_loss(true, given) == pytest.approx(sklearn_metrics.hamming_loss(true, given), rel=1e-12)
    assert exact_match(true, given) == pytest.approx(sklearn_metrics.accuracy_score(true, given), rel=1e-12)


def test_what_is_unknown_does_not_count(answers: tuple[np.ndarray, np.ndarray]) -> None:
    true, score = answers
    hidden = true.copy()
    hidden[:100, 1] = -1
    wanted = sklearn_metrics.average_precision_score(true[100:, 1], score[100:, 1])
    assert average_precision(hidden, score)[1] == pytest.approx(wanted, rel=1e-12)
    given = (score > 0.5).astype(int)
    wrong = np.where(hidden == -1, 1 - given, given)
    assert f1_score(hidden, wrong) == f1_score(hidden, given)


def test_the_interval_covers_the_true_value() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(60):
        true = (rng.random((150, 3)) < 0.5).astype(int)
        given = np.where(rng.random(true.shape) < 0.8, true, 1 - true)
        _, low, high = bootstrap_interval(hamming_loss, true, given, n_draws=200, random_state=rng)
        covered += low <= 0.2 <= high
    assert 47 <= covered <= 60  # 54 expected at a level of 0.9, standard deviation 2.3


@pytest.mark.parametrize(
    ("true", "given", "sentence"),
    [
        ([[1, 0]], [[1]], r"got \(1, 2\) and \(1, 1\)"),
        ([[2, 0]], [[1, 0]], r"got 2\.0 \(1 in total\)"),
        ([[-1]], [[1]], "got none of 1"),
        ([[1]], [[0.5]], r"got 0\.5"),
    ],
)
def test_wrong_arguments_are_named(true: object, given: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        f1_score(true, given)
