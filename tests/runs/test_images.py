"""Images: which belongs to which task, what a network is fed, and what is refused."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Capture, output_of, refused
from commands import run as labelonce
from numpy.testing import assert_array_equal
from PIL import Image
from pyarrow import parquet

import labelonce as lo
from labelonce import runs
from labelonce.runs import _doors, _images, _train
from labelonce.runs._images import Images, network_for, read_images, read_new_images

COLOURS = {"red": (230, 30, 30), "green": (20, 220, 20), "blue": (10, 40, 240)}


def paint(path: Path, colour: Any, mode: str = "RGB", size: tuple[int, int] = (20, 10)) -> None:
    Image.new(mode, size, colour).save(path)


def annotations(folder: Path, tasks: list[Any], column: list[str] | None = None) -> tuple[Path, lo.Annotations]:
    names = [""] * len(tasks) if column is None else [f",{name}" for name in column]
    lines = [f"{task},w,{label % 2}{name}" for label, (task, name) in enumerate(zip(tasks, names, strict=True))]
    labels = folder / "labels.csv"
    labels.write_text("\n".join(["task,worker,label" + (",image" if column else ""), *lines, ""]))
    return labels, lo.read_annotations(labels)


def read(folder: Path, tasks: list[Any], column: list[str] | None = None, size: int = 16) -> Images:
    (folder / "photos").mkdir(exist_ok=True)
    labels, ann = annotations(folder, tasks, column)
    return read_images(folder / "photos", size, labels, ann, task="task")


def first_colours(X: Any) -> list[tuple[int, ...]]:
    return [tuple(image[0, 0].tolist()) for image in X]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    made = tmp_path / "photos"
    made.mkdir()
    for task, colour in ((3, "red"), (10, "green"), (7, "blue")):
        paint(made / f"{task}.png", COLOURS[colour])
    (made / "notes.txt").write_text("no image")
    (made / ".hidden.png").write_bytes(b"")
    return made


def test_a_file_is_named_by_its_task_with_or_without_suffix_or_by_a_column(photos: Path) -> None:
    found = read(photos.parent, [10, 3])
    assert found.rows.tasks.tolist() == [3, 10, 7] or found.rows.tasks.tolist() == [10, 3, 7]
    assert found.rows.X.shape == (3, 16, 16, 3)
    by_task = dict(zip(found.rows.tasks.tolist(), first_colours(found.rows.X), strict=True))
    assert by_task == {3: COLOURS["red"], 10: COLOURS["green"], 7: COLOURS["blue"]}  # 7 is nobody's: unlabelled
    assert [path.name for path in found.paths] == [f"{task}.png" for task in found.rows.tasks]
    assert found.named == "stem"
    paint(photos / "3.bmp", COLOURS["blue"])
    found = read(photos.parent, ["3.png", "7.png"])
    assert found.named == "name"
    assert sorted(found.rows.tasks.tolist()) == ["10.png", "3.bmp", "3.png", "7.png"]
    (photos / "more").mkdir()
    paint(photos / "more" / "x.png", COLOURS["blue"])
    found = read(photos.parent, ["a", "b"], ["3.png", "more/x.png"])
    assert (found.rows.tasks.tolist(), found.named) == (["a", "b"], "column")
    assert first_colours(found.rows.X) == [COLOURS["red"], COLOURS["blue"]]


def test_images_of_every_kind_become_upright_rgb_squares(tmp_path: Path) -> None:
    made = tmp_path / "photos"
    made.mkdir()
    paint(made / "grey.png", 100, "L")
    paint(made / "alpha.png", (0, 0, 0, 0), "RGBA")
    Image.fromarray(np.full((9, 9), 25_700, dtype=np.uint16)).save(made / "deep.png")
    paint(made / "photo.jpg", (100, 100, 100), size=(300, 200))
    turned = Image.new("RGB", (20, 20), COLOURS["red"])
    turned.paste(COLOURS["blue"], (0, 0, 20, 10))
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    turned.save(made / "turned.png", exif=exif)
    rows = read_new_images(made, 16, "name")
    assert rows.tasks.tolist() == ["alpha.png", "deep.png", "grey.png", "photo.jpg", "turned.png"]
    white, grey = (255, 255, 255), (100, 100, 100)
    assert first_colours(rows.X) == [white, grey, grey, grey, COLOURS["red"]]


def bomb(path: Path) -> None:
    paint(path, 0, "1", (400, 300))


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda made: (made / "10.png").unlink(), r"for every labelled task; got none for '10' \(1 of 3 tasks"),
    "twice": (lambda made: paint(made / "3.gif", 0, "L"), "one image per task; got '3.gif' and '3.png'"),
    "text": (lambda made: (made / "3.png").write_text("hello"), "3.png must be an image that can be read"),
    "truncated": (lambda made: (made / "3.png").write_bytes((made / "7.png").read_bytes()[:45]), "3.png must be"),
    "EPS": (
        lambda made: (made / "3.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n"),
        "3.png must be an image.*got b'.*' at its start",
    ),
    "a bomb": (lambda made: bomb(made / "3.png"), "3.png must have at most 100,000 pixels.*got more"),
    "a large bomb": (lambda made: paint(made / "3.png", 0, "1", (900, 900)), "at most 100,000 pixels"),
    "no number": (lambda made: paint(made / "cover.png", 0, "L"), "named by numbers, as the tasks are; got 'cover'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_a_folder_is_one_sentence(
    name: str, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100_000)
    spoil, message = BROKEN[name]
    spoil(photos)
    with pytest.raises(ValueError, match=message):
        read(photos.parent, [3, 10, 7])
    run = photos.parent / "run"
    assert len(refused(capsys, "train", photos.parent / "labels.csv", "--images", photos, "-o", run).splitlines()) == 1
    assert not run.exists()


@pytest.mark.neural
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--images", "photos", "--text", "label"], "--images must go without --text; got both"),
        (["--images", "photos", "--model", "boost"], "--images must go without --model; got both"),
        (["--images", "photos", "--image-size", "5"], "--image-size must be between 16 and 256 pixels; got 5"),
        (["--images", "nowhere"], "nowhere must be a folder of images; got nothing"),
        (["--images", "labels.csv"], "labels.csv must be a folder of images; got a file"),
    ],
)
def test_options_that_do_not_fit(
    arguments: list[str], message: str, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    annotations(photos.parent, [3, 7])
    monkeypatch.chdir(photos.parent)
    assert message in refused(capsys, "train", "labels.csv", *arguments, "-o", "run")
    assert not (photos.parent / "run").exists()


@pytest.mark.parametrize("name", ["../labels.csv", "/etc/passwd"])
def test_a_column_cannot_name_files_elsewhere(name: str, photos: Path) -> None:
    with pytest.raises(ValueError, match="must name files inside the folder; got '"):
        read(photos.parent, [3, 7], ["3.png", name])


@pytest.mark.parametrize(("module", "name"), [("PIL", "Pillow"), ("torch", "PyTorch")])
def test_a_missing_extra_says_what_to_install(
    module: str, name: str, photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    annotations(photos.parent, [3, 7])
    monkeypatch.setattr(_images, "find_spec", lambda asked: None if asked == module else asked)
    labels, run = photos.parent / "labels.csv", photos.parent / "run"
    assert labelonce("train", labels, "--images", photos, "-o", run) == 2
    assert f"--images needs {name}; install it with: pip install 'labelonce[images,neural]'" in capsys.readouterr().err


@pytest.mark.neural
def test_few_images_get_small_batches_and_many_the_measured_learner() -> None:
    from labelonce import neural

    few, many = network_for(4_999), network_for(5_000)
    assert few.batch_size < 128
    assert few.label_smoothing > many.label_smoothing == 0
    assert str(many.get_params()) == str(neural.image_learner().get_params())


@pytest.mark.neural
def test_a_network_for_few_images_takes_a_step_per_image_within_limits() -> None:
    assert [network_for(n).min_steps for n in (100, 320, 600, 960, 4_999)] == [320, 320, 600, 960, 960]
    assert network_for(600, longer=True).min_steps == 1_200


def tiny(_: int, **__: Any) -> Any:
    from labelonce import neural

    return neural.TorchLearner(partial(neural.mlp, width=16), epochs=8, epochs_by_round=(4,), batch_size=16, lr=0.05)


@pytest.fixture(scope="module")
def coloured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with labels, images of noisy colours to train on, new ones, and a run."""
    folder = tmp_path_factory.mktemp("coloured")
    rng = np.random.default_rng(0)
    names = np.array(list(COLOURS))
    y = rng.integers(3, size=90)
    for part, rows in (("photos", range(80)), ("new", range(80, 90))):
        (folder / part).mkdir()
        for row in rows:
            noisy = np.array(COLOURS[names[y[row]]]) + rng.normal(0, 60, size=(12, 12, 3))
            Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(folder / part / f"{row}.png")
    confusion = lo.simulate.hammer_spammer(5, 3, 0.6, rng, exact=True)
    ann = lo.simulate.annotate(y[:70], confusion, lo.simulate.assign(70, 5, 1, rng), rng)
    labelled = zip(ann.task, ann.worker, names[ann.label], strict=True)
    lines = [f"{task},w{worker},{label}\n" for task, worker, label in labelled]
    (folder / "labels.csv").write_text("task,worker,label\n" + "".join(lines))
    np.save(folder / "true.npy", names[y])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_doors, "network_for", tiny)
        arguments = ["train", str(folder / "labels.csv"), "--images", str(folder / "photos"), "--image-size", "16"]
        assert labelonce(*arguments, "--rounds", "3", "-o", folder / "run") == 0
    return folder


