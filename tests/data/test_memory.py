"""What does not fit is refused before it is allocated."""

from pathlib import Path

import pytest

from labelonce.data import _memory
from labelonce.data._memory import available_memory, check_memory


def test_what_fits_passes_and_what_does_not_says_how_much_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "available_memory", lambda: 2.0**30)
    check_memory(0.9 * 2**30, "This", "Use less.")
    with pytest.raises(ValueError, match=r"^This must fit .* got 1\.5 GiB of arrays with 1 GiB free\. Use less\.$"):
        check_memory(1.5 * 2**30, "This", "Use less.")


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "_CGROUP", tmp_path)
    free = available_memory()
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("400000\n")
    (tmp_path / "memory.stat").write_text("anon 300000\ninactive_file 100000\n")
    assert available_memory() == 700_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() == pytest.approx(free, rel=0.5)


def test_a_system_that_does_not_tell_is_not_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_memory, "_machine_memory", lambda: float("inf"))
    monkeypatch.setattr(_memory, "_CGROUP", Path("nowhere"))
    check_memory(1e30, "This", "Use less.")
