"""kill -9 under load, a few times; benchmarks/service_load.py does it twenty times."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from service_crowd import Log, Server, work

from labelonce.service import Project

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")

KILLS = 3


def numbered_project(folder: Path, n: int) -> Project:
    (folder / "many.csv").write_text("task\n" + "\n".join(str(i) for i in range(n)) + "\n")
    settings = {"learn_from": "nothing", "refit_every": 20, "requests_per_second": 10_000.0}
    return Project.make(folder / "many", folder / "many.csv", ["cat", "dog"], **settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_acknowledged_answer_survives_a_kill_and_none_is_there_twice(tmp_path: Path) -> None:
    project = numbered_project(tmp_path, 2_000)
    tokens = project.add_workers([f"w{i}" for i in range(8)])
    server, log = Server(project.folder), Log()
    server.start()

    async def shift() -> None:
        killed = 0
        options = {"pause": 0.02, "classes": ["cat", "dog"]}
        workers = [
            asyncio.create_task(work(server.port, worker, token, lambda: killed < KILLS, log, **options))  # type: ignore[arg-type]
            for worker, token in tokens.items()
        ]
        for _ in range(KILLS):
            before = len(log.kept)
            while len(log.kept) < before + 20:
                await asyncio.sleep(0.01)
            server.kill()
            await asyncio.to_thread(server.start)
            killed += 1
        await asyncio.gather(*workers)

    asyncio.run(shift())
    server.kill()
    store = project.store()
    rows = store.answers()
    store.close()
    found = {f"{row.worker} {row.key}": (row.worker, row.task, row.label) for row in rows}
    assert len(log.kept) >= 20 * KILLS
    assert log.kept.items() <= found.items()
    assert len(found) == len(rows) == len({(row.worker, row.task) for row in rows})
    assert max(log.codes) < 500
