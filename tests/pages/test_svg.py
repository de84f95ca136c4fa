"""Charts: what is where."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rflaf.pages import Line, Panel
from rflaf.pages.html import draw
from rflaf.pages.svg import ticks

NUMBERS = st.floats(-1e100, 1e100)


def points(svg):
    """The corners of the first line, in the coordinates of the plot."""
    root = ElementTree.fromstring(svg)
    steps = root.find("svg/g/path[@class='line']").get("d")
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-.\d]+),([-.\d]+)", steps)]


def test_points_lie_where_the_values_say():
    found = points(draw(Panel("p", (Line("a", (0, 1, 4), (0.0, 2.0, 1.0)),), "z")))
    (x0, y0), (x1, y1), (x2, y2) = found
    assert (x1 - x0) / (x2 - x0) == pytest.approx(1 / 4, abs=0.002)
    assert (y2 - y0) / (y1 - y0) == pytest.approx(1 / 2, abs=0.002)
    assert y1 < y0, "larger is higher"


def test_logarithmic_axis():
    line = Line("a", (1, 2, 3), (0.1, 1.0, 10.0))
    (_, low), (_, middle), (_, high) = points(draw(Panel("p", (line,), "epoch", log_y=True)))
    assert low - middle == pytest.approx(middle - high, abs=0.3)


def test_gaps_and_text():
    line = Line("<b>", (1, 2, 3, 4), (1.0, None, 2.0, 3.0), marks=True, spread=(0.1,) * 4)
    svg = draw(Panel("<i>", (line,), "<x>", "<y>"))
    root = ElementTree.fromstring(svg)
    assert root.find("svg/g/path[@class='line']").get("d").count("M") == 2
    assert len(root.findall("svg/g/circle")) == 3
    assert {"<b>", "<x>", "<y>"} <= {e.text for e in root.iter()}
    assert not {e.tag for e in root.iter()} & {"b", "i", "x", "y"}


@given(NUMBERS, NUMBERS, st.booleans())
def test_ticks_are_few_and_within(a, b, log):
    low, high = sorted((a, b))
    if log:
        low, high = abs(low) + 1e-90, (abs(low) + 1e-90) * 10 ** (1 + abs(high) / 5e99)
    if high - low < 1e-9 * max(abs(low), abs(high)) or high - low < 1e-90:
        return
    found = ticks(low, high, log)
    margin = 1e-6 * (high - low)
    assert 1 <= len(found) <= 12
    assert all(low - margin <= each <= high + margin for each in found)


@given(st.lists(st.tuples(NUMBERS, st.none() | NUMBERS), max_size=5), st.booleans())
def test_any_values_are_drawn(pairs, log_y):
    x, y = [p[0] for p in pairs], [p[1] for p in pairs]
    svg = draw(Panel("p", (Line("a", x, y, marks=True, spread=[1.0] * len(x)),), "x", log_y=log_y))
    assert "nan" not in svg
    assert "inf" not in svg
    ElementTree.fromstring(svg)
