"""The leaderboard: ranks against hand-made ones, and a choice that does not look at the truth."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import leaderboard
from crowds import crowd_with_features
from record import read

import labelonce as lo


def trials(data: str, **accuracy: float) -> list[dict[str, Any]]:
    about = {"data": data, "redundancy": 1, "seed": 0, "cpu_s": 1.0}
    return [about | {"method": method, "accuracy": value} for method, value in accuracy.items()]


def test_ranks_are_means_over_sets_without_the_truth_and_ties_share_theirs() -> None:
    rows = trials("one", truth=0.9, vote=0.5, MBEM=0.8, CoNAL=0.8) + trials("two", truth=0.9, vote=0.7, MBEM=0.8)
    ranks = leaderboard.mean_ranks(leaderboard.by_cell(rows))
    assert ranks == {"vote": (3 + 2) / 2, "MBEM": (1.5 + 1) / 2, "CoNAL": 1.5}


def test_only_draws_that_all_have_are_ranked_and_the_table_has_the_best_first() -> None:
    rows = trials("one", vote=0.5, MBEM=0.8) + trials("two", vote=0.9)
    lonely = [{**row, "seed": 1} for row in trials("one", vote=0.9)]
    assert leaderboard.shared_draws(rows + lonely) == rows
    assert leaderboard.table(rows + lonely).splitlines()[2].startswith("| MBEM | 1.0 | 80.0 ")
    lines = leaderboard.table(trials("labelme", vote=0.5, MBEM=0.8, CoNAL=0.7)).splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:]] == ["MBEM", "CoNAL", "vote"]
    assert "87.1 (authors)" in lines[3]


def test_the_choice_is_by_held_out_labels() -> None:
    X, ann, *_ = crowd_with_features(300, redundancy=2, hammers=0.8)
    weak, strong = (lo.TrainOnAggregate(lo.MajorityVote(), lo.SoftmaxRegression(C=C)) for C in (1e-9, 1.0))
    assert leaderboard.choose([weak, strong], X, ann, 0) is strong
    assert leaderboard.choose([strong, strong], X, ann, 0) is strong


def test_every_network_exists_and_every_method_has_the_same_candidates() -> None:
    for name, options in leaderboard.CROWD_NETWORKS.values():
        assert set(options) <= set(getattr(lo.baselines, name)._get_param_names())
    for method in leaderboard.LINEAR:
        found = leaderboard.candidates(method, 0, "digits")
        assert len(found) == (1 if method == "MBEM" else len(leaderboard.PENALTIES))
    assert set(leaderboard.METHODS) >= set(leaderboard.PUBLISHED)


def test_draws_follow_one_another_and_labelmes_crowd_has_ten() -> None:
    found = list(leaderboard.points(Namespace(data=[], seeds=None)))
    assert [row["seed"] for row in found] == sorted(row["seed"] for row in found)
    draws = {name: len({row["seed"] for row in found if row["data"] == name}) for name in ("labelme", "amazon_isbook")}
    assert draws == {"labelme": 10, "amazon_isbook": 5}
    assert {row["data"].split(", ")[0] for row in leaderboard.points(Namespace(data=["digits"], seeds=1))} == {"digits"}


def test_methods_that_are_renewed_are_run_again_and_the_rest_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text('{"trials": [{"method": "vote", "seed": 0}, {"method": "MBEM", "seed": 0}]}')
    options = Namespace(out=out, renew=["MBEM"], data=["digits"], seeds=1)
    assert {point["method"] for point in leaderboard.asked(options)} == {"MBEM"}
    assert [row["method"] for row in read(out)] == ["vote"]
