"""Time and memory of fits from disk on two threads, and of fits with one and two Dask workers.

    python benchmarks/scale.py [--rows 10000 100000 ...] [--dask-rows 1000000] [--folder SCRATCH]

Writes rows to a scratch folder (84 bytes each), and fits each size in a process of its own. PASSES
are fits without learning, for tools/cost.py. Results are written after each run; what is not run
keeps its figures and its date. Runs that fail are listed at the end, and the exit code is 1. An
option without numbers leaves these runs out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from _bench import show, steps_of_fits, write, written
from cost import fit_model, runs
from measured import STAMP

from rflaf.paper.environment import today

D, M, THREADS, CHUNK = 20, 1000, 2, 50_000
ROWS, DASK_ROWS = (10_000, 100_000, 1_000_000, 10_000_000), (1_000_000,)
BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
PREDICTED = 100_000  # rows at most
PASSES = ((300_000, 20, 2000), (300_000, 100, 500))  # rows, columns, features


def write_rows(folder: Path, n: int, d: int = D) -> None:
    """Inputs and a target that depends on five of them, float32."""
    rng = np.random.default_rng(0)
    with open(folder / "x", "wb") as inputs, open(folder / "y", "wb") as targets:
        for start in range(0, n, CHUNK):
            x = rng.standard_normal((min(CHUNK, n - start), d), np.float32)
            y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) - x[:, 4]
            y += 0.1 * rng.standard_normal(len(x), np.float32)
            x.tofile(inputs)
            y.tofile(targets)


def open_rows(folder: Path, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.memmap(folder / "x", np.float32, "r", shape=(n, d))
    return x, np.memmap(folder / "y", np.float32, "r", shape=(n,))


class PeakMemory:
    """The most memory of this process that is not a file's, above what it has at the start."""

    def __enter__(self) -> PeakMemory:
        self.start = self.most = self._now()
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._run)
        self._watch.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._done.set()
        self._watch.join()

    def _run(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, self._now())

    def _now(self) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def fit_from_disk(folder: Path, n: int, d: int, m: int, learn: bool) -> dict[str, Any]:
    """In a process of its own: time and memory of a fit, and of predictions."""
    from rflaf import RFLAFRegressor

    X, y = open_rows(folder, n, d)
    RFLAFRegressor(50, max_iter=3, random_state=0).fit(np.array(X[:2000]), np.array(y[:2000]))
    passes = {} if learn else {"max_iter": 0, "local_models": False}
    model = RFLAFRegressor(m, random_state=0, n_jobs=THREADS, **passes)
    with PeakMemory() as memory, timed_fit() as found:
        model.fit(X, y)
    found["peak_bytes"] = memory.most - memory.start
    if learn:
        model.predict(X[:1000])  # compiles the kernels of this model
        some, start = min(n, PREDICTED), time.perf_counter()
        error = model.predict(X[:some]) - y[:some]
        found["predicted_per_second"] = some / (time.perf_counter() - start)
        found["mse"] = float(np.mean(error**2))
    return found


@contextmanager
def timed_fit() -> Iterator[dict[str, Any]]:
    """Seconds of a fit, processor seconds of its passes, and the members whose sums they are.

    A pass draws the sample (`_open`), and one makes sums (`solve_members`); the rest is learning.
    """
    from rflaf.fitting import solving

    found: dict[str, Any] = {}
    with (
        steps_of_fits() as steps,
        patch.object(solving, "sum_rows", wraps=solving.sum_rows) as sums,
    ):
        start = time.process_time(), time.perf_counter()
        yield found
        seconds = time.perf_counter() - start[1]
        read, solve = (steps[name,] for name in ("_open", "solve_members"))
    found |= {
        "seconds": seconds,
        "processor_seconds": time.process_time() - start[0],
        "read_seconds": read[0],
        "sum_seconds": solve[0],
        "pass_clock": read[1] + solve[1],
        "learn_seconds": seconds - read[1] - solve[1],
        "members": len(sums.call_args_list[0].args[2]),
        "steps": {path[0]: taken for path, taken in steps.items()},
    }


def measure_disk(
    folder: Path, n: int, d: int = D, m: int = M, learn: bool = True
) -> dict[str, Any]:
    write_rows(folder, n, d)
    options = [json.dumps([n, d, m, learn]), "--folder", str(folder)]
    result = subprocess.run(
        [sys.executable, __file__, "--child", *options],
        env={**os.environ, "RFLAF_NUM_THREADS": str(THREADS)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout.splitlines()[-1])
    what = f"fit of {_short(n)} rows from disk"
    if not learn:
        what += f" without learning, {d} columns, {m} features"
    shape = {"n": n, "d": d, "m": m, "threads": THREADS}
    return _row(what, "disk" if learn else "passes", n / found["seconds"], "rows/s") | shape | found


def _short(n: int) -> str:
    return f"{n:.0e}".replace("e+0", "e")


def _row(
    what: str, kind: str, figure: float, unit: str = "", target: str = "none"
) -> dict[str, Any]:
    return {"what": what, "kind": kind, "figure": figure, "unit": unit, "target": target}


def read_chunk(path: str, start: int, stop: int, shape: tuple[int, ...]) -> np.ndarray:
    whole = np.memmap(path, np.float32, "r").reshape(-1, *shape)
    return np.array(whole[start:stop])


def measure_dask(folder: Path, n: int, workers: int) -> dict[str, Any]:
    """By the clock. Dask gives a worker of one thread one thread; the client has all."""
    import dask
    from dask import array as da
    from distributed import Client, LocalCluster

    from rflaf.dask import DaskRFLAFRegressor

    def lazily(name: str, shape: tuple[int, ...]) -> Any:
        read, path = dask.delayed(read_chunk), str(folder / name)
        edges = [(k, min(k + CHUNK, n)) for k in range(0, n, CHUNK)]
        parts = [
            da.from_delayed(read(path, k, stop, shape), (stop - k, *shape), np.float32)
            for k, stop in edges
        ]
        return da.concatenate(parts)

    write_rows(folder, n)
    X, y = lazily("x", (D,)), lazily("y", ())
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster):
        DaskRFLAFRegressor(50, max_iter=3, random_state=0).fit(X[:CHUNK], y[:CHUNK])
        before = loopback_bytes()
        with timed_fit() as found:
            DaskRFLAFRegressor(M, random_state=0).fit(X, y)
        sent = loopback_bytes() - before
    what = f"fit of {_short(n)} rows with Dask, {workers} worker{'s' * (workers > 1)} of one thread"
    taken = {key: found[key] for key in ("seconds", "pass_clock", "learn_seconds", "members")}
    shape = {"n": n, "d": D, "m": M, "workers": workers, "partition": CHUNK, "sent_bytes": sent}
    return _row(what, "dask", n / found["seconds"], "rows/s") | shape | taken


