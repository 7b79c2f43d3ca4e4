"""Where the real data lie: tests marked `data` are skipped without them. No test asserts a time."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("labelonce", deadline=None)  # a busy machine is no defect
settings.load_profile("labelonce")

DATA_ROOT = Path(os.environ.get("LABELONCE_DATA") or Path(__file__).parents[2] / "shared" / "data").resolve()
os.environ["LABELONCE_DATA"] = str(DATA_ROOT)  # the tests must not depend on the current directory


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if DATA_ROOT.is_dir():
        return
    skip = pytest.mark.skip(reason=f"no data sets at {DATA_ROOT}: set LABELONCE_DATA to the folder that holds them")
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(skip)


@pytest.fixture
def data_root() -> Path:
    """Return the folder of the real data sets; for tests marked `data`."""
    return DATA_ROOT


@pytest.fixture
def skops() -> None:
    """Skip a test that saves models where that is not possible."""
    pytest.importorskip("skops", reason="models are saved with skops: pip install skops", exc_type=ImportError)
