"""Seconds per epoch of our networks: step by step, recorded as a CUDA graph, and compiled on top; and several at once.

50,000 made-up 32 x 32 images of ten classes. Every figure is a fit of `--epochs` epochs after one of a single epoch,
which loads, chooses and compiles kernels. `processes` is how many fits ran at once on the same card: seconds are then
those of an epoch of all of them, divided by their number. A CPU has nothing to record.

    python benchmarks/network_speed.py                                    # writes results/network_speed-<device>.json
    python benchmarks/network_speed.py --images 2000 --nets fast_net      # something quick on a CPU
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import multiprocessing

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where record.py lies, which both folders use

from record import write

from labelonce import neural

NETS: dict[str, dict[str, Any]] = {
    "fast_net": {"module_fn": neural.fast_net, "batch_size": 1024},
    "resnet20": {"module_fn": neural.resnet20, "batch_size": 512},
    "resnet18": {"module_fn": neural.resnet18, "batch_size": 512},
}
WAYS: dict[str, dict[str, Any]] = {
    "step by step": {"record": False},
    "recorded": {"record": True},
    "recorded, compiled": {"record": True, "compile": True},
}


def epoch_s(net: str, way: str, n_images: int, epochs: int) -> tuple[float, float]:
    """Return the seconds of an epoch, and the last loss."""
    torch.backends.cudnn.benchmark = True
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n_images)
    X = (rng.integers(0, 128, (n_images, 32, 32, 3)) + 12 * y[:, None, None, None]).astype(np.uint8)
    settings = NETS[net] | WAYS[way] | {"lr": 0.1, "random_state": 0}
    neural.TorchLearner(**settings, epochs=1).fit(X, y)
    learner = neural.TorchLearner(**settings, epochs=epochs)
    started = time.perf_counter()
    learner.fit(X, y)
    return (time.perf_counter() - started) / epochs, learner.history_[-1]["loss"]


def together(net: str, way: str, n_images: int, epochs: int, processes: int) -> dict[str, Any]:
    """Return the figures of some fits at once."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        found = pool.starmap(epoch_s, [(net, way, n_images, epochs)] * processes, chunksize=1)
    seconds = max(taken for taken, _ in found) / processes
    row = {"net": net, "way": way, "processes": processes, "epoch_s": round(seconds, 4)}
    return row | {"images_per_s": round(n_images / seconds), "loss": found[0][1]}


def main() -> None:
    """Read the command line, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", choices=list(NETS), default=["fast_net", "resnet20"])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["step by step", "recorded"])
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = {"images": options.images, "epochs": options.epochs}
    settings["device"] = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    rows, started = [], time.perf_counter()
    for net in options.nets:
        for way in options.ways:
            for processes in options.processes:
                rows.append(together(net, way, options.images, options.epochs, processes))
                print(rows[-1], flush=True)
    out = options.out or Path(__file__).parent / "results" / f"network_speed-{device}.json"
    write(out, rows, settings=settings, seconds=time.perf_counter() - started)


if __name__ == "__main__":
    main()
