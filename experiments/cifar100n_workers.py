"""Real mistakes of 519 workers among 100 classes do not follow groups, and which worker model bears that.

CIFAR-100N: one label of a real worker for each of 50,000 images (59.8 % right); only a third of the wrong ones lie
inside the true class's superclass. There are no images here, so a model's predictions are simulated at a stated
accuracy: every class is a random point on the unit sphere in 16 dimensions, which knows nothing of the superclasses,
a task is its class's point plus normal noise, and the prediction is P(class | point), calibrated by construction; the
noise is scaled until the stated share of most probable classes is right. Each worker model is then fitted as in
MBEM's rounds: eight times to the posteriors that it gives itself, prediction times label. Accuracy is that of the
posterior; the error of a skill is its distance to the worker's share of right labels, mean over workers with 20
labels or more. "Wrong groups" deals the classes to the 20 superclasses at random.

    python experiments/cifar100n_workers.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/cifar100n_workers.py --table    # the table alone, from results/cifar100n_workers.json
"""

import argparse
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import data_sets
import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, resume

import labelonce as lo
from labelonce import workers
from labelonce._kernels import Candidates

PATH = RESULTS / "cifar100n_workers.json"
ACCURACIES, SEEDS = (0.537, 0.741), (0, 1, 2)
DIMENSIONS, ITERATIONS, WIDTH, FEWEST = 16, 8, 30, 20
MODELS: dict[str, tuple[str, Callable[[Any, Any], workers.WorkerModel]]] = {
    "flat": ("one coin, mistakes anywhere", lambda _, __: workers.OneCoin()),
    "strict": ("superclasses, no leak", lambda groups, _: workers.Grouped(groups, errors="uniform", leak=0.0)),
    "leak": ("superclasses, learned leak", lambda groups, _: workers.Grouped(groups, errors="uniform")),
    "both": ("superclasses, learned leak, the crowd's mistakes", lambda groups, _: workers.Grouped(groups)),
    "crowd": ("no groups, the crowd's 19 commonest mistakes", lambda _, __: workers.Grouped()),
    "found": ("groups found, learned leak, the crowd's mistakes", lambda _, __: workers.Grouped("auto")),
    "wrong": ("wrong groups, learned leak", lambda _, dealt: workers.Grouped(dealt, errors="uniform")),
    "wrong both": ("wrong groups, learned leak, the crowd's mistakes", lambda _, dealt: workers.Grouped(dealt)),
}


@cache
def crowd() -> tuple[lo.Annotations, Any, Any]:
    """Return the annotations, the true classes, and the superclass of each class."""
    data = data_sets.load("cifar100n")
    assert data.annotations is not None
    y_true = np.asarray(data.gold)
    groups = np.zeros(len(data.classes), dtype=np.int64)
    groups[y_true] = data.extra["coarse"]
    return data.annotations, y_true, groups


def predict(y_true: Any, n_classes: int, accuracy: float, rng: np.random.Generator) -> Any:
    """Return P(class) of every task from noisy points, (n_tasks, n_classes), of which `accuracy` are right."""
    points = rng.standard_normal((n_classes, DIMENSIONS))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    noise = rng.standard_normal((len(y_true), DIMENSIONS))
    low, high = 0.05, 2.0
    for _ in range(20):
        scale = (low + high) / 2
        scores = (points[y_true] + scale * noise) @ points.T / scale**2
        low, high = (scale, high) if (scores.argmax(axis=1) == y_true).mean() > accuracy else (low, scale)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def fitted(model: workers.WorkerModel, annotations: lo.Annotations, predictions: Any) -> tuple[Any, Any]:
    """Return the workers and the posteriors, each fitted to the other."""
    posterior = predictions
    for _ in range(ITERATIONS):
        some = Candidates.from_dense(posterior, WIDTH) if isinstance(model, workers.Grouped) else posterior
        model.fit(annotations, some)
        given = model.factors_.probability(
            annotations.worker[:, None], np.arange(annotations.n_classes), annotations.label[:, None]
        )
        posterior = predictions * given  # one label per task, sorted by task
        posterior /= posterior.sum(axis=1, keepdims=True)
    return model, posterior


def trial(accuracy: float, model: str, seed: int) -> Trial:
    """Return the accuracy of one model's posterior and the error of its skills."""
    annotations, y_true, groups = crowd()
    rng = np.random.default_rng(seed)
    predictions = predict(y_true, annotations.n_classes, accuracy, rng)
    started = time.process_time()
    found, posterior = fitted(MODELS[model][1](groups, rng.permutation(groups)), annotations, predictions)
    labels = np.bincount(annotations.worker)
    right = np.bincount(annotations.worker, annotations.label == y_true[annotations.task]) / labels
    skill = found.factors_.skill(np.bincount(y_true) / len(y_true))
    known = labels >= FEWEST
    return {
        "accuracy": accuracy,
        "model": model,
        "seed": seed,
        "alone": float((predictions.argmax(axis=1) == y_true).mean()),
        "posterior": float((posterior.argmax(axis=1) == y_true).mean()),
        "log_loss": float(-np.log(np.maximum(posterior[np.arange(len(y_true)), y_true], 1e-12)).mean()),
        "skill_error": float(np.abs(skill - right)[known].mean()),
        "leak": float(getattr(found, "leak_", 1.0)),
        "cpu_s": time.process_time() - started,
    }


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    points = [
        {"accuracy": accuracy, "model": model, "seed": seed}
        for accuracy in ACCURACIES
        for model in MODELS
        for seed in SEEDS
    ]
    settings = {"dimensions": DIMENSIONS, "iterations": ITERATIONS, "candidates": WIDTH, "fewest_labels": FEWEST}
    resume(options, trial, points, order={"model": list(MODELS)}, settings=settings)


def table(trials: list[Trial]) -> str:
    """Return posterior accuracy, log-loss and error of the skills, mean over seeds."""
    head = ["workers", "model right", "posterior right", "log-loss", "error of skills", "leak"]
    rows = []
    for accuracy in ACCURACIES:
        for name, (title, _) in MODELS.items():
            found = [row for row in trials if row["accuracy"] == accuracy and row["model"] == name]
            if found:
                mean = {key: float(np.mean([row[key] for row in found])) for key in found[0] if key != "model"}
                rows.append(
                    [
                        title,
                        f"{mean['alone']:.3f}",
                        f"{mean['posterior']:.3f}",
                        f"{mean['log_loss']:.2f}",
                        f"{mean['skill_error']:.3f}",
                        f"{mean['leak']:.2f}",
                    ]
                )
    return markdown(head, rows)


if __name__ == "__main__":
    main(arguments(__doc__, PATH).parse_args(), run, table)