@pytest.mark.neural
def test_a_run_on_images_finds_the_colours_and_shows_them(coloured: Path) -> None:
    record = json.loads((coloured / "run" / "run.json").read_text())
    assert record["features"] == {"kind": "images", "named": "stem", "size": 16}
    assert record["inputs"]["images"]["files"] == record["data"]["tasks"] == 80
    assert record["data"]["labelled_tasks"] == 70
    assert {"torch", "pillow"} <= set(record["versions"])
    labels = parquet.read_table(coloured / "run" / "labels.parquet").to_pydict()
    true = np.load(coloured / "true.npy")
    assert np.mean(np.array(labels["label"]) == true[labels["task"]]) > 0.8
    page = (coloured / "run" / "report.html").read_text()
    assert 'src="data:image/webp;base64,' in page


def train_again(coloured: Path, run: Path, learner: Callable[[int], Any]) -> str:
    """Return the learner in the record of one round, and check that nothing in the folder tells where it lay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_doors, "network_for", learner)
        options = runs.Options(str(coloured / "labels.csv"), images=str(coloured / "photos"), image_size=16, rounds=1)
        record = runs.train(options, run)
    assert " at 0x" not in (run / "run.json").read_text() + (run / "report.html").read_text()
    return record.recipe.learner


@pytest.mark.neural
def test_equal_runs_name_their_network_alike(coloured: Path, tmp_path: Path, capsys: Capture) -> None:
    from labelonce import neural

    one, other = (train_again(coloured, tmp_path / name, tiny) for name in ("one", "other"))
    assert one == other
    assert "module_fn=functools.partial(mlp, width=16)" in one
    net = tiny(0).set_params(module_fn=neural.resnet9, epochs=1)
    assert "module_fn=resnet9" in train_again(coloured, tmp_path / "plain", lambda *_, **__: net)
    assert "0x" not in output_of(capsys, "show", tmp_path / "one")


@pytest.mark.neural
def test_predict_labels_a_folder_of_images_as_the_model_does(coloured: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "predicted.parquet"
    assert labelonce("predict", coloured / "run", coloured / "new", "-o", output) == 0
    table = parquet.read_table(output).to_pydict()
    assert table["task"] == [str(row) for row in range(80, 90)]
    assert np.mean(np.array(table["label"]) == np.load(coloured / "true.npy")[80:]) > 0.8
    rows = read_new_images(coloured / "new", 16, "stem")
    clf = lo.load(coloured / "run" / "model.skops")
    assert_array_equal(clf.predict(rows.X), clf.classes_[clf.predict_proba(rows.X).argmax(axis=1)])
    assert "must hold images (.bmp, .gif" in refused(capsys, "predict", coloured / "run", tmp_path)


KILLED = """
import os, signal, sys
from labelonce.runs import Options, RunFolder, _doors, _train
import test_images
_doors.network_for = test_images.tiny
keep = RunFolder.save_checkpoint
def save(self, content, warnings, count=[0]):
    keep(self, content, warnings)
    count[0] += 1
    if count[0] == 2:  # after the first round
        os.kill(os.getpid(), signal.SIGKILL)
