"""What aggregators warn of, and options that cannot be: refused in a sentence with the value."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from checks import Make
from crowds import crowd

from labelonce import EBCC, GLAD, IBCC, MACE, Annotations, DawidSkene, MajorityVote, OneCoin, Wawa
from labelonce.aggregation import RedundancyWarning
from labelonce.baselines import (
    KOS,
    AssignmentWarning,
    BeliefPropagation,
    DataProgramming,
    EigenRatio,
    ExpertiseVote,
    MeanField,
    MinimaxEntropy,
    MultidimensionalWisdom,
    SpectralDawidSkene,
)

MODELS: list[Make] = [DawidSkene, OneCoin, IBCC, Wawa, GLAD, MACE, MeanField, BeliefPropagation]


@pytest.mark.parametrize("make", MODELS)
def test_one_label_per_task_is_warned_about_with_the_numbers(make: Make) -> None:
    ann = crowd()[0].sample(redundancy=1, random_state=0)
    message = re.escape("only 0 of 200 tasks have two or more annotations (redundancy 1)")
    with pytest.warns(RedundancyWarning, match=rf"{make().__class__.__name__}.*{message}.*MBEM"):
        make().fit(ann)


@pytest.mark.parametrize("model", [KOS(), EigenRatio()])
def test_one_label_per_task_leaves_every_worker_alone(model: KOS | EigenRatio) -> None:
    ann = crowd()[0].sample(redundancy=1, random_state=0)
    alone = "12 workers fall into 12 groups that share no task"
    with pytest.warns(RedundancyWarning, match="only 0 of 200"), pytest.warns(AssignmentWarning, match=alone):
        model.fit(ann)
    assert (model.labels_ == ann.label).all()


@pytest.mark.parametrize("make", [DawidSkene, GLAD, BeliefPropagation])
def test_the_warning_points_at_the_line_that_called_fit(make: Make) -> None:
    ann = crowd()[0].sample(redundancy=1, random_state=0)
    with warnings.catch_warnings(record=True, action="always") as caught:
        make().fit(ann)
    assert caught[0].filename == __file__


def test_a_twentieth_of_the_tasks_labelled_twice_or_a_vote_is_enough_for_silence() -> None:
    task = np.concatenate([np.arange(100), np.arange(5)])
    ann = Annotations.from_arrays(task, np.arange(105) % 7 + 10 * (np.arange(105) > 99), np.arange(105) % 2)
    DawidSkene(max_iter=5000).fit(ann)
    MajorityVote().fit(crowd()[0].sample(redundancy=1, random_state=0))


def test_gold_of_an_unknown_task_or_class_is_named() -> None:
    with pytest.raises(ValueError, match="got 9999"):
        MajorityVote().fit(crowd()[0], gold={9999: 0})
    with pytest.raises(ValueError, match="got 8"):
        MajorityVote().fit(crowd()[0], gold={0: 8})


OF_EM: list[tuple[dict[str, Any], str]] = [
    ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
    ({"n_init": 0}, "n_init must be an integer of at least 1; got 0"),
    ({"tol": -1.0}, "tol must be at least 0; got -1.0"),
    ({"dtype": "float16"}, "dtype must be one of 'float64', 'float32'; got 'float16'"),
    ({"prior": "flat"}, "prior must be one of 'learned', 'uniform'; got 'flat'"),
    ({"prior": [0.5, 0.5]}, r"prior must have shape \(3,\); got \(2,\)"),
    ({"prior": [0.5, 0.5, 0.5]}, "prior must sum to 1; got 1.5"),
    ({"smoothing": (-1.0, 1.0)}, r"got (\(-1\.0, 1\.0\)|-1\.0)"),
    ({"smoothing": (1.0, 2.0, 3.0)}, r"got (shape \(3,\)|\(1\.0, 2\.0, 3\.0\))"),
    ({"random_state": "x"}, "random_state must be an integer of at least 0; got 'x'"),
]
CASES: list[tuple[Any, dict[str, Any], str]] = [
    *((model, *case) for model in (DawidSkene, OneCoin, IBCC) for case in OF_EM),
    *((model, {"max_iter": 0}, OF_EM[0][1]) for model in (GLAD, BeliefPropagation, ExpertiseVote, KOS)),
    *((model, {"tol": -1.0}, OF_EM[2][1]) for model in (GLAD, BeliefPropagation, KOS)),
    (EBCC, {"subtypes": 0}, "subtypes must be an integer of at least 1; got 0"),
    (EBCC, {"concentration": 0.0}, "concentration must be at least 1e-09; got 0.0"),
    (EBCC, {"smoothing": 0.0}, "smoothing of EBCC must be above 0 everywhere; got 0"),
    (EBCC, {"prior": "flat"}, "prior must be one of 'learned', 'votes', 'uniform'; got 'flat'"),
    (GLAD, {"prior": "learned"}, "prior must be one of 'uniform'; got 'learned'"),
    (GLAD, {"prior": [0.5, 0.5]}, r"prior must have shape \(3,\); got \(2,\)"),
    (MACE, {"method": "gibbs"}, "method must be one of 'vb', 'em'; got 'gibbs'"),
    (MACE, {"smoothing": 1.0}, r"pair of pseudo-counts \(competence, habit\); got 1.0"),
    (MACE, {"smoothing": (0.0, 1.0)}, r"smoothing of method 'vb' must be above 0; got \(0.0, 1.0\)"),
    (MACE, {"smoothing": (-1.0, 1.0)}, "smoothing must be at least 0; got -1.0"),
    (DawidSkene, {"smoothing": 0.0, "dtype": "float32"}, "must have smoothing above 0 everywhere; got 0"),
    (OneCoin, {"smoothing": (1.0, 0.0), "dtype": "float32"}, "must have smoothing above 0 everywhere; got 0"),
    (IBCC, {"smoothing": (4.0, 0.0)}, "must be above 0 everywhere; got 0"),
    (BeliefPropagation, {"damping": 1.0}, r"damping must be in \[0, 0.999\]; got 1.0"),
    (BeliefPropagation, {"smoothing": (2.0, 0.0)}, r"must be above 0; got \(2.0, 0.0\)"),
    (BeliefPropagation, {"prior": "learned"}, "prior must be one of 'uniform'; got 'learned'"),
    (MinimaxEntropy, {"worker_strength": -1.0}, "worker_strength must be at least 0; got -1.0"),
    (MinimaxEntropy, {"task_strength": -1.0}, "task_strength must be at least 0; got -1.0"),
    (MinimaxEntropy, {"prior": "flat"}, "prior must be one of 'learned', 'uniform'; got 'flat'"),
    (MinimaxEntropy, {"task_matrix": "yes"}, "task_matrix must be True or False; got 'yes'"),
    (MultidimensionalWisdom, {"dimensions": 3}, "dimensions must be 1 or 2; got 3"),
    (MultidimensionalWisdom, {"spread": 0.0}, r"spread must be in \[0.05, 10\]; got 0.0"),
    (MultidimensionalWisdom, {"prior": "flat"}, "prior must be one of 'learned', 'uniform'; got 'flat'"),
    (ExpertiseVote, {"damping": 0.6}, "at most growth, 0.5, .* got 0.6"),
    (ExpertiseVote, {"least_share": 0.3}, r"least_share must be in \[0.5, 1\]; got 0.3"),
    (KOS, {"start": "zeros"}, "start must be one of 'ones', 'normal'; got 'zeros'"),
    (MeanField, {"smoothing": (0.0, 1.0)}, r"must be above 0; got \(0.0, 1.0\)"),
    (MeanField, {"smoothing": 2.0}, r"pair of pseudo-counts \(right, wrong\); got 2.0"),
    (DataProgramming, {"coverage": "task"}, "coverage must be one of 'source', 'class'; got 'task'"),
    (DataProgramming, {"smoothing": 1.0}, r"smoothing must be a pair of pseudo-votes \(right, wrong\); got 1.0"),
    (DataProgramming, {"smoothing": (1.0, 0.0), "dtype": "float32"}, "must have smoothing above 0 everywhere; got 0"),
    (EigenRatio, {"ratio": "x"}, "ratio must be one of 'eigenvectors', 'entries'; got 'x'"),
    (SpectralDawidSkene, {"n_splits": 0}, "n_splits must be an integer of at least 1; got 0"),
]


@pytest.mark.parametrize(("model", "options", "message"), CASES)
def test_options_out_of_range_are_refused(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(**options).fit(crowd()[0])
