"""RandomFeatures: sigma of a random projection, as a transformer."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from rflaf import Activation, RandomFeatures
from rflaf.bases import RBF
from tests.estimators.conftest import regressor


def test_features_are_sigma_of_the_projection(rng):
    X = rng.standard_normal((50, 3)) * [1, 10, 0.1] + 5
    for activation in ("relu", Activation(RBF(9), rng.standard_normal(9))):
        model = RandomFeatures(20, activation=activation, scale=1.5, random_state=0).fit(X)
        x = (X - X.mean(axis=0)) / X.std(axis=0)
        expected = model.activation_(x @ model.components_)
        np.testing.assert_allclose(model.transform(X), expected, atol=1e-5)
    raw = RandomFeatures(20, standardise=False, random_state=0).fit(X)
    np.testing.assert_allclose(raw.transform(X), np.maximum(X @ raw.components_, 0), atol=1e-9)


def test_the_scale_is_that_of_z(rng):
    X = rng.standard_normal((500, 8)) * 30
    model = RandomFeatures(400, scale=0.7, random_state=0).fit(X)
    z = (X - model.mean_) / model.scale_ @ model.components_
    assert z.std() == pytest.approx(0.7, rel=0.05)


def test_a_learned_activation_serves_elsewhere(friedman):
    X, y, new_X, new_y = friedman
    learned = regressor(n_components=100, max_iter=40, metric="none").fit(X, y).activation_
    model = make_pipeline(  # 0.6 is the spread of Z that the activation was learned for
        RandomFeatures(200, activation=learned, scale=0.6, random_state=1),
        regressor(activation="relu", n_members=1),
    )
    assert model.fit(X, y).score(new_X, new_y) > 0.6
    with pytest.raises(ValueError, match="activation"):
        RandomFeatures(activation="rbf").fit(X)  # a basis alone is no activation
