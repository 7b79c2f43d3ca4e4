"""What the models of questions reach on real crowds, against experts whom no fit has seen."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import average_precision_score, f1_score, log_loss

from labelonce.multilabel import MultiLabelAnnotations, MultiLabelDawidSkene

pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_imagenet_real_is_as_close_to_experts_as_the_released_scores(data_root: Path) -> None:
    votes, questions, experts = (
        pq.read_table(data_root / "imagenet_real" / f"{name}.parquet").to_pandas()
        for name in ("annotations", "questions", "expert")
    )
    row = votes["question"].to_numpy()
    image, name = questions["image"].to_numpy(), questions["class_id"].to_numpy()
    columns = image[row], name[row], votes["rater"].to_numpy(), votes["answer"].to_numpy()
    ann = MultiLabelAnnotations.from_arrays(*columns, answers=[0, 1, 2])
    model = MultiLabelDawidSkene(sharing="full").fit(ann)
    places = zip(model.tasks_[model.pair_task_], model.questions_[model.pair_question_], strict=True)
    found = dict(zip(places, model.pair_posterior_, strict=True))
    chance = np.array([found[pair] for pair in zip(experts["image"], experts["class_id"], strict=True)])
    gold = experts["gold"].to_numpy()
    assert average_precision_score(gold, chance) >= 0.8925
    assert ((chance > 0.5) == gold).mean() >= 0.928
    assert f1_score(gold, chance > 0.5) >= 0.828
    assert log_loss(gold, chance) <= 0.27


def test_medical_relations_agree_with_the_experts(data_root: Path) -> None:
    known = pq.read_table(data_root / "medical_relations_multilabel" / "gold.parquet").to_pandas()
    wide = pq.read_table(data_root / "medical_relations_multilabel" / "annotations_wide.parquet")
    ann = MultiLabelAnnotations.from_wide(wide)
    model = MultiLabelDawidSkene().fit(ann)
    place = {int(task): number for number, task in enumerate(ann.tasks)}
    for name, least in (("TREATS", 0.925), ("CAUSES", 0.80)):
        gold = known[(known["question"] == name) & (known["test_partition"] != 0)]
        column = list(ann.questions).index(name)
        given = model.labels_[[place[task] for task in gold["task"]], column]
        assert (given == (gold["test_partition"] > 0)).mean() >= least
