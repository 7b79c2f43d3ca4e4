"""The report in a real browser: Debian's Chromium, headless, without network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service_pages import needs_chromium

import labelonce as lo

pytestmark = needs_chromium

NAMES = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=alert(1)>",
    "שרה כהן",
    "🙂🎉 sam",
    '"quoted" & co',
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report of 60 workers, the first of them oddly named, with texts, images and seconds."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 3, 600)
    confusion = lo.simulate.hammer_spammer(60, 3, 0.6, rng)
    codes = lo.simulate.annotate(y_true, confusion, lo.simulate.assign(600, 60, 5, rng), rng)
    workers = np.array([*NAMES, *[f"worker {i}" for i in range(5, 60)]], dtype=object)
    classes = np.array(["cat", "dog", "<b>bird</b>"], dtype=object)
    ann = lo.Annotations(codes.task, codes.worker, codes.label, codes.tasks, workers, classes)
    path = tmp_path_factory.mktemp("report") / "report.html"
    options: dict[str, Any] = {"texts": ["<i>text</i> טקסט"] * 600, "images": rng.random((600, 8, 8))}
    seconds = dict(zip(workers.tolist(), np.linspace(1, 9, 60).tolist(), strict=True))
    lo.write_report(path, lo.DawidSkene().fit(ann), ann, title="Pets & co", seconds=seconds, **options)
    return path


class Visit:
    """A page with what went wrong on it."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", self._note)
        self.page.goto(path.as_uri())

    def _note(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.trouble.append(request.url)

    def column(self, number: int) -> list[str]:
        cells = self.page.locator(f"#worker-table tbody tr > :nth-child({number})")
        return [str(text) for text in cells.all_inner_texts()]


@pytest.fixture
def visit(browser: Any, report: Path) -> Iterator[Visit]:
    opened = Visit(browser, report)
    yield opened
    opened.page.close()
    assert opened.trouble == []


def test_opens_without_errors_or_requests_runs_no_name_and_prices_follow_the_price(visit: Visit) -> None:
    assert visit.page.title() == "Pets & co"
    assert visit.page.locator("#worker-table tbody tr").count() == 25
    assert visit.page.locator("section").count() == 9
    visit.page.get_by_label("Price of a label").fill("2")
    assert visit.page.locator("#prices tbody tr").first.locator("[data-labels]").inner_text() == "6,000"


def test_sorting(visit: Visit) -> None:
    head = visit.page.locator("th", has=visit.page.get_by_role("button", name="Wrong", exact=True))
    wrong = [int(text) for text in visit.column(4)]
    assert wrong == sorted(wrong, reverse=True)
    head.get_by_role("button").click()
    wrong = [int(text) for text in visit.column(4)]
    assert wrong == sorted(wrong)
    assert head.get_attribute("aria-sort") == "ascending"
    visit.page.get_by_role("button", name="Seconds").click()
    assert head.get_attribute("aria-sort") is None
    assert visit.column(5)[0] == "9.0"
    visit.page.get_by_role("button", name="Worker", exact=True).click()
    names = [name for name in visit.column(1) if name.startswith("worker")]
    assert names == sorted(names, key=lambda name: int(name.split()[1]))


def test_search_flags_and_pages(visit: Visit) -> None:
    visit.page.get_by_label("Search workers").fill("SCRIPT>")
    assert visit.column(1) == [NAMES[0]]
    visit.page.get_by_label("Search workers").fill("כהן")
    assert visit.column(1) == [NAMES[2]]
    visit.page.get_by_label("Search workers").fill("nobody")
    assert visit.page.locator("#where").inner_text() == "No worker fits."
    visit.page.get_by_label("Search workers").fill("")
    visit.page.get_by_role("button", name="Next").click()
    assert visit.page.locator("#where").inner_text() == "26 to 50 of 60 workers"
    visit.page.get_by_label("Show").select_option("1")
    assert visit.column(6)
    assert all("spammer" in flags for flags in visit.column(6))


def test_choosing_a_worker_by_keyboard_redraws_the_map(visit: Visit) -> None:
    cells = visit.page.locator("#map td")
    before = cells.all_inner_texts()
    visit.page.get_by_label("Search workers").fill("script>")
    visit.page.get_by_label("Search workers").press("Tab")
    for _ in range(20):
        if visit.page.evaluate("document.activeElement.className") == "name":
            break
        visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")
    assert NAMES[0] in visit.page.locator("#map caption").inner_text()
    assert visit.page.evaluate("document.activeElement.id") == "map"
    assert cells.all_inner_texts() != before
    visit.page.get_by_role("button", name="All workers").press("Space")
    assert cells.all_inner_texts() == before
    assert sum(int(text) for text in before[:3]) in (99, 100, 101)


@pytest.mark.parametrize(("button", "name"), [("labels to check", "labels-to-check.csv"), ("workers", "workers.csv")])
def test_the_lists_can_be_downloaded_offline(visit: Visit, button: str, name: str) -> None:
    with visit.page.expect_download() as waiting:
        visit.page.get_by_role("button", name=f"Download the {button} (CSV)").click()
    assert waiting.value.suggested_filename == name
    text = Path(waiting.value.path()).read_text("utf-8-sig")
    assert text == visit.page.evaluate(f"JSON.parse(document.getElementById('data').textContent).lists['{name}']")
    assert len(text.splitlines()) > 50


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_accessible_and_fits_the_screen(browser: Any, report: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    opened = Visit(browser, report, color_scheme=scheme, viewport={"width": width, "height": 800})
    opened.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    found = axe.Axe().run(opened.page)
    assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found.response["violations"]] == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    background = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(14, 20, 26)") == (scheme == "dark")
    opened.page.close()
    assert opened.trouble == []


def test_the_policy_stops_a_script_that_is_not_ours(browser: Any, report: Path, tmp_path: Path) -> None:
    path = tmp_path / "tampered.html"
    path.write_text(report.read_text("utf-8").replace("</main>", "<script>document.title='owned'</script></main>"))
    opened = Visit(browser, path)
    assert opened.page.title() == "Pets & co"
    assert any("Content Security Policy" in message for message in opened.trouble)
    opened.page.close()


@pytest.mark.filterwarnings("ignore::labelonce.aggregation.RedundancyWarning")
@pytest.mark.parametrize(("n_workers", "n_classes"), [(100_000, 2), (1, 1), (30, 40)])
def test_any_size_works(browser: Any, tmp_path: Path, n_workers: int, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    n_labels = max(2 * n_workers, 300)
    columns = (np.arange(n_labels) // 2, np.arange(n_labels) % n_workers, rng.integers(0, n_classes, n_labels))
    ann = lo.Annotations.from_arrays(*columns, classes=range(n_classes), duplicates="keep")
    lo.write_report(tmp_path / "report.html", lo.MajorityVote().fit(ann), ann)
    opened = Visit(browser, tmp_path / "report.html", viewport={"width": 400, "height": 800})
    opened.page.get_by_role("button", name="Skill").click()
    opened.page.get_by_label("Search workers").fill(str(n_workers - 1))
    assert opened.column(1)[0] == str(n_workers - 1)
    opened.page.locator(".name").first.click()
    assert opened.page.locator("#map").inner_text().startswith(f"Worker \u2068{n_workers - 1}")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    opened.page.close()
    assert opened.trouble == []
