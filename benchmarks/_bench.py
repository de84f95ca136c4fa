"""Timing and result files for the benchmarks."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rflaf

RESULTS = Path(__file__).parent / "results"


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


def machine() -> dict[str, Any]:
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":")[1].strip() for line in info.open() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "rflaf": rflaf.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Write rows and machine to results/NAME.json, by way of a temporary file."""
    path = RESULTS / f"{name}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    temporary.replace(path)
    print(f"\nwritten to {path.relative_to(Path(__file__).parent.parent)}")


def show(rows: list[dict[str, Any]]) -> None:
    """Print rows with a name, a figure and a target as a table."""
    for row in rows:
        print(f"{row['what']:68}{row['figure']:>12.4g} {row['unit']:<6} target {row['target']}")
