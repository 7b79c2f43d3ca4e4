"""What tests need: real data (`data`), torch (`neural`), skops. Without it they are skipped. No test asserts a time."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from label_studio_server import Server, running
from postgres_server import Postgres, why_not
from service_pages import chromium

settings.register_profile("labelonce", deadline=None)  # a busy machine is no defect
settings.load_profile("labelonce")

DATA_ROOT = Path(os.environ.get("LABELONCE_DATA") or Path(__file__).parents[2] / "shared" / "data").resolve()
os.environ["LABELONCE_DATA"] = str(DATA_ROOT)  # the tests must not depend on the current directory


os.environ["LABELONCE_EMBED"] = "none"  # a pretrained model is used where a test asks for it
TESTS = Path(__file__).parent
NEURAL = (
    "neural",
    "sharded",
    "_kernels/test_torch.py",
    "_kernels/test_processes.py",
    "experiments/test_cifar10_figure1.py",
    "experiments/test_image_trainings.py",
)
ABSENT = {
    "data": None
    if DATA_ROOT.is_dir()
    else f"no data sets at {DATA_ROOT}: set LABELONCE_DATA to the folder that holds them",
    "neural": None if find_spec("torch") else "no torch: pip install 'labelonce[neural]'",
}


def imports_torch(path: Path) -> bool:
    return any(path.is_relative_to(TESTS / name) for name in NEURAL)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if ABSENT["neural"] and imports_torch(collection_path) else None


def pytest_report_header() -> list[str]:
    return [f"{ABSENT['neural']}: {', '.join(NEURAL)} are left out"] if ABSENT["neural"] else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if imports_torch(item.path):
            item.add_marker("neural")
        for name, reason in ABSENT.items():
            if reason and item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def data_root() -> Path:
    """Return the folder of the real data sets; for tests marked `data`."""
    return DATA_ROOT


@pytest.fixture
def skops() -> None:
    """Skip a test that saves models where that is not possible."""
    pytest.importorskip("skops", reason="models are saved with skops: pip install skops", exc_type=ImportError)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Return Debian's Chromium, headless; for tests marked `needs_chromium`."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a real Label Studio, one for all tests that need it."""
    with running(tmp_path_factory.mktemp("label-studio")) as found:
        yield found


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Return a real PostgreSQL, one for all tests that need it; a test that stops it starts it again."""
    if reason := why_not():
        pytest.skip(reason)
    server = Postgres()
    yield server
    server.close()


@pytest.fixture
def database(postgres: Postgres) -> str:
    """Return the URL of an empty database."""
    return postgres.empty()
