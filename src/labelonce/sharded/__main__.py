"""`python -m labelonce.sharded prepare | fit`, the second also under `torchrun -m`."""

from __future__ import annotations

import argparse
import os
import sys

from labelonce._types import DUPLICATES
from labelonce.aggregation import IBCC, DawidSkene, OneCoin
from labelonce.sharded import fit, prepare

METHODS = {"dawid-skene": DawidSkene, "one-coin": OneCoin, "ibcc": IBCC}


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    top = argparse.ArgumentParser(prog="labelonce.sharded", description="Aggregate annotations larger than memory.")
    commands = top.add_subparsers(dest="command", required=True)
    one = commands.add_parser("prepare", help="write Parquet files as blocks that can be streamed")
    one.add_argument("files", nargs="+", help="Parquet files of task, worker, label")
    one.add_argument("--output", "-o", required=True, help="folder to write; must not exist")
    for name in ("task", "worker", "label"):
        one.add_argument(f"--{name}-column", default=name)
    one.add_argument("--duplicates", choices=DUPLICATES, default="error")
    two = commands.add_parser("fit", help="run EM over prepared blocks; also under torchrun")
    two.add_argument("folder", help="what prepare wrote")
    two.add_argument("--output", "-o", required=True, help="folder for labels, workers and run.json")
    two.add_argument("--method", choices=METHODS, default="dawid-skene")
    two.add_argument("--dtype", choices=["float32", "float64"], default="float32")
    two.add_argument("--max-iter", type=int, default=500)
    two.add_argument("--tol", type=float, default=1e-7)
    two.add_argument("--device", choices=["cpu", "cuda"])
    return top


def run(arguments: argparse.Namespace) -> None:
    """Do what was asked for."""
    if arguments.command == "prepare":
        columns = {name: getattr(arguments, f"{name}_column") for name in ("task", "worker", "label")}
        prepare(arguments.files, arguments.output, duplicates=arguments.duplicates, **columns)
        return
    model = METHODS[arguments.method](dtype=arguments.dtype, max_iter=arguments.max_iter, tol=arguments.tol)
    fit(model, arguments.folder, arguments.output, device=arguments.device, callback=_note)


def _note(iteration: int, objective: float) -> None:
    if os.environ.get("RANK", "0") == "0":
        sys.stderr.write(f"iteration {iteration}: objective {objective:.6f}\n")


def main() -> None:
    """Run the command line: bad input is one sentence on stderr and exit code 2."""
    try:
        run(parser().parse_args())
    except (ValueError, TypeError, OSError) as error:
        sys.stderr.write(f"labelonce.sharded: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