RunFolder.save_checkpoint = save
_train.train(Options(sys.argv[1], images=sys.argv[2], image_size=16, rounds=3), test_images.Path(sys.argv[3]))
"""


@pytest.mark.neural
def test_a_killed_run_on_images_resumes_to_the_same_numbers(coloured: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-c", KILLED, *(str(coloured / name) for name in ("labels.csv", "photos")), str(run)]
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])
    assert subprocess.run(command, check=False, env=os.environ | {"PYTHONPATH": path}).returncode == -signal.SIGKILL
    image = coloured / "photos" / "0.png"
    content, changed = image.read_bytes(), (coloured / "photos" / "1.png").read_bytes()
    image.write_bytes(changed)
    assert "its content has changed. Train again without" in refused(capsys, "train", "--resume", "-o", run)
    image.write_bytes(content)
    assert labelonce("train", "--resume", "-o", run) == 0
    for name in ("labels.parquet", "workers.parquet"):
        assert (run / name).read_bytes() == (coloured / "run" / name).read_bytes()


@pytest.mark.neural
def test_an_image_that_disappears_during_training_costs_no_run(
    coloured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_doors, "network_for", tiny)
    labels = coloured / "labels.csv"
    images = read_images(coloured / "photos", 16, labels, lo.read_annotations(labels), task="task")
    gone = replace(images, paths=[tmp_path / path.name for path in images.paths])
    monkeypatch.setattr(_train, "read_images", lambda *_, **__: gone)
    options = runs.Options(str(coloured / "labels.csv"), images=str(coloured / "photos"), image_size=16, rounds=1)
    runs.train(options, tmp_path / "run")
    assert "data:image/webp" in (tmp_path / "run" / "report.html").read_text()
