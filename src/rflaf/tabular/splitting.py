"""A table into the column to learn and the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from rflaf.inputs.column import as_frame, columns_of
from rflaf.inputs.kinds import explain, kind_of
from rflaf.tabular.columns import TableError, listed
from rflaf.tabular.task import Task, choose_task

_STRICT = ("number", "boolean", "category", "empty")


def split_target(
    table: Any, target: str, task: str = "auto", drop: Sequence[str] = (), strict: bool = False
) -> tuple[Any, Task]:
    """The other columns of rows that have a target, and the task with its values.

    Columns in `drop` are left out.

    Raises
    ------
    TableError
        If the target is not there or cannot be learned, if a column has infinite values, or, with
        `strict`, dates, identifiers or free text. It names the columns.
    """
    frame = unique_columns(table)
    for name in (target, *drop):
        if name not in frame.columns:
            known = ", ".join(map(repr, frame.columns[:20]))
            more = f" and {len(frame.columns) - 20:,} more" if len(frame.columns) > 20 else ""
            raise TableError(f"The table has no column {name!r}. Its columns are {known}{more}.")
    if target in drop:
        raise TableError(f"The target {target!r} cannot be dropped.")
    values = frame.get_column(target)
    missing = values.is_null()
    if values.dtype.is_float():
        missing = missing | values.is_nan()
    frame = frame.filter(~missing)
    if len(frame) == 0:
        raise TableError(f"The target {target!r} is missing in all rows.")
    chosen = choose_task(frame.get_column(target), task)
    rows = frame.drop([target, *drop])
    if not rows.columns:
        raise TableError("The table has no column other than the target.")
    rows = rows.rename({name: str(name) for name in rows.columns})
    _check_columns(rows, strict)
    return rows.to_native(), chosen


def unique_columns(table: Any) -> nw.DataFrame[Any]:
    """A table of any library as narwhals has it."""
    try:
        as_frame(table)  # says what to do with a lazy one
        return nw.from_native(table, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        said = " ".join(str(error).split())
        raise TableError(f"The table has several columns of one name. {said}.") from error


def _check_columns(table: Any, strict: bool) -> None:
    columns = columns_of(table)
    infinite = [c.name for c in columns if c.numbers is not None and np.isinf(c.numbers).any()]
    if infinite:
        raise TableError(f"Infinite values in {listed(infinite)}.", infinite)
    if not strict:
        return
    kinds = [(column, kind_of(column)) for column in columns]
    refused = [(column, kind) for column, kind in kinds if kind not in _STRICT]
    if refused:
        reasons = " ".join(explain(column, kind) for column, kind in refused)
        raise TableError(
            f"{reasons} With 'strict' a table has numbers, booleans and categories only.",
            [column.name for column, _ in refused],
        )
