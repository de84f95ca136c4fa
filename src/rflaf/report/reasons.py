"""The rows with the largest errors: what they are, and why they have their prediction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rflaf.arrays import Array
from rflaf.losses.deviance import Deviance
from rflaf.pages import BarList, Cell, Section, Subsection, TableView
from rflaf.pages.wording import day_text, evenly, figure
from rflaf.report.evidence import Evidence
from rflaf.report.given_rows import GivenColumn
from rflaf.report.subject import Subject

_MOST_ROWS = 15
_MOST_COLUMNS = 8
_LONGEST = 80  # characters of an entry
_WORST = 3  # rows of large errors
_MOST_BARS = 8


def shown_rows(
    evidence: Evidence,
    badness: Array,
    names: list[str],
    order: list[int],
    header: tuple[str, ...],
    cells: Callable[[int], list[Cell]],
) -> TableView:
    """The rows of the largest `badness`: cells of their own, then the columns in `order`."""
    worst = np.argsort(-badness, kind="stable")[:_MOST_ROWS].tolist()
    labels, places = evidence.rows.labels, evidence.at[worst].tolist()
    columns = [evidence.rows.column(j, names[j]) for j in order[:_MOST_COLUMNS]]
    entries = zip(*(_entries(column, places) for column in columns))
    rows = [(Cell(labels[at]), *cells(i), *own) for i, at, own in zip(worst, places, entries)]
    names_shown = ("row", *header, *(column.name for column in columns))
    return TableView("Rows", names_shown, rows, right=True)


def _entries(column: GivenColumn, places: list[int]) -> list[Cell]:
    values = column.values[places].tolist()
    if column.kind == "category":
        short = (v if v is None or len(v) <= _LONGEST else f"{v[: _LONGEST - 1]}…" for v in values)
        return [Cell(text or "") for text in short]
    texts = list(map(day_text, values)) if column.kind == "date" else evenly(values)
    return [Cell(text, value if text else None) for text, value in zip(texts, values)]


def attribution_section(subject: Subject, evidence: Evidence, names: list[str]) -> Section:
    """What the columns add to the scores of some rows; empty where the model has no background."""
    title = "Why these predictions"
    if not subject.direct or subject.estimator.background_ is None:
        return Section("attributions", "", title)
    # how far each row is from its prediction, and the output that is shown of it
    if evidence.y.ndim == 1:
        own = evidence.predicted[np.arange(len(evidence.y)), evidence.y]
        badness, output = -own, evidence.predicted.argmax(axis=1)
    else:
        sizes = evidence.residual_sizes
        badness, output = sizes.max(axis=1), sizes.argmax(axis=1)
    order = np.argsort(-badness, kind="stable")
    shown = [*order[:_WORST].tolist(), int(order[len(order) // 2])]
    why = subject.estimator.explain(evidence.rows.take(evidence.at[shown]))
    lists, labels = [], evidence.rows.labels
    for place, row in enumerate(shown):
        values = why.values[place]
        which = int(output[row]) if subject.shown_level is None else subject.shown_level
        if values.ndim == 2:
            values = values[:, which]
        kind = "large error" if place < _WORST else "typical"
        said = f"row {labels[evidence.at[row]]}, {kind}"
        if subject.classes is not None and len(subject.classes) > 2:
            said += f", score of {subject.classes[which]}"
        elif subject.classes is None and evidence.y.shape[1] > 1:
            said += f", target {which}"
        lists.append(_bar_list(said, values, names))
    unit = "the prediction"
    if subject.classes is not None:
        unit = "the score (for two classes: log-odds)"
    elif isinstance(subject.estimator.loss_, Deviance):
        unit = "the logarithm of the prediction"
    notes = (
        f"Contribution of each column to {unit}, compared with the mean of some training rows. The "
        "last row has the median error.",
    )
    return Section("attributions", "", title, (Subsection("", bars=tuple(lists)),), notes)


def _bar_list(title: str, values: Array, names: list[str]) -> BarList:
    """The largest attributions of a row, and the sum of all others."""
    order = np.argsort(-np.abs(values), kind="stable")
    first, rest = order[:_MOST_BARS], order[_MOST_BARS:]
    named = [(names[j], float(values[j])) for j in first.tolist()]
    if len(rest):
        named.append((f"{len(rest)} others", float(values[rest].sum())))
    ends = min(0.0, *(value for _, value in named)), max(0.0, *(value for _, value in named))
    texts = (f"{'+' if value > 0 else ''}{figure(value)}" for _, value in named)
    return BarList.around(title, 0.0, ends, [(*pair, text) for pair, text in zip(named, texts)])
