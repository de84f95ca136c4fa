"""Comparing a graph with the model that it was made from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TOLERANCE = 1e-5  # of the largest prediction


def check_rows(data: bytes, model: Any, rows: Any, inputs: dict[str, Array], dtype: str) -> None:
    """Raise unless the graph in `data` gives for the rows what the model gives."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "The 'check' parameter of export needs onnxruntime: pip install 'rflaf[onnx]'."
        ) from error
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, inputs), strict=True))
    if "probabilities" in outputs:
        expected = model.predict_proba(rows)
        difference = _difference(outputs["probabilities"], expected)
        labels = np.asarray(np.searchsorted(model.classes_, outputs["label"]))
        # another label is right only where two classes are as good as equally probable
        difference = max(difference, _shortfall(expected, labels))
    elif "features" not in outputs:
        made = {"prediction": model.predict, "std": getattr(model, "predict_std", None)}
        pairs = [(outputs[name], made[name](rows)) for name in outputs if name != "quantiles"]
        difference = max([_difference(*pair) for pair in pairs], default=0.0)
    else:
        difference = _difference(outputs["features"], model.transform(rows))
    if not difference <= TOLERANCE:
        offsets = "inputs with large offsets need dtype='float64', and " * (dtype == "float32")
        raise ValueError(
            f"The graph is off by {difference:.1e} of the largest prediction on the rows of "
            f"'check'. Expected at most {TOLERANCE:.0e}. Known causes: {offsets}weights so large "
            "that the model itself is no more exact in float32 (take a larger 'alpha', or a lower "
            "degree for 'polynomial'). Nothing was written."
        )


def _difference(got: Array, expected: Array) -> float:
    scale = np.abs(expected).max()
    return float(np.abs(got - expected).max() / (scale if scale > 0 else 1.0))


def _shortfall(p: Array, labels: Array) -> float:
    return float((p.max(axis=1) - np.take_along_axis(p, labels[:, None], axis=1)[:, 0]).max())
