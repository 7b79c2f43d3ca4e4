"""Strings packed in two arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelonce.data._packed_strings import PackedStrings


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_what_is_packed_comes_out_again(strings: list[str]) -> None:
    assert PackedStrings.of(strings).unpack().tolist() == strings


def test_lengths_beyond_the_text_give_short_strings_not_foreign_memory() -> None:
    assert PackedStrings(b"cat", np.array([2, 1000])).unpack().tolist() == ["ca", "t"]


def test_something_else_than_strings_is_refused() -> None:
    with pytest.raises(TypeError, match="int found"):
        PackedStrings.of(["a", 1])  # type: ignore[list-item]
