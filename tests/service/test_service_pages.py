"""The labelling page and the dashboard in a real browser: Debian's Chromium, headless."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service_pages import Visit, needs_chromium
from service_projects import BOXES, boxes_project, given, kept, serving, text_project

from labelonce.service import Project
from labelonce.service import _fit as fits
from labelonce.service._store import Answer

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
pytestmark = needs_chromium


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return text_project(tmp_path)


def answers(project: Project) -> list[tuple[str, str | None, str | None]]:
    return [(row.task, row.label, row.reason) for row in kept(project)]


def test_ticking_boxes_with_the_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    project = boxes_project(tmp_path)
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}#token={project.add_workers(['ann'])['ann']}")
        first = visit.shows_a_task().removeprefix("text of ")
        assert visit.page.locator("#choices bdi").all_inner_texts() == list(BOXES)
        for key in ("1", "3", "1", "2"):  # ticked, ticked, not ticked again, ticked
            visit.page.keyboard.press(key)
        assert answers(project) == []
        visit.page.keyboard.press("Enter")
        visit.page.locator("#done", has_text="1 label from you").wait_for()
        assert answers(project) == [(first, '["sea", "<i>road</i>"]', None)]
        second = visit.shows_a_task().removeprefix("text of ")
        assert visit.page.locator("#choices :checked").count() == 0
        visit.page.keyboard.press("Enter")  # none of them
        visit.page.locator("#done", has_text="2 labels from you").wait_for()
        visit.shows_a_task()
        assert answers(project)[1] == (second, "[]", None)
        visit.page.reload()
        visit.shows_a_task()
        visit.page.keyboard.press("z")
        visit.page.locator("#done", has_text="1 label from you").wait_for()
        assert visit.shows_a_task() == f"text of {second}"
        visit.page.get_by_label("sea").check()
        visit.page.get_by_role("button", name="Send").click()
        visit.page.locator("#done", has_text="2 labels from you").wait_for()
        visit.shows_a_task()
        visit.page.get_by_role("button", name="Undo").click()
        visit.page.locator("#done", has_text="1 label from you").wait_for()
        assert visit.page.get_by_label("sea").is_checked()  # as it was ticked
        assert visit.page.locator("#choices :checked").count() == 1
        visit.ends_well()


def test_the_dashboard_shows_the_labels_of_check_boxes(browser: Any, tmp_path: Path) -> None:
    project = boxes_project(tmp_path)
    rows = [("ann", "a", '["dog"]'), ("bob", "a", '["dog"]'), ("ann", "b", '["dog", "sea"]'), ("bob", "c", "[]")]
    given(project, [Answer(worker, task, task, label) for worker, task, label in rows])
    assert fits.main(project.folder) == 0
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}/dashboard#token={project.add_admin()}")
        visit.page.locator("#labels tbody tr").first.wait_for()
        assert visit.page.locator("#labels tbody td:nth-child(2)").all_inner_texts()[:2] == ["dog", "dog, sea"]
        assert "more boxes right" in visit.text("#outlook")
        assert "a box is ticked, or left, rightly" in visit.text("#workers caption")
        assert visit.page.locator("#workers tbody tr").count() == 2
        visit.ends_well()


def test_what_one_worker_could_not_send_is_not_sent_by_the_next(browser: Any, project: Project) -> None:
    tokens = project.add_workers(["ann", "bob"])
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}#token={tokens['ann']}")
        visit.shows_a_task()
        visit.page.route("**/api/annotations", lambda route: route.abort())
        visit.page.get_by_role("button", name="cat").click()
        visit.page.get_by_text("Your label is kept here").wait_for()
        visit.page.unroute("**/api/annotations")
        visit.page.goto(f"{http.base_url}/health")
        visit.page.goto(f"{http.base_url}#token={tokens['bob']}")
        visit.shows_a_task()
        assert visit.text("#who") == "bob"
        assert answers(project) == []
        visit.page.close()


def test_a_wrong_token_is_told_so_and_without_a_fit_there_is_no_empty_chart(browser: Any, project: Project) -> None:
    with serving(project) as http:
        visit = Visit(browser, str(http.base_url))
        visit.page.get_by_label("Your token").fill("wrong")
        visit.page.get_by_role("button", name="Start").click()
        visit.page.get_by_text("got none that is known").wait_for()
        visit.page.close()
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}/dashboard#token={project.add_admin()}")
        visit.page.get_by_text("says how many labels are right").wait_for()
        assert visit.page.locator("#chart").is_hidden()
        visit.page.close()


@pytest.mark.parametrize("path", ["/", "/dashboard"])
def test_a_link_that_does_not_work_is_told_in_the_middle_of_the_page(browser: Any, project: Project, path: str) -> None:
    token = project.add_workers(["ann"])["ann"]
    project.revoke(["ann"])
    with serving(project) as http:
        visit = Visit(browser, f"{http.base_url}{path}#token={token}")
        visit.page.get_by_text("This link does not work, or it was revoked.").wait_for()
        box = visit.page.locator("#sentence").bounding_box()
        assert abs(box["x"] + box["width"] / 2 - visit.page.viewport_size["width"] / 2) < 10
        assert not visit.page.locator("#token").is_visible()
        visit.page.reload()  # without any link there is a form, in the middle as well
        form = visit.page.locator("section:has(#token)")
        form.wait_for()
        box = form.bounding_box()
        assert abs(box["x"] + box["width"] / 2 - visit.page.viewport_size["width"] / 2) < 10
        visit.page.close()


def test_while_the_service_cannot_be_reached_the_page_asks_again(browser: Any, project: Project) -> None:
    token = project.add_workers(["ann"])["ann"]
    with serving(project) as http:
        visit = Visit(browser, "about:blank")
        visit.page.route("**/api/me", lambda route: route.abort(), times=1)
        visit.page.goto(f"{http.base_url}#token={token}")
        visit.page.get_by_text("The service cannot be reached at this moment.").wait_for()
        visit.shows_a_task()
        visit.page.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a project with images, four workers and a fit."""
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'labelonce[images]'")
    folder = tmp_path_factory.mktemp("filled")
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    for place, one in enumerate(truth):
        pixels = rng.integers(0, 90, (24, 24, 3)) + np.array([150, 20, 20] if one else [20, 20, 150])
        image.fromarray(pixels.astype(np.uint8)).save(folder / "photos" / f"{place:02d}.png")
    project = Project.make(
        folder / "p", folder / "photos", ["cat", "<b>dog</b>"], title="Pets & co", refit_every=10_000
    )
    right = {"ann": 0.95, "<i>bob</i>": 0.8, "שרה": 0.9, "eve": 0.5}
    wishes = []
    for worker, skill in right.items():
        for place in rng.permutation(80)[:40].tolist():
            label = int(truth[place] if rng.random() < skill else 1 - truth[place])
            wishes.append(Answer(worker, f"k{place}", f"{place:02d}.png", project.settings.classes[label]))
    given(project, wishes)
    assert fits.main(project.folder) == 0
    return project


