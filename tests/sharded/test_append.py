"""A day's labels added to prepared ones: the same as all of them prepared at once."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from commands import run
from crowds import crowd

from labelonce import Annotations, DawidSkene, sharded, write
from labelonce.sharded._shards import open_shards


def rows_in(folder: Path) -> set[tuple[Any, ...]]:
    shards = open_shards(folder)
    found = set()
    for number in range(shards.n_blocks):
        block, tasks = shards.block(number), shards.tasks(number)
        task = np.repeat(tasks, np.diff(block.start.numpy()))
        worker, label = np.divmod(block.row.numpy(), len(shards.classes))
        found |= set(zip(task.tolist(), shards.workers[worker].tolist(), shards.classes[label].tolist(), strict=True))
        shards.check(number)
    assert len(found) == shards.n_annotations == shards.annotations_of_worker.sum()
    return found


def days(text: bool) -> tuple[pa.Table, pa.Table]:
    """Return the labels of two days: some tasks and workers are in both, some in one."""
    rows = crowd()[0].to_frame()
    if text:
        rows = pa.table({name: [f"{name}{one}" for one in rows[name].to_pylist()] for name in rows.column_names})
    first = crowd()[0].worker < 10
    first[:300] = True
    first[500:] = False
    return rows.filter(first), rows.filter(~first)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("block", [60, 10**6])
def test_what_is_added_is_as_if_prepared_at_once(tmp_path: Path, text: bool, block: int) -> None:
    monday, tuesday = days(text)
    whole = sharded.prepare(pa.concat_tables([monday, tuesday]), tmp_path / "whole", block=block)
    grown = sharded.append(tuesday, sharded.prepare(monday, tmp_path / "grown", block=block), block=block)
    assert rows_in(grown) == rows_in(whole)
    one, two = open_shards(whole), open_shards(grown)
    assert (two.n_labelled, two.n_overlap) == (one.n_labelled, one.n_overlap)
    fits = [sharded.fit(DawidSkene(tol=1e-5), folder, tmp_path / f"{folder.name}-out") for folder in (whole, grown)]
    assert fits[0].log_likelihood_ == pytest.approx(fits[1].log_likelihood_)
    assert len(list(grown.iterdir())) == two.n_blocks + 2


def test_blocks_without_news_stay_as_they_are(tmp_path: Path) -> None:
    monday, _ = days(text=False)
    folder = sharded.prepare(monday, tmp_path / "p", block=60)
    before = open_shards(folder).blocks
    sharded.append(pa.table({"task": [0, 9999], "worker": [0, 77], "label": [1, 2]}), folder, duplicates="last")
    assert len(set(before) - set(open_shards(folder).blocks)) == 1
    assert (9999, 77, 2) in rows_in(folder)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"task": [1], "worker": ["x"], "label": [0]}, "worker must be integers"),
        ({"task": ["a"], "worker": [0], "label": [0]}, "task must be integers"),
        ({"task": [1], "worker": [0], "label": [7]}, r"one of the declared \[0, 1, 2\]; got 7"),
        ({"task": [0, 0], "worker": [77, 77], "label": [0, 1]}, "got worker 77 on task 0 again"),
    ],
)
def test_what_cannot_be_added_changes_nothing(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    folder = sharded.prepare(days(text=False)[0], tmp_path / "p", block=60)
    before = rows_in(folder), sorted(folder.rglob("*"))
    with pytest.raises((ValueError, TypeError), match=says):
        sharded.append(pa.table(row), folder)
    assert (rows_in(folder), sorted(folder.rglob("*"))) == before


def test_a_fit_of_before_is_not_resumed(tmp_path: Path) -> None:
    monday, tuesday = days(text=False)
    folder = sharded.prepare(monday, tmp_path / "p")

    class Stop(Exception):
        pass

    def stop(*_: Any) -> None:
        raise Stop

    with pytest.raises(Stop):
        sharded.fit(DawidSkene(), folder, tmp_path / "out", callback=lambda n, _: stop() if n == 3 else None)
    sharded.append(tuesday, folder)
    with pytest.raises(ValueError, match="must come from the same model and annotations"):
        sharded.fit(DawidSkene(), folder, tmp_path / "out")


def test_streams_and_files_of_any_format_are_prepared(tmp_path: Path) -> None:
    ann = crowd()[0]
    rows = ann.to_frame()
    write(ann, tmp_path / "labels.csv")
    write(ann, tmp_path / "labels.jsonl")
    expected = rows_in(sharded.prepare(rows, tmp_path / "p", block=100))
    lazy = pl.DataFrame(rows).lazy()
    sources = (tmp_path / "labels.csv", tmp_path / "labels.jsonl", lazy, pa.RecordBatchReader.from_stream(rows))
    for number, source in enumerate(sources):
        folder = sharded.prepare(source, tmp_path / f"p{number}", block=100)
        assert rows_in(folder) == expected
        assert not list(folder.glob("*.arrow"))
    with pytest.raises(ValueError, match="a stream must hold at least one annotation; got 0 rows in a Table"):
        sharded.prepare(rows.slice(0, 0), tmp_path / "none")


def test_ids_in_csv_are_integers_where_all_are(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("task,worker,label\n" + "".join(f"{i},w{i % 3},0{i % 2}\n" for i in range(40)))
    shards = open_shards(sharded.prepare(tmp_path / "labels.csv", tmp_path / "p"))
    assert shards.tasks(0).dtype == np.int64
    assert (shards.classes.tolist(), shards.workers.tolist()) == (["00", "01"], ["w0", "w1", "w2"])


def test_the_commands_prepare_with_classes_and_append(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(Annotations.from_arrays([1, 2], ["a", "b"], ["no", "no"]), tmp_path / "monday.csv")
    write(Annotations.from_arrays([2, 3], ["a", "c"], ["yes", "no"]), tmp_path / "tuesday.jsonl")
    prepare = ["sharded", "prepare", str(tmp_path / "monday.csv"), "-o", str(tmp_path / "p"), "--classes", "no,yes"]
    assert run(*prepare) == 0
    assert run("sharded", "append", tmp_path / "tuesday.jsonl", "--to", tmp_path / "p") == 0
    assert "4 annotations, 3 tasks, 3 workers" in capsys.readouterr().err
