"""Numbers and names as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta

DAYS_OF_A_YEAR = 365.2425  # in the mean


def figure(value: float, digits: int = 3) -> str:
    """A number with a few digits, without powers of ten where it can be.

    Examples
    --------
    >>> [figure(v) for v in (0.12345, 999.7, -98765.4, 3.0, 1e-7, 2.5e12, float("nan"))]
    ['0.123', '1,000', '-98,765', '3', '1e-07', '2.5e+12', '–']
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else str(value)
    size = abs(value)
    if 10**digits - 0.5 <= size < 1e9:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def evenly(values: Sequence[float], digits: int = 4) -> list[str]:
    """Numbers with as many decimals each, so that they can be read as a column.

    Examples
    --------
    >>> evenly([28.1345, 20.0, -3.0]), evenly([3.0, 12.0]), evenly([0.05, float("nan")])
    (['28.13', '20.00', '-3.00'], ['3', '12'], ['0.0500', ''])
    """
    there = [value for value in values if math.isfinite(value)]
    largest = max((abs(value) for value in there), default=0.0)
    if largest and not 1e-3 <= largest < 1e9:
        return ["" if math.isnan(value) else figure(value, digits) for value in values]
    whole = all(value == round(value) for value in there)
    before = math.floor(math.log10(largest)) + 1 if largest >= 1 else 0
    places = 0 if whole else max(digits - before, 0)
    return ["" if math.isnan(value) else f"{value:,.{places}f}" for value in values]


def score_text(value: float) -> str:
    """A score, with as many digits as it deserves.

    Examples
    --------
    >>> score_text(0.87654), score_text(-1e-9), score_text(float("nan"))
    ('0.877', '0.000', '–')
    """
    return "–" if math.isnan(value) else f"{round(value, 3) + 0.0:.3f}"


def day_text(year: float) -> str:
    """The day of a year with its fraction, as `given_rows` has dates.

    Examples
    --------
    >>> day_text(1970.0), day_text(2024.5)
    ('1970-01-01', '2024-07-01')
    """
    try:
        return str(date(1970, 1, 1) + timedelta(days=round((year - 1970.0) * DAYS_OF_A_YEAR, 3)))
    except (OverflowError, ValueError):
        return "" if math.isnan(year) else f"year {year:.0f}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
