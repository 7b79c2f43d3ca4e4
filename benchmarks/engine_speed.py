"""Seconds per EM iteration of the torch engine, on the CPU or CUDA; needs torch and numpy, the rest where said.

    python benchmarks/engine_speed.py iterations --device cuda --sizes 10M 100M 1B     # torch and numpy alone
    python benchmarks/engine_speed.py iterations --device cpu --sizes 10M --scipy      # compared with scipy, in turns
    python benchmarks/engine_speed.py end-to-end --size 100M --device cuda             # Parquet to posteriors
    python benchmarks/engine_speed.py stream --size 100M                               # the same in little memory

The crowd: 5 labels per task, 10 classes, half the workers right in 0.9 of cases, half guessing; float32. `iterations`
makes it on the device in the engine's own layout (`row` = worker * n_classes + label, tasks in order, 5 annotations
each), so that a billion annotations need neither disk nor host memory; making it is not timed. Timed are the
second index (`prepare_s`), one iteration with the parameters updated on the device (`iteration_s`), the engine's sweep
as the aggregators call it, with counts brought to the host (`sweep_s`), and the aggregators' update of the
parameters there, in numpy (`update_s`). Each is the least of several runs.
"""

import argparse
import importlib.util
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import peak_mb

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where record.py lies, which both folders use

from record import write

from labelonce._kernels import floored_log
from labelonce._kernels._blocks import Totals, block_posterior, fractions_of, vote_table
from labelonce._kernels._torch import TorchEngine
from labelonce._types import Floats

SIZES = {"100k": 10**5, "1M": 10**6, "10M": 10**7, "100M": 10**8, "1B": 10**9}
N_CLASSES, REDUNDANCY, SMOOTHING = 10, 5, 0.1
_PART = 10**8  # annotations drawn at a time


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(job: Callable[[], Any], device: str, repeats: int) -> list[float]:
    """Return the wall time of every run."""
    taken = []
    for _ in range(repeats):
        wait(device)
        start = time.perf_counter()
        job()
        wait(device)
        taken.append(time.perf_counter() - start)
    return taken


