"""The panels of judges.py: simulated ones, and cuts of LLMBar and of the media bias judges."""

from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any

import data_sets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import labelonce as lo
from labelonce._types import Codes


@dataclass(frozen=True)
class Panel:
    """Verdicts with the true classes of the tasks."""

    annotations: lo.Annotations
    truth: Codes
    half: str


@dataclass(frozen=True)
class Crowd:
    """How judges are made: a share `shared` of their verdicts is a common one, the others are their own."""

    classes: int = 2
    judges: int = 9
    shared: float = 0.7
    skill: tuple[float, float] = (0.65, 0.85)
    below: float = 0.0  # share of the judges below chance
    people: int = 0
    families: int = 0
    answered: float = 1.0
    balance: float = 0.5  # of class 0 of two classes


SIMULATED = {
    "independent": Crowd(shared=0.0),
    "shared .3": Crowd(shared=0.3),
    "shared .5, 5 classes": Crowd(shared=0.5, classes=5),
    "shared .7": Crowd(),
    "shared .7, 3 judges": Crowd(judges=3),
    "shared .95": Crowd(shared=0.95),
    "shared .6, 60 judges": Crowd(shared=0.6, judges=60),
    "shared .7, families": Crowd(judges=12, families=3),
    "shared .6, people": Crowd(shared=0.6, judges=6, people=3),
    "shared .7, people, 4 classes": Crowd(judges=5, people=4, classes=4),
    "shared .4, a third below chance": Crowd(shared=0.4, judges=15, below=1 / 3),
    "shared .7, sparse": Crowd(judges=20, answered=0.25),
    "shared .6, rare class": Crowd(shared=0.6, balance=0.85),
    "four models": Crowd(judges=4, skill=(0.8, 0.8), people=2),
}


def made(crowd: Crowd, seed: int, n: int = 1000) -> Panel:
    rng = np.random.default_rng(seed)
    share = [crowd.balance, 1 - crowd.balance] if crowd.classes == 2 else np.full(crowd.classes, 1 / crowd.classes)
    truth = rng.choice(crowd.classes, n, p=share)
    task: list[Any] = []
    worker: list[Any] = []
    label: list[Any] = []

    def verdict(skill: Any, rows: Any) -> Any:
        wrong = (truth[rows] + rng.integers(1, crowd.classes, len(rows))) % crowd.classes
        return np.where(rng.random(len(rows)) < skill, truth[rows], wrong)

    everybody, middle = np.arange(n), float(np.mean(crowd.skill))
    common = verdict(middle, everybody)
    own_of_family = [verdict(middle, everybody) for _ in range(max(crowd.families, 1))]
    for judge in range(crowd.judges):
        skill = rng.uniform(*crowd.skill) if judge >= crowd.below * crowd.judges else 0.4 / (crowd.classes - 1)
        rows = everybody[rng.random(n) < crowd.answered]
        given = verdict(skill, rows)
        if judge >= crowd.below * crowd.judges:
            source = own_of_family[judge % crowd.families] if crowd.families else common
            source = np.where(rng.random(n) < 0.5, source, common) if crowd.families else source
            given = np.where(rng.random(len(rows)) < crowd.shared, source[rows], given)
        name = f"model{judge % crowd.families}/prompt{judge}" if crowd.families else f"model{judge}"
        task, worker, label = [*task, *rows], [*worker, *[name] * len(rows)], [*label, *given]
    for person in range(crowd.people):
        rows = np.sort(rng.choice(n, max(n // 20, 1) if crowd.judges > 4 else n // 10, replace=False))
        task, worker = [*task, *rows], [*worker, *[f"person{person}"] * len(rows)]
        label = [*label, *verdict(0.92, rows)]
    annotations = lo.Annotations.from_arrays(task, worker, label, classes=range(crowd.classes))
    return Panel(annotations, truth[annotations.tasks].astype(np.int32), "report")


@cache
def cuts() -> dict[str, Panel]:
    """Return the panels of LLMBar and media bias."""
    found = _llmbar()
    try:
        found |= _media_bias()
    except (KeyError, FileNotFoundError):
        print("without the media bias judges: LABELONCE_DATA must name the folder of the data")
    return found


def _llmbar() -> dict[str, Panel]:
    data: Any = lo.datasets.load("llmbar")
    whole = data.annotations
    truth = np.asarray(data.gold)
    workers, families = whole.workers.astype(str), whole.families[whole.family]
    prompt = np.array([name.split("/")[1] for name in workers])
    names = data.raw["task"].combine_chunks().dictionary.to_pylist()
    natural = np.array([name.startswith("Natural") for name in names])
    keep = {"all": workers != "", "without GPT-4": families != "GPT-4"}
    keep |= {"two families": np.isin(families, ["GPT-4", "PaLM2"])}
    keep |= {f"prompt {one}": prompt == one for one in ("CoT", "Metrics_Reference", "Swap", "Vanilla")}
    found = {}
    for half, (name, who) in zip(cycle(("choose", "report")), keep.items(), strict=False):
        found[f"LLMBar {name}"] = _cut(whole, who[whole.worker], truth, half)
        found[f"LLMBar natural {name}"] = _cut(whole, who[whole.worker] & natural[whole.task], truth, half)
    return found


def _media_bias() -> dict[str, Panel]:
    folder = data_sets.folder() / "media_bias_judges"
    table = pq.read_table(folder / "annotations.parquet").to_pandas()
    gold = pq.read_table(folder / "gold.parquet").to_pandas().set_index("task")["label"]
    found = {}
    for style, rows in table.groupby("prompt"):
        rows = rows[rows["label"].isin([0, 1])]
        whole: Any = lo.Annotations.from_arrays(
            rows["task"], rows["worker"], rows["label"].astype(int), family=rows["family"]
        )
        truth = gold.loc[whole.tasks].to_numpy()
        place, families = np.arange(whole.n_workers), whole.families[whole.family]
        keep = {"all": place >= 0, "without GPT": families != "gpt", "even": place % 2 == 0, "odd": place % 2 == 1}
        keep |= {"mistral and llama": np.isin(families, ["mistral", "llama"]), "four": (place >= 3) & (place < 7)}
        for half, (name, who) in zip(cycle(("choose", "report")), keep.items(), strict=False):
            found[f"media bias {style} {name}"] = _cut(whole, who[whole.worker], truth, half)
    return found


def _cut(whole: lo.Annotations, rows: Any, truth: Any, half: str) -> Panel:
    part = lo.Annotations.from_frame(whole.to_frame().filter(pa.array(rows)))
    codes = dict(zip(whole.tasks.tolist(), truth.tolist(), strict=True))
    return Panel(part, np.array([codes[task] for task in part.tasks.tolist()], dtype=np.int32), half)
