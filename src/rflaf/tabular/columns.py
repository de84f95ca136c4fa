"""What kind of values a column holds, and columns as a model takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

MOST_LEVELS = 1000  # one-hot columns of one category
FEW_LEVELS = 20  # that a category of numbers and something else may have
_DATE = re.compile(r"(\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}([/.])\d{1,2}\3(\d{2}|\d{4})( .*)?)")
_USABLE = {"number", "boolean", "category"}
_OBJECTS = {  # pandas' names for what a column of objects holds
    "boolean": "boolean",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "date": "date",
    "datetime": "date",
    "datetime64": "date",
    "time": "date",
    "timedelta": "date",
    "period": "date",
}


class TableError(ValueError):
    """A table that cannot be used as it is: the `message` explains why.

    Attributes
    ----------
    columns : list of str
        The columns that leaving out would help; may be empty.
    """

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = list(columns)


def pandas() -> Any:
    """The module, or an error that says what to install."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise ImportError("Tables need pandas: pip install 'rflaf[cli]'.") from error


def column_kind(values: Any) -> str:
    """The kind of a pandas Series.

    Returns
    -------
    str
        "number", "boolean" or "category", which a model can use, or one that it cannot: "date",
        "text", "almost number" (numbers but for a few entries), "empty", "other".

    Notes
    -----
    Strings are a category where they have at most 1,000 different values that occur twice or more
    on average, else free text; so names and identifiers are free text. More than 20 values that
    are numbers in nine rows of ten, but not in all, are no category but "almost number".

    Examples
    --------
    >>> import pandas as pd
    >>> from rflaf.tabular import column_kind
    >>> column_kind(pd.Series(["a", "b", "a", "a"])), column_kind(pd.Series(["Ann", "Bo"]))
    ('category', 'text')
    >>> column_kind(pd.Series(["2024-05-01", "2024-05-02"]))
    'date'
    """
    pd = pandas()
    there = values.dropna()
    types, dtype = pd.api.types, values.dtype
    if there.empty:
        return "empty"
    if isinstance(dtype, pd.CategoricalDtype):
        return "category" if there.nunique() <= MOST_LEVELS else "text"
    if types.is_bool_dtype(dtype):
        return "boolean"
    if types.is_numeric_dtype(dtype):
        return "other" if types.is_complex_dtype(dtype) else "number"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "date"
    inferred = types.infer_dtype(there, skipna=True)
    if inferred != "string":
        return _OBJECTS.get(inferred, "other")
    levels = there.unique()
    if all(_DATE.fullmatch(level.strip()) for level in levels):
        return "date"
    numbers = pd.to_numeric(there, errors="coerce").notna().mean()
    if len(levels) <= min(MOST_LEVELS, len(there) / 2):
        # many numbers and a "?" are no category, but few ones with a letter may be
        measured = len(levels) > FEW_LEVELS and numbers >= 0.9
        return "almost number" if measured else "category"
    return "almost number" if numbers >= 0.5 else "text"


def column_kinds(table: Any, columns: Iterable[str]) -> dict[str, str]:
    """The kinds of the columns that a model can use; empty columns are left out.

    Raises
    ------
    TableError
        If a column holds dates, free text or anything else that is neither number nor category. It
        names all such columns.
    """
    kinds = {name: column_kind(table[name]) for name in columns}
    refused = {name: kind for name, kind in kinds.items() if kind not in {*_USABLE, "empty"}}
    if refused:
        reasons = [explain(name, kind, table[name]) for name, kind in refused.items()]
        raise TableError(f"{' '.join(reasons)} A model cannot use that.", list(refused))
    infinite = [name for name, kind in kinds.items() if kind == "number" and _infinite(table[name])]
    if infinite:
        raise TableError(f"Infinite values in {_listed(infinite)}.", infinite)
    kinds = {name: kind for name, kind in kinds.items() if kind in _USABLE}
    if not kinds:
        raise TableError("The table has no column to learn from besides the target.")
    return kinds


def prepare(table: Any, kinds: dict[str, str]) -> Any:
    """The columns as a model takes them: floats with NaN, and strings with None.

    Columns are found by name, in any order; others are left alone.
    """
    pd = pandas()
    missing = [name for name in kinds if name not in table.columns]
    if missing:
        raise TableError(f"The table lacks {_listed(missing)}, which the model was fitted with.")
    made = {
        name: _levels(table[name]) if kind == "category" else _numbers(table[name], name)
        for name, kind in kinds.items()
    }
    return pd.DataFrame(made, index=table.index, columns=list(kinds))


def _levels(values: Any) -> Any:
    """Strings, and None for what is missing, which is a level of its own."""
    made = [None if gone else str(v) for v, gone in zip(values, values.isna())]
    return pandas().Series(made, index=values.index, dtype=object)


def _numbers(values: Any, name: str) -> Any:
    pd = pandas()
    if pd.api.types.is_numeric_dtype(values.dtype):
        made = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        texts = values.astype(object).map(lambda v: _TRUTH.get(v, v) if isinstance(v, str) else v)
        texts = texts.map(lambda v: float(v) if isinstance(v, (bool, np.bool_)) else v)
        made = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        odd = np.isnan(made) & values.notna().to_numpy()
        if odd.any():
            at = int(odd.argmax())
            raise TableError(
                f"Column {name!r} was numeric in the fit. Got {values.iloc[at]!r} in row {at + 1}."
            )
    if np.isinf(made).any():
        raise TableError(f"Infinite values in {_listed([name])}.", [name])
    return made


_TRUTH = {"True": 1.0, "true": 1.0, "TRUE": 1.0, "False": 0.0, "false": 0.0, "FALSE": 0.0}


def _infinite(values: Any) -> bool:
    return bool(np.isinf(values.dropna().to_numpy(dtype=np.float64)).any())


def _listed(names: Sequence[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


def explain(name: str, kind: str, values: Any) -> str:
    """A sentence on why a column of this kind cannot be used."""
    there = values.dropna()
    if kind == "date":
        return f"Column {name!r} holds dates."
    if kind == "text":
        return f"Column {name!r} holds free text ({there.nunique()} values in {len(there)} rows)."
    if kind == "almost number":
        odd = there[pandas().to_numeric(there, errors="coerce").isna()]
        return (
            f"Column {name!r} holds numbers but for {len(odd)} of {len(there)} rows, such as "
            f"{odd.iloc[0]!r} (does it stand for a missing value?)."
        )
    return f"Column {name!r} holds values of type {values.dtype} that are no numbers or strings."