def draw(n_annotations: int, n_workers: int, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return `row`, `start` and the true labels of a crowd, on the device."""
    random = torch.Generator(device).manual_seed(0)
    n_tasks = n_annotations // REDUNDANCY
    whole: dict[str, Any] = {"generator": random, "device": device, "dtype": torch.int32}
    y_true = torch.randint(0, N_CLASSES, (n_tasks,), **whole)
    row = torch.empty(n_tasks * REDUNDANCY, dtype=torch.int32, device=device)
    for low in range(0, len(row), _PART):
        high = min(low + _PART, len(row))
        worker = torch.randint(0, n_workers, (high - low,), **whole)
        right = (torch.rand(high - low, generator=random, device=device) < 0.9) & (worker % 2 == 0)
        guess = torch.randint(0, N_CLASSES, (high - low,), **whole)
        true = y_true[low // REDUNDANCY : high // REDUNDANCY].repeat_interleave(REDUNDANCY)
        row[low:high] = worker * N_CLASSES + torch.where(right, true, guess)
    start = torch.arange(0, len(row) + 1, REDUNDANCY, dtype=torch.int32, device=device)
    return row, start, y_true


class OnDevice:
    """EM with everything on the device: what the hardware can do."""

    def __init__(self, engine: TorchEngine) -> None:
        self.engine = engine
        eye = vote_table(engine.shape[0], np.eye(N_CLASSES), "float32", engine.device)
        self.totals = self._totals()
        for block in engine.blocks:
            self.totals.add(block, fractions_of(block, eye))

    def _totals(self) -> Totals:
        return Totals(self.engine.shape, self.engine.device)

    def parameters(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log tables that the counts give."""
        counts = self.totals.counts.view(-1, N_CLASSES, N_CLASSES) + SMOOTHING  # worker, given, true
        table = (counts / counts.sum(1, keepdim=True)).log().float().view(-1, N_CLASSES)
        return table, (self.totals.class_counts / self.totals.class_counts.sum()).log().float()

    def iterate(self) -> None:
        """Do one iteration."""
        table, prior = self.parameters()
        totals = self._totals()
        for block in self.engine.blocks:
            totals.add(block, *block_posterior(block, table, prior))
        self.totals = totals

    def accuracy(self, y_true: torch.Tensor) -> float:
        """Return the share of tasks whose most probable class is the true one."""
        table, prior = self.parameters()
        right, first = 0, 0
        for block in self.engine.blocks:
            picks = block_posterior(block, table, prior)[0].argmax(1)
            right += int((picks == y_true[first : first + block.n_tasks]).sum())
            first += block.n_tasks
        return right / len(y_true)


def update(counts: Floats, class_counts: Floats) -> tuple[Floats, Floats]:
    """Return log parameters as `DawidSkene` finds them, in numpy."""
    smoothed = counts + SMOOTHING
    confusion = smoothed / smoothed.sum(axis=-1, keepdims=True)
    return floored_log(confusion), floored_log(class_counts / class_counts.sum())


def time_iterations(size: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one size."""
    n_annotations, device = SIZES[size], options.device
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    row, start, y_true = draw(n_annotations, options.workers, device)
    built: list[TorchEngine] = []

    def build() -> None:
        shape = (options.workers, N_CLASSES, N_CLASSES)
        built.append(TorchEngine(row, start, shape, "float32", device, block=options.block))

    (prepare_s,) = seconds(build, device, 1)
    engine = built.pop()
    work = OnDevice(engine)
    iterations = seconds(work.iterate, device, options.repeats)
    figures = {"size": size, "device": device, "workers": options.workers, "blocks": len(engine.blocks)}
    figures |= {"prepare_s": prepare_s, "iteration_s": min(iterations), "iterations_s": iterations}
    figures["accuracy"] = work.accuracy(y_true)
    counts = work.totals.sweep()
    del work
    update_s = min(seconds(lambda: update(counts.tallies.values, counts.class_counts), "cpu", options.repeats))
    parameters = update(counts.tallies.values, counts.class_counts)
    figures |= {"update_s": update_s} | sweeps(engine, parameters, row, options)
    if device == "cuda":
        figures["device_peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return figures | {"host_peak_mb": peak_mb()}


def sweeps(
    engine: TorchEngine, parameters: tuple[Floats, Floats], row: torch.Tensor, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the seconds of the engine's sweep, and with --scipy of scipy's in turns with it."""
    if not options.scipy:
        return {"sweep_s": min(seconds(lambda: engine.sweep(*parameters), options.device, options.repeats))}
    other = scipy_engine(row.cpu().numpy(), options.workers)
    walls: dict[str, list[float]] = {"ours": [], "scipy": []}
    cpus: dict[str, list[float]] = {"ours": [], "scipy": []}
    for _ in range(options.repeats):
        for name, one in (("ours", engine), ("scipy", other)):
            before = time.process_time()
            walls[name] += seconds(lambda one=one: one.sweep(*parameters), options.device, 1)  # type: ignore[misc]
            cpus[name].append(time.process_time() - before)
    found = {"sweep_s": min(walls["ours"]), "scipy_sweep_s": min(walls["scipy"])}
    found |= {"sweep_cpu_s": min(cpus["ours"]), "scipy_sweep_cpu_s": min(cpus["scipy"])}
    found["ratio_to_scipy"] = found["sweep_s"] / found["scipy_sweep_s"]
    return found | {"load": os.getloadavg()[0]}


def scipy_engine(row: Any, n_workers: int) -> Any:
    from labelonce import Annotations
    from labelonce._kernels import ScipyEngine

    task = np.arange(len(row), dtype=np.int32) // REDUNDANCY
    tables = (np.arange(n, dtype=np.int64) for n in (int(task[-1]) + 1, n_workers, N_CLASSES))
    return ScipyEngine(Annotations(task, row // N_CLASSES, row % N_CLASSES, *tables), "float32")


def write_parquet(path: Path, n_annotations: int, n_workers: int) -> None:
    """Write the crowd, rows shuffled among each million tasks, so that memory does not grow with the size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    n_tasks = n_annotations // REDUNDANCY
    schema = pa.schema([("task", pa.int64()), ("worker", pa.int32()), ("label", pa.int32())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, n_tasks, 10**6):
            n = min(10**6, n_tasks - first)
            task = rng.permutation(np.repeat(np.arange(first, first + n), REDUNDANCY))
            worker = rng.integers(0, n_workers, len(task), dtype=np.int32)
            right = (rng.random(len(task)) < 0.9) & (worker % 2 == 0)
            label = np.where(right, task * 7919 % N_CLASSES, rng.integers(0, N_CLASSES, len(task)))
            writer.write_table(pa.table([task, worker, label.astype(np.int32)], schema=schema))


def accuracy_of(tasks: Any, labels: Any) -> float:
    return float((np.asarray(labels) == np.asarray(tasks) * 7919 % N_CLASSES).mean())


def end_to_end(options: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds from a Parquet file to a Parquet file of posteriors, in memory."""
    import labelonce as lo

    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        path, clean = Path(folder, "labels.parquet"), Path(folder, "clean.parquet")
        write_parquet(path, SIZES[options.size], options.workers)
        times = [time.perf_counter()]
        annotations = lo.read_annotations(path, progress=False, duplicates="keep")
        times.append(time.perf_counter())
        model = lo.DawidSkene(max_iter=20, tol=0.0, dtype="float32", device=options.device)
        model.fit(annotations)
        times.append(time.perf_counter())
        lo.write(model, clean)
        times.append(time.perf_counter())
        size_mb = path.stat().st_size / 2**20
    figures = {"size": options.size, "device": options.device, "file_mb": size_mb}
    figures |= {"iterations": 20} | dict(zip(("read_s", "fit_s", "write_s"), np.diff(times).tolist(), strict=True))
    figures["total_s"] = times[-1] - times[0]
    return figures | {"accuracy": accuracy_of(model.tasks_, model.labels_), "host_peak_mb": peak_mb()}


def stream(options: argparse.Namespace) -> dict[str, Any]:
    """Return the same from prepared blocks; the file is made and prepared by processes of their own."""
    import pyarrow.parquet as pq

    import labelonce as lo
    from labelonce import sharded

    each: list[float] = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        path, prepared, clean = (Path(folder, name) for name in ("labels.parquet", "prepared", "clean"))
        in_child(lambda: write_parquet(path, SIZES[options.size], options.workers))
        times = [time.perf_counter()]
        prepare_mb = in_child(lambda: sharded.prepare(path, prepared, duplicates="keep"))
        times.append(time.perf_counter())
        before_mb = peak_mb()
        model = lo.DawidSkene(max_iter=options.iterations, tol=0.0, dtype="float32", device=options.device)
        sharded.fit(model, prepared, clean, callback=lambda *_: each.append(time.perf_counter()))
        times.append(time.perf_counter())
        fit_mb = peak_mb()
        disk_mb = sum(file.stat().st_size for file in prepared.rglob("*.*") if file.is_file()) / 2**20
        part = pq.read_table(clean / "labels" / "part-00000.parquet")
    prepare_s, fit_s = np.diff(times).tolist()
    figures = {"size": options.size, "device": options.device, "iterations": options.iterations}
    figures |= {"prepare_s": prepare_s, "fit_s": fit_s, "iteration_s": float(np.diff(each).min()), "disk_mb": disk_mb}
    figures |= {"prepare_peak_mb": prepare_mb, "before_fit_mb": before_mb, "fit_peak_mb": fit_mb}
    return figures | {"accuracy": accuracy_of(part["task"], part["label"])}


def in_child(job: Callable[[], Any]) -> float:
    """Run a job in a process of its own and return the most memory that it held, in MB."""
    answer, question = os.pipe()
    child = os.fork()
    if child == 0:
        job()
        os.write(question, str(peak_mb()).encode())
        os._exit(0)
    os.close(question)
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"engine_speed.py: a part of the work failed with status {status}.")
    return float(os.read(answer, 64))


def need(*modules: str) -> None:
    """Stop with one sentence where something is not installed."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"engine_speed.py: this part needs {', '.join(missing)}, not installed here. "
            "'iterations' without --scipy needs torch and numpy only."
        )


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(description="Time the torch engine.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    common.add_argument("--workers", type=int, default=10_000)
    common.add_argument("--threads", type=int, help="CPU threads; default torch's")
    common.add_argument("--out", type=Path, help="JSON; default results/engine_speed-<mode>-<device>.json")
    common.add_argument("--scratch", help="folder for the files that are read and written; default the system's")
    modes = top.add_subparsers(dest="mode", required=True)
    one = modes.add_parser("iterations", parents=[common])
    one.add_argument("--sizes", nargs="+", choices=SIZES, default=["10M"])
    one.add_argument("--repeats", type=int, default=7)
    one.add_argument("--block", type=int, help="annotations in a block; default the engine's")
    one.add_argument("--scipy", action="store_true", help="time scipy in turns with it")
    two = modes.add_parser("end-to-end", parents=[common])
    two.add_argument("--size", choices=SIZES, default="100M")
    three = modes.add_parser("stream", parents=[common])
    three.add_argument("--size", choices=SIZES, default="100M")
    three.add_argument("--iterations", type=int, default=3)
    return top


def main() -> None:
    options, started = parser().parse_args(), time.perf_counter()
    warnings.simplefilter("ignore")  # a fixed number of iterations does not converge
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.mode == "iterations":
        if options.scipy:
            need("scipy", "pyarrow", "sklearn")
        rows = [time_iterations(size, options) for size in options.sizes]
    else:
        need("scipy", "pyarrow", "sklearn")
        rows = [end_to_end(options) if options.mode == "end-to-end" else stream(options)]
    out = options.out or Path(__file__).parent / "results" / f"engine_speed-{options.mode}-{options.device}.json"
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    settings = {"threads": torch.get_num_threads(), "gpu": gpu}
    write(out, rows, settings=settings, seconds=time.perf_counter() - started)
    print(out.read_text())


if __name__ == "__main__":
    main()
