"""The guide "Label with your team", run as it is written: from a folder of images to a trained model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service_crowd import free_port

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "label-with-your-team.md").read_text()
COMMANDS = [
    line[2:]
    for block in re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
    for line in block.splitlines()
    if line[:2] == "$ "
]


def shell(command: str, folder: Path) -> str:
    """Run a command of the guide and return what it printed."""
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which `labelonce` is this source, whether it is installed or not."""
    tool = folder / "bin" / "labelonce"
    if not tool.exists():
        tool.parent.mkdir()
        tool.write_text(f"#!{sys.executable}\nfrom labelonce.cli import main\nmain()\n")
        tool.chmod(0o755)
    paths = os.pathsep.join(path for path in sys.path if path)
    return os.environ | {"PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": paths}


def ask(url: str, token: str, body: Any = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code != 429:  # faster than people label: the service says how long to wait
                raise
            time.sleep(int(error.headers["Retry-After"]))


def photos(folder: Path, n: int, rng: np.random.Generator) -> None:
    """Draw reddish cats and bluish dogs."""
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'labelonce[images]'")
    folder.mkdir()
    for place in range(n):
        pixels = rng.integers(0, 90, (20, 20, 3)) + np.array([150, 20, 20] if place % 2 else [20, 20, 150])
        image.fromarray(pixels.astype(np.uint8)).save(folder / f"{place}.png")


def label(url: str, token: str) -> None:
    """Label by the colour, until nothing is left."""
    import io

    from PIL import Image

    while True:
        task = json.loads(ask(f"{url}/api/next", token))["task"]
        if task is None:
            return
        red, _, blue = np.asarray(Image.open(io.BytesIO(ask(f"{url}/api/image?task={task}", token)))).mean(axis=(0, 1))
        answer = "cat" if red > blue else "dog"
        ask(f"{url}/api/annotations", token, {"key": task, "task": task, "label": answer})


@pytest.mark.slow
@pytest.mark.neural
def test_from_a_folder_of_images_to_a_trained_model(tmp_path: Path) -> None:
    project, serve, export, train, predict = COMMANDS
    rng, port = np.random.default_rng(0), free_port()
    photos(tmp_path / "photos", 24, rng)
    photos(tmp_path / "more_photos", 6, rng)
    links = dict(re.findall(r"^(\w+): \S+#token=(\S+)$", shell(project, tmp_path), re.MULTILINE))
    url = f"http://127.0.0.1:{port}"
    service = subprocess.Popen([*serve.split(), "--port", str(port)], cwd=tmp_path, env=environment(tmp_path))
    try:
        for _ in range(1200):
            try:
                ask(f"{url}/health", "")
            except OSError:
                time.sleep(0.1)
            else:
                break
        for worker in ("ann", "bob"):
            label(url, links[worker])
        shell(export.replace("TOKEN", links["dashboard"]).replace("http://127.0.0.1:8080", url), tmp_path)
    finally:
        service.send_signal(signal.SIGINT)
        service.wait(60)
    shell(train, tmp_path)
    shell(predict, tmp_path)
    rows = (tmp_path / "predicted.csv").read_text().splitlines()[1:]
    right = [("cat" if int(row.split(",")[0].strip('"').removesuffix(".png")) % 2 else "dog") in row for row in rows]
    assert len(right) == 6
    assert sum(right) >= 5


def test_the_container_installs_extras_that_exist_and_calls_the_command_as_it_is() -> None:
    text = (ROOT / "Containerfile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = re.search(r"/source\[([a-z,]+)\]", text)
    assert found is not None
    assert set(found[1].split(",")) <= set(extras)
    copied = re.search(r"^COPY (.*) /source/$", text, re.MULTILINE)
    assert copied is not None
    assert all((ROOT / name).is_file() for name in copied[1].split())
    entry = re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert entry is not None
    assert json.loads(entry[1])[:2] == ["labelonce", "serve"]
