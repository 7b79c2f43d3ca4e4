"""crowd-kit's side of the comparison, in its own environment: same arguments as peer_labelonce.py."""

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene, MajorityVote
from measure import report


def main(work: str, size: str, iterations: int, folder: Path) -> None:
    """Print one JSON line for one piece of work."""
    y_true = np.load(folder / f"{size}-truth.npy")
    frame = pd.read_parquet(folder / f"{size}-codes.parquet")
    about = {"peer": "crowd-kit", "version": version("crowd-kit"), "work": work, "size": size, "iterations": iterations}
    model = {"majority vote": MajorityVote(), "dawid-skene": DawidSkene(n_iter=iterations, tol=0.0)}[work]

    def score(labels: pd.Series) -> float:
        return float((labels.sort_index().to_numpy() == y_true).mean())

    report(lambda: model.fit_predict(frame), score, **about)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
