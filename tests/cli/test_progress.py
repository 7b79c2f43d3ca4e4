"""Progress of long work: lines where standard error is no terminal, and not too many of them."""

from collections.abc import Iterable

from commands import Capture

from labelonce.cli import _progress
from labelonce.cli._progress import Lines, shown_progress


def lines_of(events: Iterable[tuple[float, str, int, int]]) -> list[str]:
    written: list[str] = []
    now = [0.0]
    lines = Lines(written.append, clock=lambda: now[0])
    for at, stage, done, total in events:
        now[0] = at
        lines(stage, done, total)
    return written


def test_the_plan_is_announced_once_a_fit_has_shown_how_long_it_takes() -> None:
    steps = [(float(fit), "choosing", fit, 15) for fit in (1, 2, 3)]
    written = lines_of([(0, "choosing", 0, 0), *steps])
    assert written == ["choosing a recipe", "choosing: 3 of at most 15 fits, about 12 s left"]


def test_a_long_first_fit_promises_no_time_quick_steps_share_a_line_and_the_last_needs_none() -> None:
    assert lines_of([(0, "choosing", 0, 0), (60, "choosing", 1, 15)])[1:] == ["choosing: 1 of at most 15 fits"]
    steps = [(0.1 * fit, "choosing", fit, 100) for fit in range(1, 101)]  # ten seconds
    written = lines_of([(0, "choosing", 0, 0), *steps])
    assert len(written) == 3
    assert "about 5 s left" in written[-1]
    assert lines_of([(0, "round", 0, 1), (60, "round", 1, 1)]) == ["fitting to all tasks"]


def test_a_night_of_work_takes_fewer_lines_than_minutes() -> None:
    hours = 10 * 3600
    written = lines_of((second, "round", second, hours) for second in range(1, hours + 1))
    assert 20 < len(written) < 300
    assert written[-1].endswith(" left")
    assert " h left" in "".join(written)


def test_every_stage_begins_with_a_line() -> None:
    stages = list(_progress.STAGES)
    assert lines_of((0, stage, 0, 0) for stage in stages) == [_progress.STAGES[stage].begin for stage in stages]


def test_a_pipe_gets_lines_on_standard_error_unless_it_reads_json(capsys: Capture) -> None:
    with shown_progress() as progress:
        progress("comparing", 0, 16)
        progress("comparing", 1, 16)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["comparing methods", "1 of 16 methods"]  # which differ: no time is promised
    with shown_progress(as_json=True) as progress:
        progress("comparing", 0, 16)
    assert capsys.readouterr().err == ""
