"""scikit-learn estimators."""

from rflaf.estimators.classifier import RFLAFClassifier
from rflaf.estimators.features import RandomFeatures
from rflaf.estimators.regressor import RFLAFRegressor

__all__ = ["RFLAFClassifier", "RFLAFRegressor", "RandomFeatures"]