def loopback_bytes() -> int:
    """Sent so far between processes of this machine, whoever they are."""
    import psutil  # Dask needs it

    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def multiply(_: int) -> float:
    """Seconds of plain matrix products, which is what sums over rows are made of."""
    a = np.random.default_rng(0).standard_normal((2000, 2000), np.float32)
    b = a @ a
    start = time.perf_counter()
    for _ in range(10):
        np.matmul(a, a, out=b)
    return time.perf_counter() - start


def measure_machine() -> dict[str, Any]:
    """What a second process can bring on this machine: matrix products in one and in two."""
    context, one_thread = multiprocessing.get_context("spawn"), dict.fromkeys(BLAS, "1")
    best = {}
    for count in (1, 2):
        with patch.dict(os.environ, one_thread), context.Pool(count) as pool:
            each = [max(pool.map(multiply, range(count), chunksize=1)) for _ in range(5)]
        best[count] = min(each)
    what = "matrix products: two processes relative to one"
    return _row(what, "machine", 2 * best[1] / best[2], "×") | {"n": 0}


def derived(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How time and memory grow, and what the second worker brings; with the dates of those runs."""
    disk, dask = runs(rows, "disk"), runs(rows, "dask")
    found = []
    if len(disk) >= 2:
        last, most = disk[-2:]
        times = [row["read_seconds"] + row["sum_seconds"] for row in (last, most)]
        slope = float(np.log(times[1] / times[0]) / np.log(most["n"] / last["n"]))
        what = "slope of log CPU time of passes against log n, two largest sizes"
        found += [
            _row(what, "derived", slope, target="<= 1.05") | stamp(most),
            _row("peak memory of the largest", "derived", most["peak_bytes"] / 1e6, "MB")
            | stamp(most),
        ]
        peaks = [row["peak_bytes"] for row in disk if row["n"] > 200_000]
        if len(peaks) > 1:
            what = "peak memory: largest relative to smallest size above the sample's"
            ratio = max(peaks) / min(peaks)
            found.append(_row(what, "derived", ratio, "×", "<= 1.1") | stamp(most))
    for one, two in pairwise(dask):
        if one["n"] == two["n"]:
            what = f"two Dask workers relative to one, passes of {_short(one['n'])} rows"
            ratio = one["pass_clock"] / two["pass_clock"]
            found.append(_row(what, "derived", ratio, "×") | stamp(two))
    return found


def stamp(row: dict[str, Any]) -> dict[str, Any]:
    """When and where an earlier row was measured; nothing for a row of this run."""
    return {name: row.get(name) for name in STAMP} if "date" in row else {}


def record(row: dict[str, Any]) -> None:
    """Add a run to the results, and what follows from all of them."""
    known = {old["what"]: old for old in written("scale")} | {row["what"]: row}
    show([row])
    write("scale", [row, *derived(list(known.values()))], replace="what")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--dask-rows", type=int, nargs="*", default=DASK_ROWS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", type=json.loads)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(fit_from_disk(options.folder, *options.child)))
        return
    start, failed = time.perf_counter(), []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        jobs: list[Callable[[], dict[str, Any]]] = []
        if options.rows:
            jobs += [partial(measure_disk, folder, *size, learn=False) for size in PASSES]
        jobs += [partial(measure_disk, folder, n) for n in options.rows]
        jobs += [partial(measure_dask, folder, n, w) for n in options.dask_rows for w in (1, 2)]
        for job in [measure_machine, *jobs]:
            try:
                record(job())
            except Exception as error:  # the other runs are worth having
                failed.append(f"{job}: {error!r}")
            print(f"{time.perf_counter() - start:.0f} s so far", flush=True)
    rows = written("scale")
    show(derived(rows))
    for row in rows:
        if row["date"] != today():
            print(f"kept from {row['date']}: {row['what']}")
    model, unseen = fit_model(rows)
    for run in unseen:
        what = f"{run['what']}: seconds by the model of the others, relative to those measured"
        print(f"{what}: {model.of_run(run).seconds / run['seconds']:.2f}")
    if failed:
        sys.exit("failed:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
