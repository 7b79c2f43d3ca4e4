"""Fits in the background of the service: what they write, what the router takes over, and what a kill costs."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Patch
from numpy.testing import assert_allclose
from service_crowd import Server
from service_projects import fitted_now, given, kept, labelled, newest, text_project
from sklearn.datasets import load_digits

import labelonce as lo
from labelonce import runs
from labelonce.service import Project
from labelonce.service import _fit as fits
from labelonce.service._live import Job, Live
from labelonce.service._outlook import outlook
from labelonce.service._refits import Refits
from labelonce.service._store import Answer
from labelonce.service._writer import Writer

pytestmark = pytest.mark.usefixtures("skops")


def digits_project(folder: Path, n: int = 120, **settings: Any) -> tuple[Project, Any]:
    """Return a project of digits with one label each by five simulated workers, and the truth."""
    import pyarrow as pa

    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:n], y[:n]
    columns = {"task": [f"digit {i}" for i in range(n)]} | {f"p{i}": X[:, i] for i in range(X.shape[1])}
    lo.write(pa.table(columns), folder / "digits.parquet")
    project = Project.make(folder / "project", folder / "digits.parquet", ["0", "1", "2"], **settings)
    rng = np.random.default_rng(0)
    confusion = lo.simulate.hammer_spammer(5, 3, 0.7, rng)
    made = lo.simulate.annotate(y, confusion, lo.simulate.assign(n, 5, 1, rng), rng)
    rows = zip(made.task.tolist(), made.worker.tolist(), made.label.tolist(), strict=True)
    given(project, [Answer(f"w{worker}", f"k{task}", f"digit {task}", str(label)) for task, worker, label in rows])
    return project, y


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Any]:
    project, y = digits_project(tmp_path_factory.mktemp("fitted"))
    assert fits.main(project.folder) == 0
    return project, y


def test_a_fit_is_a_run_folder_with_what_the_router_needs(fitted: tuple[Project, Any]) -> None:
    project, y = fitted
    found = newest(project)
    assert project.settings.learn_from == "features"
    assert runs.read_run(project.fits / "000001" / "run").data.annotations == len(y)
    assert found.fit.posterior.shape == (len(y), 3)
    assert set(found.about["workers"]) == {f"w{i}" for i in range(5)}
    assert found.about["accuracy"]["low"] <= found.about["accuracy"]["accuracy"] <= found.about["accuracy"]["high"]
    assert np.mean(found.fit.posterior.argmax(axis=1) == y) > 0.9
    assert fits.history(project) == [{"fit": 1, "labels": len(y)} | found.about["accuracy"]]


def test_the_router_believes_the_fit_and_later_answers(fitted: tuple[Project, Any]) -> None:
    project, _ = fitted
    found = newest(project)
    answers = kept(project)
    live = Live(project, answers, found)
    assert_allclose(live.router.belief.posterior(), found.fit.posterior, atol=1e-9)
    later = answers[0]._replace(id=10_000, worker="w9", label="2")
    live.take(later)
    again = Live(project, [*answers, later], found)
    assert_allclose(again.router.belief.posterior(), live.router.belief.posterior(), rtol=1e-9)
    assert again.router.state.answers.n_fitted == len(answers)
    live.undo(later)
    assert_allclose(live.router.belief.posterior(), found.fit.posterior, atol=1e-9)


def test_a_task_that_a_newer_fit_doubts_is_offered_again(fitted: tuple[Project, Any]) -> None:
    project, _ = fitted
    found = newest(project)
    sure = replace(found, fit=replace(found.fit, posterior=np.eye(3)[found.fit.posterior.argmax(axis=1)]))
    live = Live(project, kept(project), sure)
    assert live.next("new") is None
    doubting = replace(found, number=2, fit=replace(found.fit, posterior=np.full((120, 3), 1 / 3)))
    done(live.adoption(doubting))
    live.found = doubting
    done(live.router.drawing())
    assert live.next("new") is not None
    assert live.router.drawing() is None


def test_weak_features_settle_no_task_by_one_label(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"t{i},{x:.3f},{z:.3f}" for i, (x, z) in enumerate(rng.normal(size=(80, 2)))]
    (tmp_path / "tasks.csv").write_text("\n".join(["task,x,z", *rows]) + "\n")
    project = Project.make(tmp_path / "p", tmp_path / "tasks.csv", ["cat", "dog"], settled_risk=0.45)
    given(project, [Answer(f"w{i % 2}", f"k{i}", f"t{i}", ("cat", "dog")[int(rng.integers(2))]) for i in range(80)])
    assert fits.main(project.folder) == 0
    found = fits.newest(project)
    live = Live(project, kept(project), found)
    assert live.progress()["doubts"]
    assert live.n_settled == 0


def done(job: Job | None) -> None:
    assert job is not None
    job.compute()
    assert job.finish()


def test_everything_but_the_answers_can_be_deleted_and_comes_back(fitted: tuple[Project, Any], tmp_path: Path) -> None:
    project, _ = fitted
    before = fits.newest(project)
    shutil.copytree(project.folder, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "fits")
    copy = Project(tmp_path / "copy")
    assert fits.main(copy.folder) == 0
    after = fits.newest(copy)
    assert before is not None
    assert after is not None
    assert_allclose(after.fit.posterior, before.fit.posterior, rtol=1e-6)


def test_an_unseen_class_keeps_its_column(tmp_path: Path) -> None:
    project, _ = digits_project(tmp_path, n=60)
    classes = (*project.settings.classes, "never given")
    settings = project.folder / "project.toml"
    settings.write_text(settings.read_text().replace('["0", "1", "2"]', json.dumps(classes)))
    assert fits.main(project.folder) == 0
    found = newest(Project(project.folder))
    assert found.fit.posterior.shape == (60, 4)


def test_texts_without_a_model_are_aggregated(tmp_path: Path) -> None:
    project = text_project(tmp_path)
    assert fits.main(project.folder) == fits.TOO_FEW
    labelled(project)
    found = fitted_now(project)
    assert found.fit.posterior[:4].argmax(axis=1).tolist() == [1, 1, 0, 0]


def test_a_killed_fit_is_resumed(tmp_path: Path) -> None:
    project, _ = digits_project(tmp_path)
    command = [sys.executable, "-m", "labelonce.service._fit", str(project.folder)]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    job = project.fits / "000001" / "run" / ".work" / "job.json"
    while not job.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert fits.newest(project) is None
    assert fits.main(project.folder) == 0
    assert [path.name for path in sorted(project.fits.glob("0*"))] == ["000001"]


def test_an_image_that_can_no_longer_be_read_is_left_out_of_fits(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'labelonce[images]'")
    (tmp_path / "photos").mkdir()
    for number in range(40):
        image.new("L", (8, 8), 200 * (number % 2)).save(tmp_path / "photos" / f"{number:02d}.png")
    project = Project.make(tmp_path / "p", tmp_path / "photos", ["dark", "light"])
    (project.folder / "images" / "07.png").write_bytes(b"")
    (project.folder / "images" / "08.png").unlink()
    given(project, [Answer(f"w{i % 3}", f"{i}", f"{i:02d}.png", ("dark", "light")[i % 2]) for i in range(40)])
    found = fitted_now(project)
    assert found.about["unreadable"] == ["07.png", "08.png"]
    assert (found.about["labels"], len(found.fit.posterior)) == (38, 40)
    live = Live(project, kept(project), found)
    assert live.beliefs_of(["07.png", "08.png"])[0][0] == "light"  # what its worker says still counts
    assert live.progress()["unreadable"] == ["07.png", "08.png"]


def test_reports_are_made_when_wanted_and_old_fits_keep_the_history(
    fitted: tuple[Project, Any], tmp_path: Path
) -> None:
    run = fitted[0].fits / "000001" / "run"
    assert not (run / "report.html").exists()
    assert runs.read_run(run).warnings == []
    runs.report(run)
    assert (run / "report.html").exists()
    (run / "report.html").unlink()
    shutil.copytree(fitted[0].folder, tmp_path / "copy")
    project = Project(tmp_path / "copy")
    for number in range(2, 6):
        shutil.copytree(project.fits / "000001", project.fits / f"00000{number}")
    fits._forget_old(project)
    kept = {path.name: sorted(one.name for one in path.iterdir()) for path in project.fits.glob("0*")}
    assert kept["000001"] == kept["000002"] == ["fit.json"]
    assert "belief.npz" in kept["000003"]
    assert len(fits.history(project)) == 5


HOSTILE = "import pathlib\npathlib.Path(r'{}').write_text('run')\n"


@pytest.mark.parametrize("before", [[], [""]])  # an empty entry of PYTHONPATH is the current folder, too
def test_a_fit_imports_nothing_from_the_current_folder(tmp_path: Path, monkeypatch: Patch, before: list[str]) -> None:
    project = text_project(tmp_path)
    for name in ("numbers", "json", "random", "numpy", "labelonce"):
        (project.folder / f"{name}.py").write_text(HOSTILE.format(tmp_path / "executed"))
    monkeypatch.chdir(project.folder)
    paths = [os.path.abspath(path) for path in sys.path if path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*before, *paths]))

    async def run() -> str | None:
        writer = Writer(project.store())
        refits = Refits(project, never, writer)
        refits.start(0)
        await refits.wait()
        await writer.close()
        return refits.trouble

    assert asyncio.run(run()) is None
    assert not (tmp_path / "executed").exists()


async def never(_: fits.FinishedFit) -> None:
    raise AssertionError


def test_a_fit_ends_with_the_service_that_was_killed(tmp_path: Path) -> None:
    project, _ = digits_project(tmp_path, n=500)
    server = Server(project.folder)
    server.start()
    admin = {"Authorization": f"Bearer {project.add_admin()}"}
    address = f"http://127.0.0.1:{server.port}/api/refit"
    urllib.request.urlopen(urllib.request.Request(address, b"", admin)).close()
    assert server.process is not None
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    while not (fit := children.read_text().split()):
        time.sleep(0.01)
    while not (project.fits / "000001" / "run" / ".work" / "job.json").exists():
        time.sleep(0.01)
    server.kill()
    while Path(f"/proc/{fit[0]}").exists():
        time.sleep(0.05)
    assert fits.main(project.folder) == 0  # the next one finishes it


def test_more_labels_are_expected_to_help_ever_less_and_guesses_bring_nothing() -> None:
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(3), size=150)
    confusion = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    shares = [step["accuracy"] for step in outlook(posterior, confusion)]
    assert shares[0] == pytest.approx(posterior.max(axis=1).mean())
    assert np.all(np.diff(shares) > -0.005)
    assert shares[1] - shares[0] > shares[-1] - shares[-2]
    posterior = np.random.default_rng(0).dirichlet(np.ones(2), size=50)
    shares = [step["accuracy"] for step in outlook(posterior, np.full((2, 2), 0.5))]
    assert_allclose(shares, shares[0], rtol=1e-9)
