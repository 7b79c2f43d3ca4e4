"""Labels as they lie in data platforms: folders of parts, patterns, frames that speak Arrow, object stores."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run
from crowds import crowd
from pyarrow.fs import FileSystem

import labelonce as lo
from labelonce import Annotations, read_annotations, write
from labelonce.files._places import absolute, address_of
from labelonce.formats import LeftOutWarning


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of Parquet as Spark writes it: a folder for each day, and files that are no data."""
    rows = crowd()[0].to_frame()
    for day in range(3):
        place = tmp_path / "labels" / f"day={day}"
        place.mkdir(parents=True)
        pq.write_table(rows.filter((rows["task"].to_numpy() % 3) == day), place / "part-0.parquet")
    (tmp_path / "labels" / "_SUCCESS").touch()
    (tmp_path / "labels" / ".part-0.crc").write_bytes(b"crc")
    return tmp_path / "labels"


def rows_of(ann: Annotations) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in ann.to_frame().columns), strict=True))


def test_a_folder_of_parquet_is_one_table_with_the_names_of_folders_as_a_column(folder: Path) -> None:
    assert rows_of(read_annotations(folder)) == rows_of(crowd()[0])
    assert read_annotations(folder, label="day").classes.tolist() == [0, 1, 2]


def test_a_pattern_stands_for_the_files_that_match_it_and_other_files_are_not_passed_over(tmp_path: Path) -> None:
    ann = crowd()[0]
    half = ann.tasks < 100
    write(ann.select(half), tmp_path / "batch_1.csv")
    write(ann.select(~half), tmp_path / "batch_2.jsonl")
    assert rows_of(read_annotations(tmp_path / "batch_*")) == rows_of(ann)
    assert rows_of(read_annotations(tmp_path)) == rows_of(ann)
    with pytest.raises(FileNotFoundError, match=r"nothing_\*\.csv: No such file\. Check the pattern"):
        read_annotations(tmp_path / "nothing_*.csv")
    write(crowd()[0], tmp_path / "labels.csv")
    (tmp_path / "notes.txt").write_text("read me")
    says = r"Is a directory\. Name a file in it, or a pattern .*notes\.txt, which is no table"
    with pytest.raises(ValueError, match=says):
        read_annotations(tmp_path)


def test_the_commands_read_folders_and_patterns(folder: Path, tmp_path: Path) -> None:
    clean = tmp_path / "clean.parquet"
    assert run("aggregate", folder, "-o", clean) == 0
    assert pq.read_metadata(clean).num_rows == crowd()[0].n_tasks


@pytest.mark.usefixtures("skops")
def test_train_reads_folders_and_patterns_and_knows_when_they_change(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n = crowd()[0].n_tasks
    pq.write_table(pa.table({"task": range(n), "x": [float(i % 7) for i in range(n)]}), tmp_path / "x.parquet")
    given = ["--features", str(tmp_path / "x.parquet"), "--rounds", "1", "-o"]
    assert run("train", folder, *given, tmp_path / "run") == 0
    found = json.loads((tmp_path / "run" / "run.json").read_text())["inputs"]["labels"]
    assert (found["files"], found["path"]) == (3, str(folder))
    write(crowd()[0], tmp_path / "all_1.csv")
    assert run("train", tmp_path / "all_*.csv", *given, tmp_path / "other") == 0
    assert json.loads((tmp_path / "other" / "run.json").read_text())["options"]["labels"].endswith("all_1.csv")
    capsys.readouterr()


def test_frames_that_speak_arrow_are_read() -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = crowd()[0].to_frame()
    relation = duckdb.from_arrow(rows).filter("task >= 0")
    for frame in (relation, pl.DataFrame(rows), pl.DataFrame(rows).lazy()):
        assert rows_of(Annotations.from_frame(frame)) == rows_of(crowd()[0])


def test_addresses_are_told_from_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("s3:/bucket/x.csv") == "s3://bucket/x.csv"
    assert address_of("file:///x.csv") == "file:///x.csv"
    assert absolute("C:/x.csv") == str(tmp_path / "C:/x.csv")
    Path("odd:").mkdir()
    Path("odd:/x.csv").touch()
    assert address_of("odd:/x.csv") == ""
    with pytest.raises(ValueError, match=r"nosuch://x/y\.csv must be an address that pyarrow or fsspec knows"):
        read_annotations("nosuch://x/y.csv")


def test_fsspec_opens_what_pyarrow_does_not_know(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    write(crowd()[0], tmp_path / "labels.csv")
    fsspec.filesystem("memory").pipe_file("/crowd/labels.csv", (tmp_path / "labels.csv").read_bytes())
    assert rows_of(read_annotations("memory://crowd/labels.csv")) == rows_of(crowd()[0])


S3 = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
S3 |= {"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the file system of a real S3 server on this machine, with an empty bucket."""
    pytest.importorskip("moto", reason="no S3 server: pip install 'moto[s3]' flask flask-cors")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (
        (tmp_path_factory.mktemp("s3") / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in S3.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        try:
            while not _listens(port):
                assert server.poll() is None, log.name
                time.sleep(0.1)
            system, _ = FileSystem.from_uri("s3://crowd?allow_bucket_creation=true")
            system.create_dir("crowd")
            yield system
        finally:
            server.kill()


def put(system: Any, path: Path, key: str) -> None:
    with system.open_output_stream(f"crowd/{key}", compression=None) as sink:
        sink.write(path.read_bytes())


@pytest.mark.slow
def test_labels_in_an_object_store_are_read(bucket: Any, folder: Path, tmp_path: Path) -> None:
    write(crowd()[0], tmp_path / "labels.csv")
    write(crowd()[0], tmp_path / "labels.jsonl.gz")
    for name in ("labels.csv", "labels.jsonl.gz"):
        put(bucket, tmp_path / name, name)
        assert rows_of(read_annotations(f"s3://crowd/{name}")) == rows_of(crowd()[0])
    for part in folder.rglob("*"):
        if part.is_file():
            put(bucket, part, f"labels/{part.relative_to(folder)}")
    assert rows_of(read_annotations("s3://crowd/labels")) == rows_of(crowd()[0])
    assert run("aggregate", "s3://crowd/labels", "-o", tmp_path / "clean.csv") == 0
    with pytest.raises(OSError, match=r"s3://crowd/none\.csv: No such file"):
        read_annotations("s3://crowd/none.csv")


@pytest.mark.slow
def test_labels_in_an_object_store_are_prepared(bucket: Any, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from labelonce import sharded

    for part in folder.rglob("*.parquet"):
        put(bucket, part, f"parts/{part.relative_to(folder)}")
    prepared = sharded.prepare("s3://crowd/parts", tmp_path / "p")
    model = sharded.fit(lo.DawidSkene(tol=1e-5, device="cpu"), prepared, tmp_path / "out")
    assert model.confusion_.shape == (12, 3, 3)


def test_rows_in_two_files_of_a_folder_are_counted_once(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write(crowd()[0], tmp_path / name)
    with pytest.warns(LeftOutWarning, match=r"b\.csv: 1,000 of its 1,000 annotations are in an earlier file too"):
        assert rows_of(read_annotations(tmp_path)) == rows_of(crowd()[0])
