"""The first page: short, its commands at the top, its code runs, its figures are those of the results."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import labelonce as lo

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FIGURE = re.compile(r"\d+\.\d ± \d+\.\d")


def test_readme_is_short_installs_first_and_fits_before_it_shows_any_result() -> None:
    assert len(README.split()) <= 550
    first_screen = "\n".join(README.splitlines()[:12])
    for command in ("$ pip install 'labelonce[report]'", "$ labelonce demo", "`make demo`", "`make test`"):
        assert command in first_screen
    calls = ["read_annotations(", ".fit(", ".predict(", "## Results"]
    places = [README.index(call) for call in calls]
    assert places == sorted(places)


def test_code_of_the_readme_runs_on_files_as_it_describes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    y_true = X.argmax(axis=1)
    confusion = lo.simulate.hammer_spammer(20, 3, 0.5, rng, exact=True)
    annotations = lo.simulate.annotate(y_true[:400], confusion, lo.simulate.assign(400, 20, 1, rng), rng)
    lo.write(annotations, "labels.csv")
    tasks = pa.table({"task": np.arange(700), **{f"x{j}": X[:, j] for j in range(3)}})
    shuffled = rng.permutation(400)
    lo.write(tasks.take(shuffled), "features.csv")  # in another order than the ids: align must hold them together
    lo.write(tasks[400:], "new.csv")
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL):
        exec(compile(code, "README.md", "exec"), names)
    assert np.mean(names["predicted"] == y_true[400:]) > 0.9
    labels, workers = names["labels"].to_pydict(), names["workers"].to_pydict()
    assert np.mean(y_true[labels["task"]] == labels["label"]) > 0.9
    assert len(workers["skill"]) == 20


def measured(name: str, *cells: str) -> dict[str, str]:
    """Return the one row of a results table that begins with these cells, by column."""
    header, *lines = (ROOT / "experiments" / "results" / f"{name}.md").read_text().splitlines()
    (row,) = [line for line in lines if line.startswith(f"| {' | '.join(cells)} |")]
    return dict(zip(header.strip("| ").split(" | "), row.strip("| ").split(" | "), strict=True))


@pytest.mark.parametrize(
    ("begins", "row"),
    [
        ("digits", measured("digits", "hammer-spammer", "0.2", "1")),
        ("photographs", measured("mbem_on_real_crowds", "labelme", "1")),
        ('"is it a book?"', measured("mbem_on_real_crowds", "amazon_isbook", "1")),
        ("film reviews", measured("mbem_on_real_crowds", "sentiment_polarity", "1")),
    ],
)
def test_every_figure_of_the_table_is_the_measured_one(begins: str, row: dict[str, str]) -> None:
    (line,) = [line for line in README.splitlines() if line.startswith(f"| {begins}")]
    assert FIGURE.findall(line) == [row[method] for method in ("MV", "MBEM paper", "MBEM", "truth")]


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []
