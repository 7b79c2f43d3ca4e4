"""The pages of the documentation: they name public paths only, and all of them are in the navigation."""

import re
from importlib import import_module
from pathlib import Path

import pytest

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


def test_no_page_documents_what_another_documents() -> None:
    found = [path for page in PAGES for path in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE)]
    assert sorted(path for path in set(found) if found.count(path) > 1) == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (DOCS.parent / "mkdocs.yml").read_text()
    assert [page for page in PAGES if f": {page.relative_to(DOCS).as_posix()}\n" not in navigation] == []


def test_images_of_the_pages_exist_and_are_used() -> None:
    used = {
        (page.parent / target).resolve()
        for page in (*PAGES, DOCS.parent / "README.md")
        for target in re.findall(r"!\[[^]]*\]\(([^)#]+)\)", page.read_text())
    }
    assert used == {path.resolve() for path in (DOCS / "images").iterdir()}