def test_the_dashboard_says_how_far_it_is(browser: Any, filled: Project, tmp_path: Path) -> None:
    with serving(filled) as http:
        visit = Visit(browser, f"{http.base_url}/dashboard#token={filled.add_admin()}")
        visit.page.locator("#workers tbody tr").first.wait_for()
        assert "of 80" in visit.text("#cards")
        assert "by estimate" in visit.text("#accuracy")
        assert "next 100 labels" in visit.text("#outlook")
        assert "more tasks right" in visit.text("#outlook")
        assert visit.page.locator("#workers tbody th").all_inner_texts().count("<i>bob</i>") == 1
        assert visit.page.locator("#chart .dot").count() == 1
        visit.page.get_by_role("button", name="Next").click()
        visit.page.locator("#where", has_text="21 to 40 of 80").wait_for()
        with visit.page.expect_download() as waiting:
            visit.page.get_by_role("button", name="Annotations").click()
        assert len(Path(waiting.value.path()).read_text().splitlines()) == 161
        visit.page.get_by_label("New worker").fill("zoe <3")
        visit.page.get_by_role("button", name="Make a link").click()
        visit.page.locator("#added code").wait_for()
        link = visit.text("#added code")
        visit.page.screenshot(path=tmp_path / "dashboard.png", full_page=True)
        visit.ends_well()
        worker = Visit(browser, link)
        worker.page.locator("#image:visible").wait_for()
        assert worker.text("#who") == "zoe <3"
        worker.page.close()
        assert worker.trouble == []


