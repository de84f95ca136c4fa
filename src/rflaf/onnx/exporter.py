"""`export`: a fitted model, or a pipeline that ends in one, as a file in the ONNX format."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from rflaf._version import __version__
from rflaf.arrays import Array
from rflaf.bases.base import checked
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.inputs.encoder import ColumnEncoder
from rflaf.inputs.opening import column_names
from rflaf.onnx.graph import Graph
from rflaf.onnx.models import Outputs, output_classes, output_features, output_prediction
from rflaf.onnx.steps import add_step
from rflaf.onnx.table_inputs import add_columns, column_values
from rflaf.runtime.extras import needed
from rflaf.runtime.files import write_whole

_LARGEST = 2**31 - 1  # bytes of a file in this format
_TOLERANCE = 1e-5  # of the largest prediction
_ROUNDING = 1e-3  # of the spread of the targets, which may lie far from zero

_MODELS: dict[type, tuple[str, Callable[[Graph, Any, str, Outputs], None]]] = {
    RFLAFRegressor: ("regression", output_prediction),
    RFLAFClassifier: ("classification", output_classes),
    RandomFeatures: ("transformation", output_features),
}


@checked(dtype=[StrOptions({"float32", "float64"})])
def export(
    model: Any,
    path: str | os.PathLike[str],
    *,
    dtype: str = "float32",
    check: Any = None,
    outputs: Outputs = ("prediction",),
) -> None:
    """Write a model as a graph of standard ONNX operators, for any number of rows.

    The graph has the input "X", n × d; or, for a model that was fitted to a frame, one input of
    shape n × 1 per column that is used: strings for categories ("" is a missing value), seconds
    since 1970 in float64 for dates, numbers of the graph's type for all others. `inputs` makes them
    from a frame. Outputs are "prediction" (RFLAFRegressor), "label" and "probabilities"
    (RFLAFClassifier) or "features" (RandomFeatures). The graph holds a few arrays of n × M numbers:
    split large inputs.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted. A pipeline ends in an estimator of this package; its other steps are those of
        `rflaf.onnx.steps.STEPS`, on columns of numbers.
    path : str or path
        Usually ends in ".onnx"; overwritten if it exists.
    dtype : {"float32", "float64"}
        Type of inputs and outputs. Use float64 if float32 cannot represent the inputs well, such as
        columns with a mean far larger than their standard deviation.
    check : array or frame, optional
        Rows on which the graph is run before anything is written (needs onnxruntime); an error is
        raised if it differs by more than 1e-5 of the largest prediction, or 1e-3 of the targets'
        standard deviation.
    outputs : sequence
        For RFLAFRegressor: "prediction", "std" (as `predict_std`), and levels between 0 and 1,
        whose quantiles are the columns of the output "quantiles" (as `predict_quantiles`), for one
        target. For "poisson", "gamma" and "tweedie" there is only "prediction".

    Raises
    ------
    ValueError
        If a step or a custom basis without a table cannot be exported, or the check fails.

    Notes
    -----
    NaN is a missing value, as for the model. If the model would refuse a row (infinity; NaN if it
    was fitted to sparse rows or a source; a step's unknown category) or the result overflows, the
    graph returns NaN or infinity, and an undefined label.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import onnxruntime
    >>> from rflaf import RFLAFRegressor
    >>> from rflaf.onnx import export
    >>> X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    >>> model = RFLAFRegressor(20, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.onnx"
    ...     export(model, path, check=X)
    ...     session = onnxruntime.InferenceSession(path.read_bytes())
    >>> (prediction,) = session.run(["prediction"], {"X": X})
    >>> bool(abs(prediction - model.predict(X)).max() < 1e-4)
    True
    """
    _check_names(outputs)
    path = Path(path)
    if not path.parent.is_dir() or path.is_dir():
        missing = f"cannot be written: there is no folder {path.parent}"
        problem = "is a folder" if path.is_dir() else missing
        raise FileNotFoundError(
            f"The 'path' parameter of export must name a file. '{path}' {problem}."
        )
    proto = _as_proto(model, dtype, outputs)
    if proto.ByteSize() > _LARGEST:
        raise ValueError(
            f"This {type(model).__name__} takes {proto.ByteSize() / 1e9:.1f} GB as a graph. An "
            "ONNX file has at most 2 GB: use fewer 'n_components'."
        )
    onnx.checker.check_model(proto, full_check=True)
    data = proto.SerializeToString(deterministic=True)
    if check is not None:
        _check_rows(data, model, check, inputs(model, check, dtype=dtype), dtype, outputs)
    write_whole(path, data)


def inputs(model: Any, X: Any, *, dtype: str = "float32") -> dict[str, Array]:
    """Inputs of an exported graph for rows X, by name.

    Parameters
    ----------
    model : estimator or Pipeline
        The exported model.
    X : array or frame
    dtype : {"float32", "float64"}
        As in `export`.

    Examples
    --------
    >>> import pandas as pd
    >>> from rflaf import RFLAFRegressor
    >>> from rflaf.onnx import inputs
    >>> frame = pd.DataFrame({"size": [1.0, None, 3.0, 4.0] * 9, "town": ["Bern", "Uri"] * 18})
    >>> model = RFLAFRegressor(10, random_state=0).fit(frame, frame["size"].isna())
    >>> {name: values[0].tolist() for name, values in inputs(model, frame[:1]).items()}
    {'size': [1.0], 'town': ['Bern']}
    """
    owner = _owner_of_columns(_steps(model))
    if owner is not None:
        return column_values(*owner, X, dtype)
    dense = X.toarray() if hasattr(X, "toarray") else X
    try:
        return {"X": np.ascontiguousarray(dense, dtype)}
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Rows for this graph must have columns of numbers only: {error}"
        ) from error


def _steps(model: Any) -> list[tuple[str, Any]]:
    """The steps of a pipeline that do something, or the model alone."""
    steps = model.steps if type(model) is Pipeline else [(type(model).__name__, model)]
    return [(name, step) for name, step in steps if step is not None and step != "passthrough"]


def _owner_of_columns(steps: list[tuple[str, Any]]) -> tuple[Any, ColumnEncoder] | None:
    """The first step and its encoder, if it knows a table's columns by their names or kinds."""
    first = steps[0][1]
    encoder = first if type(first) is ColumnEncoder else getattr(first, "encoder_", None)
    if encoder is None or (encoder.is_numeric and not hasattr(first, "feature_names_in_")):
        return None
    return first, encoder


def _check_names(outputs: Outputs) -> None:
    if not len(outputs):
        raise ValueError("The 'outputs' parameter of export must not be empty.")
    for each in outputs:
        known = each in ("prediction", "std") if isinstance(each, str) else 0 < each < 1
        if not known:
            raise ValueError(
                "The 'outputs' parameter of export must have 'prediction', 'std' and levels of "
                f"quantiles between 0 and 1. Got {each!r} instead."
            )


def _as_proto(model: Any, dtype: str, outputs: Outputs) -> onnx.ModelProto:
    steps = _steps(model)
    name, last = steps[-1]
    if type(last) not in _MODELS:
        known = ", ".join(kind.__name__ for kind in _MODELS)
        raise ValueError(
            f"A {type(last).__name__} cannot be exported. Expected one of {known}, or a Pipeline "
            f"that ends in one{f' (its last step is {name!r})' if type(model) is Pipeline else ''}."
        )
    check_is_fitted(last)
    task, add_outputs = _MODELS[type(last)]
    if task != "regression" and tuple(outputs) != ("prediction",):
        raise ValueError(f"The 'outputs' of export are for RFLAFRegressor. Got {outputs!r}.")
    graph = Graph(dtype)
    first = next(step for _, step in steps if hasattr(step, "n_features_in_"))
    n_features = int(first.n_features_in_)
    owner, encoder = _owner_of_columns(steps) or (None, None)
    if encoder is None:
        x = graph.cast(graph.input("X", graph.dtype, "n", n_features), np.float64)
    else:
        x = add_columns(graph, encoder)
    for inner, step in steps[:-1]:
        if step is not owner:
            x = add_step(graph, inner, step, x)
    if last is not owner and getattr(last, "encoder_", None) is not None:
        x = last.encoder_.export(graph, x)
    add_outputs(graph, last, x, outputs)
    proto = graph.model("rflaf", __version__)
    about = {
        "task": task,
        "feature_names": json.dumps(column_names(first)),
        "activation": repr(last.activation_),
        "n_components": str(last.components_.shape[1]),
    }
    if hasattr(last, "members_"):
        about |= {"n_members": str(len(last.members_)), "input_form": last.input_form_}
    onnx.helper.set_model_props(proto, about)
    return proto


def _check_rows(
    data: bytes, model: Any, rows: Any, inputs: dict[str, Array], dtype: str, wanted: Outputs
) -> None:
    """Raise unless the graph in `data` gives for the rows what the model gives."""
    use = "The 'check' parameter of export needs onnxruntime"
    onnxruntime = needed("onnxruntime", use, "'rflaf[onnx]'")
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, inputs), strict=True))
    levels = [each for each in wanted if not isinstance(each, str)]
    is_pipeline = type(model) is Pipeline
    last = model[-1] if is_pipeline else model
    rows = model[:-1].transform(rows) if is_pipeline and len(model) > 1 else rows
    made: dict[str, Callable[[], Array]] = {
        "features": lambda: last.transform(rows),
        "prediction": lambda: last.predict(rows),
        "probabilities": lambda: last.predict_proba(rows),
        "std": lambda: last.predict_std(rows),
        "quantiles": lambda: last.predict_quantiles(rows, levels),
    }
    label = outputs.pop("label", None)
    expected = {name: made[name]() for name in outputs}
    difference = max(_difference(outputs[name], expected[name]) for name in outputs)
    if label is not None:
        # another label is accepted only if both classes are almost equally probable
        p, chosen = expected["probabilities"], np.searchsorted(last.classes_, label)
        difference = max(difference, float((p.max(axis=1) - p[np.arange(len(p)), chosen]).max()))
    if not difference <= _TOLERANCE:
        offsets = "inputs with large offsets need dtype='float64', and " * (dtype == "float32")
        raise ValueError(
            f"The graph differs by {difference:.1e} of the largest prediction on the rows of "
            f"'check'. Expected at most {_TOLERANCE:.0e}. Known causes: {offsets}weights so large "
            "that the model itself is not accurate in float32 (use a larger 'alpha', or a lower "
            "degree for 'polynomial'). Nothing was written."
        )
    spread = getattr(getattr(last, "loss_", None), "scale", None)
    if "prediction" in expected and spread is not None:
        apart = np.abs(outputs["prediction"] - expected["prediction"]).max(axis=0)
        worst = float((apart / spread).max())
        if not worst <= _ROUNDING:
            raise ValueError(
                f"Predictions of the graph differ by {worst:.1e} of the targets' spread on the "
                f"rows of 'check'. Expected at most {_ROUNDING:.0e}. Targets far from zero, such "
                f"as seconds since 1970, need dtype='float64'. Got {dtype!r}. Nothing was written."
            )


def _difference(got: Array, expected: Array) -> float:
    scale = np.abs(expected).max()
    return float(np.abs(got - expected).max() / (scale if scale > 0 else 1.0))
