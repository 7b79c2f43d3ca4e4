"""Seconds, pay and time of labels: what files of several tools say, and what becomes of it in the report."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from crowds import crowd
from small_files import saved

import labelonce as lo
from labelonce import io, simulate
from labelonce.report._work import work_figures

MTURK = (
    "HITId,WorkerId,Reward,WorkTimeInSeconds,SubmitTime,Input.url,Answer.kind\n"
    'h1,ann,$0.05,12,Wed Nov 18 10:00:00 PST 2026,a.jpg,cat\nh2,bob,"$1,000.00",30,not yet,b.jpg,dog\n'
)
TOLOKA = (
    "INPUT:url\tOUTPUT:kind\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\tASSIGNMENT:started\tASSIGNMENT:submitted"
    "\tASSIGNMENT:reward\na.jpg\tcat\tt1\tann\t2026-11-18T10:00:00\t2026-11-18T10:00:09\t0.02\n"
)
STUDIO = [
    {"id": 1, "data": {}, "annotations": [{"completed_by": 7, "lead_time": 4.5, "created_at": "2026-11-18T10:00:00Z"}]}
]
CASES = {
    "batch.csv": (MTURK, {"worker": ["ann", "bob"], "seconds": [12.0, 30.0], "pay": [0.05, 1000.0]}),
    "pool.tsv": (TOLOKA, {"task": ["t1"], "seconds": [9.0], "pay": [0.02]}),
    "studio.json": (json.dumps(STUDIO), {"task": ["1"], "worker": ["7"], "seconds": [4.5]}),
    "own.csv": ("task,worker,label,seconds\na,w,x,3\nb,w,y,\n", {"task": ["a", "b"], "seconds": [3.0, None]}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_file_says_of_the_work_is_read(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    found = io.read_work(saved(tmp_path, text, name))
    assert found is not None
    for column, values in expected.items():
        assert [None if one != one else one for one in found[column].to_pylist()] == values
    if "time" in found.column_names:  # 18 November 2026, 10 o'clock
        assert found["time"][0].as_py() // 60 == 1794996000 // 60


def test_a_file_that_says_nothing_of_the_work_gives_nothing(tmp_path: Path) -> None:
    assert io.read_work(saved(tmp_path, "task,worker,label\na,w,x\n")) is None


def test_a_worker_whose_labels_become_worse_is_found_and_no_other(tmp_path: Path) -> None:
    given, _ = crowd(n_tasks=300, confusion=simulate.one_coin([0.95] * 4, 2), redundancy=4)
    label, tired = given.label.copy(), (given.worker == 2) & (given.task >= 150)
    label[tired] = np.random.default_rng(0).integers(0, 2, tired.sum())  # worker 2 guesses in the second half
    ann = lo.Annotations.from_arrays(given.task, given.worker, label)
    work = pa.table({"task": ann.task, "worker": ann.worker, "time": ann.task * 60.0, "pay": np.full(len(ann), 0.1)})
    figures = work_figures(work, ann, lo.DawidSkene().fit(ann).posterior_)
    assert np.flatnonzero(figures.drifts).tolist() == [2]
    assert figures.early[2] > 0.9
    assert figures.late[2] < 0.7
    np.testing.assert_allclose(figures.pay, 30.0)
    np.testing.assert_allclose(figures.seconds, 60.0)
    pytest.importorskip("jinja2")
    lo.write_report(tmp_path / "report.html", lo.DawidSkene().fit(ann), ann, work=work)
    page = (tmp_path / "report.html").read_text()
    assert "Workers who changed" in page
    assert 'data-sort="pay"' in page
    assert "Krippendorff" in page
