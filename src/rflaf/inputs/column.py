"""Columns of frames and arrays as plain NumPy, whatever library they come from.

Frames are read through narwhals, which imports none of their libraries.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np

from rflaf.arrays import Array

DAY = 86_400.0  # seconds
_LONGEST = 10_000  # bits of an integer that Python writes in decimal digits
_ID_NAME = re.compile(r"(?:.*[ _.-])?(?:id|uuid|guid)|unnamed: 0|rowid")


@dataclass(frozen=True)
class Column:
    """The values of a column, as numbers, as times, or as levels."""

    name: str
    numbers: Array | None = None  # NaN where a value is missing
    times: Array | None = None  # seconds since 1970 on the clock of the column's own time zone
    codes: Array | None = None  # the level of each row; -1 where it is missing, as "" is
    levels: Sequence[str] = ()
    utc: Array | None = None  # the times on the clock of UTC; NaN for those without a time zone
    exact: Array | None = None  # the numbers as given, where floats would round some integers
    zone: str = ""  # the time zone; "" if there is none
    boolean: bool = False  # the numbers are truth values
    duration: bool = False  # the numbers are seconds of durations
    declared: bool = False  # the levels are those of a type for categories
    other: str = ""  # the type of values that are none of these

    @property
    def count(self) -> int | None:
        """The number of rows, where values of a known kind tell it."""
        values = (self.numbers, self.times, self.codes)
        return next((len(value) for value in values if value is not None), None)

    def take(self, rows: Any) -> Column:
        """Some of the rows, by whatever indexes an array."""
        names = ("numbers", "times", "codes", "utc", "exact")
        parts = {name: getattr(self, name) for name in names}
        return replace(self, **{k: part[rows] for k, part in parts.items() if part is not None})


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as narwhals has it, or None if it is no frame."""
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X must be in memory. Got a lazy {type(X).__name__}: collect it first.")
    return frame if isinstance(frame, nw.DataFrame) else None


def is_frame(X: Any) -> bool:
    """Whether X is a frame of some library: pandas, polars, pyarrow and so on."""
    return as_frame(X) is not None


def is_plain(X: Any) -> bool:
    """Whether scikit-learn can make a matrix of the frame at once: numbers, none likely an id."""
    frame = nw.from_native(X, eager_only=True)
    return not any(is_id_name(str(name)) for name in frame.columns) and all(
        series.dtype.is_numeric()
        and not (series.dtype.is_decimal() or _is_extension(series) or _needs_exact(series))
        for series in frame.iter_columns()
    )


def is_id_name(name: str) -> bool:
    """Whether a column of this name is likely to identify its rows."""
    words = re.sub(r"([a-z])I[dD]$", r"\1_id", name.strip())
    return bool(_ID_NAME.fullmatch(words.lower()))


def columns_of(X: Any) -> list[Column]:
    frame = as_frame(X)
    if frame is not None:
        return [_of_series(series) for series in frame.iter_columns()]
    return [_of_array(f"x{k}", X[:, k]) for k in range(X.shape[1])]


def column_of(values: Any) -> Column:
    """A Series of some library, or an array of one dimension."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    return _of_series(series) if isinstance(series, nw.Series) else _of_array("", values)


def values_of(series: nw.Series[Any]) -> Array:
    """A Series in NumPy: floats with NaN, local times and durations with NaT, or objects."""
    dtype = series.dtype
    if _has_objects(series) or _needs_exact(series):
        return _objects(series)
    if dtype.is_numeric():
        return series.cast(nw.Float64).to_numpy()
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    if dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    # truth values without missing ones; and what narwhals does not know, such as a sparse column of
    # pandas or a date64 of Arrow, but NumPy may
    if dtype in (nw.Boolean, nw.Date, nw.Datetime, nw.Duration, nw.Unknown):
        return series.to_numpy()
    return _objects(series)


def _needs_exact(series: nw.Series[Any]) -> bool:
    """Whether floats might make some integers equal."""
    whole = series.dtype.is_integer() and len(series) > 0
    return whole and not _fits_floats(series.min(), series.max())


def _fits_floats(low: Any, high: Any) -> bool:
    """Whether floats tell integers in this range apart; None: there are none."""
    return low is None or (low > -(2**53) and high < 2**53)


def _objects(series: nw.Series[Any]) -> Array:
    return np.fromiter(series.to_list(), np.object_, len(series))  # a list may be among them


def _has_objects(series: nw.Series[Any]) -> bool:
    """Whether pandas holds objects of Python; narwhals tells their type by the first 100 rows."""
    return series.implementation.is_pandas_like() and series.to_native().dtype == np.object_


def _is_extension(series: nw.Series[Any]) -> bool:
    """Whether pandas holds numbers of a type that NumPy lacks; a matrix of them has objects."""
    return series.implementation.is_pandas_like() and not isinstance(
        series.to_native().dtype, np.dtype
    )


def level_name(value: Any) -> str:
    """The name of a value as a level: 1, 1.0 and "1" share one."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        value = int(value)
    if isinstance(value, Integral):
        whole = int(value)
        return str(whole) if whole.bit_length() < _LONGEST else hex(whole)
    if isinstance(value, Decimal):
        return repr(float(value))
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


