"""Sections on predictions that are numbers."""

from __future__ import annotations

import numpy as np

from rflaf.arrays import Array
from rflaf.distributions import CountDistribution
from rflaf.pages import Cell, Line, Panel, Section, Subsection, TableView
from rflaf.pages.wording import evenly, figure
from rflaf.report.evidence import Evidence
from rflaf.report.reasons import shown_rows
from rflaf.report.subject import Subject

Range = tuple[float, float]

COVERAGES = (0.5, 0.8, 0.9, 0.95)
_CURVE = np.linspace(0.1, 0.98, 12)
_POINTS = 1000
_PIT_BINS = 10
_MOST_TARGETS = 4


def accuracy_section(evidence: Evidence, target: str) -> Section:
    count = evidence.y.shape[1]
    some = np.random.default_rng(0).permutation(len(evidence.y))[:_POINTS]
    subsections = []
    for k in range(min(count, _MOST_TARGETS)):
        name = target if count == 1 else f"target {k}"
        y, predicted = evidence.y[:, k], evidence.predicted[:, k]
        panels = _scatter_panels(name, y, predicted, some)
        subsections.append(Subsection("" if count == 1 else name, panels=panels))
    shown = f"The {evidence.where}"
    if len(evidence.y) > _POINTS:
        shown = f"{_POINTS:,} of {len(evidence.y):,} {evidence.where}, drawn at random"
    notes = [f"{shown}; points on the dashed line are predicted exactly."]
    if count > _MOST_TARGETS:
        notes.append(f"The first {_MOST_TARGETS} of {count} targets.")
    return Section("predicted", "", "Predicted against actual", tuple(subsections), tuple(notes))


def _scatter_panels(name: str, y: Array, predicted: Array, some: Array) -> tuple[Panel, Panel]:
    residual = y - predicted
    edge = 1.06 * float(np.abs(residual).max()) or 1.0
    x, y, residual = predicted[some], y[some], residual[some]
    ends = _widened(np.concatenate([x, y]))
    title, ranges = f"{name}, residual against predicted", (_widened(x), (-edge, edge))
    return (
        _scatter(f"{name}, actual against predicted", x, y, "actual", (ends, ends), ends),
        _scatter(title, x, residual, "actual - predicted", ranges, (0.0, 0.0)),
    )


def _scatter(
    title: str, x: Array, y: Array, y_label: str, ranges: tuple[Range, Range], ideal: Range
) -> Panel:
    """Rows as points, with a dashed line where they are predicted exactly."""
    lines = (
        Line("predicted = actual", ranges[0], ideal, None, "dashed"),
        Line("rows", x.tolist(), y.tolist(), 0, "points"),
    )
    x_range, y_range = ranges
    return Panel(title, lines, "predicted", y_label, x_range=x_range, y_range=y_range, height=300)


def _widened(values: Array) -> Range:
    low, high = float(values.min()), float(values.max())
    margin = 0.04 * (high - low) if high > low else max(0.1 * abs(high), 0.5)
    return low - margin, high + margin


def coverage_of(subject: Subject, evidence: Evidence, coverage: float) -> tuple[float, float]:
    """The share of actual values inside intervals of this coverage, and their median width."""
    low, high = subject.interval(evidence.rows.X, coverage)
    low, high = low[evidence.at], high[evidence.at]
    inside = (low <= evidence.y) & (evidence.y <= high)
    return float(inside.mean()), float(np.median(high - low))


def interval_section(subject: Subject, evidence: Evidence) -> Section:
    rows = []
    for coverage in COVERAGES:
        share, width = coverage_of(subject, evidence, coverage)
        reached = _share_cell(share, coverage, len(evidence.y))
        rows.append((Cell(f"{coverage:.0%}", coverage), reached, Cell(figure(width), width)))
    header = ("interval", "actual values inside", "median width")
    grid = TableView("Coverage of intervals", header, rows, right=True)
    shares = [coverage_of(subject, evidence, float(c))[0] for c in _CURVE]
    lines = (
        Line("nominal", (0.0, 1.0), (0.0, 1.0), None, "dashed"),
        Line("intervals of this model", _CURVE.tolist(), shares, 0, marks=True),
    )
    title, labels = "Actual against nominal coverage", ("nominal coverage", "actual coverage")
    panel = Panel(title, lines, *labels, x_range=(0.0, 1.0), y_range=(0.0, 1.03))
    note = (
        f"Share of the {len(evidence.y):,} {evidence.where} inside the model's intervals. "
        "Red: differs from nominal beyond sampling error."
    )
    more = () if evidence.y.shape[1] > 1 else _distribution_panels(subject, evidence)
    subsections = (Subsection("", (grid,)), Subsection("", panels=(panel, *more)))
    return Section("intervals", "", "Prediction intervals", subsections, (note,))


