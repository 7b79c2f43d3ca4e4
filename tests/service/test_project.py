"""A project folder: made whole or not at all, and read back as it was made."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from service_projects import TEXTS, text_project

from labelonce.service import Project
from labelonce.service._settings import Settings, read_settings, write_settings


def test_settings_are_read_as_they_were_written(tmp_path: Path) -> None:
    settings = Settings('The "pets"\n', ("cat", "日本"), text="t", learn_from="text", max_risk=0.02, may_decline=True)
    write_settings(tmp_path, settings)
    assert read_settings(tmp_path) == settings


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("classes = ['cat']", r"two or more different words; got \['cat'\]"),
        ("classes = ['cat', 'cat']", r"got \['cat', 'cat'\]"),
        ("colour = 'red'", "got 'colour'"),
        ('classes = ["cat", "d\\u0000g"]', "at most 1000 letters, no NUL; got"),
        (f"classes = ['cat', '{'x' * 1001}']", "at most 1000 letters, no NUL; got"),
        ("max_labels = 'three'", "max_labels must be a int; got 'three'"),
        ("refit_every = 0", "at least 1; got 0"),
        ("strategy = 'Luck'", "got 'Luck'"),
        ("learn_from = 'images'", "Name it with image"),
        ("title = ", "must be TOML"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, line: str, said: str) -> None:
    lines = {"title": "title = 'Pets'", "classes": "classes = ['cat', 'dog']"} | {line.split(" ")[0]: line}
    (tmp_path / "project.toml").write_text("\n".join(lines.values()))
    with pytest.raises(ValueError, match=said):
        read_settings(tmp_path)


def test_folders_with_files_or_without_settings_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="labelonce project"):
        Project(tmp_path)
    (tmp_path / "t.csv").write_text("task\na\n")
    with pytest.raises(ValueError, match=r"such as 't\.csv'"):
        Project.make(tmp_path, tmp_path / "t.csv", ["a", "b"])


def test_texts_are_copied_and_numbers_are_features_whose_ids_stay_numbers(tmp_path: Path) -> None:
    project = text_project(tmp_path, learn_from="text")
    (tmp_path / "tasks.csv").unlink()
    assert project.tasks.shown("b") == {"task": "b", "text": TEXTS["b"], "has_image": False}
    (tmp_path / "t.csv").write_text("id,width\n7,1.5\n8,2\n")
    project = Project.make(tmp_path / "p", tmp_path / "t.csv", ["a", "b"], task="id")
    assert project.settings.learn_from == "features"
    assert (project.tasks.ids.tolist(), project.tasks.names) == ([7, 8], ["7", "8"])


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Return a folder with two images."""
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'labelonce[images]'")
    (tmp_path / "photos").mkdir()
    for number, name in enumerate(("one, two.png", "b.png")):
        image.new("L", (20, 10), 100 * number).save(tmp_path / "photos" / name)
    return tmp_path / "photos"


def test_a_folder_of_images_becomes_tasks(tmp_path: Path, photos: Path) -> None:
    project = Project.make(tmp_path / "p", photos, ["a", "b"])
    assert project.tasks.names == ["b.png", "one, two.png"]
    assert project.settings.learn_from == "images"
    assert all(path.is_file() for path in project.tasks.images or [])


def test_every_file_is_looked_at_and_what_is_left_out_is_listed(tmp_path: Path, photos: Path) -> None:
    (photos / "notes.txt").write_text("no image")
    (photos / "broken.png").write_bytes(b"GIF" * 50)
    shutil.copyfile(photos / "b.png", os.fsencode(photos) + b"/\xff\x1b.png")
    (photos / "cut.png").write_bytes((photos / "b.png").read_bytes()[:-30])
    (photos / "link.png").symlink_to("/etc/passwd")
    (photos / "own.png").symlink_to("b.png")
    (photos / "more").mkdir()
    (photos / "more" / "c.png").write_bytes((photos / "b.png").read_bytes())
    os.mkfifo(photos / "pipe.png")
    project = Project.make(tmp_path / "p", photos, ["a", "b"])
    assert project.tasks.names == ["b.png", "one, two.png"]
    reasons = dict(one.split(": ", 1) for one in project.left_out)
    known = ["broken.png", "cut.png", "link.png", "more", "notes.txt", "own.png", "pipe.png"]
    assert list(reasons) == [*known, r"\udcff\x1b.png"]
    assert reasons[r"\udcff\x1b.png"] == "its name is no UTF-8"
    assert reasons["link.png"] == reasons["own.png"] == "it is a link, and links are not followed"
    assert reasons["more"] == "a folder, and only files are read (1 file in it)"
    assert reasons["broken.png"].startswith("it is no image")
    assert reasons["cut.png"].startswith("it cannot be read")


