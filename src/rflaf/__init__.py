"""Random feature models that learn their activation function."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rflaf._version import __version__

if TYPE_CHECKING:
    from rflaf.activation import Activation
    from rflaf.estimators import RandomFeatures, RFLAFClassifier, RFLAFRegressor
    from rflaf.io import load, save

__all__ = [
    "Activation",
    "RFLAFClassifier",
    "RFLAFRegressor",
    "RandomFeatures",
    "__version__",
    "load",
    "save",
]

# Imported when first asked for: scikit-learn takes longer to import than `rflaf --help` may take.
_HOMES = {
    "Activation": "rflaf.activation",
    "RFLAFClassifier": "rflaf.estimators",
    "RFLAFRegressor": "rflaf.estimators",
    "RandomFeatures": "rflaf.estimators",
    "load": "rflaf.io",
    "save": "rflaf.io",
}
_PARTS = {"activation", "bases", "estimators", "fused", "io", "projection", "solvers"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _PARTS:
        return import_module(f"rflaf.{name}")
    raise AttributeError(f"module 'rflaf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_PARTS})
