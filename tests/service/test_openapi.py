"""The OpenAPI description against the service: whatever is sent, nothing answers with a 5xx."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from service_projects import boxes_project, serving, text_project

from labelonce.service import Project

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
schemathesis = pytest.importorskip("schemathesis", reason="no schemathesis: pip install 'labelonce[dev]'")
REFUSED = (400, 401, 403, 404, 405, 409, 413, 422, 429)
OPERATIONS = 18


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    project = text_project(Path(tmp_path_factory.mktemp("openapi")), requests_per_second=1e6)
    tokens = [project.add_workers(["ann"])["ann"], project.add_admin()]
    with serving(project) as http:
        yield str(http.base_url), tokens


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # schemathesis' own
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_makes_the_service_fail(served: tuple[str, list[str]], mode: str) -> None:
    base, tokens = served
    schema = schemathesis.openapi.from_url(f"{base}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == OPERATIONS
    for operation in operations:
        if mode == "negative" and not (operation.body or operation.query or operation.path_parameters):
            continue  # nothing to get wrong
        _try(operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)), base, tokens)


@pytest.mark.slow
@pytest.mark.parametrize("role", ["worker", "admin"])
@pytest.mark.parametrize("make", [text_project, boxes_project], ids=["buttons", "boxes"])
def test_schemathesis_finds_nothing(tmp_path: Path, make: Callable[..., Project], role: str) -> None:
    project = make(tmp_path, requests_per_second=1e6)
    token = project.add_workers(["ann"])["ann"] if role == "worker" else project.add_admin()
    code = "from schemathesis.cli import schemathesis; schemathesis()"
    with serving(project) as http:
        command = [sys.executable, "-c", code, "run", f"{http.base_url}/openapi.json", "--checks", "all", "--no-color"]
        command += ["-H", f"Authorization: Bearer {token}", "--max-examples", "20", "--seed", "1"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-5000:]
    assert f"{OPERATIONS} selected" in run.stdout


def _try(cases: Any, base: str, tokens: list[str]) -> None:
    @settings(max_examples=15, suppress_health_check=list(HealthCheck), derandomize=True, deadline=None)
    @given(case=cases)
    def tried(case: Any) -> None:
        for token in tokens:
            answer = case.call(base_url=base, headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code in (200, 201, 202, *REFUSED)
            if answer.status_code == 200:
                case.operation.validate_response(answer)

    tried()