def test_a_folder_without_any_image_that_can_be_read_is_an_error(tmp_path: Path, photos: Path) -> None:
    for path in photos.iterdir():
        path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"got none, and 2 others, such as b\.png: it is no image"):
        Project.make(tmp_path / "p", photos, ["a", "b"])
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b"no"), r"'photos/x\.png': it is no image \(BMP, GIF, JPEG, PNG, WEBP\)"),
        (lambda path: path.symlink_to("/etc/passwd"), r"and no links; got 'photos/x\.png'"),
        (lambda _: None, r"'photos/x\.png': there is no such file \(1 in total\). Replace"),
    ],
)
def test_images_of_a_table_must_be_readable(
    tmp_path: Path, photos: Path, make: Callable[[Path], object], said: str
) -> None:
    make(photos / "x.png")
    (tmp_path / "t.csv").write_text("task,image\na,photos/b.png\nb,photos/x.png\n")
    with pytest.raises(ValueError, match=said):
        Project.make(tmp_path / "p", tmp_path / "t.csv", ["a", "b"], image="image")


def test_no_link_leads_out_of_the_folder_of_images(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "behind").symlink_to(photos)
    (tmp_path / "t.csv").write_text("task,image\na,behind/b.png\n")
    with pytest.raises(ValueError, match=r"and no links; got 'behind/b\.png'"):
        Project.make(tmp_path / "p", tmp_path / "t.csv", ["a", "b"], image="image")


def test_the_address_of_the_links_is_kept_and_says_where_to_listen(tmp_path: Path) -> None:
    project = text_project(tmp_path, url="http://10.0.0.7:9090")
    assert Project(project.folder).settings.port == 9090
    assert Settings("a", ("b", "c")).port == Settings("a", ("b", "c"), url="https://labels.example").port == 8080


@pytest.mark.parametrize("url", ["labels.example", "ftp://labels.example", "http://", "http://a:port"])
def test_an_address_that_no_link_can_begin_with_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url must be http://HOST:PORT"):
        Settings("a", ("b", "c"), url=url)


@pytest.mark.parametrize("database", ["postgresql:/ann:secret@db/x", "mysql://ann:secret@db/x", "postgres:secret"])
def test_an_address_of_no_known_database_is_refused_and_not_repeated(tmp_path: Path, database: str) -> None:
    project = text_project(tmp_path, database=database)
    with pytest.raises(ValueError, match="database must be a file in the folder or postgresql") as caught:
        project.store()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", "images/page.svg"])
def test_only_images_in_the_folder_are_shown(tmp_path: Path, name: str) -> None:
    (tmp_path / "t.csv").write_text(f"task,image\na,{name}\n")
    with pytest.raises(ValueError, match=name.replace("/", ".")):
        Project.make(tmp_path / "p", tmp_path / "t.csv", ["a", "b"], image="image")
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        ("task,text\n1,a dog\n2,\n", {"text": "text"}, "'text' must hold a text in every row; got '' at row 3"),
        ("task,x\n1,0.5\n2,\n", {}, "must be finite numbers; got NaN in column 'x' at row 3"),
        (f"task,text\n{'x' * 1001},a dog\n", {"text": "text"}, "must have ids of at most 1000 characters, no NUL; got"),
        ("task,text\na\0b,a dog\n", {"text": "text"}, "must have ids of at most 1000 characters, no NUL; got"),
        ("task,text\n1,a dog\n1,a cat\n", {"text": "text"}, "must not repeat an id; got 1 2 times"),
        ("task,text\n1,a dog\n", {"text": "review"}, r"column 'review'; got none among \['task', 'text'\]"),
    ],
)
def test_tasks_that_no_fit_could_learn_from_are_told_before_anybody_labels(
    tmp_path: Path, table: str, columns: dict[str, str], said: str
) -> None:
    (tmp_path / "rows.csv").write_text(table)
    with pytest.raises(ValueError, match=rf"rows\.csv: .*{said}"):
        Project.make(tmp_path / "pets", tmp_path / "rows.csv", ["cat", "dog"], **columns)
    assert not (tmp_path / "pets").exists()


@pytest.mark.parametrize("name", ["", " ", " a", "a" * 101, "a\nb", "a\u202eb", "\ud800", "a\0"])
def test_a_worker_has_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="a name of 1 to 100 characters that begins with no space"):
        text_project(tmp_path).add_workers([name])
