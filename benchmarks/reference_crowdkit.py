"""Accuracy of crowd-kit's MACE and Wawa on real crowds, with ids as they are and renumbered by first appearance.

FOLDER holds the truth-inference sets. The renumbered figures are those of tests/aggregation/test_reference.py.

    .venv-crowdkit/bin/python benchmarks/reference_crowdkit.py FOLDER
"""

import sys
from pathlib import Path

import pandas as pd
from crowdkit.aggregation import MACE
from peer_crowdkit import WawaAsIntended

SETS = ("bluebird", "dog", "face_sentiment", "zencrowd_us")


def renumbered(frame: pd.DataFrame, gold: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both with ids 0, 1, ... in the order in which they first appear."""
    frame, gold = frame.copy(), gold.copy()
    for column in frame:
        frame[column], ids = pd.factorize(frame[column])
        if column in gold:
            gold[column] = pd.Index(ids).get_indexer(gold[column])
    return frame, gold


def main(folder: Path) -> None:
    """Print one line per set and method."""
    for name in SETS:
        frame = pd.read_parquet(folder / f"{name}_annotations.parquet").drop_duplicates(["task", "worker"])
        gold = pd.read_parquet(folder / f"{name}_gold.parquet")
        frame = frame.sort_values(["task", "worker"], ignore_index=True)
        for ids, (labels, truth) in {"as they are": (frame, gold), "renumbered": renumbered(frame, gold)}.items():
            for method, model in {
                "MACE": MACE(n_restarts=1),
                "MACE, EM": MACE(method="em", n_restarts=1),
                "Wawa": WawaAsIntended(),
            }.items():
                found = model.fit_predict(labels).reindex(truth["task"]).to_numpy()
                print(f"{name}, ids {ids}, {method}: {(found == truth['label'].to_numpy()).mean():.4f}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
