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
SECONDS = 0.004, 200


def panel(ax, title, found):
    highest = 1.25 * max(each.over_best for each in found)
    ax.set(xscale="log", yscale="log", xlabel="fit time (s)", title=title)
    ax.set(xlim=SECONDS, ylim=(0.95, highest))
    for each in found:
        ours = each.model == "rflaf"
        dx, dy, side = BESIDE.get(each.model, (0, 9, "center"))
        look = {"ms": 10, "color": "C3"} if ours else {"ms": 7, "color": "C0"}
        for seconds, over_best in each.points:
            single(ax, seconds, over_best, look["color"])
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
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
    ax.set_yticks([tick for tick in (1, 1.2, 1.5, 2, 3, 4, 6) if tick <= highest])
    ax.grid(alpha=0.25)
    for edge in ("top", "right"):
        ax.spines[edge].set_visible(False)


def single(ax, seconds, over_best, color):
    """A table: a point, or a triangle at the edge that it lies beyond."""
    (left, right), (_, top) = ax.get_xlim(), ax.get_ylim()
    if over_best > top:
        marker = "^"
    elif not left <= seconds <= right:
        marker = "<" if seconds < left else ">"
    else:
        marker = "o"
    place = min(max(seconds, left), right), min(over_best, top)
    size, alpha = (2.5, 0.25) if marker == "o" else (5, 0.5)
    ax.plot(*place, marker, ms=size, alpha=alpha, color=color, mew=0, clip_on=False)


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
