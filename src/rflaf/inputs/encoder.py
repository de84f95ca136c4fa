"""ColumnEncoder: columns of any kind as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils import assert_all_finite, check_consistent_length, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
)

from rflaf.arrays import Array
from rflaf.inputs.kinds import kinds_of, warn_of
from rflaf.inputs.learning import column_parts, matrix_parts, target_matrix
from rflaf.inputs.opening import NAMES, categorical_at, opened
from rflaf.inputs.parts import CodePart, DatePart, NumberPart, Part
from rflaf.inputs.target_means import Coded, inner_folds, learn_means
from rflaf.inputs.text import TextPart
from rflaf.inputs.unknown import UnknownLevels

_MOST_CLASSES = 20  # integers with more values are no classes, if target_type is "auto"
CATEGORICAL = [StrOptions({"from_dtype"}), "array-like", None]


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a data frame as numbers: categories, missing values, dates, booleans.

    Numbers stay as they are; missing ones become the median, with a 0/1 column that marks them if
    the fit had some. Booleans are 0 and 1. A category becomes one-hot columns, with missing values
    as a level, and one column for all rare levels; above `one_hot_levels` levels it becomes the
    mean of the target by level, shrunk towards the overall mean. Dates become days since the first,
    sine and cosine of the time of the year, the week and the day if they vary, and the days between
    columns of dates. Free text becomes a prediction of y from its character n-grams, and their ten
    main directions; without y, 30 directions. Identifiers are ignored with a warning.

    RFLAFRegressor and RFLAFClassifier do this themselves; it is for other models.

    Parameters
    ----------
    categorical_features : "from_dtype", array-like or None
        Categorical columns. "from_dtype": those with a categorical type, and strings that repeat.
        Names, positions or a mask: these columns as well. None: no column; strings other than dates
        raise an error.
    one_hot_levels : int
        The largest number of levels that is one-hot encoded. A level is rare with fewer than five
        rows; in tables of fewer than 200 rows, with less than a fortieth of them.
    target_type : {"auto", "classes", "numbers"}
        What y is, for means by level. "auto": classes, unless it contains non-integers or more
        than 20 different numbers.
    random_state : int, RandomState or None
        Seed of the folds of `fit_transform`.

    Attributes
    ----------
    kinds_ : list of str
        The kind of each column, see `column_kind`.
    parts_ : list
        The fitted encodings.
    means_ : TargetMeans or None
        The means of the target by level, and its predictions by text.
    origin_ : array of int
        The column that each output comes from.
    n_features_in_, feature_names_in_, column_labels_
        Of the fit; names if they were strings, else labels, as text.

    Notes
    -----
    `fit_transform` uses target means and predictions of the rows outside a row's own fold, of five;
    `transform` those of all training rows. Rows of weight zero are not used. In a column that had
    no missing value in the fit, one counts as the median, or as a rare level. An unknown level
    counts as a rare one; without rare ones all its columns are zero. Its target mean is the overall
    mean.

    Examples
    --------
    >>> import pandas as pd
    >>> from rflaf.inputs import ColumnEncoder
    >>> frame = pd.DataFrame({"size": [1.0, None, 3.0], "town": ["Bern", "Uri", "Bern"]})
    >>> encoder = ColumnEncoder(categorical_features=["town"]).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'size_missing', 'town_Bern', 'town_Uri']
    >>> encoder.transform(frame).tolist()
    [[1.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 1.0], [3.0, 0.0, 1.0, 0.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "categorical_features": CATEGORICAL,
        "one_hot_levels": [Interval(Integral, 1, None, closed="left")],
        "target_type": [StrOptions({"auto", "classes", "numbers"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        categorical_features: Any = "from_dtype",
        *,
        one_hot_levels: int = 30,
        target_type: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.one_hot_levels = one_hot_levels
        self.target_type = target_type
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ColumnEncoder:
        """Learn what the columns are; y is for categories of many levels."""
        self._learn(X, y, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """The columns as numbers, where no row has seen its own target."""
        return self._learn(X, y, sample_weight)

    def transform(self, X: Any) -> Any:
        """The columns as numbers, n × d'."""
        check_is_fitted(self)
        inputs = opened(self, X, reset=False, numeric=self.is_numeric)
        if isinstance(inputs, list):
            unknown = UnknownLevels(self.parts_)
            unknown.look(inputs)
            unknown.warn()
        return self.encode(inputs)

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> Array:
        """Set all fitted attributes; return the rows as `fit_transform` does."""
        if sparse.issparse(X):
            raise TypeError("ColumnEncoder takes frames and dense arrays. Got a sparse matrix.")
        found = ColumnEncoder(self.categorical_features)  # nothing is set on self before the end
        inputs = opened(found, X, reset=True)
        if y is not None:
            check_consistent_length(X, y)
            assert_all_finite(np.asarray(y), allow_nan=False, input_name="y")
        given = np.empty((X.shape[0], 1)) if hasattr(X, "shape") else X
        weights = _check_sample_weight(
            sample_weight, given, dtype=np.float64, ensure_non_negative=True
        )
        state, x = self._learned(found, inputs, weights, codes=y is not None)
        coded = None if y is None else _coded(state["parts_"])
        if coded is not None:
            targets = target_matrix(y, self._has_classes(y))
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            fold = inner_folds(np.random.default_rng(seed).permutation(len(x)))
            means = learn_means(x, coded, targets, weights, fold)
            state["means_"] = means.published()
            state["origin_"] = state["origin_"][means.origin]
            x = means(x, fold)
        self._publish(state)
        return x

    def learn_columns(self, found: Any, inputs: Any, weights: Array) -> Array:
        """As `fit_transform`, but a category of many levels becomes codes, see `coded`.

        `found` is the estimator that knows the columns, `inputs` what `opened` has made.
        """
        state, x = self._learned(found, inputs, weights, codes=True)
        self._publish(state)
        return x

    def _learned(
        self, found: Any, inputs: Any, weights: Array, codes: bool
    ) -> tuple[dict[str, Any], Array]:
        """The fitted attributes, where rows of weight zero have no part, and the rows encoded."""
        rows = np.flatnonzero(weights > 0)
        if not len(rows):
            raise ValueError("'sample_weight' must have a positive entry. Got only zeros.")
        whole = len(rows) == len(weights)
        if isinstance(inputs, np.ndarray):
            parts, kinds = matrix_parts(inputs if whole else inputs[rows])
        else:
            used = inputs if whole else [column.take(rows) for column in inputs]
            kinds = kinds_of(used, categorical_at(found), self.categorical_features is None)
            parts, unsure = column_parts(used, kinds, self.one_hot_levels, codes)
            warn_of(used, kinds, unsure)
        if not parts:
            raise ValueError("X has no usable column: all of them are empty or ignored.")
        state = {name: vars(found)[name] for name in NAMES if name in vars(found)}
        origin = np.concatenate([part.origin for part in parts])
        state |= {"kinds_": kinds, "parts_": parts, "origin_": origin, "means_": None}
        return state, _encoded(parts, inputs)

    def _publish(self, state: dict[str, Any]) -> None:
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = kept | state

    def _has_classes(self, y: Any) -> bool:
        if self.target_type == "auto":
            few = len(np.unique(y)) <= _MOST_CLASSES or np.asarray(y).dtype.kind not in "iuf"
            return few and type_of_target(y) in ("binary", "multiclass")
        return self.target_type == "classes"

    @property
    def is_numeric(self) -> bool:
        """Whether all that is used of a table is numbers."""
        return all(
            isinstance(part, NumberPart) and not len(part.lenient) + len(part.durations)
            for part in self.parts_
        )

    @property
    def is_identity(self) -> bool:
        """Whether rows without missing values stay as they are."""
        first = self.parts_[0]
        return (
            self.is_numeric
            and isinstance(first, NumberPart)
            and not len(first.flagged)
            and len(first.at) == self.n_features_in_
        )

    @property
    def coded(self) -> Coded | None:
        """The results that hold codes of levels or numbers of texts; None if there are none."""
        return _coded(self.parts_) if self.means_ is None else None

    @property
    def tied(self) -> set[int]:
        """Columns of dates that have a result in common: the days between them."""
        dates = [part for part in self.parts_ if isinstance(part, DatePart)]
        return {j for p in dates if p.since is not None for j in (p.column, p.since.column)}

    @property
    def text(self) -> NDArray[np.intp]:
        """The results that come from free text."""
        columns = [part.column for part in self.parts_ if isinstance(part, TextPart)]
        return np.flatnonzero(np.isin(self.origin_, columns))

    def encode(self, inputs: Any) -> Array:
        """`inputs` that `opened` has made, as numbers."""
        x = _encoded(self.parts_, inputs)
        return x if self.means_ is None else self.means_(x)

    def export(self, graph: Any, x: str) -> str:
        """The encoding of a matrix of numbers, as part of a graph."""
        part = cast(NumberPart, self.parts_[0])
        if len(part.at) < self.n_features_in_:
            graph.refuse_infinite(x)  # in any column, as the estimator does
            x = graph.columns(x, part.at)
        return part.export(graph, x)

    def summed(self, shares: Array) -> Array:
        """Shares of the results as shares of the columns."""
        return np.bincount(self.origin_, shares, minlength=self.n_features_in_)

    def slopes(self, slopes: Array, x: Array) -> Array:
        """Derivatives in the columns, n × d × C, of `slopes` in the results at x.

        NaN for columns that are no numbers, and for missing ones where the fit had some.
        """
        found = np.full((len(slopes), self.n_features_in_, slopes.shape[2]), np.nan)
        first = self.parts_[0]
        if isinstance(first, NumberPart):
            numbers = [k for k, j in enumerate(first.at) if self.kinds_[j] != "boolean"]
            found[:, first.at[numbers]] = slopes[:, numbers]
            flags = x[:, len(first.at) :][:, : len(first.flagged)]
            for j, missing in zip(first.at[first.flagged], flags.T):
                found[missing > 0, j] = np.nan
        return found

    def of_numbers(self, given: Array) -> Array:
        """Values for the columns, `given`, as values for the results.

        An error where a column that is no number has another value than 0.
        """
        found, first = np.zeros(len(self.origin_), given.dtype), self.parts_[0]
        numbers = first.at if isinstance(first, NumberPart) else np.zeros(0, np.intp)
        found[: len(numbers)] = given[numbers]
        for j in np.setdiff1d(np.flatnonzero(given), numbers):
            if self.kinds_[j] not in ("empty", "id"):  # predictions do not depend on these
                names = getattr(self, "feature_names_in_", range(self.n_features_in_))
                raise ValueError(
                    "'monotonic_cst' takes numeric columns. Got one for column "
                    f"{names[j]!r}, a {self.kinds_[j]}."
                )
        return found

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the results: "size", "size_missing", "town_Bern" and so on.

        `input_features` must be the names of the fit, if given.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        made = np.array([n for part in self.parts_ for n in part.names(names)], dtype=object)
        if self.means_ is None:
            return made
        width = self.means_.outputs
        ends = [f"_{k}" for k in range(width)] if width > 1 else [""]
        coded = [part.column for part in self.parts_ if isinstance(part, CodePart)]
        found = [*np.delete(made, self.means_.replaced)]
        found += [f"{names[k]}_mean{end}" for k in coded for end in ends]
        for text in self.means_.texts:
            name = made[text.columns[0]].removesuffix("_text_0")
            found += [*(f"{name}_predicted{end}" for end in ends), *made[text.beside]]
        return np.array(found, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _coded(parts: Sequence[Part]) -> Coded | None:
    """The results of parts that hold codes of levels, or numbers of texts."""
    ends = np.cumsum([0, *(len(part.origin) for part in parts)]).tolist()
    coded = {k: part.size for k, part in zip(ends, parts) if isinstance(part, CodePart)}
    texts = [
        np.arange(k, k + part.directions.shape[1])
        for k, part in zip(ends, parts)
        if isinstance(part, TextPart) and part.directions.shape[1]
    ]
    if not (coded or texts):
        return None
    return Coded(np.array([*coded], np.intp), tuple(coded.values()), tuple(texts))


def _encoded(parts: Sequence[Part], inputs: Any) -> Array:
    if isinstance(inputs, np.ndarray):
        part = cast(NumberPart, parts[0])
        whole = len(part.at) == inputs.shape[1]
        return part.filled(inputs if whole else inputs[:, part.at])
    x = np.hstack([part.encode(inputs) for part in parts])
    finite = np.isfinite(x).all(axis=0)
    if not finite.all():
        origin = np.concatenate([part.origin for part in parts])
        names = ", ".join(repr(inputs[k].name) for k in np.unique(origin[~finite]))
        raise ValueError(
            f"Input X contains infinity, or a number too large for a float, in column {names}."
        )
    return x
