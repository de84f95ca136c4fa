"""Many threads that each predict one row at a time: python benchmarks/load.py

As a server does: 16 threads of 1,000 calls of `predict` with one row each, against RBFSampler and
Ridge with as many features, in turn in the same run; and the memory of 100,000 calls.
"""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _bench import best_seconds, show, write
from sklearn.datasets import make_friedman1
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from rflaf import RFLAFRegressor

THREADS, CALLS, ROUNDS = 16, 1000, 5
MANY_CALLS = 100_000
Row = dict[str, Any]


def row(what: str, figure: float, unit: str, target: str, **more: Any) -> Row:
    return {"what": what, "figure": float(figure), "unit": unit, "target": target, **more}


def under_load(model: Any, x: Any) -> tuple[float, float]:
    """Calls per second of all threads together, and the 99th percentile of a call's seconds."""
    taken = np.zeros((THREADS, CALLS))
    ready = threading.Barrier(THREADS + 1)

    def client(k: int) -> None:
        rows = [x[i : i + 1] for i in range(k, k + CALLS)]
        ready.wait()
        for i, one in enumerate(rows):
            start = time.perf_counter()
            model.predict(one)
            taken[k, i] = time.perf_counter() - start

    threads = [threading.Thread(target=client, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    return THREADS * CALLS / seconds, float(np.quantile(taken, 0.99))


def resident_bytes() -> int:
    """What the process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(model: Any, x: Any) -> float:
    """Megabytes that the process has grown by over many calls, after some to warm up."""
    for i in range(2000):
        model.predict(x[i : i + 1])
    gc.collect()
    before = resident_bytes()
    for i in range(MANY_CALLS):
        at = i % (len(x) - 1)
        model.predict(x[at : at + 1])
    gc.collect()
    return (resident_bytes() - before) / 1e6


def measure(name: str, model: Any, features: int, x: Any, y: Any) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(x, y)
    rival = make_pipeline(RBFSampler(n_components=features, random_state=0), Ridge()).fit(x, y)
    one = x[:1]

    def hundred(of: Any) -> Any:
        return lambda: [of.predict(one) for _ in range(100)]

    ours, theirs = best_seconds(hundred(model), hundred(rival), repeats=20)
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "theirs": []}
    for _ in range(ROUNDS):
        found["ours"].append(under_load(model, x))
        found["theirs"].append(under_load(rival, x))
    speed = {who: max(rate for rate, _ in runs) for who, runs in found.items()}
    slow = {who: min(late for _, late in runs) for who, runs in found.items()}
    load = f"{name}, {THREADS} threads × {CALLS:,} rows"
    return [
        row(f"{name}, one row: time / RBFSampler + Ridge", ours / theirs, "×", "<= 0.7",
            microseconds=ours * 1e4),
        row(f"{load}: throughput / RBFSampler + Ridge", speed["ours"] / speed["theirs"], "×",
            ">= 1.5", calls_per_second=speed["ours"]),
        row(f"{load}: p99 / RBFSampler + Ridge", slow["ours"] / slow["theirs"], "×", "<= 1",
            milliseconds=slow["ours"] * 1e3),
    ]  # fmt: skip


def main() -> None:
    x, y = make_friedman1(3000, noise=0.5, random_state=0)
    single = RFLAFRegressor(1000, n_members=1, random_state=0)
    rows = measure("M = 1000", single, 1000, x, y)
    rows += measure("M = 5 × 500", RFLAFRegressor(500, n_members=5, random_state=0), 2500, x, y)
    rows.append(row(f"memory over {MANY_CALLS:,} calls", growth(single, x), "MB", "<= 2"))
    show(rows)
    write("load", rows)


if __name__ == "__main__":
    main()
