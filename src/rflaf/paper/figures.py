"""The paper's figures as images: the panels of `rflaf.paper.curves`, drawn by matplotlib."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rflaf.pages import Line, Panel
from rflaf.paper.curves import datasets_in, figure1, figure2, figure3, sort_out
from rflaf.paper.printed import FIGURES
from rflaf.paper.records import Record
from rflaf.runtime.pictures import picture

_COLUMNS = 3


def save_figures(
    records: Sequence[Record],
    folder: str | os.PathLike[str],
    names: Sequence[str] = tuple(FIGURES),
) -> list[Path]:
    """Write figures as PNG, with the extra `plot`; returns their paths.

    The folder is made if needed. A figure without records has no image.
    """
    strange = [name for name in names if name not in FIGURES]
    if strange:
        raise ValueError(
            f"The 'names' parameter of save_figures must be of {', '.join(FIGURES)}. "
            f"Got {strange[0]!r}."
        )
    known, _ = sort_out(records)
    rows = {name: _rows(name, known) for name in names}
    return [_save(shown, Path(folder) / f"{name}.png") for name, shown in rows.items() if shown]


def _rows(name: str, known: list[Record]) -> list[list[tuple[str, Panel]]]:
    """Panels with their titles, row by row."""
    if name == "figure1":
        rows = [
            [(f"{dataset}: {panel.title}", panel) for panel in figure1(known, dataset)]
            for dataset in datasets_in(known)
        ]
        return [row for row in rows if row]
    panels = figure2(known) if name == "figure2" else figure3(known)
    titled = [(panel.title, panel) for panel in panels]
    return [titled[k : k + _COLUMNS] for k in range(0, len(titled), _COLUMNS)]


def _save(rows: list[list[tuple[str, Panel]]], path: Path) -> Path:
    columns = max(len(row) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with picture(path, (4.2 * columns, 3.6 * len(rows))) as figure:
        axes = figure.subplots(len(rows), columns, squeeze=False)
        for row, places in zip(rows, axes):
            for place in places[len(row) :]:
                place.set_axis_off()
            for (title, panel), place in zip(row, places):
                _draw(place, title, panel)
    return path


def _draw(ax: Any, title: str, panel: Panel) -> None:
    for line in panel.lines:
        _draw_line(ax, line)
    # names come from records: no mathematics is looked for in them
    ax.set_title(title, fontsize="medium", parse_math=False)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    if panel.log_x:
        ax.set_xscale("log")
    if panel.log_y:
        ax.set_yscale("log")
    if panel.x_ticks:
        ax.set_xticks(panel.x_ticks, [f"{tick:g}" for tick in panel.x_ticks])
        ax.minorticks_off()
    ax.grid(alpha=0.25)
    # below the axis: inside, no corner is free of lines in every panel
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18)}
    ax.legend(fontsize="x-small", frameon=False, ncols=3, **place)


def _draw_line(ax: Any, line: Line) -> None:
    faint = line.style == "faint"
    look = {
        "color": "black" if line.color is None else f"C{line.color}",
        "linestyle": "--" if line.style == "dashed" else "-",
        "linewidth": 0.8 if faint else 1.5,
        "alpha": 0.3 if faint else 1.0,
        "marker": "o" if line.marks else None,
        "markersize": 4,
        "label": "_" if faint else line.name,
    }
    y = [math.nan if value is None else value for value in line.y]
    if line.spread is None:
        ax.plot(line.x, y, **look)
    else:
        ax.errorbar(line.x, y, [spread or 0.0 for spread in line.spread], **look)
