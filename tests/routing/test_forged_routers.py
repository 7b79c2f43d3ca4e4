"""Files of routers from strangers: a thousand forged ones are refused in a sentence, or are sound."""

import random
from pathlib import Path
from typing import Any

import pytest
from forging import odd_archive, opened, spoilt

from labelonce.routing import Limits, Prices, Router


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, rng = tmp_path_factory.mktemp("routers"), random.Random(0)
    limits, prices = Limits(capacity={"w1": 9}, min_gain=0.01), Prices(costs={"w1": 2.0})
    kinds: list[dict[str, Any]] = [{}, {"limits": limits, "prices": prices, "gold": {"t1": "cat"}}]
    for number, options in enumerate(kinds):
        router = Router([f"t{i}" for i in range(30)], ["cat", "dog", "cow"], random_state=number, **options)
        for _ in range(25):
            worker = f"w{rng.randrange(4)}"
            task = router.next(worker)
            if task is not None:
                router.add(task, worker, rng.choice(["cat", "dog", "cow"]))
        router.skip("t3", "w2")
        if number:
            router.refit()
        router.next("w9")
        router.save(folder / f"{number}.npz")
    return sorted(folder.iterdir())


OPEN_ROUTER = """
import numpy as np
from labelonce.routing import Limits, Prices, Router
def open_it(path):
    router = Router.load(path)
    posterior = router.belief.posterior()
    if not np.allclose(posterior.sum(axis=1), 1, atol=1e-2):
        raise RuntimeError("believes nonsense")
    for worker in (*router.workers[:3], *([] if router.workers else ["new"])):
        router.next(worker)
    router.settled, router.stop
    router.next_batch(3, workers=router.workers or ["new"])
"""


@pytest.mark.slow
def test_forged_router_files(routers: list[Path], tmp_path: Path) -> None:
    assert opened(list(spoilt(routers, tmp_path, 1_000, odd_archive)), OPEN_ROUTER) == []
