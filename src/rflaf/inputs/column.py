"""Columns of frames and arrays as plain NumPy, whatever library they come from.

pandas and polars are asked for what a caller has imported already; neither is needed.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DAY = 86_400.0  # seconds
_ID_NAME = re.compile(r"(?:.*[ _.-])?(?:id|uuid|guid)|unnamed: 0|rowid")


@dataclass(frozen=True)
class Column:
    """The values of a column, as numbers, as times, or as levels.

    Attributes
    ----------
    name : str
    numbers : array of float, optional
        NaN where a value is missing.
    times : array of float, optional
        Seconds since 1970 on the clock of the column's own time zone; NaN where missing.
    codes, levels : array of int, list of str, optional
        The level of each row; -1 where it is missing, as an empty string is.
    boolean, declared : bool
        Whether the numbers are truth values, and the levels those of a type for categories.
    other : str
        The type of values that are none of these.
    """

    name: str
    numbers: Array | None = None
    times: Array | None = None
    codes: Array | None = None
    levels: Sequence[str] = ()
    boolean: bool = False
    declared: bool = False
    other: str = ""

    @property
    def count(self) -> int | None:
        """The number of rows, where values of a known kind tell it."""
        values = (self.numbers, self.times, self.codes)
        return next((len(value) for value in values if value is not None), None)

    def rows(self, start: int, stop: int) -> Column:
        """Consecutive rows."""
        return self.take(slice(start, stop))

    def take(self, rows: Any) -> Column:
        """Some of the rows, by whatever indexes an array."""
        parts = (self.numbers, self.times, self.codes)
        numbers, times, codes = (None if part is None else part[rows] for part in parts)
        return replace(self, numbers=numbers, times=times, codes=codes)


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas or polars."""
    return any(
        isinstance(X, kind)
        for library in ("pandas", "polars")
        if (kind := getattr(sys.modules.get(library), "DataFrame", None)) is not None
    )


def is_plain(X: Any) -> bool:
    """Whether a frame has columns of NumPy's own numbers only, which make a matrix at once.

    Numbers that may be an identifier are looked at more closely.
    """
    if any(is_id_name(str(name)) for name in X.columns):
        return False
    dtypes = getattr(X, "dtypes", ())
    if _is_polars(X):
        return all(dtype.is_numeric() and not dtype.is_decimal() for dtype in dtypes)
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)


def is_id_name(name: str) -> bool:
    """Whether a column of this name is likely to number its rows."""
    words = re.sub(r"([a-z])I[dD]$", r"\1_id", name.strip())
    return bool(_ID_NAME.fullmatch(words.lower()))


def columns_of(X: Any) -> list[Column]:
    """The columns of a frame, or of an array with two dimensions."""
    if _is_polars(X):
        return [_of_polars(name, X.to_series(k)) for k, name in enumerate(X.columns)]
    if is_frame(X):
        return [_of_pandas(str(name), X.iloc[:, k]) for k, name in enumerate(X.columns)]
    return [_of_array(f"x{k}", X[:, k]) for k in range(X.shape[1])]


def column_of(values: Any) -> Column:
    """A Series of pandas or polars, or an array of one dimension."""
    name = str(getattr(values, "name", "")) or ""
    if type(values).__module__.startswith("polars"):
        return _of_polars(name, values)
    return _of_pandas(name, values) if hasattr(values, "iloc") else _of_array(name, values)


