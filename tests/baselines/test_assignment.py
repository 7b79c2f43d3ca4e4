import warnings

import numpy as np
import pytest

from labelonce import Annotations
from labelonce.baselines import KOS, AssignmentWarning, EigenRatio
from labelonce.data._check import worker_groups

TWO_GROUPS = [[0, 0, -1, -1], [1, 1, -1, -1], [-1, -1, 0, 0], [-1, -1, 1, 1]]


def test_groups_are_those_that_tasks_connect() -> None:
    groups = worker_groups(Annotations.from_matrix(TWO_GROUPS))
    assert groups[0] == groups[1]
    assert groups[2] == groups[3]
    assert groups[0] != groups[2]


@pytest.mark.parametrize("model", [KOS(), EigenRatio()])
def test_groups_without_a_common_task_are_warned_about_and_still_solved(model: KOS | EigenRatio) -> None:
    ann = Annotations.from_matrix(TWO_GROUPS)
    with pytest.warns(AssignmentWarning, match="these 4 workers fall into 2 groups .* largest of 2"):
        model.fit(ann)
    assert model.labels_.tolist() == [0, 1, 0, 1]
    assert (model.posterior_.max(axis=1) > 0.7).all()


@pytest.mark.parametrize("side", ["worker", "task"])
def test_kos_warns_of_uneven_numbers_of_labels(side: str) -> None:
    matrix = np.full((40, 10), -1)
    matrix[:, 0], matrix[:4, 1:] = 0, 1
    ann = Annotations.from_matrix(matrix if side == "worker" else matrix.T)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        KOS().fit(ann)
    messages = [str(warning.message) for warning in caught if warning.category is AssignmentWarning]
    assert any(f"every {side} has about as many labels; here they vary from 4 to 40" in text for text in messages)
    assert {warning.filename for warning in caught} == {__file__}
