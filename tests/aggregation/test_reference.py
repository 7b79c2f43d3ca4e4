"""Accuracy on real crowds equals what other implementations found.

TABLE holds figures of independent code on the same files. MACE and Wawa are compared with crowd-kit 1.4.2, run on ids
renumbered by first appearance (`benchmarks/reference_crowdkit.py`): its MACE mixes up workers and labels where ids
appear in another order than sorted.
"""

from typing import Any

import pytest

from labelonce import EBCC, GLAD, IBCC, MACE, DawidSkene, MajorityVote, OneCoin, Wawa, metrics
from labelonce.baselines import (
    KOS,
    BeliefPropagation,
    DataProgramming,
    EigenRatio,
    MeanField,
    MinimaxEntropy,
    MultidimensionalWisdom,
    SpectralDawidSkene,
)

EXACT: dict[str, Any] = {"tol": 1e-9, "max_iter": 2000}
MODELS = {
    "MV": MajorityVote(),
    "DS": DawidSkene(smoothing=0.0, **EXACT),
    "DS, uniform q": DawidSkene(smoothing=0.0, prior="uniform", **EXACT),
    "DS-MAP": DawidSkene(**EXACT),
    "IBCC": IBCC(**EXACT),
    "one-coin": OneCoin(smoothing=(0.0, 0.0), **EXACT),
    "one-coin MAP": OneCoin(**EXACT),
    "one-coin MAP, learned prior": OneCoin(prior="learned", **EXACT),
    "GLAD": GLAD(),
    "KOS": KOS(),
    "MACE": MACE(),
    "MACE, EM": MACE(method="em"),
    "Wawa": Wawa(),
    "mean field": MeanField(),
    "belief propagation": BeliefPropagation(),
    "eigen ratio": EigenRatio(),
    "eigen ratio, entries": EigenRatio(ratio="entries"),
    "data programming": DataProgramming(smoothing=(0.0, 0.0), **EXACT),
    "EBCC": EBCC(),
    "minimax entropy": MinimaxEntropy(worker_strength=0.25, task_strength=16.0, prior="uniform"),
    "minimax entropy, uniform prior": MinimaxEntropy(prior="uniform"),
    "data programming by class": DataProgramming(coverage="class"),
    "multidimensional wisdom": MultidimensionalWisdom(),
    "spectral": SpectralDawidSkene(),
}
COLUMNS = ("MV", "DS", "DS-MAP", "IBCC", "one-coin", "one-coin MAP", "GLAD", "KOS")
TABLE = {
    "bluebird": (0.7593, 0.8981, 0.8981, 0.8889, 0.7222, 0.7222, 0.7222, 0.7222),
    "dog": (0.8222, 0.8426, 0.8414, 0.8389, 0.8302, 0.8315, 0.8340, 0.8141),
    "trec": (0.6514, 0.7015, 0.7064, 0.7055, 0.5701, 0.5714, 0.5785, 0.5723),
    "adult_content": (0.7583, 0.7477, 0.7508, 0.7447, 0.7217, 0.7658, 0.7568, 0.6967),
    "product": (0.8966, 0.9393, 0.9382, 0.9383, 0.9280, 0.9277, 0.9283, 0.8955),
    "sentiment_tweets_1000": (0.9335, 0.9600, 0.9600, 0.9600, 0.9510, 0.9510, 0.9480, 0.9330),
    "face_sentiment": (0.6367, 0.6404, 0.6455, 0.6404, 0.6284, 0.6284, 0.6284, 0.6370),
    "sentiment_polarity": (0.8859, 0.9150, 0.9160, 0.9150, 0.9166, 0.9162, 0.9172, 0.8192),
    "zencrowd_us": (0.8605, 0.8211, 0.8211, 0.8255, 0.8564, 0.8574, 0.8745, 0.8725),
}
CROWD_KIT = {
    "MACE": {"bluebird": 0.8611, "face_sentiment": 0.6438, "dog": 0.8302, "zencrowd_us": 0.8039},
    "MACE, EM": {"bluebird": 0.8889, "face_sentiment": 0.6627, "dog": 0.8327, "zencrowd_us": 0.7632},
    "Wawa": {"bluebird": 0.7593, "dog": 0.8290, "trec": 0.6457, "adult_content": 0.7628, "product": 0.8966},
}
PINNED = {
    "Wawa": (0.7593, 0.8302, 0.6435, 0.7628, 0.8966, 0.9520, 0.6301, 0.8952, 0.8608),
    "MACE": (0.8611, 0.8302, 0.7090, 0.7808, 0.8420, 0.9570, 0.6438, 0.9178, 0.8039),
    "mean field": (0.7222, 0.8302, 0.5705, 0.7628, 0.9277, 0.9500, 0.6284, 0.9164, 0.8578),
    "eigen ratio": (0.7222, 0.8315, 0.5745, 0.7598, 0.9221, 0.9460, 0.6301, 0.9054, 0.8681),
}
CASES = [(name, method, value) for name, row in TABLE.items() for method, value in zip(COLUMNS, row, strict=True)]