def level_name(value: Any) -> str:
    """How a value is called as a level: 1, 1.0 and "1" are the same one."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if not isinstance(value, Real):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def levels_of(values: Sequence[Any], codes: Array) -> tuple[Array, list[str]]:
    """Codes and names of levels, with those of one name together and "" as missing."""
    known: dict[str, int] = {}
    new = [
        -1 if name == "" else known.setdefault(name, len(known)) for name in map(level_name, values)
    ]
    translation = np.array([*new, -1], dtype=np.intp)  # the last is that of the code -1
    return translation[codes], list(known)


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars"


def _of_array(name: str, values: Array) -> Column:
    kind = values.dtype.kind
    if kind in "biuf":
        return Column(name, numbers=values.astype(np.float64), boolean=kind == "b")
    if kind == "M":
        return Column(name, times=_seconds(values))
    if kind == "m":
        return Column(name, numbers=_seconds(values))
    if kind == "c":
        return Column(name, other="complex")
    return _of_objects(name, values.tolist())


def _of_pandas(name: str, series: Any) -> Column:
    pd = sys.modules["pandas"]
    types, dtype = pd.api.types, series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes, levels = levels_of(series.cat.categories.tolist(), np.asarray(series.cat.codes))
        return Column(name, codes=codes, levels=levels, declared=True)
    if isinstance(dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
        dtype = series.dtype
    if types.is_complex_dtype(dtype):
        return Column(name, other=str(dtype))
    if types.is_numeric_dtype(dtype):  # truth values among them
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Column(name, numbers=numbers, boolean=types.is_bool_dtype(dtype))
    if types.is_datetime64_any_dtype(dtype):
        if series.dt.tz is not None:
            series = series.dt.tz_localize(None)
        return Column(name, times=_seconds(series.to_numpy(dtype="datetime64[us]")))
    if types.is_timedelta64_dtype(dtype):
        return Column(name, numbers=_seconds(series.to_numpy(dtype="timedelta64[us]")))
    if types.infer_dtype(series, skipna=True) == "string":
        codes, levels = pd.factorize(series)
        return Column(name, *(None, None), *levels_of(levels.tolist(), codes))
    return _of_objects(name, series.tolist())


def _of_polars(name: str, series: Any) -> Column:
    pl = sys.modules["polars"]
    dtype = series.dtype
    if dtype == pl.Boolean or dtype.is_numeric():
        numbers = series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return Column(name, numbers=np.array(numbers), boolean=dtype == pl.Boolean)
    if dtype in (pl.Date, pl.Datetime):
        if getattr(dtype, "time_zone", None):
            series = series.dt.replace_time_zone(None)
        return Column(name, times=_seconds(series.cast(pl.Datetime("us")).to_numpy()))
    if dtype == pl.Duration:
        return Column(name, numbers=_seconds(series.cast(pl.Duration("us")).to_numpy()))
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        texts = series.cast(pl.String).to_list()
        known: dict[str, int] = {}
        codes = [-1 if not text else known.setdefault(text, len(known)) for text in texts]
        return Column(
            name, codes=np.array(codes, np.intp), levels=list(known), declared=dtype != pl.String
        )
    return _of_objects(name, series.to_list())


def _seconds(values: Array) -> Array:
    """Times or durations of NumPy in seconds; NaN for NaT."""
    unit = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
    whole = values.astype(unit).astype(np.int64)
    return np.where(np.isnat(values), np.nan, whole / 1e6)


_SCALARS = (str, bytes, Real, Decimal, np.bool_, datetime.date, datetime.time, np.datetime64)


def _of_objects(name: str, values: list[Any]) -> Column:
    """Objects of Python, by what all of them are."""
    gone = np.fromiter(map(_is_missing, values), bool, len(values))
    there = [value for value, missing in zip(values, gone) if not missing]

    def spread(found: Sequence[float]) -> Array:
        out = np.full(len(values), np.nan)
        out[~gone] = found
        return out

    def all_are(*kinds: type) -> bool:
        return all(isinstance(value, kinds) for value in there)

    if not there:
        return Column(name, numbers=np.full(len(values), np.nan))
    if all_are(bool, np.bool_, Real, Decimal):
        boolean = all_are(bool, np.bool_)
        return Column(name, numbers=spread([float(value) for value in there]), boolean=boolean)
    if all_are(datetime.timedelta, np.timedelta64):
        return Column(name, numbers=spread([_duration(value) for value in there]))
    if all_are(datetime.date, datetime.time, np.datetime64):
        return Column(name, times=spread([_moment(value) for value in there]))
    if not all_are(*_SCALARS):
        odd = next(value for value in there if not isinstance(value, _SCALARS))
        return Column(name, other=type(odd).__name__)
    codes = np.full(len(values), -1)
    codes[~gone] = np.arange(len(there))
    return Column(name, *(None, None), *levels_of(there, codes))


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, Decimal) and value.is_nan()


def _duration(value: Any) -> float:
    if isinstance(value, np.timedelta64):
        return float(_seconds(np.array([value]))[0])
    return float(value.total_seconds())


def _moment(value: Any) -> float:
    """Seconds since 1970 by the clock that the value shows; of a time alone, since midnight."""
    if isinstance(value, np.datetime64):
        return float(_seconds(np.array([value]))[0])
    days = 0.0
    if not isinstance(value, datetime.time):
        days = value.toordinal() - datetime.date(1970, 1, 1).toordinal()
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return days * DAY
    seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return float(days * DAY + seconds)
