"""Draws the picture of README and docs/choosing.md: python docs/figures/tables.py"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.ticker import NullFormatter, StrMethodFormatter

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from standings import NAMES, standings  # noqa: E402 - a module of tools

SHORT = {"linear": "linear", "hist_gradient_boosting": "HistGB", "forest": "forest"}
# Where a name stands beside its point: dx, dy in points, and the alignment
BESIDE = {
    "lightgbm": (-8, -3, "right"),
    "catboost": (-9, -3, "right"),
    "forest": (8, 3, "left"),
    "hist_gradient_boosting": (9, -4, "left"),
    "rflaf": (10, -4, "left"),
}


def panel(ax, title, found):
    for each in found:
        ours = each.model == "rflaf"
        dx, dy, side = BESIDE.get(each.model, (0, 9, "center"))
        look = {"ms": 10, "color": "C3"} if ours else {"ms": 7, "color": "C0"}
        ax.plot(*zip(*each.points), "o", ms=2.5, alpha=0.25, color=look["color"], mew=0)
        ax.plot(each.seconds, each.over_best, "o", **look)
        ax.annotate(
            SHORT.get(each.model, NAMES[each.model]),
            (each.seconds, each.over_best),
            xytext=(dx, dy),
            textcoords="offset points",
            ha=side,
            fontweight="bold" if ours else "normal",
            color="C3" if ours else "0.25",
        )
    ax.set(xscale="log", yscale="log", xlabel="fit time (s)", title=title)
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    highest = 1.25 * max(each.over_best for each in found)
    ax.set_yticks([tick for tick in (1, 1.2, 1.5, 2, 3, 4, 6) if tick <= highest])
    ax.set_ylim(0.95, highest)
    ax.set_xlim(0.008, 80)
    ax.grid(alpha=0.25)
    for edge in ("top", "right"):
        ax.spines[edge].set_visible(False)


def main() -> None:
    pyplot.rcParams.update({"font.size": 10})
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, name, classes in zip(axes, ("regression", "classification"), (False, True)):
        found = standings(classes)
        panel(ax, f"{name}, {found[0].tables} tables", found)
    axes[0].set_ylabel("test loss relative to the best")
    path = ROOT / "docs" / "images" / "tables.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})
    print(f"written: {path.name}, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