def _distribution_panels(subject: Subject, evidence: Evidence) -> tuple[Panel, ...]:
    """Where actual values lie in their distributions, and the density of one row, if it has one."""
    dist, y = subject.distribution(evidence.rows.X), evidence.y[:, 0]
    if not np.all(dist.std > 0):  # all targets of the fit were equal
        return ()
    place = np.full(evidence.rows.count, np.nan)
    place[evidence.at] = y
    # between the probabilities of less and of at most y, which differ for counts
    below, most = (dist.cdf(at)[evidence.at] for at in (np.nextafter(place, -np.inf), place))
    within = below + np.random.default_rng(0).random(len(y)) * (most - below)
    share = np.histogram(within, _PIT_BINS, (0, 1))[0] / len(y) * _PIT_BINS
    x = np.repeat(np.linspace(0, 1, _PIT_BINS + 1), 2)[1:-1]
    lines = (
        Line("calibrated", (0.0, 1.0), (1.0, 1.0), None, "dashed"),
        Line("actual values", x.tolist(), np.repeat(share, 2).tolist(), 0),
    )
    title = "PIT histogram: actual values in their distributions"
    label = "predicted probability of a smaller value"
    top = 1.1 * float(max(share.max(), 1.0))
    reliability = Panel(title, lines, label, "density", x_range=(0.0, 1.0), y_range=(0.0, top))
    row = int(evidence.at[0])
    levels = np.linspace(0.005, 0.995, 100)
    values = np.unique(dist.quantile(levels)[row])
    if isinstance(dist, CountDistribution):
        values = np.arange(values[0], values[-1] + 1)
    curve = np.exp([dist.logpdf(value)[row] for value in values])
    actual = float(place[row])
    lines = (
        Line("density", values.tolist(), curve.tolist(), 0),
        Line("actual", (actual, actual), (0.0, float(curve.max())), None, "dashed"),
    )
    title = f"Predicted distribution of row {evidence.rows.labels[row]}"
    return reliability, Panel(title, lines, "value", "density")


def quantile_section(subject: Subject, evidence: Evidence) -> Section:
    rows = []
    for level, values in subject.quantiles(evidence.rows.X).items():
        share = float(np.mean(evidence.y[:, 0] <= values[evidence.at]))
        rows.append((Cell(f"{level:g}", level), _share_cell(share, level, len(evidence.y))))
    grid = TableView("Quantiles", ("quantile", "actual values below"), rows, right=True)
    note = (
        f"Share of the {len(evidence.y):,} {evidence.where} below each quantile. Red: "
        "differs from nominal beyond sampling error. The other charts show the quantile nearest "
        "to the median."
    )
    return Section("intervals", "", "Quantiles", (Subsection("", (grid,)),), (note,))


def _share_cell(share: float, nominal: float, n: int) -> Cell:
    """Marked where it is more than three standard errors away from what it should be."""
    far = abs(share - nominal) > 3 * np.sqrt(nominal * (1 - nominal) / n)
    return Cell(f"{share:.1%}", share, "far" if far else "")


def residual_section(
    subject: Subject, evidence: Evidence, names: list[str], order: list[int]
) -> Section:
    residual, size = evidence.y - evidence.predicted, evidence.residual_sizes
    worst, which = size.max(axis=1), size.argmax(axis=1)
    several = evidence.y.shape[1] > 1
    largest = np.abs(evidence.y).max(axis=0)  # settles the decimals of all rows
    header = (*(["target"] if several else []), "actual", "predicted", "residual")
    shows_ends = evidence.tested and subject.has_intervals
    if shows_ends:
        header = (*header, "90% interval")
        low, high = (end[evidence.at] for end in subject.interval(evidence.rows.X, 0.9))

    def cells(i: int) -> list[Cell]:
        k = int(which[i])
        y, predicted, left = evidence.y[i, k], evidence.predicted[i, k], residual[i, k]
        texts = evenly([y, predicted, left, largest[k]])
        texts[2] = f"{'+' if left > 0 else ''}{texts[2]}"
        made = [Cell(str(k))] if several else []
        made += [Cell(text, float(value)) for text, value in zip(texts, (y, predicted, left))]
        if shows_ends:
            ends = evenly([low[i, k], high[i, k], largest[k]], 3)[:2]
            text = "\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}".join(ends)
            made.append(Cell(text, kind="" if low[i, k] <= y <= high[i, k] else "far"))
        return made

    grid = shown_rows(evidence, worst, names, order, header, cells)
    note = f"The {evidence.where} with the largest residuals, and their main columns."
    if shows_ends:
        note += " Red: intervals that do not contain the actual value."
    return Section("rows", "", "Largest residuals", (Subsection("", (grid,)),), (note,))
