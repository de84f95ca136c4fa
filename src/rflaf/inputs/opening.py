"""X as an estimator is given it, checked: a matrix, or columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from rflaf.inputs.column import as_frame, columns_of, is_frame, is_plain

FLOATS = [np.float64, np.float32]
NAMES = ("n_features_in_", "feature_names_in_", "column_labels_")  # that describe the columns


def checked(estimator: Any, X: Any, reset: bool, **options: Any) -> Any:
    """X as scikit-learn's `validate_data` gives it, with names of any type compared."""
    check_labels(estimator, X, reset)
    try:
        found = validate_data(estimator, X, reset=reset, **options)
        if sparse.issparse(found) and not found.has_canonical_format:
            found = found.copy()  # entries at one place are summed before they are clipped
            found.sum_duplicates()
        return found
    except OverflowError as error:  # of integers, which have no largest one
        columns = columns_of(np.asarray(X, object))
        names = [c.name for c in columns if c.numbers is not None and np.isinf(c.numbers).any()]
        raise ValueError(f"Input X contains a number too large for a float in {names}.") from error
    except (TypeError, ValueError) as error:
        _explain_text(X, error)
        raise


def _explain_text(X: Any, error: Exception) -> None:
    """Raise an error that says what to do with an array of text or dates."""
    array = np.empty((0, 0)) if is_frame(X) else np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "OUST":
        return
    for k, column in enumerate(columns_of(array)):
        if column.codes is not None or column.times is not None:
            raise ValueError(
                f"An array 'X' must be numeric. Got text or dates in column {k}: pass the frame "
                "(of pandas, polars or pyarrow) itself, or name the columns of categories in "
                "'categorical_features'."
            ) from error


def check_labels(estimator: Any, X: Any, reset: bool) -> None:
    """Set, or compare, names of columns that are no strings, which scikit-learn lets pass."""
    frame = as_frame(X)
    labels: list[Any] = [] if frame is None else list(frame.columns)
    if not labels or any(isinstance(label, str) for label in labels):
        return
    # as text, which a file can hold: 1 of Python and 1 of NumPy are one name
    given = [str(tuple(map(str, label)) if isinstance(label, tuple) else label) for label in labels]
    if reset:
        estimator.column_labels_ = given
    expected = getattr(estimator, "column_labels_", given)
    if given != expected:
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order. "
            f"Expected {_some(expected)}. Got {_some(given)}."
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + ", …" * (len(names) > 10)


def has_columns(X: Any, categorical_features: Any, numeric: bool = True) -> bool:
    """Whether X must be read by column; `numeric`: the fit, if there was one, found only numbers.

    Arrays with categories keep integers as they are: floats would round large ones.
    """
    if is_frame(X):
        return not numeric or is_listed(categorical_features) or not is_plain(X)
    if isinstance(X, list | tuple) and is_listed(categorical_features):
        X = np.asarray(X)
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in ("m", "M"):
        return True
    return kind in tuple("OUSTiu") and (not numeric or is_listed(categorical_features))


def check_numbers(X: Any) -> None:
    """Refuse text, categories and dates: scikit-learn would make numbers of some of them."""
    frame = as_frame(X)
    for name, dtype in frame.schema.items() if frame is not None else ():
        if dtype in (nw.String, nw.Categorical, nw.Enum) or dtype.is_temporal():
            raise ValueError(
                f"Rows that are read in blocks or by Dask must be numbers. Got {dtype} in column "
                f"{name!r}: encode it first, or fit on a frame in memory."
            )


def opened(estimator: Any, X: Any, reset: bool, numeric: bool = True) -> Any:
    """X as a matrix (all numbers) or as columns, with NaN; names are set (`reset`) or compared."""
    if has_columns(X, estimator.categorical_features, numeric):
        if not is_frame(X):
            X = np.asarray(check_array(X, dtype=None, ensure_all_finite=False))
        checked(estimator, X, reset, skip_check_array=True)
        for what, size in zip(("sample", "feature"), X.shape):
            if size == 0:
                raise ValueError(
                    f"Found array with 0 {what}(s) (shape={tuple(X.shape)}) while a minimum of 1 "
                    "is required."
                )
        columns = columns_of(X)
    else:
        x = checked(estimator, X, reset, dtype=FLOATS, ensure_all_finite="allow-nan")
        if numeric and not is_listed(estimator.categorical_features):
            return x
        columns = columns_of(x)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return columns
    return [replace(column, name=str(name)) for column, name in zip(columns, names)]


def count_rows(inputs: Any) -> int:
    """The number of rows of what `opened` returns."""
    if isinstance(inputs, np.ndarray):
        return len(inputs)
    return next((count for column in inputs if (count := column.count) is not None), 0)


def column_names(estimator: Any) -> list[str]:
    """Names of the columns of a fit; x0, x1 and so on where they had none."""
    unnamed = [f"x{k}" for k in range(estimator.n_features_in_)]
    return [str(name) for name in getattr(estimator, "feature_names_in_", unnamed)]


def is_listed(categorical_features: Any) -> bool:
    """Whether it lists columns: it is neither None nor "from_dtype"."""
    return categorical_features is not None and not isinstance(categorical_features, str)


def categorical_at(estimator: Any) -> set[int]:
    """The columns that 'categorical_features' names, of an estimator that knows its columns."""
    given = estimator.categorical_features
    if not is_listed(given):
        return set()
    count = estimator.n_features_in_
    listed = np.asarray(given)
    if listed.dtype.kind == "b":
        if listed.shape != (count,):
            raise ValueError(
                f"The 'categorical_features' must be a mask of {count} columns. Got one of shape "
                f"{listed.shape} instead."
            )
        return set(np.flatnonzero(listed).tolist())
    wanted = listed.ravel().tolist()
    if listed.dtype.kind in "iu" or not wanted:
        if wanted and not 0 <= min(wanted) <= max(wanted) < count:
            raise ValueError(
                f"The 'categorical_features' must be between 0 and {count - 1}. Got {wanted} "
                "instead."
            )
        return set(map(int, wanted))
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    for name in wanted:
        if name not in names:
            shown = ", ".join(map(repr, names[:20])) or "without names"
            raise ValueError(
                f"The 'categorical_features' must be columns of X. Got {name!r} instead; the "
                f"columns are {shown}."
            )
    return {k for k, name in enumerate(names) if name in wanted}
