"""The guides "Label with your team" and "With Label Studio", their commands run as they are written."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from label_studio_played import played
from service_guides import ROOT, ask, commands, labelled_there, served, shell

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")


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
    project, serve, export, train, predict = commands("label-with-your-team.md")
    rng = np.random.default_rng(0)
    photos(tmp_path / "photos", 24, rng)
    photos(tmp_path / "more_photos", 6, rng)
    links = dict(re.findall(r"^(\w+): \S+#token=(\S+)$", shell(project, tmp_path), re.MULTILINE))
    with served(serve, tmp_path) as url:
        for worker in ("ann", "bob"):
            label(url, links[worker])
        shell(export.replace("TOKEN", links["dashboard"]).replace("http://127.0.0.1:8080", url), tmp_path)
    shell(train, tmp_path)
    shell(predict, tmp_path)
    rows = (tmp_path / "predicted.csv").read_text().splitlines()[1:]
    right = [("cat" if int(row.split(",")[0].strip('"').removesuffix(".png")) % 2 else "dog") in row for row in rows]
    assert len(right) == 6
    assert sum(right) >= 5


def test_the_project_of_a_label_studio_is_made_and_served(tmp_path: Path) -> None:
    with played() as studio:
        found = labelled_there(studio.address, 1, "key", tmp_path, lambda: studio.annotate("dog"))
    assert found == ["dog"]
    assert (tmp_path / "pets" / "project.toml").is_file()
    assert {"POST /api/ml", "POST /api/dm/views"} <= set(studio.asked)
    assert studio.keys == {"Token key"}


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


def test_the_files_of_deploy_name_what_is_there() -> None:
    yaml = pytest.importorskip("yaml", reason="no PyYAML: pip install 'labelonce[docs]'")
    folder = ROOT / "deploy"
    services = yaml.safe_load((folder / "compose.yaml").read_text())["services"]
    build = services["labelonce"]["build"]
    assert (folder / build["context"] / build["dockerfile"]).is_file()
    mounted = services["proxy"]["volumes"][0].partition(":")[0]
    assert "server labelonce:8080;" in (folder / mounted).read_text()
    assert services["labelonce"]["environment"]["LABELONCE_DATABASE"].startswith("postgresql://labelonce:${POSTGRES")
    unit = (folder / "labelonce@.service").read_text()
    words = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0].split()
    assert words[1:] == ["serve", "/var/lib/labelonce/project", "--port", "%i"]
    assert "ReadWritePaths=/var/lib/labelonce/project" in unit
