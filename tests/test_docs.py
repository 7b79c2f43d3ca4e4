"""The pages of the documentation: they name public paths only, and all of them are in the navigation."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import labelonce as lo
from labelonce._rules import RULES

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
DOCUMENTED = sorted({path for page in PAGES for path in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE)})


@pytest.mark.parametrize("path", DOCUMENTED)
def test_what_the_reference_documents_can_be_reached_by_that_path(path: str) -> None:
    assert not any(part.startswith("_") for part in path.split("."))
    module, _, name = path.rpartition(".")
    try:
        import_module(path)
    except ModuleNotFoundError:
        assert name in import_module(module).__all__


def test_every_page_is_in_the_navigation_and_none_documents_what_another_does() -> None:
    found = [path for page in PAGES for path in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE)]
    assert sorted(path for path in set(found) if found.count(path) > 1) == []
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    assert [page for page in PAGES if f": {page.relative_to(DOCS).as_posix()}\n" not in navigation] == []


def test_images_of_the_pages_exist_and_are_used() -> None:
    used = {
        (page.parent / target).resolve()
        for page in (*PAGES, DOCS.parent / "README.md")
        for target in re.findall(r"!\[[^]]*\]\(([^)#]+)\)", page.read_text())
    }
    assert used == {path.resolve() for path in (DOCS / "images").iterdir()}


def test_walk_from_labels_to_a_run_has_at_most_twelve_stops_that_exist() -> None:
    text = (DOCS / "how-it-works.md").read_text()
    walk = text[text.index("## A walk from") : text.index("## Why it is fast")]
    stops = re.findall(r"^\d+\. \*\*[^*]+\*\* `([\w/]+\.py)`", walk, re.MULTILINE)
    assert 1 < len(stops) == len(re.findall(r"^\d+\. ", walk, re.MULTILINE)) <= 12
    assert [stop for stop in stops if not (DOCS.parent / "src" / "labelonce" / stop).is_file()] == []


def test_folders_and_files_that_how_it_works_names_exist() -> None:
    text = (DOCS / "how-it-works.md").read_text()
    named = re.findall(r"`(\w+(?:/\w+)*(?:/|\.py))`", text[text.index("## Where what lives") :])
    roots = (DOCS.parent / "src" / "labelonce", DOCS.parent)
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []


def test_every_problem_of_the_walks_has_a_test_or_a_page() -> None:
    table = (DOCS / "walks.md").read_text().split("## The thirty problems")[1]
    rows = re.findall(r"^\| (\d+)\. .*\| (?:`(test_\w+)`|\[[^]]+\]\(([^)]+)\)) \|$", table, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 31))
    tests = {
        name
        for path in DOCS.parent.glob("tests/**/test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert [test for _, test, _ in rows if test and test not in tests] == []
    assert [page for _, _, page in rows if page and not (DOCS / page).is_file()] == []


# Words that readers stumbled over, as regular expressions.
IDIOMS = (
    r"\bbeside\b",
    r"\bso many\b",
    r"\banew\b",
    r"labels with company",
    r"did not see the tasks?\b",
    r"knows? \w+ labels by heart",
    r"looks? no better than guessing",
    r"wrong with at most",
    r"people, with commas between",
    r"tells? \d+ ?% of the truth",
    r"what is believed",
)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_private_idioms_are_gone(idiom: str) -> None:
    source = DOCS.parent / "src" / "labelonce"
    texts = [*PAGES, DOCS.parent / "README.md", *source.rglob("*.py"), *source.rglob("*.html"), *source.rglob("*.js")]
    assert [path.name for path in texts if re.search(idiom, " ".join(path.read_text().split()))] == []


def test_pages_of_the_rules_and_of_the_paper_say_what_code_and_experiments_do() -> None:
    tool = runpy.run_path(str(DOCS / "tools" / "rules.py"))
    assert (DOCS / "rules.md").read_text() == tool["page"](), "run python docs/tools/rules.py"
    tool = runpy.run_path(str(DOCS.parent / "experiments" / "paper.py"))
    assert tool["TABLE"].read_text() == tool["page"](), "run python experiments/paper.py"


GUIDES = [page.relative_to(DOCS).as_posix() for page in PAGES if page.parent.name == "guides"]


def test_the_search_of_the_site_works_from_disk_and_fetches_nothing() -> None:
    site = (DOCS.parent / "mkdocs.yml").read_text()
    assert "- offline" in site
    (script,) = re.findall(r"polyfills: \[(.+)\]", site)
    assert "iframe-worker" in script
    assert "window.IFrameWorker" in (DOCS / script).read_text()


@pytest.mark.parametrize("page", ["mbem.md", *GUIDES])
def test_guide_has_at_most_700_words(page: str) -> None:
    text = (DOCS / page).read_text().split("\n::: ")[0]
    assert len([word for word in text.split() if word != "|"]) <= 700


@pytest.mark.parametrize("page", ["mbem.md", "guides/what-one-label-can-tell.md"])
def test_numbers_of_the_rules_in_prose_are_those_of_the_code(page: str) -> None:
    text = " ".join((DOCS / page).read_text().split())
    assert re.findall(r"with (\d+) % of the weight", text) == [f"{100 * RULES.sure_change:.0f}"]
    assert ("best fifth" in text) == (RULES.best_share == 1 / 5)


def test_defaults_in_the_table_of_options_are_those_of_the_code() -> None:
    text = (DOCS / "mbem.md").read_text()
    options = re.findall(r"^\| (`.+`) \| .+ \| .+ \|$", text[text.index("## Options") :], re.MULTILINE)
    assert {name for cell in options for name in re.findall(r"`(\w+)`", cell)} == set(lo.MBEM().get_params(deep=False))
    for words in (
        f"at most {RULES.rounds}",
        f'"auto": {RULES.folds};',
        f'"auto": {RULES.fits}, and {RULES.fits_more} per',
    ):
        assert words in text
