"""Models of every kind, and all their outputs."""

import numpy as np
import pytest

from rflaf import RandomFeatures, RFLAFClassifier, RFLAFRegressor

SMALL = {"n_components": 20, "max_iter": 3, "n_members": 2, "random_state": 0}


def regressor(**parameters):
    return RFLAFRegressor(**{**SMALL, **parameters})


def classifier(**parameters):
    return RFLAFClassifier(**{**SMALL, **parameters})


def features(**parameters):
    return RandomFeatures(**{"n_components": 20, "random_state": 0, **parameters})


MAKERS = pytest.mark.parametrize("make", [regressor, classifier, features])
PREDICTORS = pytest.mark.parametrize("make", [regressor, classifier])


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((150, 3))
    return X, (X[:, 0] > 0).astype(float)


def outputs(model, X):
    """Everything a model predicts for X."""
    names = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
    found = [np.asarray(getattr(model, name)(X)) for name in names if hasattr(model, name)]
    if isinstance(model, RFLAFRegressor):
        found.append(model.predict(X, return_std=True)[1])
    return found


def assert_finite(model, *inputs):
    for X in inputs:
        for values in outputs(model, X):
            assert values.shape[0] == X.shape[0]
            assert np.isfinite(values.astype(float)).all()
