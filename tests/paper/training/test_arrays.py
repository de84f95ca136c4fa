"""fit_adam: arrays in, arrays out."""

import numpy as np
import pytest

from rflaf import Activation
from rflaf.bases import RBF
from rflaf.nn import fit_adam


def test_fit_adam_regression(regression, rng):
    X, y, X_test, y_test = (part.numpy() for part in regression)
    W = rng.normal(size=(2, 300))
    fits = [fit_adam(X, y, W, "rbf", epochs=25, random_state=3) for _ in range(2)]
    fit = fits[0]
    assert fit.status == "finished"
    assert np.array_equal(fit.coefficients, fits[1].coefficients)
    prediction = Activation(RBF(17), fit.coefficients)(X_test @ W) @ fit.V
    assert np.mean((prediction - y_test) ** 2) < 0.3 * y_test.var()


def test_fit_adam_classification_fixed_and_several_targets(regression, rng):
    X, y = (part.numpy() for part in regression[:2])
    W = rng.normal(size=(2, 50))
    classes = fit_adam(X, y > 0.5, W, task="classification", epochs=2, random_state=0)
    assert classes.V.shape == (50, 2)
    fixed = fit_adam(X, y, W, "relu", epochs=2, random_state=0)
    assert fixed.coefficients.tolist() == [1.0]
    both = fit_adam(X, np.stack([y, -y], 1), W, epochs=2, random_state=0, dtype="float64")
    assert both.V.shape == (50, 2)
    assert both.V.dtype == np.float64
    with pytest.raises(ValueError, match="'task' parameter of fit_adam"):
        fit_adam(X, y, W, task="ranking")
