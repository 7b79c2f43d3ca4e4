import re
import warnings

import numpy as np
import pytest
from checks import Make
from crowds import crowd

from labelonce import GLAD, IBCC, MACE, Annotations, DawidSkene, MajorityVote, OneCoin, Wawa
from labelonce.aggregation import RedundancyWarning
from labelonce.baselines import KOS, AssignmentWarning, BeliefPropagation, EigenRatio, MeanField

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
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make().fit(ann)
    assert caught[0].filename == __file__


def test_a_twentieth_of_the_tasks_labelled_twice_is_enough_for_silence() -> None:
    task = np.concatenate([np.arange(100), np.arange(5)])
    ann = Annotations.from_arrays(task, np.arange(105) % 7 + 10 * (np.arange(105) > 99), np.arange(105) % 2)
    DawidSkene(max_iter=5000).fit(ann)


def test_majority_vote_does_not_warn_at_one_label() -> None:
    MajorityVote().fit(crowd()[0].sample(redundancy=1, random_state=0))


def test_gold_of_an_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match="got 9999"):
        MajorityVote().fit(crowd()[0], gold={9999: 0})


def test_gold_outside_the_classes_is_named() -> None:
    with pytest.raises(ValueError, match="got 8"):
        MajorityVote().fit(crowd()[0], gold={0: 8})
