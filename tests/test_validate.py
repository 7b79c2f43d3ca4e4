"""Every check returns what is right in one form, and says what is wrong with the value and the place."""

from typing import Any

import numpy as np
import pytest

from labelonce import _validate


def test_columns_of_one_length_return_it_up_to_the_largest() -> None:
    assert _validate.check_columns(task=[1, 2], worker=np.arange(2), label=("a", "b")) == 2
    assert _validate.check_count(2**31 - 1) == 2**31 - 1


def test_a_choice_returns_itself_or_is_refused_with_the_value() -> None:
    assert _validate.check_choice("a", "engine", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="engine must be one of 'a', 'b'; got 'c'"):
        _validate.check_choice("c", "engine", ("a", "b"))


def test_numpy_integers_and_distributions_become_plain() -> None:
    assert type(_validate.check_int(np.int8(3), "redundancy", 1)) is int
    assert _validate.check_distribution([[0, 1]], "prior", (1, 2)).dtype == np.float64


@pytest.mark.parametrize("value", [0, 1.0, True, "1", None, np.bool_(True)])
def test_other_than_integers_in_range_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=f"redundancy must be an integer of at least 1; got {value!r}"):
        _validate.check_int(value, "redundancy", 1)


@pytest.mark.parametrize("value", [0, 0.5, np.float32(1), np.int8(1)])
def test_numbers_in_range_become_float(value: Any) -> None:
    assert type(_validate.check_number(value, "share", 0, 1)) is float


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_numbers_out_of_range_are_refused_with_the_bounds(value: float) -> None:
    with pytest.raises(ValueError, match=rf"share must be in \[0, 1\]; got {value}"):
        _validate.check_number(value, "share", 0, 1)


@pytest.mark.parametrize("value", [-1, np.inf, np.nan])
def test_numbers_outside_an_open_range_are_refused_with_the_bound(value: float) -> None:
    with pytest.raises(ValueError, match=f"tol must be at least 0; got {value}"):
        _validate.check_number(value, "tol", 0)


@pytest.mark.parametrize("value", [2**70, 2**2000, 10**400])
def test_huge_integers_are_refused_or_become_float(value: int) -> None:
    with pytest.raises(ValueError, match=r"rounds must be at most 2\^63 - 1; got "):
        _validate.check_int(value, "rounds", 1)
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\]; got "):
        _validate.check_number(value, "share", 0, 1)
    if value > 2**1100:
        with pytest.raises(ValueError, match="budget must be at least 0; got "):
            _validate.check_number(value, "budget", 0)


@pytest.mark.parametrize("value", [True, "1", None, 1j, np.complex128(1), [1]])
def test_other_than_numbers_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="share must be a number; got "):
        _validate.check_number(value, "share", 0, 1)


def test_a_seed_gives_the_same_draws_a_generator_is_used_itself_and_none_gives_others() -> None:
    assert _validate.check_rng(3).random() == _validate.check_rng(3).random()
    generator = np.random.default_rng()
    assert _validate.check_rng(generator) is generator
    assert _validate.check_rng(None).random() != _validate.check_rng(None).random()


@pytest.mark.parametrize("value", [-1, 0.5, True, "x"])
def test_other_seeds_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=f"random_state must be an integer of at least 0; got {value!r}"):
        _validate.check_rng(value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.5, 0], r"must have shape \(2,\); got \(3,\)"),
        ([1.5, -0.5], r"must be probabilities; got -0\.5 at \(1,\) \(1 in total\)"),
        ([np.nan, 1], r"must be probabilities; got nan at \(0,\)"),
        ([0.5, 0.6], r"must sum to 1; got 1\.1 at \(\) \(1 in total\)"),
    ],
)
def test_other_than_distributions_are_refused_with_the_place(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"prior {message}"):
        _validate.check_distribution(values, "prior", (2,))


@pytest.mark.parametrize("values", [["a", "b"], [[1], [1, 2]], [{}, 1]])
def test_other_than_numbers_are_no_distribution(values: Any) -> None:
    with pytest.raises(TypeError, match=r"prior must be an array of numbers; got \["):
        _validate.check_distribution(values, "prior", (2,))


@pytest.mark.parametrize("values", [[0, 2], np.array([0, 2], dtype=np.uint8), range(0, 4, 2)])
def test_codes_become_int32(values: Any) -> None:
    codes = _validate.check_codes(values, "label codes", 3)
    assert (codes.dtype.str, codes.tolist()) == ("<i4", [0, 2])


@pytest.mark.parametrize("bad", [-1, 3, 2**32])
def test_codes_out_of_range_are_refused_with_the_place(bad: int) -> None:
    with pytest.raises(ValueError, match=rf"label codes must be in \[0, 3\); got {bad} at position 1 \(2 in total\)"):
        _validate.check_codes([0, bad, bad], "label codes", 3)


@pytest.mark.parametrize(
    ("values", "shown"), [([0.0], "float64 of shape (1,)"), ([[0]], "int64 of shape (1, 1)"), (["a"], "<U1")]
)
def test_other_than_codes_are_refused_with_the_type(values: Any, shown: str) -> None:
    with pytest.raises(TypeError) as caught:
        _validate.check_codes(values, "label codes", 3)
    assert f"label codes must be a one-dimensional integer array; got {shown}" in str(caught.value)
