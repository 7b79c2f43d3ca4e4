"""Projects whose texts or images are numbers of a pretrained model: encoded when they are made, and as they come."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_in_process
from PIL import Image
from pyarrow import parquet
from service_projects import given, newest
from small_files import written

from labelonce import runs
from labelonce.embed import _embed
from labelonce.service import Project
from labelonce.service import _fit as fits
from labelonce.service._store import Answer

pytestmark = pytest.mark.usefixtures("skops")
TEXTS = [f"{word} {number}" for word in ("good", "bad") for number in range(10)]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a model of both kinds, whose vectors tell good from bad and red from blue."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "preprocessor_config.json", "model.safetensors"):
        (folder / name).write_text("{}")

    def of_text(texts: Any) -> Any:
        return np.array([[text.startswith("good"), len(text)] for text in texts], dtype=np.float32)

    def of_image(images: Any) -> Any:
        return np.array([np.asarray(image).mean(axis=(0, 1)) for image in images], dtype=np.float32)

    monkeypatch.setattr(_embed, "text_encoder", lambda _: of_text)
    monkeypatch.setattr(_embed, "image_encoder", lambda _: of_image)
    monkeypatch.setenv("LABELONCE_CACHE", str(tmp_path / "cache"))
    return folder


def encoded(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """Return a list that gets the size of every batch which is encoded."""
    sizes: list[int] = []
    encoder = getattr(_embed, name)(Path())

    def encode(batch: Any) -> Any:
        sizes.append(len(batch))
        return encoder(batch)

    monkeypatch.setattr(_embed, name, lambda _: encode)
    return sizes


def answer(project: Project, n: int) -> None:
    """Let two workers label tasks, all right."""
    names, half = project.tasks.names, len(project.tasks) // 2
    given(project, [Answer(f"w{i % 2}", f"k{i}", names[i], "yes" if i < half else "no") for i in range(n)])


def make(folder: Path, tasks: Path, model: Path, *more: str) -> Project:
    made = ["project", str(folder / "project"), "--tasks", str(tasks), "--classes", "yes,no", "--workers", "ann"]
    assert run_in_process([*made, "--embed", str(model), *more]) == 0
    return Project(folder / "project")


def test_texts_are_encoded_when_the_project_is_made_and_as_they_come(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = encoded(monkeypatch, "text_encoder")
    tasks = tmp_path / "tasks.csv"
    tasks.write_text("task,text\n" + "".join(f"t{place},{text}\n" for place, text in enumerate(TEXTS)))
    project = make(tmp_path, tasks, model, "--text", "text")
    assert (project.settings.learn_from, project.settings.embed, sizes) == ("text", str(model), [20])
    answer(project, 20)
    assert fits.main(project.folder) == 0
    assert sizes == [20]
    with (project.folder / "tasks.csv").open("a") as file:
        file.write("t20,good and new\n")
    assert fits.main(project.folder) == 0
    assert sizes == [20, 1]
    found = newest(Project(project.folder))
    assert found.fit.posterior[20].argmax() == 0
    assert runs.read_run(project.fits / "000002" / "run").options.embed == str(model)


def test_images_are_numbers_of_the_model_and_unreadable_ones_teach_nothing(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = encoded(monkeypatch, "image_encoder")
    (tmp_path / "photos").mkdir()
    for place in range(20):
        colour = (200, 20 + place, 20) if place < 10 else (20, 20 + place, 200)
        Image.new("RGB", (8, 8), colour).save(tmp_path / "photos" / f"{place:02d}.png")
    project = make(tmp_path, tmp_path / "photos", model)
    assert (project.settings.embed, sizes) == (str(model), [20])
    answer(project, 20)
    (file,) = project.fits.glob("embedded-*.parquet")
    assert parquet.read_table(file).num_columns == 4
    file.unlink()
    (project.folder / "images" / "03.png").write_bytes(b"no image any more")
    assert fits.main(project.folder) == 0
    assert sizes == [20]
    found = newest(project)
    assert found.about["unreadable"] == ["03.png"]
    assert (found.fit.posterior.argmax(axis=1)[[0, 9, 10, 19]] == [0, 0, 1, 1]).all()


def test_a_project_without_a_model_says_so_in_its_settings(tmp_path: Path) -> None:
    tasks = written(tmp_path / "tasks.csv", "task,text\na,one\nb,two\n")
    assert Project.make(tmp_path / "plain", tasks, ["yes", "no"], text="text").settings.embed == ""
    assert Project.make(tmp_path / "none", tasks, ["yes", "no"], text="text", embed="none").settings.embed == ""
    with pytest.raises(ValueError, match="embed must go with texts or images; got 'x/y' for nothing"):
        Project.make(tmp_path / "numbers", tasks, ["yes", "no"], embed="x/y")
