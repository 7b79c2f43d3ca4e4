"""A new aggregator is one file and one line of the registry; a test here says what does not follow from them."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import labelonce
from labelonce import aggregation, baselines
from labelonce.aggregation import Aggregator
from labelonce.aggregation._registry import COMMANDS, aggregator_of, aggregators

FOLDERS = [Path(room.__path__[0]) for room in (aggregation, baselines)]
DOCS = Path(__file__).parents[2] / "docs" / "aggregators"


def test_every_aggregator_in_the_folder_is_registered() -> None:
    found = set()
    for path in (path for folder in FOLDERS for path in folder.glob("_[a-z]*.py")):
        module = import_module(f"labelonce.{path.parent.name}.{path.stem}")
        kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, Aggregator)]
        found |= {kind.__name__ for kind in kinds if not inspect.isabstract(kind)}
    assert found == set(COMMANDS) == set(aggregators())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_registered_name_is_public_and_has_a_command(name: str) -> None:
    kind = aggregators()[name]
    assert kind.__name__ == name
    room = aggregation if name in aggregation.__all__ else baselines
    assert kind is getattr(room, name) is aggregator_of(COMMANDS[name])


@pytest.mark.parametrize("module", [labelonce, aggregation, baselines])
def test_type_checkers_see_the_names_that_there_are(module: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(module))
    typed = next(node for node in tree.body if isinstance(node, ast.If))
    names = {alias.name for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names == set(module.__all__)


@pytest.mark.parametrize(("name", "command"), COMMANDS.items())
def test_every_aggregator_has_its_page_and_its_place_in_the_guide(name: str, command: str) -> None:
    room = "labelonce" if name in labelonce.__all__ else "labelonce.baselines"
    assert f"::: {room}.{name}\n" in (DOCS / f"{command}.md").read_text()
    assert f"[`{name}`]({command}.md)" in (DOCS / "index.md").read_text()


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"MajorityVote", "OneCoin", "Wawa"}))
def test_a_published_method_cites_authors_title_venue_and_year(name: str) -> None:
    text = inspect.getdoc(aggregators()[name]) or ""
    cited = re.findall(r"References\n-+\n((?:.+\n)+)", text)
    assert cited
    assert re.search(r'[A-Z]\. .+, ".+",.+ (19|20)\d\d\.$', " ".join(cited[0].split()))
