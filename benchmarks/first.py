"""What a fresh process waits for and holds: python benchmarks/first.py

Processes that import rflaf, load a model and predict, and others that fit; with an empty cache of
compiled kernels, and with one that `python -m rflaf.fused` has filled. Medians of three processes;
each with an empty cache has a folder of its own. Memory is what the process holds (resident).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _bench import show, write
from sklearn.datasets import make_friedman1

import rflaf

PROCESSES = 3
COMMON = """
import json, os, sys, time

found = {}

def memory(name):
    pages = int(open("/proc/self/statm").read().split()[1])
    found[name] = pages * os.sysconf("SC_PAGE_SIZE") / 1e6

def timed(name, function):
    start = time.perf_counter()
    result = function()
    found[name] = time.perf_counter() - start
    return result

def imported():
    global rflaf
    import rflaf

timed("import rflaf", imported)
"""
PREDICT = """
memory("memory after import rflaf")
model = timed("rflaf.load of a small model", lambda: rflaf.load(sys.argv[1]))
memory("memory after loading")
rows = [[0.5] * 10] * 10
timed("first predict", lambda: model.predict(rows))
memory("memory after predicting")
print(json.dumps(found))
"""
FIT = """
from sklearn.datasets import make_friedman1
X, y = make_friedman1(1000, noise=0.5, random_state=0)
estimator = timed("import of RFLAFRegressor", lambda: rflaf.RFLAFRegressor)
timed("first fit, 1,000 rows of 10 columns", lambda: estimator(random_state=0).fit(X, y))
print(json.dumps(found))
"""
TARGETS = {
    ("first predict", "empty"): "<= 1.5",
    ("first fit, 1,000 rows of 10 columns", "empty"): "<= 8",
}


def process(cache: str, *command: str) -> str:
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def fresh(model: Path, folder: Path, cache: str | None = None) -> dict[str, float]:
    """Seconds and megabytes of two processes, each with the cache given or with one of its own."""
    found: dict[str, float] = {}
    for part in (PREDICT, FIT):
        own = cache or tempfile.mkdtemp(dir=folder)
        found |= json.loads(process(own, "-c", COMMON + part, str(model)))
    return found


def main() -> None:
    X, y = make_friedman1(1000, noise=0.5, random_state=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rflaf.save(rflaf.RFLAFRegressor(random_state=0).fit(X, y), folder / "model.skops")
        full = tempfile.mkdtemp(dir=folder)
        process(full, "-m", "rflaf.fused")
        rows: list[dict[str, Any]] = []
        for state, cache in (("empty", None), ("full", full)):
            runs = [fresh(folder / "model.skops", folder, cache) for _ in range(PROCESSES)]
            rows += [
                {
                    "what": what,
                    "cache": state,
                    "figure": statistics.median(run[what] for run in runs),
                    "unit": "MB" if what.startswith("memory") else "s",
                    "target": TARGETS.get((what, state), "none"),
                }
                for what in runs[0]
            ]
            print(f"{state} cache")
            show(rows[-len(runs[0]) :])
    write("first", rows)


if __name__ == "__main__":
    main()
