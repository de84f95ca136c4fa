"""Where the things of a panel are in its picture, which `panel.svg.j2` draws as SVG.

Colours are the classes of the page's style sheet, so that a picture follows light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rflaf.pages import Histogram, Line, Panel

COLORS = 8
_RIGHT, _BOTTOM = 10, 38
_SMALLEST = 1e-100  # on a logarithmic axis: below it is zero
_EQUAL = 1e-9  # relative: values this close are one
_FOOT = 0.3  # of the height, for the highest bar of a histogram
_DECADES = 4  # a logarithmic axis shows no more than these above the lowest value
Point = tuple[float, float]


class Chart:
    """The geometry of a panel; lengths are from the upper left corner of the plot."""

    width, left, top = 330, 46, 20

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.wide = self.width - self.left - _RIGHT
        self.tall = panel.height - self.top - _BOTTOM
        self.x_axis = _Axis(*_range_x(panel), panel.log_x, self.wide)
        self.y_axis = _Axis(*_range_y(panel), panel.log_y, self.tall)
        named = (line.name for line in panel.lines if line.style != "faint")
        self.names = ", ".join(dict.fromkeys(named))

    def x_ticks(self) -> list[tuple[float, str]]:
        return self.x_axis.ticks(self.panel.x_ticks)

    def y_ticks(self) -> list[tuple[float, str]]:
        return [(self.tall - length, text) for length, text in self.y_axis.ticks()]

    def point(self, x: float, y: float | None) -> Point | None:
        """None where there is no value, or an axis has no place for it."""
        if y is None or (self.x_axis.log and x <= 0) or (self.y_axis.log and y <= _SMALLEST):
            return None
        return self.x_axis(x), self.tall - self.y_axis(y)

    def points(self, line: Line) -> list[Point | None]:
        return [self.point(x, y) for x, y in zip(line.x, line.y)]

    def path(self, line: Line) -> str:
        """Straight lines from point to point, with a gap where there is none."""
        points = self.points(line)
        pens = ("M" if before is None else "L" for before in (None, *points))
        return "".join(f"{pen}{p[0]:.1f},{p[1]:.1f}" for pen, p in zip(pens, points) if p)

    def marks(self, line: Line) -> list[tuple[Point, Point | None, str]]:
        """Points that are marked, the ends of their bars, and what is said of them."""
        found = []
        spreads = line.spread or [None] * len(line.x)
        for x, y, spread in zip(line.x, line.y, spreads) if line.marks else ():
            point = self.point(x, y)
            if point is None or y is None:
                continue
            high, low = self.point(x, y + (spread or 0.0)), self.point(x, y - (spread or 0.0))
            bar = (high[1], low[1]) if spread and high and low else None
            more = f" ± {spread:.2g}" if spread else ""
            words = f"{line.name}, {self.panel.x_label} = {x:g}: {y:.4g}{more}"
            found.append((point, bar, words))
        return found

    def steps(self, histogram: Histogram) -> str:
        """One shape for all bars, which stand on the lower edge."""
        most = max(histogram.counts, default=0) or 1
        edges = [self.x_axis(edge) for edge in histogram.edges]
        heights = [_FOOT * self.tall * count / most for count in histogram.counts]
        return "".join(
            f"M{left:.1f},{self.tall}v{-height:.1f}h{right - left:.1f}V{self.tall}z"
            for left, right, height in zip(edges, edges[1:], heights)
        )


def ticks(low: float, high: float, log: bool = False, count: int = 5) -> list[float]:
    """About `count` round numbers between two others.

    Examples
    --------
    >>> ticks(0.13, 0.42)
    [0.15, 0.2, 0.25, 0.3, 0.35, 0.4]
    >>> ticks(0.07, 30, log=True)
    [0.1, 1.0, 10.0]
    """
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in ((1,), (1, 3), (1, 2, 5), tuple(range(1, 10))):
            found = [s * 10.0**k for k in decades for s in steps if low <= s * 10.0**k <= high]
            if len(found) >= 3:
                return found[:: math.ceil(len(found) / 8)]
        # a range this narrow is nearly linear
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda s: abs(math.log(s * power / raw)))
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.10g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A number short enough for an axis.

    Examples
    --------
    >>> [tick_text(value) for value in (0.25, 1500.0, 20000.0, -3500000.0, 1e12)]
    ['0.25', '1500', '20k', '-3.5M', '1e+12']
    """
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if max(unit, 1e4) <= abs(value) < 1e3 * unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


class _Axis:
    """From values to lengths on a side of the picture."""

    def __init__(self, low: float, high: float, log: bool, length: int) -> None:
        self.low, self.high, self.log, self.length = low, high, log, length

    def __call__(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, -1.0), 2.0) * self.length  # far outside is outside

    def ticks(self, values: Sequence[float] | None = None) -> list[tuple[float, str]]:
        values = values or ticks(self.low, self.high, self.log)
        return [(self(value), tick_text(value)) for value in values]


def _range_x(panel: Panel) -> tuple[float, float]:
    if panel.x_range:
        return panel.x_range
    values = [float(x) for line in panel.lines for x in line.x]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if panel.log_x:
        return low * 0.9, high * 1.1
    return (low, high) if high - low > _EQUAL * abs(high) else _around(high)


def _range_y(panel: Panel) -> tuple[float, float]:
    if panel.y_range:
        return panel.y_range
    values = [y for line in panel.lines for y in line.y if y is not None]
    for line in panel.lines:
        for y, spread in zip(line.y, line.spread or ()):
            if y is not None and spread is not None and not panel.log_y:
                values += [y - spread, y + spread]
    if panel.log_y:
        values = [y for y in values if y > _SMALLEST] or [1.0]
        low, high = min(values), max(values)
        return low / 1.1, min(high * 1.1, low * 10.0**_DECADES)
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high - low <= _EQUAL * abs(high):
        return _around(high)
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _around(value: float) -> tuple[float, float]:
    """A range for a single value."""
    margin = max(0.1 * abs(value), _SMALLEST) if value else 0.5
    return value - margin, value + margin
