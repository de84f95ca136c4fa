"""Fitted models as ONNX graphs of standard operators, for use without Python.

>>> from rflaf.onnx import export
>>> export.__name__
'export'
"""

try:
    import onnx as _onnx  # noqa: F401  (the package of that name, not this one)
except ImportError as error:
    raise ImportError("rflaf.onnx needs onnx: pip install 'rflaf[onnx]'.") from error

from rflaf.onnx.exporter import export, inputs

__all__ = ["export", "inputs"]