def accuracy(name: str, method: str) -> float:
    from data_sets import load  # of the experiments, which a source distribution does not have

    data = load(name)
    assert data.annotations is not None
    return metrics.accuracy(data.gold_of(data.annotations), MODELS[method].fit(data.annotations).posterior_)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::labelonce.baselines.AssignmentWarning")  # KOS on uneven crowds, as tabled
@pytest.mark.parametrize(("name", "method", "expected"), CASES)
def test_accuracy_equals_the_reference(name: str, method: str, expected: float) -> None:
    assert accuracy(name, method) == pytest.approx(expected, abs=0.002)


@pytest.mark.data
@pytest.mark.parametrize(("name", "expected"), [("bluebird", 0.583), ("product", 0.909)])
def test_one_coin_loses_by_a_learned_prior(name: str, expected: float) -> None:
    assert accuracy(name, "one-coin MAP, learned prior") == pytest.approx(expected, abs=0.002)


@pytest.mark.data
def test_dawid_skene_loses_by_a_uniform_prior_where_classes_are_uneven() -> None:
    assert accuracy("product", "DS, uniform q") == pytest.approx(0.8295, abs=0.002)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "method", "expected"),
    [(name, method, value) for method, row in CROWD_KIT.items() for name, value in row.items()],
)
def test_accuracy_equals_crowd_kit(name: str, method: str, expected: float) -> None:
    assert accuracy(name, method) == pytest.approx(expected, abs=0.005)  # ties of the vote differ


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::labelonce.baselines.AssignmentWarning")
@pytest.mark.parametrize(
    ("name", "method", "expected"),
    [(name, method, value) for method, row in PINNED.items() for name, value in zip(TABLE, row, strict=True)],
)
def test_accuracy_stays_as_in_the_docs(name: str, method: str, expected: float) -> None:
    assert accuracy(name, method) == pytest.approx(expected, abs=0.002)


@pytest.mark.data
@pytest.mark.parametrize("name", ["bluebird", "dog", "sentiment_tweets_1000"])
def test_belief_propagation_gives_the_labels_of_mean_field(name: str) -> None:
    assert accuracy(name, "belief propagation") == pytest.approx(accuracy(name, "mean field"), abs=0.003)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::labelonce.baselines.AssignmentWarning")
def test_entries_lose_where_two_workers_share_few_tasks() -> None:
    assert accuracy("adult_content", "eigen ratio, entries") == pytest.approx(0.7067, abs=0.002)


EBCC_TABLE = {  # from the authors' notebook, 40 starts
    "bluebird": 0.8611,
    "dog": 0.8401,
    "product": 0.9349,
    "sentiment_amt_500": 0.944,
    "sentiment_tweets_1000": 0.9610,
    "zencrowd_in": 0.7809,
    "zencrowd_us": 0.9123,
}


@pytest.mark.data
@pytest.mark.parametrize(("name", "expected"), EBCC_TABLE.items())
def test_subtypes_give_what_their_authors_found(name: str, expected: float) -> None:
    assert accuracy(name, "EBCC") == pytest.approx(expected, abs=0.005)


@pytest.mark.data
@pytest.mark.parametrize("name", ["bluebird", "dog", "product", "sentiment_tweets_1000", "sentiment_polarity"])
def test_data_programming_by_source_is_one_coin_by_maximum_likelihood(name: str) -> None:
    assert accuracy(name, "data programming") == pytest.approx(TABLE[name][COLUMNS.index("one-coin")], abs=0.002)


@pytest.mark.data
def test_minimax_entropy_gives_what_its_authors_found() -> None:
    assert accuracy("dog", "minimax entropy") == pytest.approx(0.8463, abs=0.005)


@pytest.mark.data
@pytest.mark.parametrize(("name", "expected"), [("product", 0.841), ("zencrowd_us", 0.758)])
def test_minimax_entropy_loses_by_a_uniform_prior(name: str, expected: float) -> None:
    assert accuracy(name, "minimax entropy, uniform prior") == pytest.approx(expected, abs=0.005)


@pytest.mark.data
def test_coverage_by_class_goes_astray_where_tasks_were_handed_out() -> None:
    assert accuracy("adult_content", "data programming by class") == pytest.approx(0.234, abs=0.005)


@pytest.mark.data
@pytest.mark.parametrize("name", ["bluebird", "trec", "product", "sentiment_polarity", "zencrowd_us"])
def test_the_spectral_start_ends_where_the_votes_do_in_two_classes(name: str) -> None:
    assert accuracy(name, "spectral") == pytest.approx(TABLE[name][COLUMNS.index("DS-MAP")], abs=0.005)


@pytest.mark.data
@pytest.mark.parametrize(("name", "expected"), [("bluebird", 0.8981), ("product", 0.9390), ("zencrowd_us", 0.8211)])
def test_multidimensional_wisdom_keeps_its_figures(name: str, expected: float) -> None:
    assert accuracy(name, "multidimensional wisdom") == pytest.approx(expected, abs=0.002)
