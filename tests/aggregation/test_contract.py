"""The battery on every aggregator, in the settings users choose."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from checks import CHECKS, Make, annotations
from hypothesis import given, settings
from sklearn.exceptions import NotFittedError

from labelonce import EBCC, IBCC, MACE, Annotations, DawidSkene, OneCoin
from labelonce.aggregation._registry import aggregators
from labelonce.baselines import DataProgramming, EigenRatio, MinimaxEntropy, MultidimensionalWisdom, SpectralDawidSkene

QUICK: dict[str, Make] = {  # in place of the defaults, which take long
    "SpectralDawidSkene": lambda: SpectralDawidSkene(n_splits=2),
    "EBCC": lambda: EBCC(n_init=2, subtypes=3),
    "MultidimensionalWisdom": lambda: MultidimensionalWisdom(tol=1e-6),
}
SETTINGS: dict[str, Make] = {
    "DawidSkene maximum likelihood": lambda: DawidSkene(smoothing=0.0, max_iter=5000),
    "DawidSkene uniform prior": lambda: DawidSkene(prior="uniform"),
    "DawidSkene three starts": lambda: DawidSkene(n_init=3),
    "OneCoin learned prior": lambda: OneCoin(prior="learned"),
    "IBCC uniform prior": lambda: IBCC(prior="uniform"),
    "MACE em": lambda: MACE(method="em"),
    "MACE learned prior": lambda: MACE(prior="learned"),
    "EigenRatio entries": lambda: EigenRatio(ratio="entries"),
    "EBCC learned prior": lambda: EBCC(n_init=1, subtypes=2, prior="learned"),
    "MinimaxEntropy of 2012": lambda: MinimaxEntropy(task_matrix=False, prior="uniform"),
    "DataProgramming coverage by class": lambda: DataProgramming(coverage="class"),
}
MODELS: dict[str, Make] = aggregators() | QUICK | SETTINGS
RANDOM_STARTS = {
    "DawidSkene three starts": "the further starts are drawn per task, so they do not permute with the tasks",
    "SpectralDawidSkene": "the workers are split at random, so the splits do not permute with the workers",
    "EBCC": "the starts are drawn per task, so they do not permute with the tasks",
    "EBCC learned prior": "the starts are drawn per task, so they do not permute with the tasks",
}
STARTS_ARE_RANDOM = {"check_task_and_worker_permutations_commute", "check_class_permutation_commutes"}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", MODELS)
def test_aggregator(name: str, check: Callable[[Make], None]) -> None:
    if name in RANDOM_STARTS and check.__name__ in STARTS_ARE_RANDOM:
        pytest.skip(RANDOM_STARTS[name])
    check(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
@given(ann=annotations())
@settings(max_examples=60)
def test_any_annotations_give_finite_probabilities(name: str, ann: Annotations) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd crowds are warned about, and must still give numbers
        model = MODELS[name]().fit(ann)
    for values in (model.posterior_, model.confusion_, model.prior_, model.skill_):
        assert np.isfinite(values).all()


def test_frames_need_a_fit_first() -> None:
    with pytest.raises(NotFittedError, match="DawidSkene"):
        DawidSkene().to_frame()
