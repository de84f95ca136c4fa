"""The rows that a page shows one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rflaf.arrays import Array
from rflaf.pages import Cell, TableView
from rflaf.report.evidence import Evidence
from rflaf.report.given_rows import GivenColumn
from rflaf.report.wording import day_text, evenly

_MOST_ROWS = 15
_MOST_COLUMNS = 8
_LONGEST = 80  # characters of an entry


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
    labels = evidence.rows.labels
    columns = [evidence.rows.column(j, names[j]) for j in order[:_MOST_COLUMNS]]
    places = [int(evidence.at[i]) for i in worst]
    entries = [_entries(column, places) for column in columns]
    rows = [
        (Cell(labels[at]), *cells(i), *(entry[k] for entry in entries))
        for k, (i, at) in enumerate(zip(worst, places))
    ]
    names_shown = ("row", *header, *(column.name for column in columns))
    return TableView("Rows", names_shown, rows, right=True)


def _entries(column: GivenColumn, places: list[int]) -> list[Cell]:
    values = column.values[places].tolist()
    if column.kind == "category":
        return [Cell("" if value is None else _short(value)) for value in values]
    texts = list(map(day_text, values)) if column.kind == "date" else evenly(values)
    return [Cell(text, value if text else None) for text, value in zip(texts, values)]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