ZOOM = "(({ a, e, f }) => [a, e, f])(new DOMMatrix(document.getElementById('image').style.transform))"


def test_an_image_is_zoomed_and_moved(browser: Any, filled: Project) -> None:
    with serving(filled) as http:
        visit = Visit(browser, f"{http.base_url}#token={filled.add_workers(['kim'])['kim']}")
        frame = visit.page.locator("#frame:visible")
        frame.wait_for()
        visit.page.keyboard.press("+")
        visit.page.get_by_role("button", name="Larger").click()
        assert visit.page.evaluate(ZOOM) == [2.25, 0, 0]
        box = frame.bounding_box()
        visit.page.mouse.move(box["x"] + 60, box["y"] + 60)
        visit.page.mouse.down()
        visit.page.mouse.move(box["x"] + 90, box["y"] + 80)
        visit.page.mouse.up()
        assert visit.page.evaluate(ZOOM) == [2.25, 30, 20]
        visit.page.mouse.move(box["x"] + 5, box["y"] + 5)
        visit.page.mouse.wheel(0, -100)
        visit.page.wait_for_function("document.getElementById('image').style.transform.includes('scale(2.8')")
        visit.page.get_by_role("button", name="Whole image").click()
        assert visit.page.evaluate(ZOOM) == [1, 0, 0]
        visit.ends_well()


def test_a_worker_does_not_get_the_dashboard(browser: Any, filled: Project) -> None:
    with serving(filled) as http:
        visit = Visit(browser, f"{http.base_url}/dashboard#token={filled.add_workers(['kim'])['kim']}")
        visit.page.get_by_text("needs the admin's token").wait_for()
        assert visit.page.locator("#main").is_hidden()
        visit.page.close()


@pytest.fixture(scope="module")
def shown(filled: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[str, str]]]:
    """Serve pages to look at: each with what opens more of it."""
    boxes = boxes_project(tmp_path_factory.mktemp("boxes"))
    (filled.folder / "instructions.md").write_text("# All\n\n## cat\n\n- one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    with serving(filled) as one, serving(boxes) as other:
        admin = f"{one.base_url}/dashboard#token={filled.add_admin()}"
        yield [
            (f"{one.base_url}/#token={filled.add_workers(['kim'])['kim']}", "#guide"),  # open by itself
            (f"{one.base_url}/#token={filled.add_workers(['eve'])['eve']}", "#remark"),
            (admin, ""),
            (admin, "#labels tbody button"),
            (f"{other.base_url}/#token={boxes.add_workers(['kim'])['kim']}", "#skip"),
        ]
    (filled.folder / "instructions.md").unlink()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_accessible_and_fits_the_screen(browser: Any, shown: list[tuple[str, str]], scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    for address, opens in shown:
        visit = Visit(browser, address, color_scheme=scheme, viewport={"width": width, "height": 800})
        visit.page.locator("#frame:visible, #workers tbody tr, #choices input:enabled").first.wait_for()
        if opens and opens != "#guide":
            visit.page.locator(opens).first.click()
        if opens:
            visit.page.locator("dialog[open]").wait_for()
        found = axe.Axe().run(visit.page)
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found.response["violations"]] == []
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        background = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(14, 20, 26)") == (scheme == "dark")
        visit.ends_well()
