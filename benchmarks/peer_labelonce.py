"""labelonce's side of the comparison: `python peer_labelonce.py WORK SIZE ITERATIONS FOLDER`."""

import sys
import warnings
from pathlib import Path

import numpy as np
from measure import report

import labelonce as lo
from labelonce import aggregation


def main(work: str, size: str, iterations: int, folder: Path) -> None:
    """Print one JSON line for one piece of work."""
    warnings.simplefilter("ignore")  # a fixed number of iterations does not converge
    y_true = np.load(folder / f"{size}-truth.npy")
    about = {"peer": "labelonce", "version": lo.__version__, "work": work, "size": size, "iterations": iterations}
    if work == "read parquet":
        path = folder / f"{size}-strings.parquet"
        report(lambda: lo.read_annotations(path, progress=False), lambda ann: float(len(ann)), **about)
        return
    ann = lo.read_annotations(folder / f"{size}-codes.parquet", progress=False)
    models: dict[str, aggregation.Aggregator] = {
        "majority vote": lo.MajorityVote(),
        "dawid-skene": lo.DawidSkene(max_iter=iterations, tol=0.0),
        "dawid-skene float32": lo.DawidSkene(max_iter=iterations, tol=0.0, dtype="float32"),
        "one-coin": lo.OneCoin(max_iter=iterations, tol=0.0),
        "wawa": lo.Wawa(),
        "glad": lo.GLAD(max_iter=iterations),
        "mace": lo.MACE(max_iter=iterations, tol=0.0),
        "mace em": lo.MACE(method="em", max_iter=iterations, tol=0.0),
        "mean field": lo.baselines.MeanField(max_iter=iterations, tol=0.0),
        "belief propagation": lo.baselines.BeliefPropagation(max_iter=iterations, tol=0.0),
        "kos": lo.baselines.KOS(max_iter=iterations, tol=0.0),
        "eigen ratio": lo.baselines.EigenRatio(),
    }
    report(lambda: models[work].fit(ann).labels_, lambda labels: float((labels == y_true).mean()), **about)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
