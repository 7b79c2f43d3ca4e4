"""Beliefs: what is said of those on slots is true of the array of all classes, and dense ones are that array."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from labelonce._kernels import Beliefs, entropy, mean_beliefs, mean_total_variation


def some(seed: int) -> Beliefs:
    """Return beliefs about 20 rows of six classes on three slots, one of them empty."""
    rng = np.random.default_rng(seed)
    classes = np.stack([rng.permutation(6)[:3] for _ in range(20)]).astype(np.int32)
    mass = rng.dirichlet(np.ones(4), 20)
    classes[0, 2] = -1
    mass[0] = [0.2, 0.3, 0.0, 0.5]
    return Beliefs(mass[:, :3], 6, classes, mass[:, 3])


def test_what_is_said_of_slots_is_true_of_the_dense_array() -> None:
    one, other = some(0), some(1)
    dense, row, label = Beliefs.of(np.asarray(one)), np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    assert_allclose(dense.probability.sum(axis=1), 1)
    assert_allclose(one.at(row, label), dense.at(row, label))
    assert_allclose(one.information(), 1 - entropy(dense.probability) / np.log(6), atol=1e-12)
    weight = np.random.default_rng(2).random(20)
    assert_allclose(one.class_counts(weight), dense.class_counts(weight))
    assert one.change(other) == pytest.approx(mean_total_variation(one.to_dense(), other.to_dense()), abs=1e-12)
    assert_allclose(np.asarray(Beliefs.from_dense(dense.probability, 6)), dense.probability, atol=1e-12)
    assert_allclose(np.asarray(one[3:5]), dense.probability[3:5])


def test_dense_beliefs_are_the_array_itself_and_refused_where_too_large() -> None:
    array = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    found = Beliefs.of(array)
    assert found.to_dense() is array
    assert found.shown() is array
    assert found.wide() is array
    many = Beliefs(np.ones((200_000, 1)), 1000, np.zeros((200_000, 1), np.int32), np.zeros(200_000))
    with pytest.raises(ValueError, match="200,000 rows x 1,000 classes"):
        many.to_dense()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_probability_of_zero_has_no_entropy(dtype: str) -> None:
    classes, rest = np.array([[0, 1], [2, -1]], np.int32), np.array([0.0, 0.5], dtype)
    sure = Beliefs(np.array([[1.0, 0.0], [0.5, 0.0]], dtype), 3, classes, rest)
    assert_allclose(sure.information(), [1.0, 1 - 1.5 * np.log(2) / np.log(3)], atol=1e-6)


def test_the_top_classes_and_other_slots_hold_the_same_beliefs() -> None:
    one = some(0)
    top = one.top(2)
    assert_array_equal(top.argmax(), one.argmax())
    assert_allclose(top.probability[:, 0], one.max())
    assert_allclose(top.probability.sum(axis=1) + top.rest, 1)
    everything = np.tile(np.arange(6, dtype=np.int32), (20, 1))
    assert_allclose(one.on(everything).probability, one.to_dense(), atol=1e-12)
    assert_allclose(np.asarray(one.on(everything[:, ::-1])), one.to_dense(), atol=1e-12)
    assert one.on(None).classes is None


def test_gold_is_certain() -> None:
    one = some(0)
    gold = np.where(np.arange(20) < 5, one.codes[:, 1], -1)
    found = one.with_gold(gold)
    assert_array_equal(found.argmax()[:5], gold[:5])
    assert_allclose(found.max()[:5], 1)
    assert_allclose(np.asarray(found[5:]), np.asarray(one[5:]))


def test_joined_parts_means_and_ties() -> None:
    one = some(0)
    both = Beliefs.joined([one[:7].top(2), one[7:]])
    assert len(both) == 20
    assert_allclose(np.asarray(both[7:]), np.asarray(one[7:]))
    sure = one.one_hot()
    assert_allclose(
        np.asarray(mean_beliefs([one, sure], [0.25, 0.75])), 0.25 * np.asarray(one) + 0.75 * np.asarray(sure)
    )
    tied = Beliefs.of(np.array([[0.4, 0.4, 0.2], [0.1, 0.8, 0.1]]))
    assert_array_equal(tied.tied_with(np.array([0, 1])), [2, 1])
    assert_allclose(tied.share_right(np.array([1, 1]), 1e-9), [0.5, 1.0])


@pytest.mark.parametrize("dense", [True, False])
def test_drawn_classes_are_as_frequent_as_they_are_probable(dense: bool) -> None:
    beliefs, rng = Beliefs.of(np.asarray(some(0))) if dense else some(0), np.random.default_rng(0)
    drawn = [beliefs.drawn(rng) for _ in range(4_000)]
    assert all(np.isin(one.wide(), (0, 1)).all() and (one.wide().sum(axis=1) == 1).all() for one in drawn[:10])
    assert_allclose(np.mean([one.wide() for one in drawn], axis=0), beliefs.wide(), atol=0.04)
    assert not any(one.wide()[beliefs.wide() == 0].any() for one in drawn)
