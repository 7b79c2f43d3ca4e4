"""The results file of the CIFAR-10 experiment, and its tables against cells worked out by hand."""

import json
import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
EXPERIMENTS = Path(__file__).parents[2] / "experiments"
POINT = {"part": "figure", "net": "fast", "crowd": "class-wise", "quality": 0.2, "redundancy": 1, "n_tasks": 50}


@pytest.fixture(scope="module")
def tables() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXPERIMENTS))
        yield import_module("cifar10_tables")


def lines(table: str) -> list[list[str]]:
    """Return the cells of a table's rows below its head."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def point(tables: Any, accuracy: float, **other: Any) -> dict[str, Any]:
    return POINT | {"seed": 0, "accuracy": dict.fromkeys(tables.METHODS, accuracy)} | other


def rounds(part: str, tests: list[float], **other: Any) -> dict[str, Any]:
    made = [{"test": test, "posterior": 0.75, "seconds": 1.5 * number} for number, test in enumerate(tests, start=1)]
    return POINT | {"part": part, "seed": 0, "variant": "", "rounds": made} | other


def test_results_come_back_in_a_fixed_order_the_later_row_instead_of_the_earlier(tables: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert tables.read(path) == []
    rows = [point(tables, 0.5, seed=seed) for seed in (2, 0, 1)]
    later = point(tables, 0.7, seed=0)
    tables.write(path, [*rows, later])
    assert tables.read(path) == [later, rows[2], rows[0]]
    text = path.read_text()
    tables.write(path, tables.read(path)[::-1])
    assert path.read_text() == text
    assert len(text.splitlines()) == 5  # one row per line
    assert os.listdir(tmp_path) == ["out.json"]


def test_a_row_without_a_part_is_one_of_the_figure(tables: Any) -> None:
    row = point(tables, 0.5)
    assert tables.key_of(row) == tables.key_of({name: row[name] for name in row if name != "part"})
    assert tables.key_of(row) != tables.key_of(row | {"part": "default"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (partial(json.dumps, indent=2), "dumps(indent=2)"),
        (json.dumps, "dumps"),
        ({"a": (1, 2.5), "b": None}, {"a": [1, 2.5], "b": None}),
        ("text", "text"),
        (True, True),
    ],
)
def test_settings_become_plain(value: Any, expected: Any, tables: Any) -> None:
    assert tables.plain(value) == expected
    assert json.loads(json.dumps(tables.plain(value))) == expected


def test_what_is_kept_when_methods_are_done_again_and_again(tables: Any) -> None:
    first = {"accuracy": {"MV": 0.1, "EM": 0.2, "MBEM": 0.3}, "source": "one", "at_once": 3}
    once = tables.kept(first, ["MBEM"])
    assert once == [{"methods": ["MV", "EM"], "source": "one", "at_once": 3}]
    second = first | {"source": "two", "at_once": 1, "kept": once}
    twice = tables.kept(second, ["EM"])
    assert twice == [
        {"methods": ["MV"], "source": "one", "at_once": 3},
        {"methods": ["MBEM"], "source": "two", "at_once": 1},
    ]
    assert once == [{"methods": ["MV", "EM"], "source": "one", "at_once": 3}]  # nothing is changed in place
    assert tables.kept(second | {"kept": twice}, ["MV", "EM", "MBEM"]) == []


def test_the_figure_has_a_row_for_every_point(tables: Any) -> None:
    rows = [point(tables, 0.5), point(tables, 0.7, seed=1), point(tables, 0.9, quality=0.5), rounds("default", [0.1])]
    rows[0]["accuracy"]["MBEM"] = 0.6
    few, good = lines(tables.figure_table(rows))
    assert few[:6] == ["fast", "class-wise", "0.2", "1", "50", "2"]
    assert few[6:] == ["60.0 ± 10.0"] * 8 + ["65.0 ± 5.0"]
    assert good == ["fast", "class-wise", "0.5", "1", "50", "1"] + ["90.0"] * 9


def test_rounds_are_in_percent_with_the_last_seconds(tables: Any) -> None:
    rows = [rounds("default", [0.501, 0.75], seed=1), rounds("default", [0.25]), rounds("ablation", [0.1])]
    assert lines(tables.rounds_table(rows)) == [
        ["class-wise", "0", "25.0", "75.0", "1.5"],
        ["class-wise", "1", "50.1 75.0", "75.0", "3.0"],
    ]
    assert tables.rounds_table([]) == ""


def test_variants_are_compared_with_all_parts(tables: Any) -> None:
    rows = [
        rounds("ablation", [0.1, 0.8], crowd="hammer-spammer"),
        rounds("ablation", [0.7]),
        rounds("ablation", [0.6], crowd="hammer-spammer", variant="worse"),
        rounds("ablation", [0.85], crowd="hammer-spammer", variant="better"),
        rounds("ablation", [0.72], variant="better"),
        rounds("default", [0.99], crowd="hammer-spammer"),
    ]
    assert lines(tables.ablation_table(rows, len)) == [
        ["all parts", "80.0", "", "70.0", "", "0"],
        ["better", "85.0", "+5.0", "72.0", "+2.0", "6"],
        ["worse", "60.0", "-20.0", "", "", "5"],
    ]
    assert tables.ablation_table([], len) == ""


def test_human_labels_show_their_noise(tables: Any) -> None:
    made = [{"part": "human", "noise": 0.1 * n, "accuracy": {"plain": 0.4 * n, "MBEM": 0.9}} for n in (1, 2)]
    assert lines(tables.human_table(made)) == [["noise 15.0 %", "2", "60.0 ± 20.0", "90.0 ± 0.0"]]
    assert tables.human_table([]) == ""


def test_true_labels_show_every_seed(tables: Any) -> None:
    made = [
        {"part": "truth", "seed": seed, "accuracy": {"truth": 0.94125 - 0.1 * seed}, "seconds": {"truth": 5.5 + seed}}
        for seed in (1, 0)
    ]
    assert lines(tables.truth_table(made)) == [["seed 0", "94.12", "5.5"], ["seed 1", "84.12", "6.5"]]
    assert tables.truth_table([]) == ""


def test_the_plot_shows_test_errors_of_every_panel(tables: Any, tmp_path: Path) -> None:
    pyplot = import_module("matplotlib.pyplot")
    rows = [
        point(tables, 0.6),
        point(tables, 0.7, seed=1),
        point(tables, 0.9, quality=0.5),
        point(tables, 0.8, redundancy=5),
        point(tables, 0.5, redundancy=5, n_tasks=10),
    ]
    tables.plot(tables.means(rows), ["hammer-spammer", "class-wise"], tmp_path / "images" / "figure.png")
    panels = pyplot.gcf().axes
    assert len(panels) == 3  # one crowd has no points
    curves = [[(line.get_xdata(), line.get_ydata()) for line in axis.get_lines()] for axis in panels]
    expected = [([0.2, 0.5], [35.0, 10.0]), ([1, 5], [35.0, 20.0]), ([1, 5], [35.0, 50.0])]
    for found, (x, errors) in zip(curves, expected, strict=True):
        assert len(found) == len(tables.METHODS)
        assert all(list(at) == x and list(error) == pytest.approx(errors) for at, error in found)
    assert (tmp_path / "images" / "figure.png").read_bytes()[:4] == b"\x89PNG"
    pyplot.close("all")


def test_all_tables_are_written_beside_the_results(tables: Any, tmp_path: Path) -> None:
    tables.write(tmp_path / "out.json", [point(tables, 0.5), rounds("default", [0.25])])
    tables.write_tables(tmp_path / "out.json", len, ["class-wise"], tmp_path / "figure.png")
    rows = tables.read(tmp_path / "out.json")
    expected = tables.figure_table(rows) + "\n" + tables.rounds_table(rows)
    assert (tmp_path / "out.md").read_text() == expected
    assert (tmp_path / "figure.png").exists()
    import_module("matplotlib.pyplot").close("all")
