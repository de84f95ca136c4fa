"""What a fit with squared error costs: seconds, bytes held and bytes sent, from a few terms.

    python tools/cost.py ROWS [--columns 20] [--features 1000] [--members 1]
                         [--workers 1] [--partition 0]

Coefficients are fitted to benchmarks/results/scale.json by least squares of relative errors, none
below zero. The largest run from disk and those with several workers are left out: they check it.
Rows of a `partition` are those of Dask; without it, workers are cores of one machine.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "scale.json"
SAMPLE = 200_000  # rows that layers are learned on, at most
BLOCK = 1 << 25  # bytes of the features of a block
ROW_MORE = 36  # bytes of a row of the sample besides inputs: target, weight, number, two keys
FAN_IN = 8  # results that a Dask worker puts together
BANDWIDTH = 1.25e8  # bytes per second between two machines, assumed: 1 Gbit/s


@dataclass(frozen=True)
class Size:
    """Rows, columns, features, and members whose sums are computed."""

    n: int
    d: int = 20
    m: int = 1000
    members: int = 1

    @property
    def sums(self) -> int:
        """Bytes of the sums over the rows that members may see, and over those of their folds."""
        return 16 * self.members * (self.m + 1) ** 2

    @property
    def sample(self) -> int:
        """Rows of the sample."""
        return min(self.n, SAMPLE)


# What each step grows with. Reading and sums take processor seconds, learning takes seconds of the
# client, and `held` are bytes while it learns.
TERMS: dict[str, tuple[Callable[[Size], float], ...]] = {
    "read_seconds": (lambda s: 4 * s.n * (s.d + 1),),  # bytes of the rows
    "sum_seconds": (
        lambda s: s.members * s.n * s.m * (s.m + s.d),  # features, and products of them
        lambda s: s.members * s.m**3,  # solutions
    ),
    "learn_seconds": (lambda s: 1.0, lambda s: s.sample),
    "peak_bytes": (lambda s: 1.0, lambda s: s.sample),
}


@dataclass(frozen=True)
class Cost:
    """Seconds of a fit by step; bytes held by the client and by a worker, and bytes sent."""

    learn: float
    passes: float
    send: float
    held: float
    worker: float
    sent: float

    @property
    def seconds(self) -> float:
        return self.learn + self.passes + self.send


@dataclass(frozen=True)
class CostModel:
    """Coefficients of TERMS, and the time of passes relative to their processor time per core."""

    terms: dict[str, list[float]]
    slower: dict[str, float]

    def step(self, name: str, size: Size) -> float:
        return float(sum(c * term(size) for c, term in zip(self.terms[name], TERMS[name])))

    def passes(self, size: Size) -> float:
        """Processor seconds of the passes over all rows."""
        return self.step("read_seconds", size) + self.step("sum_seconds", size)

    def __call__(self, size: Size, cores: int = 1, partition: int = 0) -> Cost:
        """A fit on one machine; or, with rows of a partition, with Dask workers of one core."""
        learn, sample = self.step("learn_seconds", size), 4 * (size.d + 1) * size.sample
        summing = 3 * sample + BLOCK + size.sums + 24 * (size.m + 1) ** 2  # and copies to solve
        held = max(self.step("peak_bytes", size), summing)
        passes = self.slower["dask" if partition else "disk"] * self.passes(size) / cores
        if not partition:
            return Cost(learn, passes, 0.0, held, 0.0, 0.0)
        parts = -(-size.n // partition)
        levels = math.ceil(math.log(parts, FAN_IN) - 1e-9)
        moved = size.sample * (4 * size.d + ROW_MORE)
        # in a tree, all but what is there already; then to the client
        apart = 1 - 1 / cores
        inside = levels * moved + (parts - 1) * FAN_IN / (FAN_IN - 1) * size.sums
        sent = moved + size.sums + inside * apart
        in_turn = moved + size.sums + levels * (FAN_IN - 1) * size.sums * apart
        send = max(in_turn, sent / cores) / BANDWIDTH
        worker = (FAN_IN + 1) * size.sums + 8 * (size.d + 1) * partition + BLOCK
        return Cost(learn, passes, send, held, worker, sent)

    def of_run(self, run: dict[str, Any]) -> Cost:
        cores = run.get("workers") or run.get("threads", 1)
        return self(size_of(run), cores, run.get("partition", 0))


def size_of(run: dict[str, Any]) -> Size:
    return Size(run["n"], run["d"], run["m"], run["members"])


def runs(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The runs of a kind, the smallest first."""
    found = [row for row in rows if row.get("kind") == kind]
    return sorted(found, key=lambda row: (row["n"], row.get("workers", 0)))


def fit_model(rows: list[dict[str, Any]]) -> tuple[CostModel, list[dict[str, Any]]]:
    """The model of rows of benchmarks/results/scale.json, and the runs it has not seen."""
    disk, dask, passes = (runs(rows, kind) for kind in ("disk", "dask", "passes"))
    if len(disk) < 3:
        raise ValueError("The model needs runs from disk of at least three sizes.")
    *seen, largest = disk
    alone = [run for run in dask if run["workers"] == 1]
    terms = {}
    for name, growth in TERMS.items():
        known = seen + passes * (name in ("read_seconds", "sum_seconds"))
        found = np.array([run[name] for run in known])
        matrix = np.array([[term(size_of(run)) for term in growth] for run in known])
        unit, relative = matrix.max(axis=0), np.maximum(found, 1e-3 * found.max() + 1e-9)
        solution, _ = nnls(matrix / unit / relative[:, None], found / relative)
        terms[name] = list(solution / unit)
    model = CostModel(terms, {})
    for kind, known in (("disk", seen), ("dask", alone)):
        least = sum(model.passes(size_of(run)) / run.get("threads", 1) for run in known)
        model.slower[kind] = sum(run["pass_clock"] for run in known) / least if known else 1.0
    return model, [largest, *(run for run in dask if run not in alone)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=float)
    defaults = {"columns": 20, "features": 1000, "members": 1, "workers": 1, "partition": 0}
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    model, _ = fit_model(json.loads(RESULTS.read_text(encoding="utf-8"))["rows"])
    size = Size(int(given.rows), given.columns, given.features, given.members)
    cost = model(size, given.workers, given.partition)
    parts = ("learning", cost.learn), ("passes", cost.passes), ("sending", cost.send)
    print(f"{cost.seconds:.3g} s: {', '.join(f'{name} {each:.3g} s' for name, each in parts)}")
    print(f"{cost.held / 1e6:.3g} MB held by the client, {cost.worker / 1e6:.3g} MB by a worker")
    print(f"{cost.sent / 1e9:.3g} GB sent")


if __name__ == "__main__":
    main()
