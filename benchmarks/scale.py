"""Rows a second and peak memory of fits from disk, and one against two Dask workers.

    python benchmarks/scale.py [--rows 100000 1000000 10000000] [--folder SCRATCH] [--no-dask]

Writes the rows to a scratch folder (84 bytes a row), fits each size in a process of its own with
one thread, prints a table and writes results/scale.json; sizes that are not run keep the figures
of earlier runs. Processor time counts, not the clock, so that what else the machine does matters
little; the two Dask runs are by the clock.
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
from pathlib import Path
from typing import Any

import numpy as np
from _bench import show, write, written

D, M = 20, 1000
DASK_ROWS, CHUNK = 1_000_000, 50_000
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "RFLAF_NUM_THREADS": "1"}
MODEL = {"n_components": M, "random_state": 0}


def write_rows(folder: Path, n: int) -> None:
    """Inputs and a target that depends on five of them, float32."""
    rng = np.random.default_rng(0)
    with open(folder / "x", "wb") as inputs, open(folder / "y", "wb") as targets:
        for start in range(0, n, CHUNK):
            x = rng.standard_normal((min(CHUNK, n - start), D), np.float32)
            y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + np.abs(x[:, 3]) - x[:, 4]
            y += 0.1 * rng.standard_normal(len(x), np.float32)
            x.tofile(inputs)
            y.tofile(targets)


def open_rows(folder: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.memmap(folder / "x", np.float32, "r", shape=(n, D))
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


def fit_from_disk(folder: Path, n: int) -> None:
    """In a process of its own: print time and memory of a fit and of predictions."""
    from rflaf import RFLAFRegressor

    X, y = open_rows(folder, n)
    RFLAFRegressor(50, max_iter=3, random_state=0).fit(np.array(X[:2000]), np.array(y[:2000]))
    model = RFLAFRegressor(**MODEL)
    with PeakMemory() as memory:
        start, clock = time.process_time(), time.perf_counter()
        model.fit(X, y)
        seconds, clock = time.process_time() - start, time.perf_counter() - clock
        start = time.process_time()
        RFLAFRegressor(**MODEL, max_iter=0).fit(X, y)
        passes = time.process_time() - start
        start = time.process_time()
        error = sum(
            float(np.sum((part - y[k : k + len(part)]) ** 2)) for k, part in _parts(model, X)
        )
        predict = time.process_time() - start
    print(
        json.dumps(
            {
                "seconds": seconds,
                "clock": clock,
                "pass_seconds": passes,
                "predict_seconds": predict,
                "peak_bytes": memory.most - memory.start,
                "mse": error / n,
            }
        )
    )


def _parts(model: Any, X: np.ndarray) -> Any:
    start = 0
    for part in model.predict_blocks(X):
        yield start, part
        start += len(part)


def measure_disk(folder: Path, n: int) -> dict[str, Any]:
    write_rows(folder, n)
    result = subprocess.run(
        [sys.executable, __file__, "--child", str(n), "--folder", str(folder)],
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = json.loads(result.stdout.splitlines()[-1])
    return {
        "what": f"fit of {n:.0e} rows from disk, one thread".replace("e+0", "e"),
        "figure": n / found["seconds"],
        "unit": "rows/s",
        "target": "none",
        "kind": "disk",
        "n": n,
        **found,
    }


def read_chunk(path: str, start: int, stop: int, shape: tuple[int, ...]) -> np.ndarray:
    whole = np.memmap(path, np.float32, "r").reshape(-1, *shape)
    return np.array(whole[start:stop])


def measure_dask(folder: Path, workers: int) -> dict[str, Any]:
    import dask
    from dask import array as da
    from distributed import Client, LocalCluster

    from rflaf.dask import DaskRFLAFRegressor

    def lazily(name: str, shape: tuple[int, ...]) -> Any:
        read = dask.delayed(read_chunk)
        return da.concatenate(
            [
                da.from_delayed(
                    read(str(folder / name), k, k + CHUNK, shape), (CHUNK, *shape), np.float32
                )
                for k in range(0, DASK_ROWS, CHUNK)
            ]
        )

    X, y = lazily("x", (D,)), lazily("y", ())
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    with cluster, Client(cluster):
        DaskRFLAFRegressor(50, max_iter=3, random_state=0).fit(X[:CHUNK], y[:CHUNK])
        start = time.perf_counter()
        model = DaskRFLAFRegressor(**MODEL).fit(X, y)
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        sums = DaskRFLAFRegressor(**MODEL, max_iter=0).fit(X, y)
        passes = time.perf_counter() - start
    assert sums.output_weights_.shape == model.output_weights_.shape
    rows, plural = f"{DASK_ROWS:.0e}".replace("e+0", "e"), "s" * (workers > 1)
    return {
        "what": f"fit of {rows} rows with Dask, {workers} worker{plural} of one thread",
        "figure": DASK_ROWS / seconds,
        "unit": "rows/s",
        "target": "none",
        "kind": "dask",
        "workers": workers,
        "n": DASK_ROWS,
        "seconds": seconds,
        "seconds_without_learning": passes,
    }


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
    context = multiprocessing.get_context("spawn")
    best = {}
    for count in (1, 2):
        with context.Pool(count) as pool:
            each = [max(pool.map(multiply, range(count), chunksize=1)) for _ in range(5)]
        best[count] = min(each)
    return {
        "what": "matrix products: two processes relative to one",
        "figure": 2 * best[1] / best[2],
        "unit": "×",
        "target": "none",
        "kind": "machine",
        "n": 0,
    }


def derived(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How time and memory grow, and what the second worker brings."""
    disk = sorted((row for row in rows if row.get("kind") == "disk"), key=lambda row: row["n"])
    found = []
    if len(disk) >= 2:
        last, most = disk[-2:]
        times = most["pass_seconds"] / last["pass_seconds"]
        slope = np.log(times) / np.log(most["n"] / last["n"])
        peaks = [row["peak_bytes"] for row in disk if row["n"] > 200_000]
        found += [
            (
                "slope of log time against log n without learning, two largest sizes",
                float(slope),
                "",
                "<= 1.05",
            ),
            ("peak memory of the largest", most["peak_bytes"] / 1e6, "MB", "none"),
        ]
        if len(peaks) > 1:
            what = "peak memory: largest relative to smallest size above the sample's"
            found.append((what, max(peaks) / min(peaks), "×", "<= 1.1"))
    dask = {row["workers"]: row for row in rows if row.get("kind") == "dask"}
    if len(dask) == 2:
        key = "seconds_without_learning"
        what = "two Dask workers relative to one, without learning"
        found.append((what, dask[1][key] / dask[2][key], "×", "none"))
    names = ("what", "figure", "unit", "target")
    return [dict(zip(names, row)) for row in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--no-dask", action="store_true")
    parser.add_argument("--child", type=int)
    options = parser.parse_args()
    if options.child:
        fit_from_disk(options.folder, options.child)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        rows = [measure_disk(folder, n) for n in options.rows]
        if not options.no_dask:
            os.environ.update(ONE_THREAD)  # the workers inherit it
            write_rows(folder, DASK_ROWS)
            rows += [measure_dask(folder, workers) for workers in (1, 2)]
            rows.append(measure_machine())
    new = {row["what"] for row in rows}
    rows += [row for row in written("scale") if "kind" in row and row["what"] not in new]
    rows.sort(key=lambda row: (row["kind"], row["n"], row.get("workers", 0)), reverse=False)
    rows += derived(rows)
    show(rows)
    write("scale", rows)


if __name__ == "__main__":
    main()
