"""ImageNet-ReaL: 924,810 votes of no, maybe or yes on 184,962 candidate labels, against five experts on 1,135 of them.

    python experiments/imagenet_real.py    # a few minutes; needs the data folder

A task is an image, a question one of the 1,000 classes. No expert's answer enters a fit; which forms are shown was
decided with their figures in view. Average
precision, accuracy and F1 at one half, log loss, each with a 90 % interval from drawing the 155 images of the experts'
questions with replacement; seconds and the largest memory of the process after each fit. "2 x 3" is one matrix of two
true classes by three answers for each rater; "tempered" chooses the power of the answers by votes left out; "per class"
has a matrix for each rater and class, shared as far as the counts ask; "context" adds what the image's other candidates
say; "three true classes" is `DawidSkene` on the three answers, whose P(yes) + P(maybe) / 2 is taken. With three votes a
question the mean of several draws is given.
"""

import argparse
import resource
import time
from typing import Any

import data_sets
import numpy as np
import pyarrow.parquet as pq
import record
from sklearn.metrics import average_precision_score, f1_score, log_loss

import labelonce as lo

PATH = record.RESULTS / "imagenet_real.json"
N_BOOTSTRAP = 1000
FIGURES = ("AP", "accuracy", "F1", "log loss")
SPENT = ("seconds", "MB")
BECOMES = {"share of yes": "no", "maybe as no": "no", "maybe as yes": "yes", "maybe dropped": None}  # what "maybe" is
MODELS: dict[str, dict[str, Any]] = {name: {"sharing": "full", "power": 1.0} for name in (*BECOMES, "2 x 3")}
MODELS |= {"2 x 3 tempered": {"sharing": "full"}, "2 x 3 tempered, context": {"sharing": "full", "context": "votes"}}
NAMES = (
    *("share of yes", "soft vote", "maybe as no", "maybe as yes", "maybe dropped", "three true classes", "2 x 3"),
    *("2 x 3 tempered", "2 x 3 tempered, context", "per class, shared", "Google's scores", "released labels"),
)


class Crowd:
    """The votes, and what experts said about some questions."""

    def __init__(self) -> None:
        folder = data_sets.folder() / "imagenet_real"
        votes, self.questions, experts = (
            {key: np.array(column) for key, column in pq.read_table(folder / f"{name}.parquet").to_pydict().items()}
            for name in ("annotations", "questions", "expert")
        )
        row, words = votes["question"], np.array(["no", "maybe", "yes"], dtype=object)[votes["answer"]]
        columns = self.questions["image"][row], self.questions["class_id"][row], votes["rater"], words
        self.annotations = lo.MultiLabelAnnotations.from_arrays(*columns, answers=["no", "maybe", "yes"])
        self.gold, self.row, self.image = experts["gold"], experts["question"], experts["image"]
        places = zip(self.questions["image"].tolist(), self.questions["class_id"].tolist(), strict=True)
        self._place = {pair: at for at, pair in enumerate(places)}

    def in_order(self, images: Any, names: Any, probability: Any) -> Any:
        """Return the probabilities of pairs of an image and a class by question; one without an answer is even."""
        found = np.full(len(self._place), 0.5)
        found[[self._place[int(image), int(name)] for image, name in zip(images, names, strict=True)]] = probability
        return found


def figures(crowd: Crowd, probability: Any, *, ranges: bool = True) -> dict[str, Any]:
    """Return the figures on the experts' questions, with `ranges` also their intervals."""
    chance = np.clip(probability[crowd.row], 1e-6, 1 - 1e-6)
    found = dict(zip(FIGURES, _figures(crowd.gold, chance), strict=True))
    if not ranges:
        return found
    images = [np.flatnonzero(crowd.image == one) for one in np.unique(crowd.image)]
    rng, draws = np.random.default_rng(0), []
    for _ in range(N_BOOTSTRAP):
        rows = np.concatenate([images[i] for i in rng.integers(len(images), size=len(images))])
        draws.append(_figures(crowd.gold[rows], chance[rows]))
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    return found | {f"{name} range": [float(a), float(b)] for name, a, b in zip(FIGURES, low, high, strict=True)}


def _figures(gold: Any, chance: Any) -> list[float]:
    given = chance > 0.5
    loss = log_loss(gold, chance, labels=[0, 1])
    found = average_precision_score(gold, chance), (given == gold).mean(), f1_score(gold, given), loss
    return [float(one) for one in found]


def fitted(crowd: Crowd, method: str, ann: lo.MultiLabelAnnotations) -> Any:
    """Return a probability per question by a method."""
    if method == "three true classes":  # P(yes) + P(maybe) / 2
        pairs, start = lo.Annotations.from_arrays(ann.pair, ann.worker, ann.answer, classes=[0, 1, 2]), ann.pair_start
        posterior = lo.DawidSkene().fit(pairs).posterior_
        images, names = ann.tasks[ann.task[start]], ann.questions[ann.question[start]]
        return crowd.in_order(images, names, posterior[:, 2] + posterior[:, 1] / 2)
    if method in BECOMES:
        ann = ann.relabel({"maybe": BECOMES[method]})
    vote = method in ("share of yes", "soft vote")
    model: Any = lo.MultiLabelVote() if vote else lo.MultiLabelDawidSkene(**MODELS.get(method, {}))
    model.fit(ann)
    images, names = model.tasks_[model.pair_task_], model.questions_[model.pair_question_]
    return crowd.in_order(images, names, model.pair_posterior_)


def trial(method: str, votes: int, seed: int) -> record.Trial:
    crowd = Crowd()
    if method in ("Google's scores", "released labels"):
        column = crowd.questions["score" if method == "Google's scores" else "real"]
        return figures(crowd, column.astype(float))
    ann = crowd.annotations
    ann = ann if votes == 5 else ann.sample(redundancy=votes, of="answers", random_state=seed)
    started = time.perf_counter()
    found = fitted(crowd, method, ann)
    seconds = time.perf_counter() - started
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures(crowd, found, ranges=votes == 5) | {"seconds": round(seconds, 2), "MB": round(megabytes)}


def points(_: argparse.Namespace) -> list[record.Trial]:
    """Return every trial: all methods with five votes, the main ones with three."""
    main = ("2 x 3 tempered", "2 x 3 tempered, context", "2 x 3", "soft vote")
    return [
        *({"method": name, "votes": 5, "seed": 0} for name in NAMES),
        *({"method": name, "votes": 3, "seed": seed} for name in main for seed in range(4)),
    ]


def table(trials: list[record.Trial]) -> str:
    """Return one row per method, with five votes and with three."""
    found, text = record.grouped(trials, "votes", "method"), []
    for votes in (5, 3):
        rows = []
        for name in NAMES:
            if own := found.get((votes, name)):
                cells = [_cell(own, figure) for figure in FIGURES]
                if name == "released labels":
                    cells = ["", cells[1], cells[2], ""]
                rows.append([name, *cells, *(f"{own[0][key]:,.0f}" if key in own[0] else "" for key in SPENT)])
        if rows:
            text.append(f"{votes} votes a question\n\n" + record.markdown(["", *FIGURES, *SPENT], rows))
    return "\n".join(text)


def _cell(own: list[record.Trial], figure: str) -> str:
    mean = float(np.mean([row[figure] for row in own]))
    if len(own) > 1:
        return f"{mean:.3f}"
    low, high = own[0][f"{figure} range"]
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    # one at a time: the memory is that of the process
    record.experiment(__doc__, PATH, trial, points, table, settings={"bootstrap": N_BOOTSTRAP}, jobs=1)
