"""A table into the column to learn and the others; regression or classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from rflaf.inputs.column import as_frame, column_of, columns_of
from rflaf.inputs.kinds import explain, kind_of
from rflaf.tabular.reading import TableError, listed

_STRICT = ("number", "boolean", "category", "empty")
FEW_VALUES = 20
ROWS_A_VALUE = 10


class Task(NamedTuple):
    """What to do, why, and the target's values as an array."""

    name: str
    reason: str
    values: NDArray[Any]


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
            f"{reasons} 'strict' allows only numbers, booleans and categories.",
            [column.name for column, _ in refused],
        )


def choose_task(target: Any, task: str = "auto") -> Task:
    """Which task a target calls for, and the target as an array.

    Parameters
    ----------
    target : Series of pandas, polars and so on
        Without missing values.
    task : {"auto", "regression", "classification"}
        "auto": strings, categories and booleans are classes. Integers are classes if they have at
        most 20 distinct values, each in ten rows or more on average. Everything else is
        regression.

    Examples
    --------
    >>> import pandas as pd
    >>> from rflaf.tabular import choose_task
    >>> choose_task(pd.Series(["yes", "no", "yes"], name="paid")).name
    'classification'
    >>> choose_task(pd.Series([0.5, 0.25, 3.0], name="price")).reason
    "'price' contains non-integers"
    >>> choose_task(pd.Series([1, 2, 3], name="rank")).reason
    "'rank' has 3 distinct integers in 3 rows, fewer than 10 rows each"
    """
    # not by scikit-learn: without it, errors are there at once
    if task not in ("auto", "regression", "classification"):
        raise ValueError(
            "The 'task' parameter must be 'auto', 'regression' or 'classification'. "
            f"Got {task!r} instead."
        )
    series = nw.from_native(target, series_only=True)
    column = column_of(series)
    kind = kind_of(column)
    if kind == "id":  # whatever it is called, somebody wants to know it
        kind = "number"
    if kind == "boolean" and column.numbers is None:
        kind = "category"  # truth values as text stay text
    too_many = kind == "text" and series.n_unique() > max(2, len(series) / 2)
    if too_many or kind in ("date", "almost number", "empty", "other"):
        raise TableError(f"{explain(column, kind)} The target must be numbers or classes.")
    if kind == "number":
        values = np.asarray(column.numbers)
        if not np.isfinite(values).all():
            raise TableError(f"The target {series.name!r} has infinite values.")
        chosen, reason = _for_numbers(series.name, values)
    else:
        what, values = "true and false", np.asarray(column.numbers).astype(bool)
        if kind != "boolean":
            what, values = "strings", np.array(list(map(str, series.to_list())), dtype=str)
        chosen, reason = "classification", f"{series.name!r} contains {what}"
    if task != "auto":
        chosen, reason = task, "as requested"
    return Task(chosen, reason, _checked(series.name, kind, values, chosen))


def _for_numbers(name: Any, values: NDArray[Any]) -> tuple[str, str]:
    if not _whole(values):
        return "regression", f"{name!r} contains non-integers"
    count, rows = len(np.unique(values)), len(values)
    found = f"{name!r} has {count} distinct integers in {rows:,} rows"
    if count > FEW_VALUES:
        return "regression", f"{found}, more than {FEW_VALUES}"
    if rows < ROWS_A_VALUE * count:
        return "regression", f"{found}, fewer than {ROWS_A_VALUE} rows each"
    return "classification", found


def _checked(name: Any, kind: str, values: NDArray[Any], task: str) -> NDArray[Any]:
    if task == "regression":
        if kind not in ("number", "boolean"):
            raise TableError(f"Regression needs numbers. The target {name!r} contains strings.")
        values = values.astype(np.float64)
    elif kind == "number":
        if not _whole(values):
            raise TableError(
                f"Classification needs classes. The target {name!r} contains non-integers."
            )
        values = values.astype(np.int64)
    if len(np.unique(values)) < 2:
        raise TableError(f"The target {name!r} has one value only: {values[0]!s}.")
    return values


def _whole(values: NDArray[Any]) -> bool:
    return bool(np.all(values == np.round(values)) and np.abs(values).max() < 2**53)
