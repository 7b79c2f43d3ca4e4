"""What every experiment and benchmark keeps of its results: the file, resuming, the tables and the options."""

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import record

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def options_of(out: Path, *arguments: str) -> argparse.Namespace:
    found: argparse.Namespace = record.arguments("", out).parse_args(["--jobs", "1", *arguments])
    return found


def test_a_results_file_says_what_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(EXPERIMENTS / "some.py"), "--jobs", "1"])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    record.write(tmp_path / "out.json", [{"seed": 0}], settings={"workers": 5}, seconds=1.26)
    found = json.loads((tmp_path / "out.json").read_text())
    assert list(found) == ["command", "settings", "versions", "machine", "seconds", "trials"]
    assert found["command"] == "python experiments/some.py --jobs 1"
    assert (found["settings"], found["seconds"], found["trials"]) == ({"workers": 5}, 1.3, [{"seed": 0}])
    assert {"python", "numpy"} <= set(found["versions"])
    assert (found["machine"]["cores"], found["machine"]["threads"]) == (os.cpu_count(), "1")
    assert os.listdir(tmp_path) == ["out.json"]


def test_the_command_does_not_say_where_the_results_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(EXPERIMENTS / "some.py"), "--out", "/there/x.json", "--worlds", "wall robot"])
    assert record.command() == "python experiments/some.py --worlds 'wall robot'"


def test_a_resumed_file_names_all_commands_that_made_it_and_adds_their_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))  # ten seconds a look
    for seed, seconds in (("1", 10), ("2", 20), ("1", 20)):
        monkeypatch.setattr("sys.argv", [str(EXPERIMENTS / "some.py"), "--seeds", seed])
        record.resume(options_of(tmp_path / "out.json"), lambda seed: {"seed": seed}, [{"seed": int(seed)}])
        found = json.loads((tmp_path / "out.json").read_text())
        assert found["seconds"] == seconds
    assert found["command"] == "python experiments/some.py --seeds 1 && python experiments/some.py --seeds 2"


def test_results_that_were_made_elsewhere_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, join in (("2", []), ("1", ["--join", str(tmp_path / "2.json")])):
        monkeypatch.setattr("sys.argv", [str(EXPERIMENTS / "some.py"), "--seeds", seed, *join])
        monkeypatch.setattr(record, "machine", lambda seed=seed: {"cpu": f"machine {seed}"})
        options = options_of(tmp_path / f"{seed}.json", *join)
        record.resume(options, lambda seed: {"seed": seed}, [{"seed": int(seed)}])
    found = json.loads((tmp_path / "1.json").read_text())
    assert found["trials"] == [{"seed": 1}, {"seed": 2}]
    assert found["machine"] == [{"cpu": "machine 2"}, {"cpu": "machine 1"}]
    assert found["command"] == "python experiments/some.py --seeds 2 && python experiments/some.py --seeds 1"


def test_no_file_is_read_as_no_trials_and_every_committed_one_is_read(tmp_path: Path) -> None:
    assert record.read(tmp_path / "none.json") == []
    options = options_of(tmp_path / "out.json")
    record.resume(options, lambda labels: {"labels": labels}, [{"labels": "all"}, {"labels": 10}, {"labels": 9}])
    assert [row["labels"] for row in record.read(options.out)] == [9, 10, "all"]
    files = [*EXPERIMENTS.glob("results/*.json"), *EXPERIMENTS.parent.glob("benchmarks/results/*.json")]
    assert len(files) > 15
    assert all(record.read(path) for path in files)


