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
from sklearn.utils.validation import check_is_fitted

from rflaf._version import __version__
from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
from rflaf.files import write_whole
from rflaf.onnx.check import check_rows
from rflaf.onnx.graph import Graph
from rflaf.onnx.models import output_classes, output_features, output_prediction
from rflaf.onnx.steps import add_step

_LARGEST = 2**31 - 1  # bytes of a file in this format

_MODELS: dict[type, tuple[str, Callable[[Graph, Any, str], None]]] = {
    RFLAFRegressor: ("regression", output_prediction),
    RFLAFClassifier: ("classification", output_classes),
    RandomFeatures: ("transformation", output_features),
}


def export(
    model: Any, path: str | os.PathLike[str], *, dtype: str = "float32", check: Any = None
) -> None:
    """Write a model as a graph of standard ONNX operators, for any number of rows.

    The graph has the input "X", n × d, and the outputs "prediction" (RFLAFRegressor), "label" and
    "probabilities" (RFLAFClassifier) or "features" (RandomFeatures). It keeps what is n × M in
    memory a few times over: give it large inputs in parts.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted. A pipeline ends in an estimator of this package; its other steps are those of
        `rflaf.onnx.steps.STEPS`, on columns of numbers.
    path : str or path
        By custom it ends in ".onnx". A file that is there is replaced, whole or not at all.
    dtype : {"float32", "float64"}
        Of the input and the outputs. Take float64 where rounding the inputs to float32 loses
        something, as it does for columns with a mean far larger than their deviation.
    check : array or frame, optional
        Rows on which the graph is run before anything is written (needs onnxruntime); an error is
        raised if it is off by more than 1e-5 of the largest prediction.

    Raises
    ------
    ValueError
        For what cannot be exported: a step, a custom basis without a table, or a graph that fails
        the check. The message names it.

    Notes
    -----
    Where the model refuses a row (NaN, infinity, an unknown category) or the result would
    overflow, the graph gives NaN or infinity, and a label that means nothing.

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
    if dtype not in ("float32", "float64"):
        raise ValueError(
            "The 'dtype' parameter of export must be 'float32' or 'float64'. "
            f"Got {dtype!r} instead."
        )
    path = Path(path)
    if not path.parent.is_dir() or path.is_dir():
        problem = "is a folder" if path.is_dir() else f"is in no folder: there is no {path.parent}"
        raise FileNotFoundError(
            f"The 'path' parameter of export must name a file. '{path}' {problem}."
        )
    proto = _as_proto(model, dtype)
    if proto.ByteSize() > _LARGEST:
        raise ValueError(
            f"This {type(model).__name__} takes {proto.ByteSize() / 1e9:.1f} GB as a graph. A file "
            "of this format holds 2 GB: take fewer 'n_components'."
        )
    onnx.checker.check_model(proto, full_check=True)
    data = proto.SerializeToString(deterministic=True)
    if check is not None:
        check_rows(data, model, check, dtype)
    write_whole(path, data)


def _as_proto(model: Any, dtype: str) -> onnx.ModelProto:
    steps = model.steps if type(model) is Pipeline else [(type(model).__name__, model)]
    name, last = steps[-1]
    if type(last) not in _MODELS:
        known = ", ".join(kind.__name__ for kind in _MODELS)
        raise ValueError(
            f"A {type(last).__name__} cannot be exported. Expected one of {known}, or a Pipeline "
            f"that ends in one{f' (its last step is {name!r})' if type(model) is Pipeline else ''}."
        )
    check_is_fitted(last)
    task, add_outputs = _MODELS[type(last)]
    graph = Graph(dtype)
    x = graph.cast("X", np.float64)
    for inner, step in steps[:-1]:
        x = add_step(graph, inner, step, x)
    add_outputs(graph, last, x)
    first = next(step for _, step in steps if hasattr(step, "n_features_in_"))
    n_features = int(first.n_features_in_)
    names = getattr(first, "feature_names_in_", [f"x{k}" for k in range(n_features)])
    proto = graph.model(n_features, "rflaf", __version__)
    about = {
        "task": task,
        "feature_names": json.dumps([str(name) for name in names]),
        "activation": repr(last.activation_),
        "n_components": str(last.components_.shape[1]),
    }
    if hasattr(last, "members_"):
        about |= {"n_members": str(len(last.members_)), "input_form": last.input_form_}
    onnx.helper.set_model_props(proto, about)
    return proto
