"""Memory is checked before it is allocated: the machine's free memory, and the error if it is too little."""

import os
import sys
from pathlib import Path

_SPARE = 0.9  # of what is free: the rest is for everything that nobody counts
MOST_NUMBERS = 2**27  # of arrays by task and class, and by worker, class and class: 1 GiB
_CGROUP = Path("/sys/fs/cgroup")


def is_large(n_tasks: int, n_workers: int, n_classes: int) -> bool:
    """Return whether posteriors and confusion are kept without an entry for every class: above 2^27 numbers.

    The one rule that decides. Below, `posterior_` is an array; above, `Beliefs`.

    >>> is_large(n_tasks=50_000, n_workers=1000, n_classes=100), is_large(1000, 1000, 1000)
    (False, True)
    """
    return n_tasks * n_classes + n_workers * n_classes**2 > MOST_NUMBERS


def label_memory(n_annotations: int, n_tasks: int) -> float:
    """Return the approximate bytes of a fit whose memory depends on the labels, not on the number of classes."""
    return 8.0 * (20 * n_annotations + 20 * n_tasks)


def available_memory() -> float:
    """Return how many bytes this process can still use; infinity where the system does not report it."""
    return min(_machine_memory(), _container_memory())


def check_memory(wanted: float, what: str, instead: str) -> None:
    """Raise if the `wanted` bytes do not fit; `what` would need them, `instead` says what to do."""
    there = available_memory()
    if wanted > _SPARE * there:
        raise ValueError(
            f"{what} must fit into the memory; got {_size(wanted)} of arrays with {_size(there)} free. {instead}"
        )


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.3g} PiB"


def _machine_memory() -> float:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return _free_pages()
    found = {line.partition(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    return 1024.0 * int(found["MemAvailable"]) if "MemAvailable" in found else _free_pages()


def _free_pages() -> float:
    if sys.platform == "win32":
        return float("inf")
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (OSError, ValueError):
        return float("inf")


def _container_memory() -> float:
    """Return the memory left under a container's limit (cgroups version 2 or 1); cached files count as free."""
    for folder, limit, used, cached in (
        (_CGROUP, "memory.max", "memory.current", "inactive_file"),
        (_CGROUP / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            allowed, taken = (int((folder / name).read_text()) for name in (limit, used))
            rows = [line.split() for line in (folder / "memory.stat").read_text().splitlines()]
        except (OSError, ValueError):  # no such limit, or "max"
            continue
        return float(allowed - taken + sum(int(row[1]) for row in rows if row[0] == cached))
    return float("inf")
