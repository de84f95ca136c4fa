"""Random feature models that learn their activation function."""

from rflaf._version import __version__
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
