"""Draws the figure of docs/scale.md: python docs/figures/scale.py"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

docs = Path(__file__).parent.parent
rows = json.loads((docs.parent / "benchmarks" / "results" / "scale.json").read_text())["rows"]
disk = sorted((row for row in rows if row.get("kind") == "disk"), key=lambda row: row["n"])
n = [row["n"] for row in disk]
figure, (times, memory) = pyplot.subplots(1, 2, figsize=(9, 3.2))
for key, name in (
    ("seconds", "fit"),
    ("pass_seconds", "fit without learning"),
    ("predict_seconds", "predict"),
):
    times.loglog(n, [row[key] for row in disk], "o-", label=name)
times.set(xlabel="rows", ylabel="seconds, one thread")
times.legend()
memory.semilogx(n, [row["peak_bytes"] / 1e6 for row in disk], "o-", label="peak memory")
counts = np.geomspace(n[0], n[-1], 50)
memory.semilogx(counts, counts * 84 / 1e6, "--", color="gray", label="the rows on disk")
memory.set(xlabel="rows", ylabel="MB", ylim=(0, 1.5 * max(row["peak_bytes"] for row in disk) / 1e6))
memory.legend()
for ax in (times, memory):
    ax.grid(alpha=0.25)
figure.tight_layout()
path = docs / "images" / "scale.png"
figure.savefig(path, dpi=80)
print(f"written: {path.name}, {path.stat().st_size // 1024} KB")
