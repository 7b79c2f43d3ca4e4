"""The battery on every aggregator, in the settings users choose, and what a registered one must have."""

import ast
import inspect
import re
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from checks import CHECKS, Make, annotations
from hypothesis import given, settings
from sklearn.exceptions import NotFittedError

import labelonce
from labelonce import EBCC, IBCC, MACE, Annotations, DawidSkene, OneCoin, aggregation, baselines
from labelonce.aggregation import Aggregator
from labelonce.aggregation._registry import COMMANDS, aggregator_of, aggregators
from labelonce.baselines import DataProgramming, EigenRatio, MinimaxEntropy, MultidimensionalWisdom, SpectralDawidSkene

QUICK: dict[str, Make] = {  # in place of the defaults, which take long
    "SpectralDawidSkene": lambda: SpectralDawidSkene(n_splits=2),
    "EBCC": lambda: EBCC(n_init=2, subtypes=3),
    "MultidimensionalWisdom": lambda: MultidimensionalWisdom(tol=1e-6),
}
SETTINGS: dict[str, Make] = {
    "DawidSkene maximum likelihood": lambda: DawidSkene(smoothing=0.0, max_iter=5000),
    "DawidSkene uniform prior": lambda: DawidSkene(prior="uniform"),
    "DawidSkene three starts": lambda: DawidSkene(n_init=3),
    "OneCoin learned prior": lambda: OneCoin(prior="learned"),
    "IBCC uniform prior": lambda: IBCC(prior="uniform"),
    "MACE em": lambda: MACE(method="em"),
    "MACE learned prior": lambda: MACE(prior="learned"),
    "EigenRatio entries": lambda: EigenRatio(ratio="entries"),
    "EBCC learned prior": lambda: EBCC(n_init=1, subtypes=2, prior="learned"),
    "MinimaxEntropy of 2012": lambda: MinimaxEntropy(task_matrix=False, prior="uniform"),
    "DataProgramming coverage by class": lambda: DataProgramming(coverage="class"),
}
MODELS: dict[str, Make] = aggregators() | QUICK | SETTINGS
RANDOM_STARTS = {
    "DawidSkene three starts": "the further starts are drawn per task, so they do not permute with the tasks",
    "SpectralDawidSkene": "the workers are split at random, so the splits do not permute with the workers",
    "EBCC": "the starts are drawn per task, so they do not permute with the tasks",
    "EBCC learned prior": "the starts are drawn per task, so they do not permute with the tasks",
}
STARTS_ARE_RANDOM = {"check_task_and_worker_permutations_commute", "check_class_permutation_commutes"}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", MODELS)
def test_aggregator(name: str, check: Callable[[Make], None]) -> None:
    if name in RANDOM_STARTS and check.__name__ in STARTS_ARE_RANDOM:
        pytest.skip(RANDOM_STARTS[name])
    check(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
@given(ann=annotations())
@settings(max_examples=60)
def test_any_annotations_give_finite_probabilities(name: str, ann: Annotations) -> None:
    with warnings.catch_warnings(action="ignore"):  # odd crowds are warned about, and must still give numbers
        model = MODELS[name]().fit(ann)
    for values in (model.posterior_, model.confusion_, model.prior_, model.skill_):
        assert np.isfinite(values).all()


def test_every_aggregator_in_the_folder_is_registered_and_frames_need_a_fit() -> None:
    with pytest.raises(NotFittedError, match="DawidSkene"):
        DawidSkene().to_frame()
    found = set()
    for path in (path for folder in FOLDERS for path in folder.glob("_[a-z]*.py")):
        module = import_module(f"labelonce.{path.parent.name}.{path.stem}")
        kinds = [kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, Aggregator)]
        found |= {kind.__name__ for kind in kinds if not inspect.isabstract(kind)}
    assert found == set(COMMANDS) == set(aggregators())


FOLDERS = [Path(room.__path__[0]) for room in (aggregation, baselines)]
DOCS = Path(__file__).parents[2] / "docs" / "aggregators"


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
