"""A task out with a worker comes back when it is answered, or when its time is over."""

from labelonce.routing._leases import Leases


def test_leases_end_when_their_time_is_over_whatever_their_age_and_order() -> None:
    leases = Leases(10)
    for task, now in [(3, 4.0), (1, 5.0), (2, 6.0), (3, 7.0), (4, 1.0)]:
        leases.hand_out(task, 0, now)
    assert list(leases.expired(15.0)) == [4, 1]
    assert list(leases.out) == [3, 2]


def test_only_the_worker_who_has_a_task_gives_it_back() -> None:
    leases = Leases(10)
    leases.hand_out(3, worker=1, now=0.0)
    leases.give_back(3, worker=2)
    assert leases.holder(3, now=9.0) == 1
    leases.give_back(3, worker=1)
    assert leases.holder(3, now=9.0) is None
    leases.hand_out(3, worker=2, now=9.0)
    assert list(leases.expired(12.0)) == []
