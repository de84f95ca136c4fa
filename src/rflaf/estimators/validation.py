"""Checks of what an estimator is given, which leave the estimator as it is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_consistent_length
from sklearn.utils._missing import is_pandas_na
from sklearn.utils.validation import (
    _check_feature_names,
    _check_monotonic_cst,
    _check_sample_weight,
    _check_y,
)

from rflaf.arrays import Array
from rflaf.fitting import FitSettings
from rflaf.inputs.encoder import ColumnEncoder
from rflaf.inputs.forms import FORMS, Form
from rflaf.inputs.opening import (
    NAMES,
    check_labels,
    check_numbers,
    checked,
    has_columns,
    is_listed,
    opened,
)
from rflaf.inputs.scaling import warn_of_tiny
from rflaf.inputs.unknown import UnknownLevels
from rflaf.losses import Logistic, Loss
from rflaf.rows import ArrayRows, Arrays, Rows, Source, SourceRows
from rflaf.rows.repeats import repeated_rows
from rflaf.rows.sample import Keys, fold_keys
from rflaf.runtime.callers import warn

FLOATS = [np.float64, np.float32]
_READ_AT_ONCE = 1 << 28  # bytes up to which a memmap is read at once
_REPEATED = 0.1  # share of duplicate rows from which on a warning is given


def is_streamed(X: Any) -> bool:
    """Whether rows are read in blocks. Small memmaps are not: joblib passes arrays as these."""
    return isinstance(X, Source) or (isinstance(X, np.memmap) and X.nbytes > _READ_AT_ONCE)


def dense_for(encoder: ColumnEncoder | None, X: Any) -> Any:
    """X, dense if it is sparse and its columns are encoded."""
    if sparse.issparse(X) and encoder is not None and not encoder.is_identity:
        return X.toarray()
    return X


def form_of(given: Any) -> type[Form] | None:
    """The class of a form, given by its name or as a class."""
    if given is None or isinstance(given, str):
        return None if given is None else FORMS[given]
    if not (isinstance(given, type) and issubclass(given, Form)):
        raise TypeError(
            "The 'input_form' parameter must be the name of a form or a subclass of "
            f"rflaf.inputs.forms.Form. Got {given!r} instead."
        )
    return given


class InputCheck:
    """Learns what the columns are from the first rows, and checks all other rows against it.

    What it learns is kept on an estimator of its own, of type `kind`, and published with the fit.
    With `fitted`, the columns are those of that estimator from the first row on.
    """

    def __init__(
        self, kind: type, loss: Loss, fitted: Any = None, categorical_features: Any = "from_dtype"
    ) -> None:
        if fitted is None:
            self.found = kind()
            self.found.categorical_features = categorical_features
        else:
            self.found = fitted
        self.loss = loss
        self.encoder: ColumnEncoder | None = None if fitted is None else fitted.encoder_
        self.unknown = UnknownLevels([] if self.encoder is None else self.encoder.parts_)
        self._first = fitted is None
        self.dtype: Any = np.dtype(np.float64) if fitted is None else fitted.dtype_

    def columns(self) -> dict[str, Any]:
        """The fitted attributes that describe the columns."""
        found = {name: vars(self.found)[name] for name in NAMES if name in vars(self.found)}
        return {**found, "encoder_": self.encoder}

    def like(self, X: Any) -> None:
        """Take the columns from an array or a frame without rows."""
        check_numbers(X)
        _check_feature_names(self.found, X, reset=True)
        check_labels(self.found, X, reset=True)
        self.found.n_features_in_ = X.shape[1]
        self._first = False

    def inputs(self, X: Any) -> Array:
        """A block of a source as an array, which may have infinity: a later check names the row."""
        if self.encoder is not None and not self.encoder.is_identity:
            columns = opened(self.found, X, False, self.encoder.is_numeric)
            if isinstance(columns, list):
                self.unknown.look(columns)
            return self.encoder.encode(columns)
        check_numbers(X)
        x = checked(self.found, X, self._first, dtype=FLOATS, ensure_all_finite=False)
        self._first = False
        return x

    def targets(self, y: Any, first: int = 0) -> Array:
        """A block of a source as an array; infinity is found later, with the number of its row."""
        if getattr(y, "dtype", None) == np.float32:
            self.dtype = np.dtype(np.float32)
        target = self.loss.check(y)
        self.loss.check_values(target, first)
        return target

    def arrays(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """All rows in memory, checked and encoded."""
        X = dense_for(self.encoder, X)
        self._check_targets_given(y)
        encoded = not sparse.issparse(X) and (self._first or self.encoder is not None)
        numeric = self.encoder is None or self.encoder.is_numeric
        if encoded and has_columns(X, self.found.categorical_features, numeric):
            inputs = opened(self.found, X, self._first, numeric)
        else:
            inputs = checked(
                self.found,
                X,
                self._first,
                accept_sparse="csr",
                dtype=FLOATS,
                ensure_all_finite="allow-nan" if encoded else True,
            )
            if encoded and (is_listed(self.found.categorical_features) or not numeric):
                inputs = opened(self.found, inputs, False, numeric=False)
        y = _check_y(self.targets(y), multi_output=True, estimator=self.found)
        check_consistent_length(X, y)
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        if weights.max() <= 0:
            raise ValueError("'sample_weight' must have a positive entry. Got only zeros.")
        if encoded:
            inputs = self._encoded(inputs, weights)
        warn_of_tiny(inputs, self._input_names)
        return inputs, y, weights

    def _input_names(self) -> Any:
        if self.encoder is not None:
            return self.encoder.get_feature_names_out()
        return [f"x{k}" for k in range(self.found.n_features_in_)]

    def _check_targets_given(self, y: Any) -> None:
        if y is None:
            name = type(self.found).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")

    def _encoded(self, inputs: Any, weights: Array) -> Array:
        if self.encoder is not None:
            return self.encoder.encode(inputs)
        encoder = ColumnEncoder(self.found.categorical_features)
        x = encoder.learn_columns(self.found, inputs, weights)
        self.encoder = encoder
        return x

    def settled(self, settings: FitSettings, model: Any) -> FitSettings:
        """The settings with all that is known of the columns now."""
        given = model.monotonic_cst
        signs = None if given is None else partial(self._signs, given)
        coded = None if self.encoder is None else self.encoder.coded
        return replace(settings, coded=coded, constraints=signs)

    def _signs(self, given: Any, loss: Loss) -> Array | None:
        signs = _check_monotonic_cst(self.found, given)
        at = np.flatnonzero(signs)
        if not len(at):
            return None
        if isinstance(loss, Logistic) and loss.outputs > 1:
            raise ValueError(f"'monotonic_cst' takes two classes. Got {loss.outputs}.")
        if self.encoder is None:
            return signs
        return self.encoder.of_numbers(signs)

    def rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        max_bytes: int | None,
        groups: Any = None,
        seed: int = 0,
    ) -> Rows:
        """The rows of a fit. Arrays are checked now, sources when read; `groups` share folds."""
        if is_listed(self.found.categorical_features) and (is_streamed(X) or sparse.issparse(X)):
            raise ValueError(
                f"'categorical_features' needs 'X' as a frame or a dense array in memory. Got a "
                f"{type(X).__name__}."
            )
        if not is_streamed(X):
            x, y, weights = self.arrays(X, y, sample_weight)
            weights = weights / weights.max()  # equal weights are exactly 1
            return self.keyed(x, y, weights, groups, seed)
        if groups is not None:
            raise ValueError(
                f"'groups' needs 'X' as an array in memory. Got a {type(X).__name__}, which is "
                "read block by block."
            )
        if isinstance(X, Source):
            if y is not None or sample_weight is not None:
                raise ValueError(
                    "With a source for 'X', targets and weights come from its blocks. Got 'y' or "
                    "'sample_weight' as well."
                )
            return SourceRows(X, self, max_bytes)
        self._check_targets_given(y)
        if sample_weight is not None and np.ndim(sample_weight) == 0:
            sample_weight = np.broadcast_to(np.float64(sample_weight), len(X))
        return SourceRows(Arrays(X, y, sample_weight), self, max_bytes)

    def keyed(
        self, x: Any, y: Array, weights: Array, groups: Any = None, seed: int = 0
    ) -> ArrayRows:
        """Rows in memory, with keys that decide their folds."""
        keys = None if groups is None else group_keys(groups, weights, seed)
        if keys is None:
            told_apart, text = x, () if self.encoder is None else self.encoder.text
            if len(text):  # as codes: it is no measurement, and the same words may come again
                told_apart = x.copy()
                told_apart[:, text] = np.round(1e9 * x[:, text])
            keys = repeat_keys(told_apart, y, weights, seed)
        return ArrayRows(x, y, weights, keys=keys)


def repeat_keys(x: Any, y: Array, weights: Array, seed: int) -> Keys | None:
    """For each row the key of the first row that it repeats; None if there are no repeats."""
    used = np.flatnonzero(weights > 0)
    first = repeated_rows(x[used], y[used])
    if first is None:
        return None
    sizes = np.bincount(first)
    share = float(np.mean(sizes[first] > 1))
    if share >= _REPEATED:
        warn(
            f"{share:.0%} of the rows are duplicates. They share a fold, so that oof_score_ is "
            "that of new rows. Pass 'groups' if other rows belong together too."
        )
    keys = fold_keys(seed, 0, len(weights))
    keys[used] = keys[used[first]]
    return keys


def group_keys(groups: Any, weights: Array, seed: int) -> Keys:
    """The key of each row's group, which decides its fold. Groups without weight do not count."""
    if np.ma.is_masked(groups):
        raise ValueError("'groups' must have a label for each row. Got a masked array.")
    labels = np.asarray(groups)
    if labels.shape != weights.shape:
        raise ValueError(
            f"'groups' must have a label for each of the {len(weights)} rows. Got an array of "
            f"shape {labels.shape}."
        )
    missing = np.flatnonzero(_is_missing(labels))
    if len(missing):
        raise ValueError(
            f"'groups' must have a label for each row. Got {labels[missing[0]]!r} in row "
            f"{missing[0]}."
        )
    if labels.dtype.kind == "O":  # of any types, which need not have an order
        numbers: dict[Any, int] = {}
        codes = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    else:
        codes = np.unique(labels, return_inverse=True)[1]
    count = len(np.unique(codes[weights > 0]))
    if count < 2:
        raise ValueError(f"'groups' must have at least 2 groups with positive weight. Got {count}.")
    return fold_keys(seed, 0, int(codes.max()) + 1)[codes]


def _is_missing(labels: Array) -> Array:
    """Whether a label is None, NaN, NaT or pandas's NA."""
    if labels.dtype.kind == "O":
        return np.array([x is None or is_pandas_na(x) or x != x for x in labels], bool)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    return labels != labels


def spread_rows(found: Array, numbers: Array, count: int) -> Array | None:
    """What was found for some rows, among all; None if these are not most rows of an array."""
    if not len(numbers) or numbers[-1] >= count or len(numbers) < 0.5 * count:
        return None
    out = np.full((count, *found.shape[1:]), np.nan)
    out[numbers] = found
    return out
