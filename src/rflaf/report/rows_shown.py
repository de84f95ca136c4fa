"""The rows that a page shows one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rflaf.arrays import Array
from rflaf.pages import Cell, TableView
from rflaf.pages.wording import day_text, evenly
from rflaf.report.evidence import Evidence
from rflaf.report.given_rows import GivenColumn

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