def _of_array(name: str, values: Array) -> Column:
    kind = values.dtype.kind
    if kind in "iu" and len(values) and not _fits_floats(values.min(), values.max()):
        return _of_objects(name, values.tolist())
    if kind in "biuf":
        return Column(name, numbers=values.astype(np.float64), boolean=kind == "b")
    if kind == "M":
        return Column(name, times=_seconds(values))
    if kind == "m":
        return Column(name, numbers=_seconds(values), duration=True)
    if kind == "c":
        return Column(name, other="complex")
    return _of_objects(name, values.tolist())


def _of_series(series: nw.Series[Any]) -> Column:
    name = "" if series.name is None else str(series.name)
    values = values_of(series)
    if series.dtype in (nw.Categorical, nw.Enum):
        return replace(levels_column(name, values.tolist()), declared=True)
    column = _of_array(name, values)
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        utc = values_of(series.dt.convert_time_zone("UTC"))
        return replace(column, utc=_seconds(utc), zone=series.dtype.time_zone)
    return column


def levels_column(name: str, values: list[Any]) -> Column:
    """A column of categories; the values are hashable."""
    place = {value: k for k, value in enumerate(dict.fromkeys(values))}
    codes = np.fromiter(map(place.__getitem__, values), np.intp, len(values))
    return Column(
        name, *(None, None), *levels_of(["" if _is_missing(v) else v for v in place], codes)
    )


def _seconds(values: Array) -> Array:
    """Times or durations of NumPy in seconds; NaN for NaT."""
    unit = "datetime64[us]" if values.dtype.kind == "M" else "timedelta64[us]"
    whole = values.astype(unit).astype(np.int64)
    return np.where(np.isnat(values), np.nan, whole / 1e6)


_SCALARS = (str, bytes, Real, Decimal, np.bool_, datetime.date, datetime.time, np.datetime64)


def _of_objects(name: str, values: list[Any]) -> Column:
    """Objects of Python, by what all of them are."""
    odd = [value for value in values if type(value) is not str]
    if len(odd) < len(values) and all(map(_is_missing, odd)):
        return levels_column(name, values)
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
        whole = [value for value in there if isinstance(value, Integral | Decimal)]
        exact = None if all(_fits_floats(value, value) for value in whole) else values
        return Column(
            name,
            numbers=spread([_float(value) for value in there]),
            exact=None if exact is None else np.fromiter(exact, np.object_, len(exact)),
            boolean=all_are(bool, np.bool_),
        )
    if all_are(datetime.timedelta, np.timedelta64):
        return Column(name, numbers=spread([_duration(value) for value in there]), duration=True)
    if all_are(datetime.date, datetime.time, np.datetime64):
        times, shifts = (spread([f(value) for value in there]) for f in (_moment, _shift))
        zones = {str(value.tzinfo) for value in there if _shift(value) == _shift(value)}
        if len(zones) > 1:  # on one clock
            times, shifts = times - np.nan_to_num(shifts), 0 * shifts
        zone = zones.pop() if len(zones) == 1 else "UTC" if zones else ""
        return Column(name, times=times, utc=times - shifts, zone=zone)
    if all(type(value).__name__ == "Period" for value in there):  # of pandas: its first moment
        return Column(name, times=spread([_moment(value.start_time) for value in there]))
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


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of more than 308 digits
        return np.inf if value > 0 else -np.inf


def _shift(value: Any) -> float:
    """The offset from UTC of a moment, in seconds; NaN where it has none."""
    shift = value.utcoffset() if isinstance(value, datetime.datetime) else None
    return np.nan if shift is None else shift.total_seconds()


def _duration(value: Any) -> float:
    if isinstance(value, np.timedelta64):
        return float(_seconds(np.array([value]))[0])
    return float(value.total_seconds())


def _moment(value: Any) -> float:
    """Seconds since 1970 by the clock that the value shows; of a time alone, since midnight."""
    if isinstance(value, np.datetime64):
        return float(_seconds(np.array([value]))[0])
    whole = 0  # microseconds, which are exact
    if not isinstance(value, datetime.time):
        whole += (value.toordinal() - datetime.date(1970, 1, 1).toordinal()) * 86_400_000_000
    if isinstance(value, datetime.datetime | datetime.time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second
        whole += seconds * 1_000_000 + value.microsecond
    return whole / 1e6
