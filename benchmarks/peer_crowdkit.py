"""crowd-kit's side of the comparison, in its own environment: same arguments as peer_labelonce.py."""

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from crowdkit.aggregation import GLAD, KOS, MACE, DawidSkene, MajorityVote, OneCoinDawidSkene, Wawa
from measure import report


class WawaAsIntended:
    """crowd-kit's Wawa without its check for being fitted, which raises under scikit-learn 1.9."""

    def fit_predict(self, frame: pd.DataFrame) -> pd.Series:
        """Return the labels of the vote weighted by the skills that Wawa finds."""
        return MajorityVote().fit(frame, skills=Wawa().fit(frame).skills_).labels_


def main(work: str, size: str, iterations: int, folder: Path) -> None:
    """Print one JSON line for one piece of work."""
    y_true = np.load(folder / f"{size}-truth.npy")
    frame = pd.read_parquet(folder / f"{size}-codes.parquet")
    about = {"peer": "crowd-kit", "version": version("crowd-kit"), "work": work, "size": size, "iterations": iterations}
    models = {
        "majority vote": MajorityVote(),
        "dawid-skene": DawidSkene(n_iter=iterations, tol=0.0),
        "one-coin": OneCoinDawidSkene(n_iter=iterations, tol=0.0),
        "wawa": WawaAsIntended(),
        "glad": GLAD(n_iter=iterations),
        "mace": MACE(n_restarts=1, n_iter=iterations),
        "kos": KOS(n_iter=iterations),
    }

    def score(labels: pd.Series) -> float:
        return float((labels.sort_index().to_numpy() == y_true).mean())

    report(lambda: models[work].fit_predict(frame), score, **about)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
