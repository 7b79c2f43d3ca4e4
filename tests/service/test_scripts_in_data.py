"""Whatever tasks, classes, workers and reasons hold: in a real browser it is shown as text, and none of it runs."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from service_pages import needs_chromium
from service_projects import Client, serving

import labelonce as lo
from labelonce.service import Project
from labelonce.service import _fit as fits

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
pytestmark = [pytest.mark.slow, needs_chromium, pytest.mark.usefixtures("skops")]
RUNS = "window.owned=1"
PAYLOADS = [
    f"<script>{RUNS}</script>",
    f"<img src=x onerror={RUNS}>",
    f"<svg onload={RUNS}>",
    f'"><script>{RUNS}</script>',
    f"' onmouseover='{RUNS}",
    f"</title><script>{RUNS}</script>",
    f"</textarea><img src=x onerror={RUNS}>",
    f"javascript:{RUNS}",
    f"<iframe srcdoc='<script>parent.{RUNS}</script>'>",
    f"<a href=javascript:{RUNS} autofocus onfocus={RUNS}>x</a>",
    f"${{{RUNS}}}`${{{RUNS}}}`",
    f"{{{{constructor.constructor('{RUNS}')()}}}}",
    f"<math><mi xlink:href=javascript:{RUNS}>",
    f"<style>@import'javascript:{RUNS}'</style>",
    f"\u202e<b onclick={RUNS}>",
    f"&lt;script&gt;{RUNS}&lt;/script&gt;",
    f"<details open ontoggle={RUNS}>",
    f"--><script>{RUNS}</script><!--",
]


LINKS = [
    f"[x](javascript:{RUNS})",
    f"![x](javascript:{RUNS})",
    f"[x](data:text/html,<script>{RUNS}</script>)",
    "<http://x/'>",
]


@pytest.fixture(params=[False, True], ids=["buttons", "boxes"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """Return a project in which every text is a payload."""
    table = pa.table({"task": [f"{one} {place}" for place, one in enumerate(PAYLOADS)], "text": PAYLOADS})
    lo.write(table, tmp_path / "tasks.parquet")
    shown = {"title": PAYLOADS[5], "instructions": PAYLOADS[1], "text": "text", "learn_from": "nothing"}
    options = {"multilabel": request.param, "requests_per_second": 1e4, "max_labels": 100}
    made = Project.make(tmp_path / "p", tmp_path / "tasks.parquet", PAYLOADS[:10], **shown, **options)
    (made.folder / "instructions.md").write_text("\n\n".join([*PAYLOADS, *LINKS]), "utf-8")
    return made


def visit(browser: Any, url: str) -> tuple[Any, list[str]]:
    """Open a page, and return it with a list to which everything that should not be is added."""
    page, trouble = browser.new_page(), []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    page.on("frameattached", lambda frame: trouble.append(frame.url))
    page.goto(url)
    return page, trouble


ELEMENTS = "document.querySelectorAll('script:not([src]), iframe, style, math, details, svg[onload]').length"
HANDLERS = (
    "[...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames()).filter((one) => /^on/.test(one))"
)


def check(page: Any, trouble: list[str]) -> None:
    assert page.evaluate("window.owned") is None
    assert (page.evaluate(ELEMENTS), page.evaluate(HANDLERS), trouble) == (0, [], [])


def label_all(project: Project, http: Any, workers: list[str]) -> None:
    """Let everybody skip one task, with a payload as the reason, and label the others."""
    classes, tasks = project.settings.classes, project.tasks.names
    for turn, (worker, token) in enumerate(project.add_workers(workers).items()):
        client = Client(http, token)
        for place, task in enumerate(tasks):
            label = classes[(turn + place) % 2]
            said = {"labels": [label]} if project.settings.multilabel else {"label": label}
            body = {"key": f"{place}", "task": task}
            if place == turn:
                answer = client.post("/api/skips", body | {"reason": PAYLOADS[turn]})
            else:
                answer = client.post("/api/annotations", body | said)
            assert answer.status_code == 200, worker
        client.post("/api/comments", {"key": "c", "task": tasks[0], "text": PAYLOADS[turn], "flagged": True})


def test_nothing_in_the_data_runs_on_the_page_of_the_labels(browser: Any, project: Project) -> None:
    (token,) = project.add_workers([f"<img src=x onerror={RUNS}>"]).values()
    with serving(project) as http:
        page, trouble = visit(browser, f"{http.base_url}#token={token}")
        page.locator("dialog#guide[open]").wait_for()
        assert page.locator("#guide-text :is(a[href^=j], a[href^=d], img)").count() == 0
        page.keyboard.press("Escape")
        shown = set()
        for n in range(len(PAYLOADS)):
            page.locator("#done", has_text=re.compile(f"^{n} labels? from you")).wait_for()
            page.locator("#choices :is(button, input):enabled").first.wait_for()
            shown.add(page.locator("#text").evaluate("one => one.textContent"))
            check(page, trouble)
            page.keyboard.press("1")
            if project.settings.multilabel:
                page.keyboard.press("Enter")
        assert shown == set(PAYLOADS)
        assert page.locator("#choices bdi").all_text_contents() == list(project.settings.classes)
        assert (page.title(), page.locator("#who").text_content()) == (PAYLOADS[5], f"<img src=x onerror={RUNS}>")
        page.close()


def test_nothing_in_the_data_runs_on_the_dashboard(browser: Any, project: Project) -> None:
    workers, admin = [one[:100] for one in PAYLOADS if one.isprintable()], project.add_admin()
    with serving(project) as http:
        label_all(project, http, workers)
    assert fits.main(project.folder) == 0
    with serving(project) as http:
        page, trouble = visit(browser, f"{http.base_url}/dashboard#token={admin}")
        page.locator("#workers tbody tr").first.wait_for()
        page.locator("#labels tbody tr").first.wait_for()
        assert set(workers) <= set(page.locator("#workers bdi").all_text_contents())
        assert page.title().startswith(PAYLOADS[5])
        page.locator("#name").fill(PAYLOADS[1])
        page.get_by_role("button", name="Make a link").click()
        page.get_by_text("shown this once").wait_for()
        page.locator("#labels tbody button").first.click()
        page.locator("dialog#one[open]").wait_for()
        assert PAYLOADS[0] in page.locator("#one-said").text_content()
        check(page, trouble)
        page.close()
