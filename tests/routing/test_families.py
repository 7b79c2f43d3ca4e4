"""Buying from models and people with one purse: families and prices."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labelonce as lo
from labelonce.routing import Limits, Prices, Router

MODELS = ["gpt/a", "gpt/b", "gpt/c", "llama/a"]
FAMILIES = {name: name.split("/")[0] for name in MODELS}
PRICES = Prices(costs=dict.fromkeys(MODELS, 0.05) | {"person 1": 10.0})


def market(**options: Any) -> Router:
    return Router(range(40), ["no", "yes"], prices=PRICES, families=FAMILIES, **options)


def test_a_second_prompt_of_a_model_is_worth_little_and_believed_little() -> None:
    router = market()
    first = router.value(0, "gpt/a")
    router.add(0, "gpt/a", "yes")
    once = router.belief.posterior()[0, 1]
    router.add(1, "gpt/a", "yes")
    router.add(1, "gpt/b", "yes")
    router.add(2, "gpt/a", "yes")
    router.add(2, "llama/a", "yes")
    again, other = router.belief.posterior()[[1, 2], 1]
    assert once < again < other
    assert np.log(again / (1 - again)) == pytest.approx((1 + 2 / 1.64 - 1) * np.log(once / (1 - once)))
    router.state.worker_code("gpt/b")
    assert 0 < router.value(0, "gpt/b") < 0.25 * first
    assert router.value(0, "gpt/a") == 0


def test_what_is_taken_back_leaves_the_belief_of_before() -> None:
    router = market()
    router.add(0, "gpt/a", "yes")
    before = router.belief.posterior()[0]
    router.add(0, "gpt/b", "no")
    router.remove(0, "gpt/b")
    np.testing.assert_allclose(router.belief.posterior()[0], before)


def test_models_are_asked_first_and_people_where_models_are_done() -> None:
    rng = np.random.default_rng(0)
    router = market(limits=Limits(max_labels=5))
    truth = np.where(rng.random(40) < 0.5, "no", "yes")
    workers = [*MODELS, "person 1"]
    asked: list[Any] = []
    while len(asked) < 164:
        batch = router.next_batch(8, workers=workers, each=8)
        for task, worker in batch:
            right = rng.random() < (0.97 if worker == "person 1" else 0.75)
            router.add(task, worker, truth[task] if right else {"no": "yes", "yes": "no"}[truth[task]])
        asked += [worker for _, worker in batch]
    assert set(asked[:150]) <= set(MODELS)
    assert "person 1" in asked[-10:]
    router.refit()
    assert isinstance(router.model_, lo.JudgePanel)
    assert router.model_.families_.tolist()[:2] == ["gpt", "gpt"]


def test_a_saved_router_knows_the_families(tmp_path: Path) -> None:
    router = market()
    router.add(0, "gpt/a", "yes")
    router.state.worker_code("gpt/b")
    router.save(tmp_path / "router")
    again = Router.load(tmp_path / "router")
    assert again.value(0, "gpt/b") == pytest.approx(router.value(0, "gpt/b"))
