"""The index of experiments and benchmarks names every script, and every file it names is there."""

import re
from pathlib import Path

import index
import pytest

ROOT = Path(__file__).parents[2]
HELPERS = {"record", "index", "draws", "crowd", "measure", "one_core", "peer_labelonce", "peer_crowdkit"}
HELPERS |= {"mbem_overhead_work", "data_sets", "judge_panels", "curves", "walk_files"}
PAGES = [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]]
PAGES = [*sorted(PAGES), "Makefile"]


def test_the_index_is_up_to_date_with_every_script_and_links_lead_to_files() -> None:
    assert index.PAGE.read_text() == index.page(), "run: python experiments/index.py"
    text = index.PAGE.read_text()
    for folder in ("experiments", "benchmarks"):
        for path in (ROOT / folder).glob("*.py"):
            assert path.stem in HELPERS or f"python {folder}/{path.name}" in text
    links = re.findall(r"\]\(([^)]+)\)", index.PAGE.read_text())
    assert len(links) > 15
    assert all((index.PAGE.parent / link).is_file() for link in links)


def test_every_results_file_belongs_to_a_script_of_the_index() -> None:
    for folder in ("experiments", "benchmarks"):
        linked = {path for script, _, _ in index.scripts(folder) for path in index.results_of(script)}
        stems = {path.stem for path in linked}
        assert {path.stem for path in (ROOT / folder / "results").iterdir()} <= stems


@pytest.mark.parametrize("text", PAGES)
def test_scripts_and_results_that_the_docs_name_exist(text: str) -> None:
    named = re.findall(r"(?:experiments|benchmarks|docs/tools)/[\w/-]+\.(?:py|md|json)", (ROOT / text).read_text())
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize(("noted", "seconds"), [(7.5, 7.5), (0.1, 3.0)])  # the latter resumed with nothing to do
def test_seconds_are_those_noted_or_the_longer_sum_of_the_trials(noted: float, seconds: float, tmp_path: Path) -> None:
    (tmp_path / "out.json").write_text(
        f'{{"seconds": {noted}, "trials": [{{"cpu_s": 1.0}}, {{"a": {{"cpu_s": 2.0}}}}]}}'
    )
    assert index.seconds_of(tmp_path / "out.json") == seconds
    assert index.seconds_of(tmp_path / "none.json") == 0.0