def test_only_what_is_missing_is_run_and_kept_in_order(tmp_path: Path) -> None:
    run: list[tuple[str, int]] = []

    def trial(name: str, seed: int) -> dict[str, Any]:
        warnings.warn("what a trial warns of is left out", stacklevel=1)
        run.append((name, seed))
        return {"accuracy": 0.5}

    options = options_of(tmp_path / "out.json")
    points = [{"name": name, "seed": seed} for name in ("b", "a") for seed in (10, 9)]
    record.resume(options, trial, points[1:3], order={"name": ["b", "a"]})
    record.resume(options, trial, points, order={"name": ["b", "a"]})
    assert run == [("b", 9), ("a", 10), ("b", 10), ("a", 9)]
    kept = [(row["name"], row["seed"]) for row in record.read(options.out)]
    assert kept == [("b", 9), ("b", 10), ("a", 9), ("a", 10)]
    record.resume(options, trial, points)
    assert len(run) == 4


def test_a_renewal_resumes_and_starts_again_once_all_are_renewed(tmp_path: Path) -> None:
    options, run = options_of(tmp_path / "out.json"), []

    def trial(row: dict[str, Any]) -> dict[str, Any]:
        run.append(row["seed"])
        return {"accuracy": {"MBEM": 0.9}}

    trials = [
        {"seed": seed, "accuracy": {"vote": 0.5}} | about for seed, about in enumerate(({"renewed": "0.1.0"}, {}))
    ]
    record.write(options.out, trials, seconds=1.0)
    record.renew(options, trial)
    assert run == [1]
    assert record.read(options.out)[1]["accuracy"] == {"vote": 0.5, "MBEM": 0.9}
    record.renew(options, trial)
    assert run == [1, 0, 1]


def test_a_table_has_a_line_under_its_head_and_means_their_standard_error() -> None:
    assert record.markdown(["a", "b"], [[1, "x"], [2, ""]]) == "| a | b |\n|---|---|\n| 1 | x |\n| 2 |  |\n"
    assert record.mean_error([]) == ""
    assert record.mean_error([12.34]) == "12.3"
    assert record.mean_error([1.0, 3.0, 8.0]) == "4.0 ± 2.1"  # variance (9 + 1 + 16) / 2 = 13; sqrt(13 / 3) = 2.08
    assert record.mean_error([1.0, 3.0, 8.0], sign="+") == "+4.0 ± 2.1"


def test_the_options_choose_between_running_tables_and_starting_again(tmp_path: Path) -> None:
    out, drawn = tmp_path / "out.json", []

    def run(options: argparse.Namespace) -> None:
        record.resume(options, lambda seed: {"seed": seed}, [{"seed": 0}])

    def table(trials: list[dict[str, Any]]) -> str:
        return f"{len(trials)} trials\n"

    def draw(trials: list[dict[str, Any]], path: Path) -> None:
        drawn.append((len(trials), path))

    out.write_text('{"trials": [{"seed": 7}]}')
    record.main(options_of(out, "--table"), run, table, draw=draw, image="x.png")
    assert (out.with_suffix(".md").read_text(), drawn) == ("1 trials\n", [(1, tmp_path / "x.png")])
    record.main(options_of(out), run, table)
    assert out.with_suffix(".md").read_text() == "2 trials\n"
    record.main(options_of(out, "--again"), run, table)
    assert record.read(out) == [{"seed": 0}]


def test_a_table_of_nothing_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    (tmp_path / "out.md").write_text("a table\n")
    with pytest.raises(SystemExit, match=r"out\.json must hold trials .* without --table first"):
        record.main(options_of(tmp_path / "out.json", "--table"), print, str)
    assert (tmp_path / "out.md").read_text() == "a table\n"


TABLES = {"quality_and_redundancy": "digits"} | {
    path.stem: path.stem
    for path in sorted(EXPERIMENTS.glob("*.py"))
    if "\ndef table(trials" in path.read_text() and (EXPERIMENTS / "results" / f"{path.stem}.json").exists()
}


@pytest.mark.parametrize("script", TABLES)
def test_the_committed_tables_are_those_of_the_committed_results(script: str) -> None:
    path = EXPERIMENTS / "results" / f"{TABLES[script]}.json"
    made = pytest.importorskip(script, exc_type=ImportError).table(record.read(path))  # some need torch
    assert made == path.with_suffix(".md").read_text()
