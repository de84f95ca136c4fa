"""Preprocessing of scikit-learn as parts of a graph. All of it is done in float64."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from rflaf.arrays import Array
from rflaf.estimators import RandomFeatures
from rflaf.inputs.encoder import ColumnEncoder
from rflaf.onnx.graph import Graph
from rflaf.onnx.models import add_random_features


def add_step(graph: Graph, name: str, step: Any, x: str) -> str:
    """x transformed by the step, which errors call `name`."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return x
    # by type, and not by isinstance: a subclass may do something else
    add = STEPS.get(type(step))
    if add is None:
        raise _refused(name, step, f"Expected one of: {', '.join(t.__name__ for t in STEPS)}.")
    check_is_fitted(step)
    if type(step) not in _PASSED_ON:
        graph.refuse_infinite(x)  # all of them raise there
    return add(graph, name, step, x)


def _refused(name: str, step: Any, why: str) -> ValueError:
    return ValueError(f"The step {name!r}, a {type(step).__name__}, cannot be exported. {why}")


def _add_pipeline(graph: Graph, name: str, pipeline: Pipeline, x: str) -> str:
    for inner, step in pipeline.steps:
        x = add_step(graph, f"{name}.{inner}", step, x)
    return x


def _add_column_transformer(graph: Graph, name: str, step: ColumnTransformer, x: str) -> str:
    parts = []
    for inner, transformer, _ in step.transformers_:
        at = step._transformer_to_input_indices[inner]
        if (isinstance(transformer, str) and transformer == "drop") or len(at) == 0:
            continue
        part = add_step(graph, f"{name}.{inner}", transformer, graph.columns(x, at))
        weight = (step.transformer_weights or {}).get(inner)
        parts.append(part if weight is None else graph.add("Mul", part, np.float64(weight)))
    if not parts:
        raise _refused(name, step, "It drops every column.")
    return graph.add("Concat", *parts, axis=1)


def _add_scaler(graph: Graph, name: str, step: StandardScaler | RobustScaler, x: str) -> str:
    center = step.mean_ if isinstance(step, StandardScaler) else step.center_
    if center is not None and getattr(step, "with_mean", True):
        x = graph.add("Sub", x, np.asarray(center, np.float64))
    return x if step.scale_ is None else graph.add("Div", x, np.asarray(step.scale_, np.float64))


def _add_min_max_scaler(graph: Graph, name: str, step: MinMaxScaler, x: str) -> str:
    scaled = graph.add("Mul", x, np.asarray(step.scale_, np.float64))
    x = graph.add("Add", scaled, np.asarray(step.min_, np.float64))
    return _clipped(graph, x, *step.feature_range) if step.clip else x


def _add_max_abs_scaler(graph: Graph, name: str, step: MaxAbsScaler, x: str) -> str:
    x = graph.add("Div", x, np.asarray(step.scale_, np.float64))
    return _clipped(graph, x, -1, 1) if getattr(step, "clip", False) else x  # new in 1.7


def _clipped(graph: Graph, x: str, low: float, high: float) -> str:
    clipped = graph.add("Clip", x, np.float64(low), np.float64(high))
    return graph.add("Where", graph.add("IsNaN", x), x, clipped)  # as NumPy does


def _add_function_transformer(graph: Graph, name: str, step: FunctionTransformer, x: str) -> str:
    if step.func is not None:
        raise _refused(name, step, "Its function is Python code.")
    return x


def _add_simple_imputer(graph: Graph, name: str, step: SimpleImputer, x: str) -> str:
    values = [step.missing_values, *step.statistics_.tolist()]  # an array of objects at times
    if not all(isinstance(value, Real) for value in values):
        raise _refused(name, step, "Only numbers are imputed, in place of NaN or a number.")
    statistics = np.asarray(step.statistics_, np.float64)
    missing = _equal(graph, name, step, x, np.asarray([step.missing_values], np.float64))
    filled = graph.add("Where", missing, statistics, x)
    kept = np.flatnonzero(~np.isnan(statistics) | step.keep_empty_features)
    if len(kept) < len(statistics):  # columns without a single value
        filled = graph.columns(filled, kept)
    if not step.add_indicator or not len(step.indicator_.features_):
        return filled
    flags = graph.cast(graph.columns(missing, step.indicator_.features_), np.float64)
    return graph.add("Concat", filled, flags, axis=1)


def _add_one_hot_encoder(graph: Graph, name: str, step: OneHotEncoder, x: str) -> str:
    if step.min_frequency is not None or step.max_categories is not None:
        raise _refused(name, step, "It groups categories ('min_frequency', 'max_categories').")
    parts = []
    for k, given in enumerate(step.categories_):
        if given.dtype.kind not in "biuf":
            why = f"Its column {k} has categories that are not numbers: {given.tolist()[:3]}."
            raise _refused(name, step, why)
        hot = _equal(graph, name, step, graph.columns(x, [k]), given.astype(np.float64))
        hot = graph.cast(hot, np.float64)
        if step.handle_unknown == "error":  # a graph cannot raise: 0 / 0 refuses the row
            found = graph.add("ReduceSum", hot, np.array([1]), keepdims=1)
            graph.refuse(graph.add("Sub", graph.add("Div", found, found), np.float64(1)))
        dropped = None if step.drop_idx_ is None else step.drop_idx_[k]
        if dropped is not None:
            hot = graph.columns(hot, np.delete(np.arange(len(given)), dropped))
        parts.append(hot)
    return graph.add("Concat", *parts, axis=1)


def _equal(graph: Graph, name: str, step: Any, x: str, values: Array) -> str:
    """Which entries are which of the values, NaN among them; in the precision of the input.

    In float32 the input 0.1 is not the 0.1 of float64, and both must be rounded to be the same.
    """
    rounded = values.astype(graph.dtype)
    if len(np.unique(rounded)) < len(values):
        raise _refused(name, step, f"{graph.dtype} cannot distinguish its values. Use 'float64'.")
    same = graph.add("Equal", graph.cast(x, graph.dtype), rounded)
    if not np.isnan(values).any():
        return same
    absent = graph.add("And", graph.add("IsNaN", x), np.isnan(values))
    return graph.add("Or", same, absent)


def _add_random_features(graph: Graph, name: str, step: RandomFeatures, x: str) -> str:
    return graph.cast(add_random_features(graph, step, x), np.float64)


def _add_column_encoder(graph: Graph, name: str, step: ColumnEncoder, x: str) -> str:
    if not step.is_numeric:
        raise _refused(name, step, "It has categories or dates, and is not the first step.")
    return step.export(graph, x)


# Steps that leave the check of the values to others
_PASSED_ON = (ColumnTransformer, FunctionTransformer, Pipeline)
STEPS: dict[type, Callable[[Graph, str, Any, str], str]] = {
    ColumnEncoder: _add_column_encoder,
    ColumnTransformer: _add_column_transformer,
    FunctionTransformer: _add_function_transformer,
    MaxAbsScaler: _add_max_abs_scaler,
    MinMaxScaler: _add_min_max_scaler,
    OneHotEncoder: _add_one_hot_encoder,
    Pipeline: _add_pipeline,
    RandomFeatures: _add_random_features,
    RobustScaler: _add_scaler,
    SimpleImputer: _add_simple_imputer,
    StandardScaler: _add_scaler,
}
