"""What the model makes of one column: partial dependence, with where the data lies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rflaf.arrays import Array
from rflaf.pages import BarList, Histogram, Line, Panel, Section, Subsection
from rflaf.pages.svg import ticks
from rflaf.pages.wording import figure
from rflaf.report.evidence import Evidence
from rflaf.report.given_rows import FEW_VALUES, GivenColumn
from rflaf.report.subject import Subject

MOST_COLUMNS = 9
MOST_OUTPUTS = 5  # that one chart has lines for
_ROWS = 200  # that predictions are averaged over
_STEPS = 25  # values of a number
_MOST_LEVELS = 12
_BINS = 30
_EDGE = 0.01  # of the rows lie beyond either end of an axis


@dataclass(frozen=True)
class Effect:
    """The mean prediction where a column has one value in all rows."""

    column: GivenColumn
    at: Array  # k values: floats, or strings; NaN or None for missing ones
    mean: Array  # k × C
    counts: Array | None = None  # rows that have each value, if the column is shown by its values
    others: int = 0  # values that are not shown
    spread: Array | None = None  # of the mean between members, each less its own mean over `at`


def effects_of(
    subject: Subject, evidence: Evidence, columns: list[int], names: list[str]
) -> list[Effect]:
    """Partial dependence on these columns; those with fewer than two values are left out."""
    given = {j: evidence.rows.column(j, names[j]) for j in columns}
    asked = {j: values for j, column in given.items() if (values := _values(column))}
    rows = np.random.default_rng(0).permutation(evidence.rows.count)[:_ROWS]
    donors = {j: values[0] for j, values in asked.items()}
    effects = []
    for j, mean, by_member in subject.effects(evidence.rows, rows, donors):
        _, at, counts, others = asked[j]
        spread = None
        if counts is None and len(by_member):
            spread = np.std(by_member - by_member.mean(axis=1, keepdims=True), axis=0)
        effects.append(Effect(given[j], at, mean, counts, others, spread))
    return effects


def _values(column: GivenColumn) -> tuple[Array, Array, Array | None, int] | None:
    """Rows that have the values that are shown, and these values as `Effect` has them."""
    there = np.flatnonzero(column.present)
    levels, counts = column.levels
    if len(levels) < 2:
        return None
    others, shown = 0, None
    if column.kind == "category" or len(levels) <= FEW_VALUES:
        keep = np.sort(np.argsort(-counts, kind="stable")[:_MOST_LEVELS])
        others = len(levels) - len(keep)
        at, shown = levels[keep], counts[keep]
    else:
        shares = np.linspace(_EDGE, 1 - _EDGE, _STEPS)
        at = np.unique(np.quantile(column.values[there], shares, method="nearest"))
        if len(at) < 2:  # nearly all rows have one value
            at = levels[[0, -1]]
    # a row that has each value: its own entry keeps the column's type
    donors = np.array([there[np.flatnonzero(column.values[there] == value)[0]] for value in at])
    missing = np.flatnonzero(~column.present)
    if shown is not None and len(missing):
        none: Any = None if column.kind == "category" else np.nan
        at, shown = np.append(at, none), np.append(shown, len(missing))
        donors = np.append(donors, missing[0])
    return donors, at, shown, others


def effects_section(
    subject: Subject, evidence: Evidence, shares: Array, names: list[str], target: str
) -> Section:
    """Effects of the columns with the largest shares, on one scale."""
    order = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] > 0][:MOST_COLUMNS]
    what, middle, size = _shown_outputs(subject, evidence, target)
    effects = []
    for e in effects_of(subject, evidence, order, names):
        spread = None if e.spread is None else e.spread / size
        effects.append(replace(e, mean=(e.mean - middle) / size, spread=spread))
    y_range = _common_range(effects)
    unit = target
    if subject.classes is not None:
        unit = f"probability of {subject.classes[1]}" if len(what) == 1 else "probability"
    elif len(what) > 1:
        unit = "standard deviations"
    panels = tuple(
        _panel(effect, what, y_range, unit) for effect in effects if effect.counts is None
    )
    lists = tuple(
        _bar_list(effect, label, k, y_range)
        for effect in effects
        if effect.counts is not None
        for k, label in what[: 1 if len(what) == 1 else 3]
    )
    used = min(evidence.rows.count, _ROWS)
    notes = [
        f"Partial dependence: the mean prediction for {used} rows with one column set to the same "
        f"value in all of them. Grey: distribution of the {evidence.where.split(',')[0]}. All "
        "plots have the same vertical scale; axes omit the outer 1% of rows.",
    ]
    if any(effect.spread is not None for effect in effects):
        notes.append("Faint lines: one standard deviation between the members of the model.")
    if len(effects) < len(names):
        notes.append(f"The {len(effects)} most important of {len(names):,} columns.")
    subsections, several = [], len(what) > 1
    if panels:
        subsections.append(Subsection("", panels=panels, legend="shared" if several else "none"))
    if lists:
        note = "Bars start at the mean over all rows; labels: mean prediction, share of rows."
        subsections.append(Subsection("By value", bars=lists, notes=(note,)))
    return Section("effects", "", "Effect of the main columns", tuple(subsections), tuple(notes))


def _shown_outputs(
    subject: Subject, evidence: Evidence, target: str
) -> tuple[list[tuple[int, str]], Array, Array]:
    """Which outputs have lines, under what name, and what is subtracted and divided by."""
    count = evidence.predicted.shape[1]
    zero, one = np.zeros(count), np.ones(count)
    if subject.classes is None:
        if count == 1:
            return [(0, target)], zero, one
        spread = evidence.y.std(axis=0)
        shown = [(k, f"target {k}") for k in range(min(count, MOST_OUTPUTS))]
        return shown, evidence.y.mean(axis=0), np.where(spread > 0, spread, 1.0)
    if count == 2:
        return [(1, f"{target} = {subject.classes[1]}")], zero, one
    common = np.argsort(-np.bincount(evidence.y, minlength=count), kind="stable")[:MOST_OUTPUTS]
    return [(int(k), str(subject.classes[k])) for k in np.sort(common)], zero, one


def _common_range(effects: list[Effect]) -> tuple[float, float]:
    bands = [(e.mean, 0.0 if e.spread is None else e.spread) for e in effects]
    low = min((float((mean - spread).min()) for mean, spread in bands), default=0.0)
    high = max((float((mean + spread).max()) for mean, spread in bands), default=1.0)
    margin = 0.08 * (high - low) if high > low else 0.5
    return low - margin, high + margin


def _panel(
    effect: Effect, what: list[tuple[int, str]], y_range: tuple[float, float], unit: str
) -> Panel:
    x = effect.at.astype(float).tolist()
    low, high = x[0], x[-1]
    values = effect.column.values[effect.column.present]
    counts, edges = np.histogram(values, bins=_BINS, range=(low, high))
    mean, spread = effect.mean, effect.spread
    lines = [Line(label, x, mean[:, k].tolist(), i) for i, (k, label) in enumerate(what)]
    if spread is not None:
        lines += [
            Line(label, x, (mean[:, k] + sign * spread[:, k]).tolist(), i, "faint")
            for i, (k, label) in enumerate(what)
            for sign in (-1, 1)
        ]
    return Panel(
        effect.column.name,
        tuple(lines),
        "year" if effect.column.kind == "date" else "",
        unit,
        x_ticks=tuple(ticks(low, high, count=3)),
        x_range=(low, high),
        y_range=y_range,
        below=Histogram(edges.tolist(), counts.tolist()),
    )


def _bar_list(effect: Effect, label: str, k: int, y_range: tuple[float, float]) -> BarList:
    """From the mean over the rows to the mean at each value."""
    assert effect.counts is not None
    means, total = effect.mean[:, k], len(effect.column.values)
    middle = float(np.average(means, weights=effect.counts))
    named = []
    for value, mean, count in zip(effect.at, means.tolist(), effect.counts):
        name = str(value) if effect.column.kind == "category" else figure(float(value))
        if value is None or value != value:
            name = "missing"
        named.append((name, mean, f"{figure(mean)} · {count / total:.0%}"))
    more = f" ({effect.others} rarer values not shown)" if effect.others else ""
    return BarList.around(f"{effect.column.name}: {label}{more}", middle, y_range, named)
