"""Draws the figure of docs/scale.md: python docs/figures/scale.py"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

docs = Path(__file__).parent.parent
sys.path.append(str(docs.parent / "tools"))

from cost import RESULTS, Size, fit_model, runs  # noqa: E402  # in another folder

rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
disk, (model, _) = runs(rows, "disk"), fit_model(rows)
threads = disk[-1]["threads"]
n = [run["n"] for run in disk]
figure, (times, memory) = pyplot.subplots(1, 2, figsize=(9, 3.2))
[fits] = times.loglog(n, [run["seconds"] for run in disk], "o", label="fit")
[passes] = times.loglog(n, [run["pass_clock"] for run in disk], "o", label="its passes")
counts = np.geomspace(n[0], 1e9, 60)
costs = [model(Size(int(count)), threads) for count in counts]
times.loglog(counts, [cost.seconds for cost in costs], color=fits.get_color(), label="model")
times.loglog(counts, [cost.passes for cost in costs], color=passes.get_color())
many = [model(Size(int(count)), 100, 10**6).seconds for count in counts]
times.loglog(counts, many, "--", color=fits.get_color(), label="model, 100 workers")
times.set(xlabel="rows", ylabel=f"seconds, {threads} thread{'s' * (threads > 1)}")
memory.semilogx(n, [run["peak_bytes"] / 1e6 for run in disk], "o", label="peak memory")
memory.semilogx(counts, [cost.held / 1e6 for cost in costs], color="C0", label="model")
memory.semilogx(counts, counts * 84 / 1e6, "--", color="gray", label="the rows on disk")
memory.set(xlabel="rows", ylabel="MB", ylim=(0, 1.5 * max(run["peak_bytes"] for run in disk) / 1e6))
for ax in (times, memory):
    ax.grid(alpha=0.25)
    ax.legend()
figure.tight_layout()
path = docs / "images" / "scale.png"
figure.savefig(path, dpi=80)
print(f"written: {path.name}, {path.stat().st_size // 1024} KB")
