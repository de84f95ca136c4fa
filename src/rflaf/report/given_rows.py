"""Rows as somebody gives them: arrays, sparse matrices, frames of any library.

A model takes them in the form in which it was fitted. So nothing is converted here before it is
given to a model: rows are picked, and single columns replaced by the same column of other rows,
which keeps the type of every column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rflaf.arrays import Array
from rflaf.inputs.column import DAY, as_frame, column_of
from rflaf.inputs.kinds import as_times
from rflaf.inputs.parts import DatePart
from rflaf.pages.wording import DAYS_OF_A_YEAR
from rflaf.runtime.cached import computed_once

FEW_VALUES = 6  # a number with so many values or fewer is shown by its values


@dataclass(frozen=True)
class GivenColumn:
    name: str
    kind: Literal["number", "date", "category"]
    values: Array  # floats with NaN; for dates years, for a category strings with None

    @computed_once
    def present(self) -> NDArray[np.bool_]:
        if self.kind == "category":
            return np.array([value is not None for value in self.values], bool)
        return np.isfinite(self.values)

    @computed_once
    def levels(self) -> tuple[Array, Array]:
        """The different values, as they sort, and how many rows have each."""
        return np.unique(self.values[self.present], return_counts=True)


class GivenRows:
    """Access by position to rows and columns of an array, a sparse matrix or a frame.

    Examples
    --------
    >>> import numpy as np
    >>> rows = GivenRows(np.array([[1.0, 5.0], [2.0, 6.0]]), "X_test")
    >>> rows.mixed(np.array([0, 1]), 1, np.array([1, 1]))
    array([[1., 6.],
           [2., 6.]])
    """

    def __init__(self, X: Any, argument: str, dates: dict[int, DatePart] | None = None) -> None:
        self._frame = None if sparse.issparse(X) else as_frame(X)
        if sparse.issparse(X):
            X = X.tocsr()
        elif self._frame is None:
            X = np.asarray(X)
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if len(shape) != 2 or shape[0] < 1:
            raise ValueError(
                f"The '{argument}' must be an array or a frame with rows and columns. Got "
                f"{type(X).__name__} of shape {tuple(shape)} instead."
            )
        self.X, self._dates = X, dates or {}
        self.count, self.width = map(int, shape)
        self._columns: dict[int, GivenColumn] = {}

    @property
    def names(self) -> list[str] | None:
        """The columns' names, where there are any."""
        return None if self._frame is None else [str(name) for name in self._frame.columns]

    @property
    def labels(self) -> list[str]:
        """What each row is called: by the index of a frame that has one, or its number from 0."""
        index = None if self._frame is None else nw.maybe_get_index(self._frame)
        return [str(label) for label in (range(self.count) if index is None else index)]

    def take(self, rows: Array) -> Any:
        """Some rows, as they were given."""
        return self.X[rows] if self._frame is None else _picked(self._frame, rows).to_native()

    def mixed(self, rows: Array, j: int, donors: Array) -> Any:
        """Some rows whose column j is that of other rows."""
        if self._frame is not None:
            other = _picked(self._frame.select(self._frame[:, j]), donors)
            return _picked(self._frame, rows).with_columns(other[:, 0]).to_native()
        part = self.take(rows)
        if sparse.issparse(part):
            part = part.tolil()
            part[:, [j]] = self.X[donors][:, [j]]
            return part.tocsr()
        part[:, j] = self.X[donors, j]
        return part

    def column(self, j: int, name: str) -> GivenColumn:
        if j not in self._columns:
            values: Any = self.X if self._frame is None else self._frame
            values = values[:, [j]].toarray()[:, 0] if sparse.issparse(values) else values[:, j]
            self._columns[j] = as_column(values, name, self._dates.get(j))
        return self._columns[j]


def _picked(frame: nw.DataFrame[Any], rows: Array) -> nw.DataFrame[Any]:
    """Some rows, numbered anew where the frame has an index."""
    return nw.maybe_reset_index(frame[rows.tolist()])


def as_column(values: Any, name: str, dates: DatePart | None = None) -> GivenColumn:
    """An array or a Series as floats, where it has numbers or times, else as strings.

    Text has `dates` as the fit has read them: some rows alone may not tell days from months.

    Examples
    --------
    >>> as_column(np.array([1, None, 2.5], object), "a").values
    array([1. , nan, 2.5])
    >>> as_column(np.array(["b", None], object), "a").values
    array(['b', None], dtype=object)
    """
    column = column_of(values)
    times = column.times if dates is None else as_times(column, dates.orders, dates.zone)
    if times is not None:
        return GivenColumn(name, "date", 1970.0 + times / DAY / DAYS_OF_A_YEAR)
    if column.codes is not None:
        texts = np.array([*column.levels, None], object)[column.codes]
    elif column.numbers is None:
        missing = (v is None or (isinstance(v, float) and np.isnan(v)) for v in values)
        texts = np.array([None if no else str(v) for v, no in zip(values, missing)], object)
    elif column.boolean:
        texts = (column.numbers == 1).astype(str).astype(object)
        texts[np.isnan(column.numbers)] = None
    else:
        return GivenColumn(name, "number", column.numbers / (DAY if column.duration else 1.0))
    return GivenColumn(name, "category", texts)
