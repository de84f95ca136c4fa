"""What a chart shows, before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Line:
    """A curve, or points.

    Attributes
    ----------
    color : int or None
        A number in the palette of what draws it; None is the colour of text.
    style : {"solid", "dashed", "faint", "points"}
        Dashed: what the other lines are compared with. Faint: further ones of a kind, without a
        name in the legend. Points: no line between them.
    marks : bool
        Whether the points of a line are marked.
    spread : sequence, optional
        Half the length of a bar at each point.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    color: int | None = None
    style: Literal["solid", "dashed", "faint", "points"] = "solid"
    marks: bool = False
    spread: Sequence[float | None] | None = None


@dataclass(frozen=True)
class Histogram:
    """How many rows lie where: counts between edges, drawn in grey at the foot of a chart."""

    edges: Sequence[float]
    counts: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """Curves on one pair of axes.

    Attributes
    ----------
    x_range, y_range : (float, float), optional
        What the axes show; else all of the lines.
    below : Histogram, optional
    height : int
        For a width of 330.
    """

    title: str
    lines: tuple[Line, ...]
    x_label: str
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    x_ticks: tuple[float, ...] | None = None
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    below: Histogram | None = None
    height: int = 230
