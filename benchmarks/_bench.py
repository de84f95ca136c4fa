"""Timing and result files for the benchmarks."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rflaf.paper.environment import machine as processor
from rflaf.paper.environment import today, versions

RESULTS = Path(__file__).parent / "results"
STEPS = {
    "fit": ("_open", "choose_forms", "learn_layers", "solve_members", "learn_local", "out_of_fold",
            "_mixed", "learn_monotone", "input_importances", "learn_outside", "_spread")
}  # fmt: skip
PARTS = {
    "layers": ("learn_activation", "honest_scores", "learn_more_metrics"),
    "solving": ("sum_rows", "solve_sums", "solve_newton"),
}
sys.path.append(str(RESULTS.parent.parent / "tools"))

from measured import STAMP, code, commit, stamped  # noqa: E402  # in another folder


def best_seconds(*functions: Callable[[], Any], repeats: int = 7) -> list[float]:
    """The best time of each function, taken in turn so that noise meets all of them alike."""
    for function in functions:
        function()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, taken in zip(functions, times):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


@contextmanager
def steps_of_fits(parts: bool = False) -> Iterator[dict[tuple[str, ...], list[float]]]:
    """Processor seconds and seconds of each step, by its name after those it is part of.

    Steps have `parts` where one thread computes.
    """
    found: dict[tuple[str, ...], list[float]] = {}
    path: list[str] = []

    def timed(name: str, function: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            if path and not parts:
                return function(*args, **keywords)
            path.append(name)
            taken = found.setdefault(tuple(path), [0.0, 0.0])
            start = time.process_time(), time.perf_counter()
            try:
                return function(*args, **keywords)
            finally:
                taken[0] += time.process_time() - start[0]
                taken[1] += time.perf_counter() - start[1]
                path.pop()

        return call

    with ExitStack() as stack:
        for module, names in (STEPS | PARTS if parts else STEPS).items():
            place = import_module(f"rflaf.fitting.{module}")
            for name in names:
                stack.enter_context(patch.object(place, name, timed(name, getattr(place, name))))
        yield found


def machine() -> dict[str, Any]:
    known = versions()
    return {**processor(), **{name: known[name] for name in ("python", "numpy", "rflaf")},
            "date": today()}  # fmt: skip


def written(name: str) -> list[dict[str, Any]]:
    """The rows of results/NAME.json, each as it was measured; none without the file."""
    path = RESULTS / f"{name}.json"
    return stamped(json.loads(path.read_text())) if path.exists() else []


def write(name: str, rows: list[dict[str, Any]], replace: str | tuple[str, ...] = ()) -> None:
    """Write rows and machine to results/NAME.json, by way of a temporary file.

    Each row has its date, commit, version and processor; `machine` is that of this run. With
    `replace`, earlier rows that differ from all new ones in that key (or those keys) are kept as
    they are, and the new ones take the places of those they replace.
    """
    path = RESULTS / f"{name}.json"
    here = machine()
    state = {"commit": commit(), "code": code(name), **here}
    rows = [{**{key: state[key] for key in STAMP}, **row} for row in rows]
    if replace:
        key = itemgetter(replace) if isinstance(replace, str) else itemgetter(*replace)
        groups: dict[Any, list[dict[str, Any]]] = {}
        for row in written(name):
            groups.setdefault(key(row), []).append(row)
        groups |= {key(row): [] for row in rows}
        for row in rows:
            groups[key(row)].append(row)
        rows = [row for group in groups.values() for row in group]
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"machine": here, "rows": rows}, indent=1) + "\n")
    temporary.replace(path)
    print(f"\nwritten to {path.relative_to(Path(__file__).parent.parent)}")


def show(rows: list[dict[str, Any]]) -> None:
    """Print rows with a name, a figure and a target as a table."""
    for row in rows:
        print(f"{row['what']:68}{row['figure']:>12.4g} {row['unit']:<6} target {row['target']}")
