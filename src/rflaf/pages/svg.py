"""Panels as SVG: a picture for people and screens of all kinds, without a plotting library.

Colours are the classes of the page's style sheet, so that a picture follows light and dark. The
elements are put together by ElementTree, which escapes all text in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from rflaf.pages.layout import Histogram, Line, Panel

COLORS = 8
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 20, 38
_SMALLEST = 1e-100  # on a logarithmic axis: below it is zero
_EQUAL = 1e-9  # relative: values this close are one
_FOOT = 0.3  # of the height, for the highest bar of a histogram
_DECADES = 4  # a logarithmic axis shows no more than these above the lowest value


def draw(panel: Panel, width: int = 330) -> str:
    """A panel as an `svg` element; its legend is the page's.

    Examples
    --------
    >>> panel = Panel("a < b", (Line("tanh", (0, 1), (0.0, 0.76)),), "z")
    >>> draw(panel).startswith('<svg viewBox="0 0 330 230" role="img" aria-label="a &lt; b')
    True
    """
    height = panel.height
    names = ", ".join(dict.fromkeys(line.name for line in panel.lines if line.style != "faint"))
    frame = {"viewBox": f"0 0 {width} {height}", "role": "img"}
    root = ElementTree.Element("svg", {**frame, "aria-label": f"{panel.title}: {names}"})
    inner_width, inner_height = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    x_axis = _Axis(*_range_x(panel), panel.log_x, inner_width)
    y_axis = _Axis(*_range_y(panel), panel.log_y, inner_height)

    def place(x: float, y: float) -> tuple[float, float]:
        return x_axis(x), inner_height - y_axis(y)

    _draw_axes(root, panel, x_axis, y_axis, (inner_width, inner_height))
    # a nested svg clips what is outside its box
    plot = ElementTree.SubElement(
        root, "svg", x=str(_LEFT), y=str(_TOP), width=str(inner_width), height=str(inner_height)
    )
    if panel.below:
        _draw_histogram(plot, panel.below, x_axis, inner_height)
    for line in panel.lines:
        _draw_line(plot, line, panel, place)
    return ElementTree.tostring(root, encoding="unicode")


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


def _draw_axes(
    root: ElementTree.Element, panel: Panel, x_axis: _Axis, y_axis: _Axis, size: tuple[int, int]
) -> None:
    width, height = size
    group = ElementTree.SubElement(root, "g", {"class": "axes"})
    bottom = _TOP + height
    for value in panel.x_ticks or ticks(x_axis.low, x_axis.high, panel.log_x):
        x = _LEFT + x_axis(value)
        _path(group, f"M{x:.1f},{bottom}v4", "tick")
        _text(group, tick_text(value), x, bottom + 16, "middle")
    for value in ticks(y_axis.low, y_axis.high, panel.log_y):
        y = bottom - y_axis(value)
        _path(group, f"M{_LEFT},{y:.1f}h{width}", "grid")
        _text(group, tick_text(value), _LEFT - 6, y + 3.5, "end")
    _path(group, f"M{_LEFT},{_TOP}v{height}h{width}", "frame")
    _text(group, panel.x_label, _LEFT + width / 2, bottom + 33, "middle")
    if panel.y_label:
        _text(group, panel.y_label, 0, 11, "start")


def _draw_histogram(
    plot: ElementTree.Element, histogram: Histogram, x_axis: _Axis, height: int
) -> None:
    """One shape for all bars, which stand on the lower edge."""
    top = max(histogram.counts, default=0)
    if top <= 0:
        return
    steps, edges = [], [x_axis(edge) for edge in histogram.edges]
    for left, right, count in zip(edges, edges[1:], histogram.counts):
        tall = _FOOT * height * count / top
        steps.append(f"M{left:.1f},{height}v{-tall:.1f}h{right - left:.1f}V{height}z")
    _path(plot, "".join(steps), "density")


def _draw_line(
    plot: ElementTree.Element,
    line: Line,
    panel: Panel,
    place: Callable[[float, float], tuple[float, float]],
) -> None:
    def on_axes(x: float, y: float) -> bool:
        return (x > 0 or not panel.log_x) and (y > _SMALLEST or not panel.log_y)

    points = [
        place(x, y) if y is not None and on_axes(x, y) else None for x, y in zip(line.x, line.y)
    ]
    color = "ink" if line.color is None else f"c{line.color % COLORS}"
    group = ElementTree.SubElement(plot, "g", {"class": f"{line.style} {color}"})
    if line.style != "faint":
        ElementTree.SubElement(group, "title").text = line.name
    if line.style == "points":
        # lines of no length with round ends: a third as long as circles
        _path(group, "".join(f"M{p[0]:.1f},{p[1]:.1f}h0" for p in points if p), "dots")
        return
    _path(group, path_of(points))
    if not line.marks:
        return
    spreads = line.spread or [None] * len(points)
    for x, y, spread, point in zip(line.x, line.y, spreads, points):
        if point is None or y is None:
            continue
        if spread and on_axes(x, y - spread):
            (left, top), (_, end) = place(x, y + spread), place(x, y - spread)
            _path(group, f"M{left:.1f},{top:.1f}V{end:.1f}", "bar")
        mark = ElementTree.SubElement(
            group, "circle", cx=f"{point[0]:.1f}", cy=f"{point[1]:.1f}", r="3"
        )
        more = f" ± {spread:.2g}" if spread else ""
        ElementTree.SubElement(
            mark, "title"
        ).text = f"{line.name}, {panel.x_label} = {x:g}: {y:.4g}{more}"


def path_of(points: Sequence[tuple[float, float] | None]) -> str:
    """Straight lines from point to point, with a gap where there is none.

    Examples
    --------
    >>> path_of([(1.0, 2.0), (1.25, 3.0), None, (4.0, 4.0), (5.0, 4.0)])
    'M1.0,2.0L1.2,3.0M4.0,4.0L5.0,4.0'
    """
    pens = ("M" if before is None else "L" for before in (None, *points))
    return "".join(f"{pen}{p[0]:.1f},{p[1]:.1f}" for pen, p in zip(pens, points) if p)


def _path(parent: ElementTree.Element, steps: str, kind: str = "line") -> None:
    ElementTree.SubElement(parent, "path", {"class": kind, "d": steps})


def _text(parent: ElementTree.Element, text: str, x: float, y: float, anchor: str) -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    ElementTree.SubElement(parent, "text", place).text = text
