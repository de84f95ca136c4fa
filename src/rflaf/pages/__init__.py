"""Pages of one HTML file each: what is on a page and in its charts, as plain data.

The page of the paper's runs and the page about a model are both made of these; all text in them
stays text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Line:
    """A curve, or points.

    Dashed is what the other lines are compared with, faint are further ones of a kind, without a
    name in the legend, and points have no line between them.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    color: int | None = None  # a number in the palette of what draws it; None: the colour of text
    style: Literal["solid", "dashed", "faint", "points"] = "solid"
    marks: bool = False  # whether the points of a line are marked
    spread: Sequence[float | None] | None = None  # half the length of a bar at each point


@dataclass(frozen=True)
class Histogram:
    """How many rows lie where: counts between edges, drawn in grey at the foot of a chart."""

    edges: Sequence[float]
    counts: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """Curves on one pair of axes, which show all of the lines if no range is given."""

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
    height: int = 230  # for a width of 330


@dataclass(frozen=True)
class Cell:
    text: str
    value: float | None = None  # what it is sorted by, where that is a number
    kind: str = ""  # "best": marked as the best of its column; "far": as far off
    shade: float | None = None  # between 0 and 1: how deep its ground is coloured


@dataclass(frozen=True)
class TableView:
    title: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    right: bool = False  # whether numbers stand at the right of their column

    @property
    def numeric(self) -> list[bool]:
        columns = range(len(self.header))
        return [any(row[k].value is not None for row in self.rows) for k in columns]


@dataclass(frozen=True)
class Bar:
    """A line of a list of bars: from `start` to `end`, shares of the width between 0 and 1."""

    name: str
    start: float
    end: float
    text: str


@dataclass(frozen=True)
class BarList:
    """Named bars, one under the other. `zero` is where a rule stands, as a share of the width."""

    title: str
    bars: tuple[Bar, ...]
    zero: float | None = None

    @classmethod
    def around(
        cls,
        title: str,
        zero: float,
        ends: tuple[float, float],
        named: Iterable[tuple[str, float, str]],
    ) -> BarList:
        """Bars from `zero` to named values, with a text each, on a scale between `ends`."""
        low, width = ends[0], ends[1] - ends[0] or 1.0
        start = (zero - low) / width
        bars = []
        for name, value, text in named:
            end = (value - low) / width
            bars.append(Bar(name, min(start, end), max(start, end), text))
        return cls(title, tuple(bars), start)


@dataclass(frozen=True)
class Subsection:
    """What a section shows under a heading of its own, which may be empty; folded or not."""

    title: str
    grids: tuple[TableView, ...] = ()
    panels: tuple[Panel, ...] = ()
    bars: tuple[BarList, ...] = ()
    notes: tuple[str, ...] = ()
    folded: bool = False
    legend: Literal["each", "shared", "none"] = "each"  # one per panel, or one for all
    small: bool = False  # small panels, for many of a kind


@dataclass(frozen=True)
class Section:
    """A section of the page, and a line in its contents. `label` may be empty."""

    id: str
    label: str
    title: str
    subsections: tuple[Subsection, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class KeyFigure:
    """A number at the head of a page, with what it is."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Page:
    """A page: facts are pairs of a name and a text, sentences what they come to."""

    title: str
    facts: Sequence[tuple[str, str]]
    sentences: Sequence[str]
    sections: Sequence[Section]
    figures: Sequence[KeyFigure] = ()
    note: str = ""
